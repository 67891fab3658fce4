#pragma once
// One producer at work: internal to producer.cpp, where it talks to the origin, and to
// producer_keeping.cpp, where it judges what came and keeps it.

#include "proxy/cache/partial_response.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/producer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy {

/// Lets another thread stop the producer's reading: the socket it reads now, if any.
struct stop_control {
    tcp_socket* reading = nullptr;
};

class producer {
public:
    producer(worker& w, std::shared_ptr<fetch_order> order)
        : w_{w},
          order_{std::move(order)},
          into_{*order_->into},
          ready_{w.timer},
          control_{std::make_shared<stop_control>()},
          patience_{w.timer, [this] { interrupt(); }} {}

    awaitable<void> run();

private:
    static constexpr std::size_t read_size = 16u << 10;

    enum class head_end : std::uint8_t { got, retry, failed };

    void interrupt() {
        if (control_->reading != nullptr) {
            error_code ignored;
            control_->reading->cancel(ignored);
        }
    }

    awaitable<bool> connect_and_send(bool fresh_only);
    awaitable<head_end> read_head();
    awaitable<void> fetch_once();
    awaitable<void> settle_upload();
    awaitable<bool> read_body(const http::body_framing& framing, std::string& trailers);
    awaitable<bool> wait_for_room();
    awaitable<std::size_t> read_into(char* at, std::size_t room, error_code& error);
    std::string request_wire(bool validate) const;
    [[nodiscard]] bool read_news(std::string& text, std::vector<http::field>& lines) const;
    [[nodiscard]] std::shared_ptr<cache::stored_response> freshened(
        const cache::stored_response& stored, http::field_list news) const;
    void put_freshened(const cache::stored_ptr& current,
                       std::shared_ptr<cache::stored_response> next);
    bool adopt_not_modified();
    void adopt_head();
    void publish_head(const http::body_framing& framing);
    void note_sights(std::size_t sights);
    void record_sights();
    void keep_while_there_is_room();
    void keep_on_probation(cache::fetched_head& head);
    void leave_memory();
    void begin_on_disk(std::optional<std::uint64_t> length);
    void feed_disk();
    bool may_store_part(std::optional<std::uint64_t> length);
    void store_body();
    void finish_on_disk();
    void describe(cache::stored_response& stored) const;
    [[nodiscard]] std::shared_ptr<cache::stored_response> made_of_head(std::uint64_t bytes) const;
    void store_part(std::shared_ptr<cache::stored_response> added);
    void fail(failure why);
    void give_back(const http::body_framing& framing);

    worker& w_;
    std::shared_ptr<fetch_order> order_;
    cache::fetch& into_;
    wakeup ready_;
    std::shared_ptr<stop_control> control_;
    deadline patience_;
    origin_lease lease_;
    http::response_head head_;
    std::shared_ptr<cache::fetched_head> published_;
    cache::reservation room_;
    std::unique_ptr<cache::disk::object_writer> on_disk_;  // of a body too large for memory
    std::vector<cache::slice> to_disk_;
    cache::admission_ruling ruling_;
    wall_time request_time_{};
    wall_time response_time_{};
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
};

}  // namespace reprise::proxy
