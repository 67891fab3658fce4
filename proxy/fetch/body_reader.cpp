#include "proxy/fetch/body_reader.hpp"

#include "proxy/fetch/continuation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

// Bytes are counted down from what readers were promised, whoever sends them.

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {

/// Below this a sibling is no faster than no sibling: another source goes on.
constexpr std::uint64_t sibling_rate = 16u << 10;  // bytes a second
constexpr std::chrono::milliseconds sibling_patience{1000};
/// A fetch that nobody waits for ends below this, in the mean: it holds a connection, a descriptor and room in the store.
constexpr std::uint64_t unread_rate = 4u << 10;  // bytes a second

constexpr std::chrono::milliseconds between_disk_looks{500};
/// Clients wait no longer than that for an object's sake, in all.
constexpr std::chrono::seconds most_wait_for_disk{10};

constexpr auto changed = "the object changed while it was being sent";

}  // namespace

body_reader::body_reader(
    fetch_order& order, upstream& at, sources& from, keeping& kept, cache::head_ptr published)
    : order_{order},
      at_{at},
      sources_{from},
      keeping_{kept},
      into_{*order.into},
      published_{std::move(published)},
      owed_{published_->length.value_or(std::numeric_limits<std::uint64_t>::max())} {}

bool body_reader::outruns_disk() const {
    return waited_for_disk_ < most_wait_for_disk && keeping_.outruns_disk(at_.ready);
}

// For readers, and for the disk; both say when they have gone on. A disk that hangs does not: that is
// looked for.
awaitable<ended> body_reader::wait_for_room() {
    for (;;) {
        const bool for_readers = into_.producer_must_pause();
        if (!for_readers && !outruns_disk()) {
            break;
        }
        at_.patience.clear();
        const auto from = steady_now();
        const auto until = for_readers ? steady_time::max() : from + between_disk_looks;
        const bool signalled = co_await at_.ready.wait(until);
        const auto now = steady_now();
        paused_ += now - from;
        waited_for_disk_ += for_readers ? steady_time::duration{0} : now - from;
        const bool program_ends = !signalled && now < until;
        if (program_ends || into_.abandoned()) {
            co_return ended::gone;
        }
    }
    co_return into_.abandoned() ? ended::gone : ended::keep;
}

