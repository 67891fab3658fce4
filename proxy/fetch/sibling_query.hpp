#pragma once
// Siblings asked for one object, best first, one after another, until one has it.
//
// A sibling is asked by an absolute-form GET with only-if-cached. What counts as its answer: 2xx,
// 3xx, 404 and 410 with an Age, which says that it comes from a store, once its body has begun to
// come; where its end is stated, it is one that the request can have (304 and 206 are not to a
// plain GET) and that a store may share (sibling_answer.hpp), and it is no older than the last
// invalidation of the key, or purge that meets it, that this node knows of. Anything else, silence
// for its timeout or a connection that fails means the next one. The query says when it has an answer or has nobody left to ask; a waiter may do
// without it at any moment.
//
// One that says 102 waits itself, for an origin that it has asked: it has as long as any other, but that
// it is late is the origin's doing, and not held against it.
//
// Threads   one worker's.
// Waits     each sibling's timeout, by a timer of its own: a budget of 100 ms is no matter for
//           deadlines that tick ten times a second.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/benefit.hpp"
#include "proxy/peer/peer_book.hpp"
#include "proxy/peer/sibling_table.hpp"
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

class sibling_query : public std::enable_shared_from_this<sibling_query> {
public:
    struct question {
        std::shared_ptr<const peer::peer_book> book;
        peer::candidates whom;
        std::string wire;  ///< the request's head, the same for all siblings
        std::string
            site_wire;         ///< for gateways, for what their siblings hold; empty: none is asked
        filter::key_hash key;  ///< in the store
        std::string url;       ///< and its text
        net::share_holder charged_to;
        thread::settings_ptr settings;
        const http::freshness_rules* rules = nullptr;  ///< for the URL; in the settings
        http::request_directives asked;
    };
    struct answer {
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

    /// `told` is called once, from the loop, when is_over() has become true. @pre w outlives it
    sibling_query(thread::worker& w,
                  question asked,
                  std::function<void(const sibling_query&)> told);
    ~sibling_query();
    sibling_query(const sibling_query&) = delete;
    sibling_query& operator=(const sibling_query&) = delete;

    void begin();

    /// There is an answer, or nobody is left to ask.
    [[nodiscard]] bool is_over() const noexcept { return over_; }
    [[nodiscard]] bool has_answer() const noexcept { return answer_ != nullptr; }
    /// @pre has_answer()
    [[nodiscard]] std::unique_ptr<answer> take() noexcept { return std::move(answer_); }

    enum class reason : std::uint8_t {
        outrun,    ///< another source was faster
        unwanted,  ///< the clients have left, or no answer is of use any more
    };
    /// Ends the wait. `outrun`: the sibling being asked, or one that has answered since, counts as
    /// late. `unwanted`: the one being asked is not counted. @pre before take()
    void abandon(reason why);

private:
    awaitable<void> run();
    awaitable<std::optional<peer::asking_end>> ask(const peer::known_peer& one);
    awaitable<peer::asking_end> exchange_heads(bool& silent);
    [[nodiscard]] std::optional<peer::asking_end> judge();
    [[nodiscard]] const std::string& wire() const noexcept {
        return asking_->from->members ? asked_.site_wire : asked_.wire;
    }
    [[nodiscard]] bool is_outdated(std::chrono::seconds age) const;
    void close();
    void count(const answer& one, peer::asking_end end) const;

    thread::worker& w_;
    question asked_;
    std::function<void(const sibling_query&)> told_;
    asio::steady_timer timer_;
    std::unique_ptr<answer> asking_, answer_;
    unsigned turn_ = 0;  // of asking: a timer that went off for an earlier one says nothing
    bool late_ = false;
    bool at_work_ = false;  // it has said so
    bool abandoned_ = false;
    bool outrun_ = false;
    bool over_ = false;
};

}  // namespace reprise::proxy::fetch
