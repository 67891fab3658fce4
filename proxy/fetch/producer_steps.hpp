#pragma once
// One producer at work: internal to producer.cpp, which goes from the order to the end of the
// response, to producer_sources.cpp, which finds whom it comes from, and to producer_body.cpp,
// which reads its body.

#include "proxy/fetch/inquiry.hpp"
#include "proxy/fetch/keeping.hpp"
#include "proxy/fetch/passed_bytes.hpp"
#include "proxy/fetch/producer.hpp"
#include "proxy/fetch/received.hpp"
#include "proxy/fetch/upload_watch.hpp"
#include "proxy/net/wakeup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::fetch {

/// Lets another thread stop the producer's reading: the socket it reads now, if any.
struct stop_control {
    net::byte_stream* reading = nullptr;
};

/// Why a step did not succeed; none: it did.
using trouble = std::optional<failure>;

class producer {
public:
    producer(thread::worker& w, std::shared_ptr<fetch_order> order)
        : w_{w},
          order_{std::move(order)},
          into_{*order_->into},
          body_{order_->body()},
          ready_{w.timer},
          control_{std::make_shared<stop_control>()},
          patience_{w.timer, [this] { run_out_of_patience(); }},
          watch_{w.timer,
                 body_,
                 order_->now_settings->options.timeouts,
                 lease_,
                 {.stalled = [this] { interrupt(); }, .over = [this] { await_head_anew(); }}},
          keeping_{w, *order_, into_} {}

    awaitable<void> run();

private:
    static constexpr std::size_t read_size = 16u << 10;

    struct head_end {
        enum class kind : std::uint8_t {
            got,
            retry,      ///< a kept connection was dead: once more, on a new one
            failed,     ///< `why`
            overtaken,  ///< a sibling has answered meanwhile
        };
        kind what = kind::got;
        failure why{failure_code::internal, ""};
    };

    void interrupt() {
        if (control_->reading != nullptr) {
            error_code ignored;
            control_->reading->cancel(ignored);
        }
    }

    // Whom it comes from.
    awaitable<trouble> get_head();
    awaitable<head_end> ask_origins();
    bool may_leave_to_peers();
    void find_peers();
    void ask_siblings();
    awaitable<bool> wait_for_siblings(steady_time until);
    void adopt_sibling();
    awaitable<attempt<net::origin_lease>> acquire(bool fresh_only, steady_time until);
    awaitable<trouble> connect(bool fresh_only);
    awaitable<trouble> connect_and_send(bool fresh_only);
    awaitable<head_end> read_head();
    [[nodiscard]] head_end no_head() const;
    [[nodiscard]] trouble pass_interim(unsigned count);
    [[nodiscard]] bool is_overtaken() const noexcept { return inquiry_ && inquiry_->has_answer(); }
    [[nodiscard]] const peer::known_peer* parent() const noexcept;
    void blame_parent(steady_time begun, const failure& why);
    void note_parent_answered();
    [[nodiscard]] bool try_next_parent(steady_time begun, const failure& why);
    void end_asking(peer::asking_end how);
    [[nodiscard]] const filter::key_hash& peer_key();
    void let_go();

    // The request's body, on its way.
    void begin_upload();
    void run_out_of_patience();
    void await_head_anew();
    [[nodiscard]] bool may_have_rest() const noexcept;
    awaitable<void> settle_upload();
    awaitable<void> finish_upload();

    // The response.
    awaitable<void> fetch_once();
    [[nodiscard]] trouble switch_protocols();
    [[nodiscard]] bool adopt_not_modified(bool dubious);
    void publish_head();
    awaitable<void> pass_body();
    [[nodiscard]] bool has_surplus(std::size_t answered) noexcept;
    void give_back();
    void count_finished();
    void fail(failure why);

    // Its body.
    awaitable<trouble> read_body(std::string& trailers);
    awaitable<trouble> read_body_of_one(std::string& trailers);
    awaitable<trouble> go_on_elsewhere();
    [[nodiscard]] failure cut_short(std::string detail) const;
    [[nodiscard]] bool deliver(std::string_view piece);
    [[nodiscard]] bool ends_by_surprise() const noexcept {
        return passed_ && !sibling_ && published_->length &&
               came_.framing.kind != http::body_kind::length;
    }
    [[nodiscard]] bool end_body();
    awaitable<bool> wait_for_room();
    awaitable<std::size_t> read_into(char* at, std::size_t room, error_code& error);

    thread::worker& w_;
    std::shared_ptr<fetch_order> order_;
    cache::fetch& into_;
    const std::shared_ptr<upload> body_;  // of the request; null: there is none
    net::wakeup ready_;
    std::shared_ptr<stop_control> control_;
    net::deadline patience_;
    net::origin_lease lease_;
    upload_watch watch_;
    received came_;
    keeping keeping_;

    std::shared_ptr<const peer::peer_book> book_;  // null: no peer is asked
    std::optional<filter::key_hash> peer_key_;
    std::shared_ptr<inquiry> inquiry_;
    std::shared_ptr<const peer::known_peer> sibling_;  // that answers; null: it is not a sibling
    unsigned sibling_slot_ = 0;
    std::chrono::microseconds sibling_took_{0};
    std::uint64_t sibling_bytes_ = 0;   // sent and received before its body
    std::vector<std::size_t> parents_;  // of the book, in the order to be tried
    std::size_t parent_at_ = 0;         // the one in hand; behind the last: the origin itself
    bool any_byte_ = false;             // of the response that is read
    // What a sibling has sent, so that another source can go on where it broke off.
    std::unique_ptr<passed_bytes> passed_;
    cache::head_ptr published_;
    std::uint64_t owed_ = 0;    // of the length that readers were promised; without one, no bound
    std::optional<char> last_;  // of it, held back until the other source is seen to end there
    bool validate_ = false;
    bool refetch_ = false;        // the 304 was not about what is stored: once more,
    bool unconditional_ = false;  // and without validators
    bool upload_started_ = false;
    bool awaits_head_ = false;     // patience_ is for the response's head
    bool answered_early_ = false;  // the request's body was not out yet
};

}  // namespace reprise::proxy::fetch
