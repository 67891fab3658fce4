#include "proxy/peer/bounded_get.hpp"

#include "proxy/http/chunked.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/io.hpp"
#include "proxy/peer/resource.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace reprise::proxy::peer {
namespace {

using http::body_kind;

constexpr http::head_limits head_limits{.bytes = 32u << 10, .fields = 100, .target = 0};
constexpr std::size_t read_size = 64u << 10;
constexpr unsigned most_interim = 4;

std::string_view value_of(http::field_list fields, std::string_view name) {
    const auto* const line = http::find(fields, name);
    return line == nullptr ? std::string_view{} : line->value;
}

// A Squid says until when its digest counts: Expires less Date, as long as it is ahead.
std::optional<std::chrono::seconds> fresh_for(http::field_list fields, wall_time now) {
    const auto expires = http::parse_date(value_of(fields, "Expires"), now);
    const auto date = http::parse_date(value_of(fields, "Date"), now);
    if (!expires) {
        return std::nullopt;
    }
    const auto left = *expires - date.value_or(now);
    return std::max(std::chrono::seconds{0}, std::chrono::floor<std::chrono::seconds>(left));
}

/// What came of one exchange on a connection.
struct exchange_end {
    follow_trouble trouble = follow_trouble::none;
    std::string detail{};
    bool silent = false;  ///< the connection ended without a byte: a kept one may have been dead
};

exchange_end broke(const net::deadline& patience, bool silent) {
    if (patience.expired()) {
        return {.trouble = follow_trouble::timed_out};
    }
    return {.trouble = follow_trouble::unreachable,
            .detail = "the connection ended early",
            .silent = silent};
}

/// Reads more; false at the end of the connection, whatever ended it.
awaitable<bool> read_more(net::origin_lease& lease, const net::deadline& patience) {
    auto& buffer = lease.buffer();
    const auto space = buffer.prepare(read_size);
    if (patience.expired() || !lease.socket().is_open()) {
        co_return false;
    }
    const auto into = asio::buffer(space.data(), space.size());
    const auto [error, got] = co_await net::read_some(lease.socket(), into);
    buffer.commit(got);
    co_return got > 0 && !error;
}

awaitable<exchange_end> read_head(net::origin_lease& lease,
                                  const net::deadline& patience,
                                  http::response_head& head) {
    auto& buffer = lease.buffer();
    std::size_t resume = 0;
    unsigned interim = 0;
    for (;;) {
        const auto read = buffer.empty()
                              ? http::head_result{}
                              : http::parse_response_head(buffer.data(), head, head_limits, resume);
        if (read.state == http::head_state::bad) {
            co_return exchange_end{.trouble = follow_trouble::bad_message, .detail = read.why};
        }
        if (read.state == http::head_state::done) {
            if (head.status >= 200) {
                co_return exchange_end{};
            }
            if (head.status == 101 || ++interim > most_interim) {
                co_return exchange_end{.trouble = follow_trouble::bad_message,
                                       .detail = "1xx responses"};
            }
            buffer.consume(head.bytes);
            resume = 0;
            continue;
        }
        resume = read.resume;
        const bool more = co_await read_more(lease, patience);
        if (!more) {
            co_return broke(patience, buffer.empty());
        }
    }
}

awaitable<exchange_end> read_body(net::origin_lease& lease,
                                  const net::deadline& patience,
                                  http::body_framing framing,
                                  std::uint64_t most,
                                  std::vector<std::byte>& out) {
    auto& buffer = lease.buffer();
    if (framing.kind == body_kind::none) {
        co_return exchange_end{};
    }
    auto left = framing.kind == body_kind::length ? framing.length
                                                  : std::numeric_limits<std::uint64_t>::max();
    if (framing.kind == body_kind::length && left > most) {
        co_return exchange_end{.trouble = follow_trouble::too_large};
    }
    http::chunked_decoder decoder;
    const auto take = [&out, most](std::string_view piece) {
        const auto bytes = std::as_bytes(std::span{piece.data(), piece.size()});
        out.insert(out.end(), bytes.begin(), bytes.end());
        return out.size() <= most;
    };
    while (left > 0) {
        if (buffer.empty()) {
            const bool more = co_await read_more(lease, patience);
            if (!more) {
                if (framing.kind == body_kind::until_close && !patience.expired()) {
                    co_return exchange_end{};  // the digest's own length says whether it is whole
                }
                co_return broke(patience, false);
            }
        }
        bool fits = true;
        if (framing.kind == body_kind::chunked) {
            const auto step = decoder.feed(buffer.data());
            if (step.error != nullptr) {
                co_return exchange_end{.trouble = follow_trouble::bad_message,
                                       .detail = step.error};
            }
            fits = take(step.data);
            buffer.consume(step.consumed);
            left = step.done ? 0 : left;
        } else {
            const auto piece = buffer.data().substr(
                0, static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
            fits = take(piece);
            left -= piece.size();
            buffer.consume(piece.size());
        }
        if (!fits) {
            co_return exchange_end{.trouble = follow_trouble::too_large};
        }
    }
    co_return exchange_end{};
}

}  // namespace

awaitable<got_response> bounded_get(net::origin_lease& lease,
                                    net::deadline& patience,
                                    std::string request,
                                    std::uint64_t most) {
    // What went wrong with the writing, the reading tells.
    (void)co_await net::write_all(lease.socket(), asio::buffer(request));
    got_response out;
    http::response_head head;
    auto end = co_await read_head(lease, patience, head);
    if (end.trouble == follow_trouble::none) {
        // Fields are views into the buffer, which the body is read to.
        out.status = head.status;
        out.etag = value_of(head.fields, "ETag");
        out.last_modified = value_of(head.fields, "Last-Modified");
        out.node = value_of(head.fields, node_field);
        out.tells_news = !value_of(head.fields, news_field).empty();
        out.seen = value_of(head.fields, seen_field);
        out.fresh_for = fresh_for(head.fields, wall_now());
        const auto framing = http::response_framing(head, boost::beast::http::verb::get);
        if (!framing) {
            end = {.trouble = follow_trouble::bad_message, .detail = framing.error().detail};
        } else {
            const bool lasts = framing->reusable && framing->kind != body_kind::until_close &&
                               http::keep_alive(head.version, head.fields);
            lease.buffer().consume(head.bytes);
            end = co_await read_body(lease, patience, *framing, most, out.body);
            if (end.trouble == follow_trouble::none && lasts) {
                patience.clear();
                lease.give_back();
            }
        }
    }
    out.trouble = end.trouble;
    out.detail = std::move(end.detail);
    out.silent = end.silent;
    co_return out;
}

}  // namespace reprise::proxy::peer