// A piece of the body goes to the readers, unless they have it from a sibling already. False: it is
// not what they have, or more than they were promised.
bool body_reader::deliver(std::string_view piece) {
    if (passed_) {
        if (skips()) {
            const auto known = piece.substr(0,
                                            static_cast<std::size_t>(std::min<std::uint64_t>(
                                                passed_->left_to_skip(), piece.size())));
            piece.remove_prefix(known.size());
            if (!passed_->skip(known)) {
                return false;
            }
        }
        if (at_.from.may_be_replaced()) {
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

// The source in hand has sent all of its body: that must not be less than readers were promised, or
// have.
trouble body_reader::end() {
    if (skips() || (published_->length && owed_ != 0)) {
        return at_.cut_short("another source had less of it");
    }
    if (last_) {
        into_.producer_append({&*last_, 1});
        last_.reset();
    }
    return std::nullopt;
}

trouble body_reader::take_buffered(progress& so_far, std::string& trailers) {
    auto& buffer = at_.from.lease.buffer();
    bool same = true;
    if (so_far.kind == body_kind::chunked) {
        const auto step = so_far.decoder.feed(buffer.data());
        if (step.error != nullptr) {
            return at_.cut_short(std::string{"chunked coding: "} + step.error);
        }
        same = deliver(step.data);
        buffer.consume(step.consumed);
        if (same && step.done) {
            for (const auto& line : so_far.decoder.trailers()) {
                http::append_field_line(trailers, line.name, line.value);
            }
            so_far.over = true;
            return std::nullopt;
        }
    } else {
        const auto piece = buffer.data().substr(
            0, static_cast<std::size_t>(std::min<std::uint64_t>(so_far.left, buffer.size())));
        same = deliver(piece);
        so_far.left -= piece.size();
        so_far.over = so_far.left == 0;
        buffer.consume(piece.size());
    }
    if (!same) {
        return at_.cut_short(changed);
    }
    keeping_.keep_up();
    return std::nullopt;
}

// Of an origin, or of a peer that waits as we do: a byte now and then is enough while a client waits, who may leave. Nobody
// would end it else.
steady_time body_reader::must_hear_by(steady_time::duration most_silence) {
    const auto now = steady_now();
    if (into_.has_readers()) {
        unread_since_.reset();
        return now + most_silence;
    }
    if (!unread_since_) {
        unread_since_ = now - paused_;
        came_unread_ = 0;
    }
    const std::chrono::milliseconds earned{came_unread_ * 1000 / unread_rate};
    return std::min(now, *unread_since_ + paused_ + earned) + most_silence;
}

awaitable<trouble> body_reader::read_more(progress& so_far) {
    auto waited = into_.abandoned() ? ended::gone : ended::keep;
    if (into_.producer_must_pause() || outruns_disk()) {
        waited = co_await wait_for_room();
        at_.note_heard();
        came_last_ = steady_now();  // what was not read was not waited for
    }
    if (waited != ended::keep) {
        co_return at_.cut_short("every client has left");
    }
    const auto most_silence = order_.now_settings->options.timeouts.origin_body;
    if (at_.from.waits_too) {
        at_.patience.expire_at(
            std::min(must_hear_by(most_silence), steady_now() + at_.doubt_after()));
    } else if (!at_.from.sibling) {
        at_.patience.expire_at(must_hear_by(most_silence));
    } else if (!at_.patience.armed()) {
        at_.patience.guard_rate(sibling_rate,
                                std::max(sibling_patience, at_.from.sibling->timeout));
    }
    error_code error;
    std::size_t got = 0;
    if (so_far.kind == body_kind::chunked || so_far.left <= upstream::read_size / 4 || skips() ||
        ends_by_surprise()) {
        auto& buffer = at_.from.lease.buffer();
        const auto space = buffer.prepare(upstream::read_size);
        got = co_await at_.read_into(space.data(), space.size(), error);
        buffer.commit(got);
    } else {
        // Straight into the block that clients and store share.
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(so_far.left, 64u << 10));
        const auto [block, space] = into_.producer_space(want);
        got = co_await at_.read_into(block, space, error);
        if (got > owed_) {
            co_return at_.cut_short(changed);
        }
        owed_ -= got;
        if (at_.from.may_be_replaced() && passed_) {
            passed_->note({block, got});
        }
        into_.producer_commit(got);
        so_far.left -= got;
        so_far.over = so_far.left == 0;
        keeping_.keep_up();
    }
    if (got > 0) {
        came_unread_ += got;
        came_last_ = steady_now();
        if (at_.from.sibling && !at_.from.waits_too) {
            at_.patience.progress(got);
        }
        co_return std::nullopt;
    }
    if (at_.from.waits_too && at_.patience.expired() && !into_.abandoned()) {
        // That it lives is not enough where nobody waits: what it waits for may drip for as long as anybody likes.
        const bool is_in_time = must_hear_by(most_silence) > steady_now();
        if (is_in_time || !into_.producer_ends_if_unread()) {
            const bool lives = co_await at_.far_end_lives(most_silence);
            if (lives) {
                co_return std::nullopt;
            }
        }
    }
    // Whoever joined while a deadline ran that was for nobody has as long as any reader has.
    const bool was_for_nobody = unread_since_ && !at_.from.sibling && !at_.from.waits_too;
    if (was_for_nobody && error == asio::error::operation_aborted && at_.patience.expired() &&
        !at_.is_overtaken() && into_.has_readers() && steady_now() < came_last_ + most_silence) {
        co_return std::nullopt;
    }
    so_far.over = so_far.kind == body_kind::until_close && error == asio::error::eof;
    if (so_far.over) {
        co_return std::nullopt;
    }
    co_return at_.cut_short(error == asio::error::eof ? "the connection ended before the body"
                                                      : "the connection broke: " + error.message());
}

// The body from the source in hand; why it did not come whole.
awaitable<trouble> body_reader::read_one(std::string& trailers) {
    const auto& limits = order_.now_settings->options.limits;
    const auto& framing = at_.from.came.framing;
    const auto left = framing.kind == body_kind::length ? framing.length
                                                        : std::numeric_limits<std::uint64_t>::max();
    progress so_far{
        framing.kind,
        left,
        http::chunked_decoder{{.trailer_bytes = limits.head_size, .trailer_fields = limits.fields}},
        left == 0};
    trouble wrong;
    while (!wrong && !so_far.over) {
        if (at_.from.lease.buffer().empty()) {
            wrong = co_await read_more(so_far);
        } else {
            wrong = take_buffered(so_far, trailers);
        }
    }
    co_return wrong ? wrong : end();
}

// A sibling, or the URL's home, broke off. Its readers have the beginning: the same response from elsewhere goes on
// behind that, if its beginning is the same bytes.
awaitable<trouble> body_reader::go_on_elsewhere() {
    auto wrong = co_await sources_.find_another();
    if (wrong) {
        co_return wrong;
    }
    const auto framing = http::response_framing(at_.from.came.head, order_.request->head.method);
    if (!framing || !continues(*published_, at_.from.came.head, *framing)) {
        co_return failure{failure_code::response_cut_short, changed};
    }
    at_.from.came.framing = *framing;
    at_.from.came.persistent = http::keep_alive(at_.from.came.head.version,
                                                at_.from.came.head.fields);
    at_.from.came.came = wall_now();
    at_.from.came.resident_came = resident_now();
    keeping_.goes_on(at_.from.came);
    at_.from.lease.buffer().consume(at_.from.came.head.bytes);
    passed_->begin_skipping(into_.received());
    co_return std::nullopt;
}

awaitable<trouble> body_reader::read(std::string& trailers) {
    return at_.from.may_be_replaced() ? read_of_sibling(trailers) : read_one(trailers);
}

awaitable<trouble> body_reader::read_of_sibling(std::string& trailers) {
    passed_ = std::make_unique<prefix_hash>();
    auto wrong = co_await read_one(trailers);
    if (wrong && at_.from.may_be_replaced() && !into_.abandoned()) {
        wrong = co_await go_on_elsewhere();
        trailers.clear();
        if (!wrong) {
            wrong = co_await read_one(trailers);
        }
    }
    co_return wrong;
}

}  // namespace reprise::proxy::fetch
