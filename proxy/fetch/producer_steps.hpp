#pragma once
// One producer at work: internal to producer.cpp, which reads the response, to
// producer_sources.cpp, which finds whom it comes from, to producer_keeping.cpp, which judges what
// came and keeps it, and to producer_freshening.cpp, which freshens what is stored by it.

#include "proxy/cache/partial_response.hpp"
#include "proxy/fetch/inquiry.hpp"
#include "proxy/fetch/passed_bytes.hpp"
#include "proxy/fetch/producer.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/wakeup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::fetch {

/// Lets another thread stop the producer's reading: the socket it reads now, if any.
struct stop_control {
    tcp_socket* reading = nullptr;
};

class producer {
public:
    producer(thread::worker& w, std::shared_ptr<fetch_order> order)
        : w_{w},
          order_{std::move(order)},
          into_{*order_->into},
          ready_{w.timer},
          control_{std::make_shared<stop_control>()},
          patience_{w.timer, [this] { run_out_of_patience(); }},
          taking_{w.timer, [this] { look_at_upload(); }} {}

    awaitable<void> run();

private:
    static constexpr std::size_t read_size = 16u << 10;

    enum class head_end : std::uint8_t {
        got,
        retry,      ///< a kept connection was dead: once more, on a new one
        failed,     ///< why_ says why
        overtaken,  ///< a sibling has answered meanwhile
    };

    // Who answers.
    enum class next_hop : std::uint8_t { origin, parent, sibling };

    void interrupt() {
        if (control_->reading != nullptr) {
            error_code ignored;
            control_->reading->cancel(ignored);
        }
    }

    awaitable<bool> get_head();
    bool may_leave_to_peers();
    void ask_siblings();
    awaitable<bool> wait_for_siblings(steady_time until);
    void adopt_sibling();
    awaitable<attempt<net::origin_lease>> acquire(bool fresh_only, steady_time until);
    awaitable<bool> connect(bool fresh_only);
    awaitable<bool> connect_and_send(bool fresh_only);
    awaitable<head_end> read_head();
    [[nodiscard]] bool is_overtaken() const noexcept { return inquiry_ && inquiry_->has_answer(); }
    [[nodiscard]] const peer::known_peer* parent() const noexcept;
    void blame_parent(steady_time begun);
    [[nodiscard]] bool try_next_parent(steady_time begun);
    void end_asking(peer::asking_end how);
    [[nodiscard]] const filter::key_hash& peer_key();
    awaitable<void> fetch_once();
    void begin_upload();
    void look_at_upload();
    void run_out_of_patience();
    void await_head_anew();
    /// A part of the request's body is still to come, or to be taken by the origin, and the client
    /// does not wait for the origin's word.
    [[nodiscard]] bool body_is_going_out() const noexcept {
        return taking_.armed() && !order_->body->awaits_word();
    }
    [[nodiscard]] bool may_have_rest() const noexcept;
    awaitable<void> settle_upload();
    awaitable<void> finish_upload();
    awaitable<bool> read_body(std::string& trailers);
    awaitable<bool> read_body_of_one(std::string& trailers);
    awaitable<bool> go_on_elsewhere();
    [[nodiscard]] bool deliver(std::string_view piece);
    [[nodiscard]] bool ends_by_surprise() const noexcept {
        return passed_ && !sibling_ && published_->length &&
               framing_.kind != http::body_kind::length;
    }
    [[nodiscard]] bool end_body();
    awaitable<bool> wait_for_room();
    awaitable<std::size_t> read_into(char* at, std::size_t room, error_code& error);
    std::string request_wire(bool validate, next_hop to) const;
    [[nodiscard]] bool read_news(std::string& text, std::vector<http::field>& lines) const;
    [[nodiscard]] std::shared_ptr<cache::stored_response> freshened(
        const cache::stored_response& stored, http::field_list news) const;
    void put_freshened(const cache::stored_ptr& current,
                       std::shared_ptr<cache::stored_response> next);
    bool adopt_not_modified();
    void adopt_head();
    [[nodiscard]] std::shared_ptr<cache::fetched_head> made_for_readers(
        const http::body_framing& framing) const;
    void publish_head(const http::body_framing& framing);
    [[nodiscard]] bool ends_use(bool behind) const noexcept;
    [[nodiscard]] bool leaves_stored() const;
    [[nodiscard]] std::string kept_head() const;
    void find_place(cache::fetched_head& head);
    [[nodiscard]] bool promise_room(std::optional<std::uint64_t> length);
    void refuse(cache::fetched_head& head);
    void note_sights(std::size_t sights);
    void record_sights();
    void keep_while_there_is_room();
    void keep_on_probation(cache::fetched_head& head);
    void leave_memory();
    std::string_view begin_on_disk(const cache::fetched_head& head, std::string_view otherwise);
    void feed_disk();
    bool may_store_part(std::optional<std::uint64_t> length);
    void store_body();
    void finish_on_disk();
    void describe(cache::stored_response& stored) const;
    [[nodiscard]] std::shared_ptr<cache::stored_response> made_of_head(std::uint64_t bytes) const;
    void store_part(std::shared_ptr<cache::stored_response> added);
    void fail(failure why);
    [[nodiscard]] bool has_surplus(std::size_t answered) noexcept;
    void give_back();

