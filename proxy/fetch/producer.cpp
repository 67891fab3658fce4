#include "proxy/fetch/producer.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/recycled.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/fetch/body_reader.hpp"
#include "proxy/fetch/freshening.hpp"
#include "proxy/fetch/keeping.hpp"
#include "proxy/fetch/sources.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/net/coroutine.hpp"

#include <boost/asio/post.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

// From an order to the end of its response: who is asked is found by sources.hpp, read by
// upstream.hpp and body_reader.hpp, and kept by keeping.hpp and freshening.hpp.

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

constinit log::seldom ended_by_exception;

/// What ends the reading of a fetch that is given up, in memory that is there already: whoever leaves it may be in a
/// destructor, or in want of memory. A fetch is given up once, so the room is free.
struct interruption {
    using room = decltype(stop_control::for_stop);
    using allocator_type = net::in_room<std::byte, room>;

    explicit interruption(const std::shared_ptr<stop_control>& of) noexcept
        : what{of.get()},
          memory{{of, &of->for_stop}} {}
    [[nodiscard]] allocator_type get_allocator() const noexcept { return memory; }
    void operator()() const { what->interrupt(); }

    stop_control* what;  // which the allocator holds
    allocator_type memory;
};

class producer {
public:
    producer(thread::worker& w, std::shared_ptr<fetch_order> order)
        : w_{w},
          order_{std::move(order)},
          into_{*order_->into},
          at_{w, order_},
          expected_{w, *order_},
          sources_{w, *order_, at_, expected_},
          keeping_{w, *order_, into_, expected_} {
        w.counts.fetches_started.add();
    }
    ~producer() {
        // Of a loop that is destroyed nobody reads it any more.
        if (!has_left_ && w_.io.get_executor().running_in_this_thread()) {
            end_in_the_middle();
        }
        into_.producer_left();
    }
    producer(const producer&) = delete;
    producer& operator=(const producer&) = delete;

    // Memory that serves one order after another. In run()'s frame it would make one that Asio
    // never keeps: it recycles what takes at most 1,020 bytes.
    static void* operator new(std::size_t /*size*/) { return recycled<producer>{}.allocate(1); }
    static void operator delete(void* at) noexcept {
        recycled<producer>{}.deallocate(static_cast<producer*>(at), 1);
    }

    /// An order from its beginning to its end.
    static awaitable<void> run(std::unique_ptr<producer> owned) {
        auto& one = *owned;
        one.begin();
        std::optional<failure> broken;
        try {
            do {  // twice at most: the second request does not validate
                one.refetch_ = false;
                co_await one.fetch_once();
            } while (one.refetch_);
        } catch (const std::bad_alloc&) {
            broken = failure{failure_code::out_of_memory, ""};
        } catch (const std::exception& what) {
            broken = failure{failure_code::internal, what.what()};
        }
        one.end(std::move(broken));
        if (one.at_.uploads()) {
            co_await one.at_.settle_upload();
        }
        one.leave();
    }

private:
    void begin();
    void end(std::optional<failure> broken);
    void leave();
    void unlist();
    void end_in_the_middle() noexcept;
    awaitable<void> fetch_once();
    [[nodiscard]] trouble switch_protocols();
    [[nodiscard]] bool adopt_not_modified(bool dubious);
    [[nodiscard]] const peer::known_peer* sibling_asked() const;
    void note_whence(cache::answered& by) const;
    [[nodiscard]] cache::head_ptr publish_head();
    [[nodiscard]] bool is_all_here(const cache::fetched_head& head);
    awaitable<void> pass_body(cache::head_ptr published);
    void count(fetch_end how) noexcept;
    void fail(failure why) noexcept;

    thread::worker& w_;
    const std::shared_ptr<fetch_order> order_;
    cache::fetch& into_;
    upstream at_;
    expectation expected_;
    sources sources_;
    keeping keeping_;
    bool refetch_ = false;        // the 304 was not about what is stored: once more,
    bool unconditional_ = false;  // and without validators
    bool has_ended_ = false;      // all who read it are told how
    bool has_left_ = false;       // and nobody joins it any more
};

// Nothing, where what ended it is told already.
void producer::fail(failure why) noexcept {
    if (has_ended_) {
        return;
    }
    count(into_.abandoned() ? fetch_end::given_up : fetch_end::failed);
    if (!into_.head()) {
        expected_.failed();
    }
    into_.producer_fail(std::move(why));
    has_ended_ = true;
}

