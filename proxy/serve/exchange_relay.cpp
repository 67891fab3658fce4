#include "proxy/http/chunked.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/serve/exchange.hpp"

#include <algorithm>
#include <optional>
#include <utility>

// A fetch's head and body on their way to the client, and what goes on alone behind them.

namespace reprise::proxy::serve {

namespace {

using http::body_kind;
using news = cache::fetch_reader::news;

constexpr std::size_t batch = 128u << 10;  // of a body, handed to the kernel at once

std::size_t size_of(const cache::fetch_reader::report& report) noexcept {
    std::size_t size = 0;
    for (const auto& slice : report.slices) {
        size += slice.size;
    }
    return size;
}

// Drops the first `bytes` of what came, or all of it; how many were dropped.
std::uint64_t drop_front(cache::fetch_reader::report& report, std::uint64_t bytes) {
    std::uint64_t dropped = 0;
    auto slice = report.slices.begin();
    for (; slice != report.slices.end() && dropped < bytes; ++slice) {
        const auto some = static_cast<std::size_t>(
            std::min<std::uint64_t>(slice->size, bytes - dropped));
        dropped += some;
        slice->begin += some;
        slice->size -= some;
        if (slice->size > 0) {
            break;
        }
    }
    report.slices.erase(report.slices.begin(), slice);
    return dropped;
}

// A piece of the body, in a chunk of its own where there is a line for it, which must stay as it is
// until the parts are sent.
void append_piece(const cache::fetch_reader::report& report,
                  std::size_t size,
                  std::string* chunk_line,
                  std::vector<asio::const_buffer>& parts) {
    if (chunk_line != nullptr) {
        chunk_line->clear();
        http::append_chunk_header(*chunk_line, size);
        parts.emplace_back(chunk_line->data(), chunk_line->size());
    }
    for (const auto& slice : report.slices) {
        parts.emplace_back(slice.view().data(), slice.size);
    }
    if (chunk_line != nullptr) {
        parts.emplace_back("\r\n", 2);
    }
}

// The last defence of who reads the reply by its Content-Length: whatever a producer did, the body
// that goes out has that length or is seen to be cut short. `sent` bytes of it have gone out.
void hold_to_length(cache::fetch_reader::report& report, std::uint64_t length, std::uint64_t sent) {
    const bool more = report.what == news::data && size_of(report) > length - sent;
    const bool less = report.what == news::end && sent != length;
    if (more || less) {
        report.what = news::failed;
        report.why = failure{failure_code::response_cut_short,
                             "a body of another length than was said"};
    }
}

}  // namespace

// Status line to empty line, into tail and parts.
void exchange::compose_head(const cache::fetched_head& head, const http::cache_status& how) {
    ledger_.status = head.status;
    auto& tail = s_.tail;
    tail.assign(head.head);
    http::body_framing framing;
    chunked_reply_ = false;
    if (!head.has_body) {
        if (head.length && head.status != 204) {
            framing.has_stated_length = true;
            framing.stated_length = *head.length;
        }
    } else if (head.length) {
        framing.kind = body_kind::length;
        framing.length = *head.length;
    } else if (head_->version == 11) {
        framing.kind = body_kind::chunked;
        chunked_reply_ = true;
        tail.append(head.trailer);
    } else {
        framing.kind = body_kind::until_close;
        keep_ = false;
    }
    http::append_framing(tail, framing, head_->version);
    append_own_fields(head, how);
    compose_anew();
    s_.parts.emplace_back(tail.data(), tail.size());
    if (framing.kind == body_kind::until_close) {
        s_.client.reply_ends_by_closing();
    }
}

// A 304 of the same head, for a client that has its body.
void exchange::compose_not_modified(const cache::fetched_head& head,
                                    const http::cache_status& how) {
    ledger_.status = 304;
    chunked_reply_ = false;
    auto& tail = s_.tail;
    tail.assign("HTTP/1.1 304 Not Modified\r\n");
    for (const auto& line : lines_of(head)) {
        if (http::belongs_in_not_modified(line)) {
            tail.append(line.name).append(": ").append(line.value).append("\r\n");
        }
    }
    append_own_fields(head, how);
    compose_anew();
    s_.parts.emplace_back(tail.data(), tail.size());
}

// What a reply says of itself, and the empty line.
void exchange::append_own_fields(const cache::fetched_head& head, const http::cache_status& how) {
    auto& tail = s_.tail;
    const auto age = http::current_age(head.freshness, resident_now());
    if (age.count() > 0) {
        tail.append("Age: ").append(std::to_string(age.count())).append("\r\n");
    }
    tail.append("Cache-Status: ");
    http::append_cache_status(tail, "reprise", how);
    tail.append("\r\n");
    append_connection(tail);
    tail.append("\r\n");
}

awaitable<bool> exchange::relay_body(cache::fetch_reader& reader, cache::head_ptr head) {
    auto& report = s_.report;
    std::string chunk_line;
    std::uint64_t body = 0;
    for (;;) {
        reader.next(report, batch);
        if (head->has_body && head->length) {
            hold_to_length(report, *head->length, body);
        }
        bool over = false;
        switch (report.what) {
        case news::nothing: {
            if (!s_.parts.empty()) {
                const bool sent = co_await send_rest();
                if (!sent) {
                    co_return false;
                }
            }
            const bool more = co_await wait_for_news();
            if (!more) {
                co_return break_off(outcome::client_gone, ledger_.reason);
            }
            continue;
        }
        case news::data: {
            const auto size = size_of(report);
            body += size;
            if (facts_.is_head || !head->has_body) {
                continue;
            }
            ledger_.note_body(
                ledger_.how == outcome::collapsed ? body_source::shared : body_source::fetch, size);
            append_piece(report, size, chunked_reply_ ? &chunk_line : nullptr, s_.parts);
            break;
        }
        case news::end: {
            over = true;
            if (chunked_reply_) {
                chunk_line = "0\r\n" + report.trailers + "\r\n";
                s_.parts.emplace_back(chunk_line.data(), chunk_line.size());
            }
            break;
        }
        case news::failed: {
            ledger_.error = report.why.detail;
            if (!s_.client.reply_under_way()) {
                // Nothing has gone out: an honest error instead of half a response.
                auto why = std::move(report.why);
                const auto after = answer_failure(why);
                co_return co_await finish_composed(after);
            }
            co_return break_off(outcome::cut_short, facts_of(report.why.code).name);
        }
        case news::fell_out: {
            co_return co_await go_on_alone(head, reader.offset(), "fell-behind");
        }
        case news::interim: continue;  // too late for it
        case news::head:
        case news::validated:
        case news::upgraded: break;  // seen before the body
        }
        if (!s_.parts.empty()) {
            const bool sent = co_await send_rest();
            if (!sent) {
                co_return false;
            }
        }
        if (over) {
            end_reply();
            co_return true;
        }
    }
}

// What this client was served from serves it no longer: it fell out of a shared fetch, or the disk
// fails. Its answer so far is the head and `offset` bytes of body, of which something may be
// composed and not out yet. A client that has had nothing has an answer of its own instead.
awaitable<bool> exchange::go_on_alone(cache::head_ptr head,
                                      std::uint64_t offset,
                                      std::string_view why) {
    if (!s_.client.reply_under_way()) {
        w_.counts.collapsed_released.add();
        co_return co_await ask_alone();
    }
    bool whole = co_await send_rest();
    if (whole) {
        whole = co_await resume_alone(std::move(head), offset);
    }
    if (whole) {
        end_reply();
    } else {
        ledger_.how = outcome::cut_short;
        ledger_.reason = why;
    }
    co_return whole;
}

// With a range request of its own, under the strong ETag of what it has had so far (RFC 9110
// 13.1.5). An origin that sends all of the same representation instead is as good. Without an ETag
// what was sent cannot be continued and the connection breaks.
awaitable<bool> exchange::resume_alone(cache::head_ptr head, std::uint64_t offset) {
    const auto break_off = [this] {
        keep_ = false;
        s_.client.break_off();
        return false;
    };
    if (!cache::can_be_resumed(*head)) {
        co_return break_off();
    }
    auto order = make_order();
    order->resume_at = offset;
    order->resume_etag = head->strong_etag;
    order->into = std::make_shared<cache::fetch>(settings_->fetches);
    bool head_known = false;
    const auto reader = cache::fetch::join(order->into, s_.arrived.handle(), head_known);
    fetch::start_producer(w_, order);
    auto& report = s_.report;
    std::string chunk_line;
    std::uint64_t skip = 0;             // of what comes: this client has it
    std::optional<std::uint64_t> left;  // to come; none: nobody said
    for (;;) {
        reader->next(report, batch);
        if (report.what == news::nothing) {
            const bool more = co_await wait_for_news();
            if (!more) {
                co_return break_off();
            }
            continue;
        }
        if (report.what == news::head) {
            // Another representation, or another part of it, must not be spliced in; nor may it
            // bring a byte more or less than this client was promised.
            const auto& rest = *report.head;
            bool same = rest.strong_etag == head->strong_etag;
            if (rest.status == 206) {
                same = same && rest.range_total != 0 && rest.range_first == offset &&
                       rest.range_last + 1 == rest.range_total &&
                       (!head->length || *head->length == rest.range_total) &&
                       (!rest.length || *rest.length == rest.range_total - offset);
                left = rest.range_total - offset;
            } else {
                const auto total = head->length ? head->length : rest.length;
                same = same && rest.status == 200 && (!total || *total >= offset) &&
                       (!head->length || !rest.length || *head->length == *rest.length);
                skip = offset;
                left = total;
            }
            if (!same) {
                co_return break_off();
            }
            continue;
        }
        if (report.what == news::data) {
            if (left) {
                const auto came = size_of(report);
                if (came > *left) {
                    co_return break_off();
                }
                *left -= came;
            }
            skip -= drop_front(report, skip);
            const auto size = size_of(report);
            if (size == 0) {
                continue;
            }
            ledger_.note_body(body_source::fetch, size);
            append_piece(report, size, chunked_reply_ ? &chunk_line : nullptr, s_.parts);
        } else if (report.what == news::end) {
            if (left.value_or(0) != 0 || skip != 0) {
                co_return break_off();
            }
            if (chunked_reply_) {
                s_.parts.emplace_back("0\r\n\r\n", 5);
            }
        } else if (report.what != news::interim) {
            co_return break_off();
        }
        const bool over = report.what == news::end;
        const bool sent = co_await send_rest();
        if (!sent) {
            co_return false;
        }
        if (over) {
            co_return true;
        }
    }
}

}  // namespace reprise::proxy::serve
