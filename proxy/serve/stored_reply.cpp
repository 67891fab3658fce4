#include "proxy/serve/stored_reply.hpp"

#include "proxy/http/conditional.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/serve/look_up.hpp"
#include "proxy/serve/relay.hpp"
#include "proxy/serve/stored_pieces.hpp"

#include <chrono>

namespace reprise::proxy::serve {

namespace {

using http::field_id;
using read_result = cache::disk_body_reader::read_result;

// A client that has not taken a batch by then lags, and little is held for it from then on. It is seen a tick of the
// loop's deadlines later at most: so nobody lags who takes 1.3 MB/s, whoever takes half of that does, and for those that
// do not no more is held than they take in a second.
constexpr std::chrono::milliseconds lags_after{100};

// What a request that goes on where the disk fails has to know.
cache::head_ptr head_of(const cache::stored_response& stored) {
    auto head = std::make_shared<cache::fetched_head>();
    head->status = stored.status();
    head->length = stored.size();
    const auto lines = stored.fields();
    if (const auto* etag = http::find(lines, field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    return head;
}

}  // namespace

std::optional<answers::body_on_disk> compose_stored(exchange_state& x,
                                                    const answers::stored& what) {
    const bool fresh = x.verdict.what == cache::ruling::hit;
    x.book.how = what.collapsed ? outcome::collapsed : fresh ? outcome::hit : outcome::stale;
    x.sending = x.stored.response;
    const auto how = cache::status_of(x.verdict, *x.sending);
    x.book.reason = how.detail;
    stored_pieces made{x, *x.sending};
    made.compose(x.judged_at, how);
    return made.take_disk_body();
}

std::optional<answers::body_on_disk> compose_stand_in(exchange_state& x,
                                                      const answers::stand_in& what) {
    const auto now = resident_now();
    x.book.how = outcome::stale;
    x.book.reason = what.detail;
    x.sending = x.stored.response;
    http::cache_status how;
    how.hit = what.status == 0;
    if (!how.hit) {  // it was forwarded (RFC 9211 2.1), in vain
        how.forward = x.verdict.forward == http::forward_reason::none ? http::forward_reason::stale
                                                                      : x.verdict.forward;
        how.forward_status = what.status;
        how.collapsed = what.collapsed;
    }
    how.ttl = http::remaining(x.sending->freshness(), now);
    how.detail = what.detail;
    stored_pieces made{x, *x.sending};
    made.compose(now, how);
    return made.take_disk_body();
}

// Until a first piece of the body is there nothing goes out, so that a body that proves unreadable
// is fetched as if it were not stored; after that the rest is asked of the origin under the
// validator of what was sent, or the reply breaks off.
awaitable<ended_or_next> disk_body_reply::give() {
    auto& reader = *what_.reader;
    net::deadline lag{x_.w.timer, [&reader] { reader.client_lags(); }};
    std::vector<cache::slice> pieces;
    while (reader.offset() < what_.end) {
        pieces.clear();
        const auto what = reader.next(what_.end, body_batch, pieces);
        if (what == read_result::waiting) {
            const auto waited = co_await x_.out.wait();
            if (waited != ended::keep) {
                co_return x_.out.leave();
            }
            continue;
        }
        if (what != read_result::data) {
            co_return co_await go_on(what);
        }
        std::size_t size = 0;
        for (const auto& piece : pieces) {
            size += piece.size;
        }
        x_.out.note_body(body_source::store, size);
        for (const auto& piece : pieces) {
            x_.out.add(piece.view());
        }
        auto sent = x_.out.try_send();
        if (!sent) {
            lag.expire_after(lags_after);
            sent = co_await x_.out.send();
            lag.clear();
        }
        if (sent != ended::keep) {
            co_return *sent;
        }
    }
    co_return x_.out.end();
}

awaitable<ended_or_next> disk_body_reply::go_on(read_result what) {
    const auto stored = x_.sending;
    if (what == read_result::lost) {
        (void)x_.w.common.store.drop(x_.asked.key, x_.asked.url, stored);
    }
    if (!x_.out.under_way()) {
        x_.out.drop_pieces();
        x_.sending = nullptr;
        co_return judge_without_store(x_);
    }
    if (x_.book.status != 200) {
        co_return x_.out.break_off(outcome::cut_short, "disk");
    }
    const auto head = head_of(*stored);
    co_return co_await go_on_alone(x_, head, what_.reader->offset(), false, "disk");
}

}  // namespace reprise::proxy::serve
