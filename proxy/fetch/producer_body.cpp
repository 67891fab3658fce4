// A response's body: from the source in hand to the readers, and, where a sibling breaks off, on
// from another.

#include "proxy/fetch/producer_steps.hpp"
#include "proxy/fetch/splice.hpp"
#include "proxy/http/chunked.hpp"

#include <algorithm>
#include <limits>

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

/// Below this a sibling is no faster than no sibling: another source goes on.
constexpr std::uint64_t sibling_rate = 16u << 10;  // bytes a second
constexpr std::chrono::milliseconds sibling_patience{1000};

constexpr auto changed = "the object changed while it was being sent";

}  // namespace

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

// A piece of the body goes to the readers, unless they have it from a sibling already. False: it is
// not what they have, or more than they were promised.
bool producer::deliver(std::string_view piece) {
    if (passed_) {
        if (passed_->left_to_skip() > 0) {
            const auto known = piece.substr(0,
                                            static_cast<std::size_t>(std::min<std::uint64_t>(
                                                passed_->left_to_skip(), piece.size())));
            piece.remove_prefix(known.size());
            if (!passed_->skip(known)) {
                return false;
            }
        }
        if (sibling_) {
            passed_->note(piece);
        }
    }
    if (piece.size() > owed_) {
        return false;
    }
    owed_ -= piece.size();
    if (owed_ == 0 && !piece.empty() && ends_by_surprise()) {
        last_ = piece.back();
        piece.remove_suffix(1);
    }
    if (!piece.empty()) {
        into_.producer_append(piece);
    }
    return true;
}

// The source in hand has sent all of its body. False: that is less than readers were promised, or
// have.
bool producer::end_body() {
    if ((passed_ && passed_->left_to_skip() > 0) || (published_->length && owed_ != 0)) {
        return false;
    }
    if (last_) {
        into_.producer_append({&*last_, 1});
        last_.reset();
    }
    return true;
}

failure producer::cut_short(std::string detail) const {
    if (watch_.stalled()) {
        return {failure_code::origin_upload_timeout, "the origin stopped taking the body"};
    }
    if (patience_.expired()) {
        return {failure_code::origin_body_timeout, "the response's body stopped arriving"};
    }
    return {failure_code::response_cut_short, std::move(detail)};
}

// The body from the source in hand; why it did not come whole.
awaitable<trouble> producer::read_body_of_one(std::string& trailers) {
    auto& buffer = lease_.buffer();
    const auto& framing = came_.framing;
    const auto& options = order_->now_settings->options;
    const auto timeout = options.timeouts.origin_body;
    auto left = framing.kind == body_kind::length ? framing.length
                                                  : std::numeric_limits<std::uint64_t>::max();
    http::chunked_decoder decoder{
        {.trailer_bytes = options.limits.head_size, .trailer_fields = options.limits.fields}};
    const auto skips = [this] { return passed_ && passed_->left_to_skip() > 0; };
    const auto end = [this] {
        return end_body() ? trouble{} : trouble{cut_short("another source had less of it")};
    };
    for (;;) {
        if (framing.kind == body_kind::length && left == 0) {
            co_return end();
        }
        if (!buffer.empty()) {
            bool same = true;
            if (framing.kind == body_kind::chunked) {
                const auto step = decoder.feed(buffer.data());
                if (step.error != nullptr) {
                    co_return cut_short(std::string{"chunked coding: "} + step.error);
                }
                same = deliver(step.data);
                buffer.consume(step.consumed);
                if (same && step.done) {
                    for (const auto& line : decoder.trailers()) {
                        trailers.append(line.name).append(": ").append(line.value).append("\r\n");
                    }
                    co_return end();
                }
            } else {
                const auto piece = buffer.data().substr(
                    0, static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size())));
                same = deliver(piece);
                left -= piece.size();
                buffer.consume(piece.size());
            }
            if (!same) {
                co_return cut_short(changed);
            }
            keeping_.keep_up();
            continue;
        }
        const bool wanted = co_await wait_for_room();
        if (!wanted) {
            co_return cut_short("every client has left");
        }
        if (!sibling_) {
            patience_.expire_after(timeout);
        } else if (!patience_.armed()) {
            patience_.guard_rate(sibling_rate, std::max(sibling_patience, sibling_->timeout));
        }
        error_code error;
        std::size_t got = 0;
        if (framing.kind == body_kind::chunked || left <= read_size / 4 || skips() ||
            ends_by_surprise()) {
            const auto space = buffer.prepare(read_size);
            got = co_await read_into(space.data(), space.size(), error);
            buffer.commit(got);
        } else {
            // Straight into the block that clients and store share.
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left, 64u << 10));
            const auto [at, space] = into_.producer_space(want);
            got = co_await read_into(at, space, error);
            if (got > owed_) {
                co_return cut_short(changed);
            }
            owed_ -= got;
            if (sibling_ && passed_) {
                passed_->note({at, got});
            }
            into_.producer_commit(got);
            left -= got;
            keeping_.keep_up();
        }
        if (got > 0) {
            if (sibling_) {
                patience_.progress(got);
            }
            continue;
        }
        if (framing.kind == body_kind::until_close && error == asio::error::eof) {
            co_return end();
        }
        co_return cut_short(error == asio::error::eof ? "the connection ended before the body"
                                                      : "the connection broke: " + error.message());
    }
}

// A sibling broke off. Its readers have the beginning: the same response from elsewhere goes on
// behind that, if its beginning is the same bytes.
awaitable<trouble> producer::go_on_elsewhere() {
    auto& o = *order_;
    end_asking(peer::asking_end::failed);
    o.may_ask_siblings = false;
    let_go();
    patience_.clear();
    auto wrong = co_await get_head();
    if (wrong) {
        co_return wrong;
    }
    const auto framing = http::response_framing(came_.head, o.request->head.method);
    if (!framing || !continues(*published_, came_.head, *framing)) {
        co_return failure{failure_code::response_cut_short, changed};
    }
    came_.framing = *framing;
    came_.persistent = http::keep_alive(came_.head.version, came_.head.fields);
    lease_.buffer().consume(came_.head.bytes);
    passed_->begin_skipping(into_.received());
    co_return std::nullopt;
}

awaitable<trouble> producer::read_body(std::string& trailers) {
    if (sibling_) {
        passed_ = std::make_unique<passed_bytes>();
    }
    auto wrong = co_await read_body_of_one(trailers);
    if (wrong && sibling_ && !into_.abandoned()) {
        wrong = co_await go_on_elsewhere();
        trailers.clear();
        if (!wrong) {
            wrong = co_await read_body_of_one(trailers);
        }
    }
    co_return wrong;
}

}  // namespace reprise::proxy::fetch