void producer::count(fetch_end how) noexcept {
    w_.counts.fetches_ended[static_cast<std::size_t>(how)].add();
}

trouble producer::switch_protocols() {
    auto* to = std::get_if<wanted::passed>(&order_->what);
    const auto& fields = at_.from.came.head.fields;
    const bool to_websocket = http::has_token(fields, http::field_id::upgrade, "websocket") &&
                              http::count(fields, http::field_id::upgrade) == 1;
    if (to == nullptr || !to->websocket || !to_websocket) {
        return failure{failure_code::bad_response,
                       "the origin switched to a protocol that was not asked for"};
    }
    if (at_.body_is_pending()) {
        return failure{failure_code::bad_response,
                       "the origin switched protocols in the middle of the request"};
    }
    at_.from.lease.buffer().consume(at_.from.came.head.bytes);
    at_.patience.clear();
    at_.control->reading = nullptr;
    http::append_response_fields(
        to->upgrade_bytes, at_.from.came.head, {.via = w_.common.pseudonym, .websocket = true});
    to->upgrade_bytes += "\r\n";
    to->upgraded = std::move(at_.from.lease);
    count(fetch_end::finished);
    into_.producer_upgraded();
    has_ended_ = true;
    return std::nullopt;
}

// A 304 to our own validation. False: it is asked again, without validators.
bool producer::adopt_not_modified(bool dubious) {
    freshening by{w_, *order_, at_.from.came, keeping_.begun_at()};
    const auto fresh = dubious ? nullptr : by.by_not_modified();
    if (!fresh) {
        if (at_.from.has_surplus(at_.from.came.head.bytes)) {
            at_.from.lease.note_surplus();
        }
        at_.let_go();
        return false;
    }
    auto confirmed = std::make_shared<cache::confirmation>();
    confirmed->by = age_in(at_.from.came, *order_);
    note_whence(confirmed->by);
    confirmed->for_one_client = by.is_for_one_client();
    count(fetch_end::finished);
    into_.producer_validated(fresh, std::move(confirmed));
    has_ended_ = true;
    at_.from.lease.buffer().consume(at_.from.came.head.bytes);
    at_.from.lease.note_kept(order_->url);
    at_.give_back();
    return true;
}

// A home is believed as the sibling that it is.
const peer::known_peer* producer::sibling_asked() const {
    return at_.from.sibling ? at_.from.sibling.get() : sources_.home();
}

void producer::note_whence(cache::answered& by) const {
    by.origin = at_.from.lease.endpoint();
    by.took = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - by.sent);
    const auto* sibling = sibling_asked();
    if (const auto* via = sibling != nullptr ? sibling : sources_.parent()) {
        by.peer = via->name;
    }
}

cache::head_ptr producer::publish_head() {
    const auto& o = *order_;
    auto& from = at_.from;
    auto head = head_for_readers(from.came, o, w_.common.pseudonym);
    note_whence(head->by);
    // What a home feeds is joined by none: it may ask this instance meanwhile.
    head->fed_by_sibling = sibling_asked() != nullptr;
    head->from_sibling = from.sibling != nullptr ||
                         (head->fed_by_sibling && http::stated_age(from.came.head.fields));
    if (sources_.knows_peers() && !from.may_be_replaced() && o.is_get) {
        w_.common.peers->siblings().note_origin(head->by.took);
    }
    keeping_.judge(*head, from.came);
    keeping_.is_known_to(head, into_.producer_head(head));
    keeping_.promise(is_all_here(*head));
    from.lease.buffer().consume(from.came.head.bytes);
    return head;
}

bool producer::is_all_here(const cache::fetched_head& head) {
    const auto& came = at_.from.came;
    const auto here = at_.from.lease.buffer().size() - came.head.bytes;
    return came.framing.kind == body_kind::none || (head.length && here >= *head.length);
}

