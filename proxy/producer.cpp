#include "proxy/producer.hpp"

#include "proxy/admin/log.hpp"
#include "proxy/cache/partial_response.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/targeted.hpp"
#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <charconv>
#include <limits>

namespace reprise::proxy {

namespace {

using http::body_kind;

constexpr std::size_t read_size = 16u << 10;
constexpr unsigned most_interim = 16;
constexpr std::chrono::seconds uncacheable_for{120};

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
    bool may_store_part(std::optional<std::uint64_t> length);
    void store_body();
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
    bool refused_ = false;  // storable, and admission said no
    bool upload_started_ = false;
};

void producer::fail(failure why) {
    w_.counts
        .fetches_ended[static_cast<std::size_t>(into_.abandoned() ? fetch_end::given_up
                                                                  : fetch_end::failed)]
        .add();
    into_.producer_fail(std::move(why));
}

std::string producer::request_wire(bool validate) const {
    const auto& o = *order_;
    http::request_options options;
    options.via = w_.common.pseudonym;
    options.client_address = o.client_address;
    const auto field = o.now_settings->options.forwarding.client_address;
    options.forwarded = field == config::forwarded_field::forwarded ||
                        field == config::forwarded_field::both;
    options.x_forwarded_for = field == config::forwarded_field::x_forwarded_for ||
                              field == config::forwarded_field::both;
    options.body = o.body_framing;
    options.websocket = o.websocket;
    options.trailers = o.body_framing.kind == body_kind::chunked;
    options.te_trailers = http::has_token(o.request->head.fields, http::field_id::te, "trailers");
    options.drop_expect = o.head_is_http10;
    std::string extra;
    if (validate && o.validating) {
        const auto stored_fields = o.validating->fields();
        http::append_validation(extra, http::validators_of(stored_fields, request_time_));
        options.drop_conditionals = true;
        options.drop_range = !o.own_range;  // of parts the same range is wanted if they changed
    } else if (o.may_store) {
        options.drop_conditionals = !o.own_conditions;
        options.drop_range = !o.own_range;
    }
    if (!o.resume_etag.empty()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: bytes=" + std::to_string(o.resume_at) + "-\r\nIf-Range: " + o.resume_etag +
                 "\r\n";
    } else if (!o.gap_range.empty()) {
        options.drop_conditionals = options.drop_range = true;
        extra += "Range: " + o.gap_range + "\r\n";
        if (!o.gap_validator.empty()) {
            extra += "If-Range: " + o.gap_validator + "\r\n";
        }
    }
    if (const auto hops = http::judge_hops(o.request->head); hops.has_value()) {
        options.max_forwards = hops->left;
    }
    options.extra = extra;
    std::string wire;
    http::append_request_head(wire, o.request->head, o.destination, options);
    return wire;
}

awaitable<bool> producer::connect_and_send(bool fresh_only) {
    const auto& timeouts = order_->now_settings->options.timeouts;
    auto& o = *order_;
    const auto until = steady_now() + timeouts.origin_connect;
    if (!fresh_only) {
        lease_ = w_.origins.try_acquire(o.connect_host, o.connect_port, o.exempt);
    }
    if (!lease_) {
        auto leased = co_await w_.origins.acquire(
            o.connect_host, o.connect_port, o.exempt, fresh_only, until);
        if (!leased) {
            fail(leased.error());
            co_return false;
        }
        lease_ = std::move(*leased);
    }
    if (lease_.reused()) {
        w_.counts.origin_reused.add();
    }
    if (into_.abandoned()) {
        lease_.give_back();
        fail(failure{failure_code::origin_closed, false, "every client has left"});
        co_return false;
    }
    control_->reading = &lease_.socket();
    request_time_ = wall_now();
    begun_at_ = w_.common.store.mark(o.key);
    sent_at_ = steady_now();
    const auto wire = request_wire(validate_);
    patience_.expire_after(timeouts.origin_head);
    const auto error = co_await write_all(lease_.socket(), net::buffer(wire));
    if (error) {
        // Reading tells more: an origin may have answered and closed. What follows decides.
        co_return true;
    }
    w_.counts.bytes_to_origins.add(wire.size());
    if (o.body && !upload_started_ && !into_.abandoned() && !o.body->stopping()) {
        upload_started_ = true;
        auto sending = upload::run(o.body, lease_.socket());
        // A body that the client broke off, or framed wrongly, must not wait for an origin that
        // waits for the rest of it: what reads the response is interrupted, and finds the reason in
        // the upload.
        auto on_end = [control = control_, body = o.body](std::exception_ptr) {
            if (body->broken_by_client() && control->reading != nullptr) {
                error_code ignored;
                control->reading->cancel(ignored);
            }
        };
        net::co_spawn(w_.io, std::move(sending), on_end);
    }
    co_return true;
}

awaitable<std::size_t> producer::read_into(char* at, std::size_t room, error_code& error) {
    if (patience_.expired() || into_.abandoned() ||
        (order_->body && order_->body->broken_by_client())) {
        error = net::error::operation_aborted;
        co_return 0;
    }
    const auto into = net::buffer(at, room);
    const auto [failed, got] = co_await lease_.socket().async_read_some(into, use_tuple);
    w_.counts.bytes_from_origins.add(got);
    error = failed;
    co_return got;
}

awaitable<producer::head_end> producer::read_head() {
    auto& o = *order_;
    auto& buffer = lease_.buffer();
    const auto& limits = o.now_settings->response_limits;
    unsigned interim = 0;
    std::size_t resume = 0;
    bool any = false;
    for (;;) {
        if (!buffer.empty()) {
            any = true;
            const auto parsed = http::parse_response_head(buffer.data(), head_, limits, resume);
            if (parsed.state == http::head_state::bad) {
                fail(failure{parsed.code, false, parsed.why});
                co_return head_end::failed;
            }
            if (parsed.state == http::head_state::done) {
                if (head_.status >= 200 || head_.status == 101) {
                    co_return head_end::got;
                }
                if (++interim > most_interim) {
                    fail(failure{failure_code::bad_response, false, "too many 1xx responses"});
                    co_return head_end::failed;
                }
                std::string passed;
                http::append_response_fields(passed, head_, {.via = w_.common.pseudonym});
                passed += "\r\n";
                into_.producer_interim(std::move(passed));
                buffer.consume(head_.bytes);
                resume = 0;
                continue;
            }
            resume = parsed.resume;
        }
        const auto space = buffer.prepare(read_size);
        error_code error;
        const auto got = co_await read_into(space.data(), space.size(), error);
        if (got > 0) {
            buffer.commit(got);
            continue;
        }
        if (o.body && o.body->state() == upload::phase::bad_framing) {
            fail(o.body->why());
        } else if (o.body && o.body->state() == upload::phase::client_failed) {
            fail(
                failure{failure_code::request_timeout, false, "the request's body did not arrive"});
        } else if (patience_.expired()) {
            fail(failure{failure_code::origin_head_timeout, false, "no response head in time"});
        } else if (into_.abandoned()) {
            fail(failure{failure_code::origin_closed, false, "every client has left"});
        } else if (!any && lease_.reused() && o.retryable) {
            co_return head_end::retry;
        } else {
            fail(failure{failure_code::origin_closed,
                         false,
                         any ? "the connection ended in the middle of the response's head"
                             : "the connection ended without a response"});
        }
        co_return head_end::failed;
    }
}

// The field lines that the head at hand may bring to what is stored, as they would be passed on.
bool producer::read_news(std::string& text, std::vector<http::field>& lines) const {
    const auto date = http::format_date(response_time_);
    http::append_response_fields(text,
                                 head_,
                                 {.via = w_.common.pseudonym,
                                  .date = std::string_view{date.data(), date.size()},
                                  .keep_age = true});
    const auto first_line = text.find("\r\n") + 2;
    return http::parse_field_lines(std::string_view{text}.substr(first_line),
                                   lines,
                                   order_->now_settings->response_limits.fields) == nullptr;
}

// A whole new head for what is stored, made of its own lines and newer ones (RFC 9111 3.2); null
// when that would be larger than a head may be.
std::shared_ptr<cache::stored_response> producer::freshened(const cache::stored_response& stored,
                                                            http::field_list news) const {
    const auto& o = *order_;
    const auto& limits = o.now_settings->response_limits;
    const auto old_lines = stored.fields();
    const auto merged = http::freshen(old_lines, news, limits.bytes, limits.fields);
    if (!merged) {
        return nullptr;
    }
    const auto directives = http::read_governing_directives(*merged,
                                                            o.now_settings->options.targeted);
    auto next = std::make_shared<cache::stored_response>();
    next->head.assign(stored.head, 0, stored.status_line_size);
    std::string_view length_line{stored.head};
    length_line.remove_prefix(stored.length_at);
    for (const auto& line : *merged) {
        if (line.id == http::field_id::age || line.id == http::field_id::content_length) {
            continue;
        }
        next->head.append(line.name).append(": ").append(line.value).append("\r\n");
    }
    next->head.append(length_line);
    cache::index_head(*next);
    next->status = stored.status;
    next->freshness = http::freshness_of(stored.status,
                                         *merged,
                                         directives,
                                         request_time_,
                                         response_time_,
                                         o.now_settings->freshness);
    next->directives = directives;
    next->reusable_until = stored.parts ? wall_time::min()
                                        : http::reusable_until(directives, next->freshness);
    next->content = stored.content;
    next->parts = stored.parts;
    next->vary = http::read_vary(*merged);
    next->selecting = next->vary == stored.vary
                          ? stored.selecting
                          : http::selecting_values(next->vary, o.request->head.fields);
    return next;
}

void producer::put_freshened(const cache::stored_ptr& current,
                             std::shared_ptr<cache::stored_response> next) {
    auto& o = *order_;
    // Judged without the client's fields: who happened to ask for the validation decides nothing
    // about what was stored for another.
    const auto verdict = http::judge_storable("GET",
                                              next->status,
                                              {},
                                              {},
                                              next->fields(),
                                              next->directives,
                                              next->freshness,
                                              o.now_settings->storing);
    if (verdict == http::storability::storable && next->vary == current->vary) {
        // What has left the store meanwhile stays out: it may have been invalidated.
        if (w_.common.store.freshen(o.key, o.url, current, std::move(next), begun_at_)) {
            w_.counts.store_refreshed.add();
        }
    } else {
        // The 304 took the leave to store back, or chooses variants anew.
        const auto removed = w_.common.store.invalidate(o.key, o.url);
        w_.counts.store_invalidated.add(removed);
        if (verdict == http::storability::storable && removed > 0) {
            auto asked = w_.common.store.mark(o.key);  // after our own invalidation,
            asked.purges = begun_at_.purges;           // and no later purge
            w_.common.store.put(o.key, o.url, std::move(next), asked);
        }
    }
}

// What is stored answers, freshened by the 304 at hand (RFC 9111 4.3.4). False: the 304 speaks of
// something else.
bool producer::adopt_not_modified() {
    auto& o = *order_;
    const auto& stored = *o.validating;
    std::string text;
    std::vector<http::field> news;
    if (!read_news(text, news)) {
        return false;
    }
    const auto size = stored.parts     ? stored.parts->total
                      : stored.content ? stored.content->size
                                       : 0;
    // Content-Length never passes append_response_fields; for the comparison it is the 304's own.
    auto judged = news;
    if (const auto* length = http::find(head_.fields, http::field_id::content_length);
        length != nullptr && size != cache::partial_body::unknown) {
        judged.push_back(*length);
    }
    if (http::judge_validation(stored.fields(), size, judged) != http::validation::confirmed) {
        return false;
    }
    const auto next = freshened(stored, news);
    if (!next) {
        return false;
    }
    put_freshened(o.validating, next);
    if (o.is_get) {
        (void)w_.common.admission.note(o.key, o.admission, response_time_);
    }
    into_.producer_validated(next);
    return true;
}

// A response to HEAD may freshen, or outdate, what a GET would have got (RFC 9111 4.3.5). What is
// held in parts alone is left as it is.
void producer::adopt_head() {
    auto& o = *order_;
    const auto& stored = *o.described;
    if (stored.parts || !stored.content) {
        return;
    }
    switch (http::judge_head(
        stored.status, stored.fields(), stored.content->size, head_.status, head_.fields)) {
    case http::head_effect::nothing: return;
    case http::head_effect::freshen: {
        std::string text;
        std::vector<http::field> news;
        if (read_news(text, news)) {
            if (auto next = freshened(stored, news)) {
                put_freshened(o.described, std::move(next));
            }
        }
        return;
    }
    case http::head_effect::outdate:
        if (w_.common.store.drop(o.key, o.url, o.described)) {
            w_.counts.store_invalidated.add();
        }
        return;
    }
}

// `sights` requests wait for this response: each is one, and the second may admit. The filter is
// told when the body has passed: a failed fetch is no sight.
void producer::note_sights(std::size_t sights) {
    const auto before = into_.add_sights(sights);
    for (std::size_t i = 0; i < sights; ++i) {
        ruling_ = w_.common.admission.peek(
            order_->key, order_->admission, order_->pending_sights + before + i);
        if (ruling_.seen_before > 0 && !order_->replaces) {
            w_.counts.admission_hits_lost.add();
        }
    }
}

void producer::record_sights() {
    for (auto left = into_.add_sights(0); left > 0; --left) {
        (void)w_.common.admission.note(order_->key, order_->admission, response_time_);
    }
}

void producer::publish_head(const http::body_framing& framing) {
    auto& o = *order_;
    auto head = std::make_shared<cache::fetched_head>();
    const auto date = http::format_date(response_time_);
    http::append_response_fields(
        head->head,
        head_,
        {.via = w_.common.pseudonym, .date = std::string_view{date.data(), date.size()}});
    if (framing.kind == body_kind::chunked) {
        for (const auto& line : head_.fields) {
            if (line.id == http::field_id::trailer) {
                head->trailer.append("Trailer: ").append(line.value).append("\r\n");
            }
        }
    }
    head->status = head_.status;
    head->has_body = framing.kind != body_kind::none;
    if (framing.kind == body_kind::length) {
        head->length = framing.length;
    } else if (framing.has_stated_length) {
        head->length = framing.stated_length;
    }
    const auto& fields = head_.fields;
    head->directives = http::read_governing_directives(fields, o.now_settings->options.targeted);
    head->freshness = http::freshness_of(head_.status,
                                         fields,
                                         head->directives,
                                         request_time_,
                                         response_time_,
                                         o.now_settings->freshness);
    head->vary = http::read_vary(fields);
    if (!head->vary.empty()) {
        head->selecting = http::selecting_values(head->vary, o.request->head.fields);
    }
    if (const auto* etag = http::find(fields, http::field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    if (head_.status == 206 && http::count(fields, http::field_id::content_range) == 1) {
        const auto range = http::parse_content_range(
            http::find(fields, http::field_id::content_range)->value);
        head->range_first = range.first;
        head->range_last = range.last;
        head->range_total = range.total;
    }
    if (!o.is_get) {
        for (const auto id : {http::field_id::location, http::field_id::content_location}) {
            if (const auto* line = http::find(fields, id)) {
                head->locations.emplace_back(line->value);
            }
        }
    }
    head->origin = lease_.address().to_string() + ":" + std::to_string(o.connect_port);
    head->origin_time = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() -
                                                                              sent_at_);
    head->verdict = http::judge_storable(o.request->head.method_text,
                                         head_.status,
                                         o.request->head.fields,
                                         o.asked,
                                         fields,
                                         head->directives,
                                         head->freshness,
                                         o.now_settings->storing);
    // A part of, or a 304 about, what would be storable whole is a sight of it.
    auto as_whole = head->verdict;
    if (o.is_get && (o.own_range || o.own_conditions || !o.gap_range.empty()) &&
        (head_.status == 206 || head_.status == 304)) {
        as_whole = http::judge_storable("GET",
                                        200,
                                        o.request->head.fields,
                                        o.asked,
                                        fields,
                                        head->directives,
                                        head->freshness,
                                        o.now_settings->storing);
    }
    if (as_whole == http::storability::storable && head_.status == 206 &&
        may_store_part(head->length)) {
        head->verdict = as_whole;
    }
    const bool is_sight = o.is_get && as_whole == http::storability::storable && !o.url.empty();
    storable_ = o.may_store && head->verdict == http::storability::storable && !o.url.empty();

    std::size_t sights = 0;
    if (is_sight) {
        sights = into_.readers();
        sights = sights == 0 ? 1 : sights;
        note_sights(sights);
    }
    if (o.listed) {
        if (head->verdict == http::storability::storable) {
            w_.common.uncacheable.forget(o.key);
        } else {
            w_.common.uncacheable.note(o.key, steady_now(), uncacheable_for);
        }
    }
    if (head->verdict != http::storability::storable) {
        head->detail = http::to_string(head->verdict);
        note_not_stored(w_.counts, static_cast<std::size_t>(head->verdict));
    }
    const auto& memory = o.now_settings->options.memory;
    const bool admitted = ruling_.admitted || o.replaces;
    if (storable_) {
        room_ = w_.common.store.reserve();
    }
    if (storable_ && admitted) {
        const auto window = o.now_settings->fetches.window;
        if (head->length && held_already_ + *head->length > memory.max_object) {
            head->detail = "too-large";
        } else if (!room_.grow_to(head->length ? *head->length
                                               : std::min<std::uint64_t>(window, 64u << 10))) {
            head->detail = "no-room";
        } else {
            // Of unknown length it may yet prove too long: then nothing is claimed.
            head->stored = into_.keep_whole() && head->length.has_value();
        }
    } else if (storable_) {
        refused_ = true;
        switch (ruling_.policy) {
        case config::admission_policy::second_hit: head->detail = "first-request"; break;
        case config::admission_policy::nth_hit: head->detail = "too-few-requests"; break;
        case config::admission_policy::never: head->detail = "policy-never"; break;
        case config::admission_policy::always: break;
        }
    }
    if (storable_ && !o.replaces) {
        note_admission(w_.counts, ruling_.policy, ruling_.rule, admitted);
    }
    published_ = head;
    const auto waiting = into_.producer_head(head);
    if (is_sight && waiting > sights) {
        // Somebody joined between the count and the head's being known.
        note_sights(waiting - sights);
        if (storable_ && ruling_.admitted && !into_.kept_whole()) {
            (void)into_.keep_whole();
        }
    }
}

awaitable<bool> producer::wait_for_room() {
    while (into_.producer_must_pause()) {
        patience_.clear();
        const bool signalled = co_await ready_.wait(steady_time::max());
        if (!signalled || into_.abandoned()) {
            co_return false;
        }
    }
    co_return !into_.abandoned();
}

// A body of unknown length may be kept for the store only while it is within the window and there
// is room for it.
void producer::keep_while_there_is_room() {
    if (!into_.kept_whole()) {
        return;
    }
    if (published_->length) {
        // A late sight may have admitted it without a promise of room.
        if (held_already_ + *published_->length > order_->now_settings->options.memory.max_object ||
            !room_.grow_to(*published_->length)) {
            into_.keep_no_more();
            room_.reset();
        }
        return;
    }
    const auto& now = *order_->now_settings;
    const auto next = into_.received() + read_size;
    if (next > std::min<std::uint64_t>(now.options.memory.max_object, now.fetches.window) ||
        !room_.grow_to(next)) {
        into_.keep_no_more();
        room_.reset();
    }
}

awaitable<bool> producer::read_body(const http::body_framing& framing, std::string& trailers) {
    auto& buffer = lease_.buffer();
    const auto& options = order_->now_settings->options;
    const auto timeout = options.timeouts.origin_body;
    auto left = framing.kind == body_kind::length ? framing.length
                                                  : std::numeric_limits<std::uint64_t>::max();
    http::chunked_decoder decoder{
        {.trailer_bytes = options.limits.head_size, .trailer_fields = options.limits.fields}};
    const auto cut_short = [&](std::string detail) {
        const bool late = patience_.expired();
        fail(failure{late ? failure_code::origin_body_timeout : failure_code::response_cut_short,
                     false,
                     late ? "the response's body stopped arriving" : std::move(detail)});
        return false;
    };
    for (;;) {
        if (framing.kind == body_kind::length && left == 0) {
            co_return true;
        }
        if (!buffer.empty()) {
            if (framing.kind == body_kind::chunked) {
                const auto step = decoder.feed(buffer.data());
                if (step.error != nullptr) {
                    co_return cut_short(std::string{"chunked coding: "} + step.error);
                }
                into_.producer_append(step.data);
                buffer.consume(step.consumed);
                if (step.done) {
                    for (const auto& line : decoder.trailers()) {
                        trailers.append(line.name).append(": ").append(line.value).append("\r\n");
                    }
                    co_return true;
                }
            } else {
                const auto piece = buffer.data().substr(
                    0, static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
                into_.producer_append(piece);
                left -= piece.size();
                buffer.consume(piece.size());
            }
            keep_while_there_is_room();
            continue;
        }
        if (!co_await wait_for_room()) {
            co_return cut_short("every client has left");
        }
        patience_.expire_after(timeout);
        error_code error;
        std::size_t got = 0;
        if (framing.kind == body_kind::chunked || left <= read_size / 4) {
            const auto space = buffer.prepare(read_size);
            got = co_await read_into(space.data(), space.size(), error);
            buffer.commit(got);
        } else {
            // Straight into the block that clients and store share.
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, 64u << 10));
            const auto [at, space] = into_.producer_space(want);
            got = co_await read_into(at, space, error);
            into_.producer_commit(got);
            left -= got;
            keep_while_there_is_room();
        }
        if (got > 0) {
            continue;
        }
        if (framing.kind == body_kind::until_close && error == net::error::eof) {
            co_return true;
        }
        co_return cut_short(error == net::error::eof ? "the connection ended before the body"
                                                     : "the connection broke: " + error.message());
    }
}

// A 206 to a Range of the client's or ours, with one right Content-Range. What answers an If-Range
// may lack the fields that its sender has already (RFC 9110 15.3.7): it adds to the parts of the
// same representation, but begins none. One that brings fewer bytes than its Content-Range says is
// an incomplete response (RFC 9111 3.3): what it brings is kept, if it can never be joined to more.
bool producer::may_store_part(std::optional<std::uint64_t> length) {
    const auto& o = *order_;
    place_ = cache::part_place_of(head_.fields);
    if (!place_ || (!o.own_range && o.gap_range.empty())) {
        place_.reset();
        return false;
    }
    const auto& asked = o.request->head.fields;
    const auto validator = cache::strong_validator_of(head_.fields, response_time_);
    if (length && *length != place_->range.size()) {
        if (*length == 0 || *length > place_->range.size() || !validator.empty()) {
            place_.reset();
            return false;
        }
        place_->range.last = place_->range.first + *length - 1;
    }
    const auto kept = w_.common.store.peek(o.key, o.url, asked);
    if (kept.what == cache::lookup::present && !validator.empty()) {
        const auto lines = kept.response->fields();
        if (cache::strong_validator_of(lines, response_time_) == validator) {
            joins_ = kept.response;
            held_already_ = joins_->parts ? joins_->parts->bytes() : 0;
        }
    }
    begins_none_ = !o.gap_validator.empty() ||
                   http::find(asked, http::field_id::if_range) != nullptr;
    if (begins_none_ && !joins_) {
        place_.reset();
    }
    return place_.has_value();
}

void producer::store_body() {
    auto& o = *order_;
    auto content = into_.whole_body();
    if (!content) {
        return;
    }
    const auto bytes = content->size;
    std::shared_ptr<cache::stored_response> stored;
    if (published_->status == 206) {
        if (!place_ || bytes != place_->range.size()) {
            return;
        }
        stored = cache::made_of_part(published_->head, *place_, std::move(content));
    } else {
        stored = std::make_shared<cache::stored_response>();
        const auto length = std::to_string(bytes);
        stored->head.reserve(published_->head.size() + 20 + length.size());
        stored->head = published_->head;
        // A 204 has no Content-Length (RFC 9110 8.6); everything else stored has its own.
        if (published_->status != 204) {
            stored->head.append("Content-Length: ").append(length).append("\r\n");
        }
        cache::index_head(*stored);
        stored->status = published_->status;
        stored->content = std::move(content);
    }
    stored->freshness = published_->freshness;
    stored->directives = published_->directives;
    stored->vary = published_->vary;
    stored->selecting = published_->selecting;
    room_.reset();
    if (stored->parts) {
        if (joins_) {
            stored->vary = joins_->vary;
            stored->selecting = joins_->selecting;
        }
        store_part(std::move(stored));
        return;
    }
    stored->reusable_until = http::reusable_until(stored->directives, stored->freshness);
    if (w_.common.store.put(o.key, o.url, std::move(stored), begun_at_)) {
        w_.counts.stored_objects.add();
        w_.counts.stored_bytes.add(bytes);
    }
}

// Together with what is held of the same representation, in place of every other. Another part may
// come between the look and the put: then it is combined with that.
void producer::store_part(std::shared_ptr<cache::stored_response> added) {
    auto& o = *order_;
    const auto& now = *o.now_settings;
    const cache::combining_rules rules{now.options.memory.max_object,
                                       now.response_limits.bytes,
                                       now.response_limits.fields,
                                       now.freshness,
                                       now.options.targeted};
    const auto bytes = added->parts->bytes();
    for (int tries = 0; tries < 4; ++tries) {
        const auto kept = w_.common.store.variant_of(o.key, o.url, *added);
        auto next = added;
        if (kept) {
            auto together = cache::combine(*kept, *added, rules);
            if (together.what == cache::combination::too_large) {
                return;
            }
            if (together.what == cache::combination::combined) {
                next = std::move(together.response);
            }
        }
        if (begins_none_ && next == added) {
            return;
        }
        cache::complete_if_whole(*next);
        if (w_.common.store.put_over(o.key, o.url, kept, std::move(next), begun_at_)) {
            w_.counts.stored_objects.add();
            w_.counts.stored_bytes.add(bytes);
            return;
        }
    }
}

void producer::give_back(const http::body_framing& framing) {
    const bool upload_whole = !order_->body || order_->body->state() == upload::phase::done;
    if (upload_whole && framing.reusable && framing.kind != body_kind::until_close &&
        http::keep_alive(head_.version, head_.fields)) {
        lease_.give_back();
    }
    control_->reading = nullptr;
    lease_.close();
}

awaitable<void> producer::settle_upload() {
    if (!order_->body || !upload_started_) {
        co_return;
    }
    if (order_->body->state() == upload::phase::running) {
        order_->body->stop();
        control_->reading = nullptr;
        if (lease_) {
            error_code ignored;
            lease_.socket().close(ignored);
        }
    }
    co_await order_->body->ended(upload::waiter::producer);
}

awaitable<void> producer::fetch_once() {
    auto& o = *order_;
    validate_ = o.validating != nullptr && !unconditional_;
    bool fresh_only = !o.retryable;
    for (;;) {
        const bool sent = co_await connect_and_send(fresh_only);
        if (!sent) {
            co_return;
        }
        const auto end = co_await read_head();
        if (end == head_end::failed) {
            co_return;
        }
        if (end == head_end::got) {
            break;
        }
        control_->reading = nullptr;
        lease_.close();
        fresh_only = true;  // so this turn is the last
    }
    response_time_ = wall_now();
    if (head_.status == 101) {
        const bool to_websocket = http::has_token(
                                      head_.fields, http::field_id::upgrade, "websocket") &&
                                  http::count(head_.fields, http::field_id::upgrade) == 1;
        if (!o.websocket || !to_websocket) {
            fail(failure{failure_code::bad_response,
                         false,
                         "the origin switched to a protocol that was not asked for"});
            co_return;
        }
        lease_.buffer().consume(head_.bytes);
        patience_.clear();
        control_->reading = nullptr;
        http::append_response_fields(
            o.upgrade_bytes, head_, {.via = w_.common.pseudonym, .websocket = true});
        o.upgrade_bytes += "\r\n";
        o.upgraded = std::move(lease_);
        w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
        into_.producer_upgraded();
        co_return;
    }
    const auto framing = http::response_framing(head_, o.request->head.method);
    if (!framing) {
        fail(framing.error());
        co_return;
    }
    if (validate_ && head_.status == 304) {
        if (adopt_not_modified()) {
            lease_.buffer().consume(head_.bytes);
            give_back(*framing);
            w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
            co_return;
        }
        lease_.close();
        control_->reading = nullptr;
        refetch_ = unconditional_ = true;
        co_return;
    }
    if (!o.resume_etag.empty() && head_.status != 206) {
        fail(failure{
            failure_code::response_cut_short, false, "the object changed while it was being sent"});
        co_return;
    }
    if (o.described) {
        adopt_head();
    }
    publish_head(*framing);
    lease_.buffer().consume(head_.bytes);
    std::string trailers;
    if (framing->kind != body_kind::none) {
        const bool whole = co_await read_body(*framing, trailers);
        if (!whole) {
            co_return;
        }
    }
    patience_.clear();
    co_await settle_upload();
    record_sights();
    if (into_.kept_whole()) {
        store_body();
    } else if (refused_) {
        note_refused_bytes(w_.counts, ruling_.policy, ruling_.rule, into_.received());
    }
    if (ruling_.seen_before > 0 && storable_ && !o.replaces) {
        w_.counts.admission_hit_bytes_lost.add(into_.received());
    }
    w_.counts.fetches_ended[static_cast<std::size_t>(fetch_end::finished)].add();
    into_.producer_finish(std::move(trailers));
    give_back(*framing);
}

awaitable<void> producer::run() {
    // Posting is all that the stop function may do: it is called under the fetch's lock, on any
    // thread.
    auto stop = [control = control_, ex = w_.io.get_executor()] {
        net::post(ex, [control] {
            if (control->reading != nullptr) {
                error_code ignored;
                control->reading->cancel(ignored);
            }
        });
    };
    into_.producer_is(ready_.handle(), std::move(stop));
    std::optional<failure> broken;
    try {
        do {  // twice at most: the second request does not validate
            refetch_ = false;
            co_await fetch_once();
        } while (refetch_);
    } catch (const std::bad_alloc&) {
        broken = failure{failure_code::out_of_memory, false, ""};
    } catch (const std::exception& what) {
        broken = failure{failure_code::internal, false, what.what()};
    }
    if (broken) {
        fail(std::move(*broken));
    }
    into_.producer_left();
    patience_.clear();
    co_await settle_upload();
    control_->reading = nullptr;
    lease_.close();
    if (order_->listed) {
        w_.common.fetches.remove(order_->key, order_->into);
    }
}

awaitable<void> run_producer(worker& w, std::shared_ptr<fetch_order> order) {
    producer one{w, std::move(order)};
    co_await one.run();
}

}  // namespace

void start_producer(worker& w, std::shared_ptr<fetch_order> order) {
    w.counts.fetches_started.add();
    auto into = order->into;
    auto on_end = [into](std::exception_ptr broken) {
        if (broken) {
            into->producer_left();
            into->producer_fail(
                failure{failure_code::internal, false, "an exception in the fetch"});
            log::error("a fetch ended by an exception");
        }
    };
    net::co_spawn(w.io, run_producer(w, std::move(order)), std::move(on_end));
}

}  // namespace reprise::proxy