    thread::worker& w_;
    std::shared_ptr<fetch_order> order_;
    cache::fetch& into_;
    net::wakeup ready_;
    std::shared_ptr<stop_control> control_;
    net::deadline patience_;
    net::deadline taking_;  // when to look again whether the origin takes the request's body
    net::origin_lease lease_;
    http::response_head head_;
    http::body_framing framing_;
    bool keeps_ = false;  // its sender keeps the connection; what head_ views goes with the body
    failure why_{failure_code::internal, ""};  // the last source failed

    std::shared_ptr<const peer::peer_book> book_;  // null: no peer is asked
    std::optional<filter::key_hash> peer_key_;
    std::shared_ptr<inquiry> inquiry_;
    std::shared_ptr<const peer::known_peer> sibling_;  // who answers; null: it is not a sibling
    unsigned sibling_slot_ = 0;
    std::chrono::microseconds sibling_took_{0};
    std::uint64_t sibling_bytes_ = 0;   // sent and received before its body
    std::vector<std::size_t> parents_;  // of the book, in the order to be tried
    std::size_t parent_at_ = 0;         // the one in hand; behind the last: the origin itself
    bool any_byte_ = false;             // of the response that is read
    // Of what a sibling sends, so that another source can go on where it broke off.
    std::unique_ptr<passed_bytes> passed_;
    std::shared_ptr<cache::fetched_head> published_;
    std::uint64_t owed_ = 0;    // of the length that readers were promised; without one, no bound
    std::optional<char> last_;  // of it, held back until the other source is seen to end there
    cache::reservation room_;
    std::unique_ptr<cache::disk::object_writer> on_disk_;  // of a body too large for memory
    std::vector<cache::slice> to_disk_;
    cache::admission_ruling ruling_;
    wall_time request_time_{};
    wall_time response_time_{};
    wall_time asked_at_{}, came_at_{};  // the same in resident time
    steady_time sent_at_{};
    cache::invalidation_mark begun_at_;
    std::optional<cache::part_place> place_;  // of a 206 that may be stored as a part
    cache::stored_ptr joins_;                 // what is stored of the same representation
    std::uint64_t held_already_ = 0;          // bytes of it
    bool begins_none_ = false;                // its head may lack fields
    bool validate_ = false;
    bool refetch_ = false;        // the 304 was not about what is stored: once more,
    bool unconditional_ = false;  // and without validators
    bool storable_ = false;
    bool refused_ = false;    // storable, and admission said no
    unsigned probation_ = 0;  // how many uses would admit what waits on probation; 0: it does not
    bool upload_started_ = false;
    bool awaits_head_ = false;          // patience_ is for the response's head
    bool answered_early_ = false;       // the request's body was not out yet
    bool stalled_ = false;              // timeouts.origin_upload is over
    std::uint64_t passed_on_ = 0;       // when last looked at: given to the origin's socket,
    std::uint64_t unacknowledged_ = 0;  // and of that not taken by the other side
    steady_time taken_at_{};            // it took something, or had nothing to take
};

}  // namespace reprise::proxy::fetch