// Behind the head: the body, if there is one, and what becomes of it.
awaitable<void> producer::pass_body(cache::head_ptr published) {
    std::string trailers;
    steady_time::duration paused{0};
    if (at_.from.came.framing.kind != body_kind::none) {
        body_reader body{*order_, at_, sources_, keeping_, std::move(published)};
        auto wrong = co_await body.read(trailers);
        if (wrong) {
            fail(std::move(*wrong));
            co_return;
        }
        paused = body.paused();
    }
    const auto took = steady_now() - at_.from.came.sent - paused;
    at_.patience.clear();
    sources_.end_asking(peer::asking_end::true_hit);
    const bool trusted = !at_.from.lease.reused() || !at_.from.has_surplus(0);
    keeping_.finish(
        trusted, cache::packed_wait{std::chrono::duration_cast<std::chrono::microseconds>(took)});
    if (trusted && (keeping_.storable() || order_->described())) {
        at_.from.lease.note_kept(order_->url);
    }
    count(fetch_end::finished);
    into_.producer_finish(std::move(trailers));
    has_ended_ = true;
    if (at_.uploads()) {
        co_await at_.finish_upload();
    }
    at_.give_back();
}

awaitable<void> producer::fetch_once() {
    auto& o = *order_;
    auto& came = at_.from.came;
    const bool validate = o.validating() != nullptr && !unconditional_;
    auto wrong = co_await sources_.find(validate);
    came.came = wall_now();
    came.resident_came = resident_now();
    const auto status = came.head.status;
    if (!wrong && status == 101) {
        wrong = switch_protocols();
        if (!wrong) {
            co_return;
        }
    }
    if (wrong) {
        fail(std::move(*wrong));
        co_return;
    }
    const auto framing = http::response_framing(came.head, o.request->head.method);
    if (!framing) {
        fail(framing.error());
        co_return;
    }
    came.framing = *framing;
    came.persistent = http::keep_alive(came.head.version, came.head.fields);
    // An origin that answers before it has the whole request may take the rest for another one.
    at_.answered_early = at_.body_is_pending();
    // On a connection that has served before, surplus behind this answer may mean that surplus
    // stood in front of it, and was taken for it. Bodies are asked again in pass_body().
    const bool dubious = at_.from.lease.reused() && framing->kind == body_kind::none &&
                         at_.from.has_surplus(came.head.bytes);
    if (validate && status == 304) {
        refetch_ = unconditional_ = !adopt_not_modified(dubious);
        co_return;
    }
    if (o.as<wanted::rest>() != nullptr && status != 206 && status != 200) {
        fail(failure{failure_code::response_cut_short,
                     "the object changed while it was being sent"});
        co_return;
    }
    if (o.described() && !dubious) {
        freshening by{w_, o, came, keeping_.begun_at()};
        by.by_head();
    }
    auto published = publish_head();
    co_await pass_body(std::move(published));
}

void producer::begin() {
    // Posting is all that the stop function may do: it is called under the fetch's lock, on any
    // thread, and not after producer_left(). A pointer alone is held without an allocation.
    auto stop = [this] { asio::post(w_.io.get_executor(), interruption{at_.control}); };
    // The same holds for this, but that nothing is posted: what is shared is asked, and the order says
    // the same until its end.
    auto ask_permit = [this] {
        return w_.common.unattended.enter(order_->charged_to,
                                          order_->now_settings->fetches.unattended);
    };
    into_.producer_is(at_.ready.handle(), std::move(stop), std::move(ask_permit));
    keeping_.begin();
}

void producer::end(std::optional<failure> broken) {
    if (broken) {
        fail(std::move(*broken));
    }
    sources_.stop_asking();
    into_.producer_left();
    at_.patience.clear();
}

void producer::leave() {
    at_.let_go();
    unlist();
    has_left_ = true;
}

void producer::unlist() {
    if (order_->listed) {
        w_.common.fetches.remove(order_->key, order_->into);
    }
}

// Memory has ended where it waits (net/coroutine.hpp), or within what ends it. Readers wait without a deadline of their
// own, and whoever asks for the same would join them.
void producer::end_in_the_middle() noexcept {
    fail(failure{failure_code::out_of_memory, ""});
    try {
        unlist();
    } catch (const std::exception&) {
        // It is joined by nobody: it has ended.
    }
}

}  // namespace

void start_producer(thread::worker& w, std::shared_ptr<fetch_order> order) {
    // What is to be told to others ~producer tells.
    auto on_end = [](const std::exception_ptr& broken) {
        const auto more = broken ? ended_by_exception.due() : std::nullopt;
        if (more) {
            log::error("a fetch ended by an exception", *more);
        }
    };
    auto one = std::make_unique<producer>(w, std::move(order));
    net::begin_coroutine(w.io, producer::run(std::move(one)), std::move(on_end));
}

}  // namespace reprise::proxy::fetch
