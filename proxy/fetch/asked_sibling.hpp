#pragma once
// One sibling that is asked for an object: the connection, its time, and what it says.
//
// It is asked by an absolute-form GET with only-if-cached. What counts as its answer: 2xx, 3xx, 404
// and 410 with an Age, which says that it comes from a store, once its body has begun to come; where
// its end is stated, it is one that the request can have (304 and 206 are not to a plain GET) and
// that a store may share (sibling_answer.hpp), and it is no older than the last invalidation of the
// key, or purge that meets it, that this node knows of, nor by its Date than what this node holds.
//
// One that says 102 waits itself, for an origin that it has asked: it has as long as any other, but that
// it is late is the origin's doing, and not held against it, unless that is all that it ever says
// (benefit::is_excused).
//
// Threads   one worker's.
// Waits     peers[].timeout, by a timer of its own: a budget of 100 ms is no matter for deadlines
//           that tick ten times a second. As long for its turn and its connection, where all are in use,
//           and then for its answer: it is not silent because it had to wait for us.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/benefit.hpp"
#include "proxy/peer/peer_book.hpp"
#include "proxy/thread/settings.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace reprise::proxy::thread {
struct worker;
}  // namespace reprise::proxy::thread

namespace reprise::proxy::fetch {

/// So many 1xx answers of a sibling or an origin may come before the final one.
inline constexpr unsigned most_interim = 16;

/// What is asked, the same of each sibling.
struct sibling_question {
    std::string wire;       ///< the request's head
    std::string site_wire;  ///< for gateways, for what their siblings hold; empty: none is asked
    filter::key_hash key;   ///< in the store
    std::string url;        ///< and its text
    net::share_holder charged_to;
    thread::settings_ptr settings;
    const http::freshness_rules* rules = nullptr;  ///< for the URL; in the settings
    http::request_directives asked;
    cache::stored_ptr held;  ///< what it is asked in the place of; null: nothing
};

/// What one of them has answered.
struct sibling_reply {
    std::shared_ptr<const peer::known_peer> from;
    unsigned slot = 0;
    net::origin_lease lease;  ///< its buffer begins with the head
    http::response_head head;
    wall_time asked_at{};
    steady_time sent_at{};
    std::uint16_t turn = 0;
    std::chrono::microseconds took{0};  ///< to the first byte of its body
    std::uint64_t bytes = 0;            ///< sent and received until then
};

class asked_sibling : public std::enable_shared_from_this<asked_sibling> {
public:
    /// @pre w outlives it
    asked_sibling(thread::worker& w,
                  std::shared_ptr<const sibling_question> question,
                  std::shared_ptr<const peer::known_peer> whom,
                  unsigned slot);
    ~asked_sibling();
    asked_sibling(const asked_sibling&) = delete;
    asked_sibling& operator=(const asked_sibling&) = delete;

    /// `ended` is called once, from the loop, and not within begin().
    void begin(std::function<void(asked_sibling&)> ended);
    /// Nobody waits for it any more: it ends soon.
    void leave();

    /// It could be asked from then on.
    [[nodiscard]] steady_time begun() const noexcept { return begun_; }
    /// Until then it need not have said anything, or no more than it has (benefit::patience).
    [[nodiscard]] steady_time patient_until() const noexcept { return patient_until_; }
    /// All connections to it, or this client's, were in use, and it waits for one, or for the one that is made in its place.
    [[nodiscard]] bool is_in_line() const noexcept { return is_in_line_; }
    /// It said that it waits for an origin.
    [[nodiscard]] bool is_at_work() const noexcept { return at_work_; }
    /// What came of it. None: not known yet, or it was not asked, by our own lack (is_our_own_lack).
    [[nodiscard]] std::optional<peer::asking_end> end() const noexcept { return end_; }
    /// @pre end() is a true hit, and it was not taken before
    [[nodiscard]] std::unique_ptr<sibling_reply> take() noexcept { return std::move(reply_); }
    /// Into its figures. @pre it has ended or was left; before take()
    void count(peer::asking_end as, peer::said_so_far what = peer::said_so_far::nothing) const;
    /// The same of one that was at work and is too late, unless it is excused.
    void count_late_at_work() const;

private:
    void begin_its_time();
    awaitable<void> run();
    awaitable<std::optional<peer::asking_end>> ask();
    awaitable<peer::asking_end> exchange_heads();
    [[nodiscard]] std::optional<peer::asking_end> judge();
    [[nodiscard]] const std::string& wire() const noexcept {
        return reply_->from->members ? question_->site_wire : question_->wire;
    }
    [[nodiscard]] bool is_outdated(std::chrono::seconds age) const;

    thread::worker& w_;
    const std::shared_ptr<const sibling_question> question_;
    std::unique_ptr<sibling_reply> reply_;
    std::function<void(asked_sibling&)> ended_;
    asio::steady_timer timer_;
    steady_time begun_;
    const steady_time::duration patience_;
    steady_time patient_until_;
    std::optional<peer::asking_end> end_;
    bool is_late_ = false;  // or left
    bool is_in_line_ = false;
    bool heard_ = false;
    bool at_work_ = false;
};

}  // namespace reprise::proxy::fetch
