#include "proxy/serve/relay.hpp"

#include "proxy/http/chunked.hpp"
#include "proxy/serve/orders.hpp"

#include <algorithm>
#include <string>

// relay_body() ends in a value that says how (relayed), and its caller decides what follows.
// go_on_alone() is one such answer: a fetch for this client's rest, whose head must fit what was
// promised before a byte of it goes out (continued_by).

namespace reprise::proxy::serve {

namespace {

using event = cache::fetch_reader::event;
using report = cache::fetch_reader::report;

std::size_t size_of(const report& came) noexcept {
    std::size_t size = 0;
    for (const auto& slice : came.slices) {
        size += slice.size;
    }
    return size;
}

// Drops the first `bytes` of what came, or all of it; how many were dropped.
std::uint64_t drop_front(report& came, std::uint64_t bytes) {
    std::uint64_t dropped = 0;
    auto slice = came.slices.begin();
    for (; slice != came.slices.end() && dropped < bytes; ++slice) {
        const auto some = static_cast<std::size_t>(
            std::min<std::uint64_t>(slice->size, bytes - dropped));
        dropped += some;
        slice->begin += some;
        slice->size -= some;
        if (slice->size > 0) {
            break;
        }
    }
    came.slices.erase(came.slices.begin(), slice);
    return dropped;
}

// A piece of the body, in a chunk of its own where there is a line for it, which must stay as it is
// until the pieces are sent.
void add_piece(exchange_state& x, const body_rules& rules, std::size_t size, std::string& line) {
    x.out.note_body(rules.from, size);
    if (rules.chunked) {
        line.clear();
        http::append_chunk_header(line, size);
        x.out.add(line);
    }
    for (const auto& slice : x.memory.report.slices) {
        x.out.add(slice.view());
    }
    if (rules.chunked) {
        x.out.add("\r\n");
    }
}

// What a fetch that was to go on where another ended says of what it brings.
struct continuation {
    bool fits = false;
    std::uint64_t skip = 0;
    std::optional<std::uint64_t> left;
};

// Another representation, or another part of it, must not be spliced in; nor may it bring a byte
// more or less than this client was promised.
continuation continued_by(const cache::fetched_head& rest,
                          const cache::fetched_head& head,
                          std::uint64_t offset) {
    continuation out;
    out.fits = rest.strong_etag == head.strong_etag;
    if (rest.status == 206) {
        out.fits = out.fits && rest.range_total != 0 && rest.range_first == offset &&
                   rest.range_last + 1 == rest.range_total &&
                   (!head.length || *head.length == rest.range_total) &&
                   (!rest.length || *rest.length == rest.range_total - offset);
        out.left = rest.range_total - offset;
        return out;
    }
    const auto total = head.length ? head.length : rest.length;
    out.fits = out.fits && rest.status == 200 && (!total || *total >= offset) &&
               (!head.length || !rest.length || *head.length == *rest.length);
    out.skip = offset;
    out.left = total;
    return out;
}

awaitable<ended> resume_alone(exchange_state& x,
                              cache::head_ptr head,
                              std::uint64_t offset,
                              bool chunked,
                              std::string_view why) {
    if (!cache::can_be_resumed(*head)) {
        co_return x.out.break_off(outcome::cut_short, why);
    }
    const auto order = make_order(x);
    order->what = fetch::wanted::rest{offset, head->strong_etag};
    const auto reader = fetch_alone(x, order);
    auto& came = x.memory.report;
    do {
        const auto waited = co_await next_of(x, *reader);
        if (waited != ended::keep) {
            co_return waited;
        }
    } while (came.what == event::interim);
    const auto rest = came.what == event::head ? continued_by(*came.head, *head, offset)
                                               : continuation{};
    if (!rest.fits) {
        co_return x.out.break_off(outcome::cut_short, why);
    }
    body_rules rules;
    rules.left = rest.left;
    rules.skip = rest.skip;
    rules.chunked = chunked;
    rules.trailers = false;  // they are of another message
    const auto how = co_await relay_body(x, *reader, rules);
    switch (how) {
    case relayed::whole: co_return x.out.end();
    case relayed::gone: co_return ended::gone;
    case relayed::too_long:
    case relayed::too_short:
    case relayed::failed:
    case relayed::fell_out:
    case relayed::out_of_order: break;
    }
    co_return x.out.break_off(outcome::cut_short, why);
}

}  // namespace

bool has_next(exchange_state& x, cache::fetch_reader& reader) {
    reader.next(x.memory.report, body_batch);
    return x.memory.report.what != event::nothing;
}

awaitable<ended> next_of(exchange_state& x, cache::fetch_reader& reader) {
    while (!has_next(x, reader)) {
        if (x.out.has_pieces()) {
            auto sent = x.out.try_send();
            if (!sent) {
                sent = co_await x.out.send(&reader.others_wait());
            }
            if (sent != ended::keep) {
                co_return *sent;
            }
        }
        const auto waited = co_await x.out.wait();
        if (waited != ended::keep) {
            co_return x.out.leave();
        }
    }
    co_return ended::keep;
}

awaitable<relayed> relay_body(exchange_state& x, cache::fetch_reader& reader, body_rules rules) {
    auto& came = x.memory.report;
    std::string chunk_line;
    for (;;) {
        if (!has_next(x, reader)) {
            const auto waited = co_await next_of(x, reader);
            if (waited != ended::keep) {
                co_return relayed::gone;
            }
        }
        bool over = false;
        switch (came.what) {
        case event::data: {
            const auto all = size_of(came);
            if (rules.left && all > *rules.left) {
                co_return relayed::too_long;
            }
            if (rules.left) {
                *rules.left -= all;
            }
            if (rules.dropped) {
                continue;
            }
            rules.skip -= drop_front(came, rules.skip);
            const auto size = size_of(came);
            if (size == 0) {
                continue;
            }
            add_piece(x, rules, size, chunk_line);
            break;
        }
        case event::end: {
            if (rules.left.value_or(0) != 0 || rules.skip != 0) {
                co_return relayed::too_short;
            }
            over = true;
            if (rules.chunked) {
                chunk_line = "0\r\n" + (rules.trailers ? came.trailers : std::string{}) + "\r\n";
                x.out.add(chunk_line);
            }
            break;
        }
        case event::failed: co_return relayed::failed;
        case event::fell_out: co_return relayed::fell_out;
        case event::interim: continue;  // too late for it
        case event::nothing:
        case event::head:
        case event::validated:
        case event::upgraded: co_return relayed::out_of_order;
        }
        if (x.out.has_pieces()) {
            auto sent = x.out.try_send();
            if (!sent) {
                sent = co_await x.out.send(&reader.others_wait());
            }
            if (sent != ended::keep) {
                co_return relayed::gone;
            }
        }
        if (over) {
            co_return relayed::whole;
        }
    }
}

awaitable<ended> go_on_alone(exchange_state& x,
                             cache::head_ptr head,
                             std::uint64_t offset,
                             bool chunked,
                             std::string_view why) {
    auto how = co_await x.out.send();
    if (how == ended::keep) {
        how = co_await resume_alone(x, std::move(head), offset, chunked, why);
    }
    if (how == ended::gone) {
        x.book.how = outcome::cut_short;
        x.book.reason = why;
    }
    co_return how;
}

}  // namespace reprise::proxy::serve
