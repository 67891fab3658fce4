#include "proxy/cache/fetch.hpp"

#include "proxy/base/recycled.hpp"
#include "proxy/http/message_head.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

// What the producer tells a fetch, and the memory that the body lies in until every reader has passed it
// (fetch_readers.cpp has the readers). One mutex guards all of a fetch.

namespace reprise::proxy::cache {

namespace {
constexpr std::size_t largest_block = 64u << 10;
constexpr std::size_t smallest_block = 4u << 10;
constexpr std::size_t passing_block = 16u << 10;  // of what passes to one reader
constexpr std::uint64_t least_ahead = 16u << 10;
constexpr unsigned pauses_of_the_slow = 3;
}  // namespace

std::vector<http::field> lines_of(const fetched_head& head) {
    // We wrote the head from a parsed one, so it cannot fail to parse.
    std::vector<http::field> lines;
    const std::string_view text{head.head};
    const auto begin = std::min(text.find("\r\n") + 2, text.size());
    const auto most = std::numeric_limits<unsigned>::max();
    (void)http::parse_field_lines(text.substr(begin), lines, most);
    return lines;
}

std::vector<http::field> validating_lines_of(const fetched_head& head) {
    auto lines = lines_of(head);
    if (head.weak_last_modified) {
        http::remove_lines(lines, http::field_id::date);
    }
    return lines;
}

bool can_be_resumed(const fetched_head& head) noexcept {
    return head.status == 200 && !head.strong_etag.empty();
}

// Several blocks in the smallest window: the block at either end is not counted.
fetch::fetch(const fetch_limits& limits)
    : limits_{limits},
      block_size_{static_cast<std::size_t>(
          std::clamp<std::uint64_t>(limits.window / 4, smallest_block, largest_block))},
      ahead_{std::min(limits.read_ahead, first_ahead)} {}

fetch::~fetch() = default;

std::shared_ptr<fetch> fetch::make(const fetch_limits& limits) {
    return std::allocate_shared<fetch>(recycled<fetch>{}, limits);
}

bool fetch::is_wanted() const {
    return is_read() || (unattended_ && (phase_ == phase::waiting || whole_ || outside_));
}

void fetch::let_go() {
    if (whole_ || (base_ == 0 && end_ <= limits_.first_bytes && pauses_ < pauses_of_the_slow &&
                   phase_ <= phase::streaming)) {
        return;
    }
    auto needed = outside_.value_or(end_);
    for (const auto* reader : readers_) {
        if (!reader->fell_out_) {
            needed = std::min(needed, reader->offset_);
        }
    }
    // The last block may still have room that the producer fills: it stays until the end.
    const auto end = slices_.end() - (phase_ <= phase::streaming && !slices_.empty() ? 1 : 0);
    auto first_kept = slices_.begin();
    for (; first_kept != end && base_ + first_kept->size <= needed; ++first_kept) {
        base_ += first_kept->size;
    }
    slices_.erase(slices_.begin(), first_kept);
}

void fetch::producer_is(net::wakeup::signal sleeper,
                        std::function<void()> stop,
                        std::function<unattended_permit()> ask_permit) {
    const std::lock_guard lock{guard_};
    sleeper_ = std::move(sleeper);
    stop_ = std::move(stop);
    ask_permit_ = std::move(ask_permit);
}

void fetch::producer_left() {
    const std::lock_guard lock{guard_};
    sleeper_ = {};
    stop_ = nullptr;
    ask_permit_ = nullptr;
    permit_ = {};
}

void fetch::producer_unattended(unattended_permit by) {
    const std::lock_guard lock{guard_};
    unattended_ = true;
    if (by) {
        permit_ = std::move(by);
    }
}

void fetch::producer_interim(std::string head) {
    const std::lock_guard lock{guard_};
    interim_.push_back(std::move(head));
    notify_readers();
}

void fetch::producer_asks(sent_request what) {
    const std::lock_guard lock{guard_};
    if (!asked_) {
        asked_ = std::move(what);
    }
}

void fetch::producer_asked_nobody() {
    const std::lock_guard lock{guard_};
    asked_.reset();
}

std::optional<sent_request> fetch::asked() const {
    const std::lock_guard lock{guard_};
    return asked_;
}

std::size_t fetch::producer_head(head_ptr head) {
    const std::lock_guard lock{guard_};
    head_ = std::move(head);
    phase_ = phase::streaming;
    abandoned_ = abandoned_ || (unattended_ && !is_wanted());
    notify_readers();
    return count_clients();
}

std::size_t fetch::add_sights(std::size_t more) {
    const std::lock_guard lock{guard_};
    const auto before = sights_;
    sights_ += more;
    return before;
}

std::size_t fetch::pending_sights() const {
    const std::lock_guard lock{guard_};
    return phase_ == phase::streaming && !abandoned_ ? sights_ : 0;
}

head_ptr fetch::head() const {
    const std::lock_guard lock{guard_};
    return head_;
}

bool fetch::keep_whole() {
    const std::lock_guard lock{guard_};
    if (base_ != 0 || phase_ > phase::streaming || abandoned_ || outside_) {
        return false;
    }
    whole_ = true;
    return true;
}

void fetch::keep_no_more() {
    const std::lock_guard lock{guard_};
    whole_ = false;
    abandoned_ = abandoned_ || (unattended_ && phase_ == phase::streaming && !is_wanted());
    drop_those_behind();
    let_go();
}

bool fetch::kept_whole() const {
    const std::lock_guard lock{guard_};
    return whole_;
}

bool fetch::admit() {
    const std::lock_guard lock{guard_};
    return !std::exchange(admitted_, true);
}

bool fetch::was_admitted() const {
    const std::lock_guard lock{guard_};
    return admitted_;
}

bool fetch::keep_outside() {
    const std::lock_guard lock{guard_};
    if (base_ != 0 || phase_ > phase::streaming || abandoned_) {
        return false;
    }
    outside_ = 0;
    return true;
}

void fetch::keep_outside_no_more() {
    const std::lock_guard lock{guard_};
    outside_.reset();
    abandoned_ = abandoned_ || (unattended_ && phase_ == phase::streaming && !is_wanted());
    let_go();
}

void fetch::take_new(std::vector<slice>& into) {
    const std::lock_guard lock{guard_};
    if (!outside_) {
        return;
    }
    auto at = base_;
    for (const auto& part : slices_) {
        if (at + part.size > *outside_) {
            const auto skip = static_cast<std::size_t>(*outside_ - at);
            into.push_back(slice{part.memory, part.begin + skip, part.size - skip});
            *outside_ = at + part.size;
        }
        at += part.size;
    }
    let_go();
}

std::pair<char*, std::size_t> fetch::producer_space(std::size_t want) {
    const std::lock_guard lock{guard_};
    if (!slices_.empty()) {
        auto& last = slices_.back();
        const auto used = last.begin + last.size;
        if (used < last.memory->capacity()) {
            return {last.memory->data() + used, std::min(want, last.memory->capacity() - used)};
        }
    }
    // A declared length tells the size of the last block exactly, so that a stored body wastes
    // nothing; without one, blocks double from small to large. What passes to one reader
    // is let go block by block.
    const std::uint64_t largest = whole_ || readers_.size() > 1
                                      ? block_size_
                                      : std::min(block_size_, passing_block);
    auto size = std::clamp<std::uint64_t>(end_, smallest_block, largest);
    if (head_ && head_->length) {
        size = std::clamp<std::uint64_t>(
            *head_->length - std::min(end_, *head_->length), 1, largest);
    }
    // A small whole body is copied to lie behind its head, if it is kept; a part stays.
    const bool passes = end_ == 0 && head_ && head_->length == size && head_->status != 206 &&
                        size <= block::most_passing;
    const auto capacity = static_cast<std::size_t>(size);
    slices_.push_back(slice{passes ? block::make_passing(capacity) : block::make(capacity), 0, 0});
    return {slices_.back().memory->data(), std::min(want, static_cast<std::size_t>(size))};
}

void fetch::producer_commit(std::size_t bytes) {
    if (bytes == 0) {
        return;
    }
    const std::lock_guard lock{guard_};
    slices_.back().size += bytes;
    end_ += bytes;
    drop_those_behind();
    let_go();
    notify_readers();
}

void fetch::producer_append(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto [at, room] = producer_space(bytes.size());
        std::memcpy(at, bytes.data(), room);
        producer_commit(room);
        bytes.remove_prefix(room);
    }
}

bool fetch::producer_must_pause() {
    const std::lock_guard lock{guard_};
    const bool paused = std::exchange(pausing_, must_wait());
    if (pausing_ && !paused) {
        ++pauses_;
        ahead_ = std::min(limits_.read_ahead, std::max(least_ahead, ahead_ / 2));
    }
    note_who_is_waited_for();
    return pausing_;
}

void fetch::producer_finish(std::string trailers) {
    const std::lock_guard lock{guard_};
    trailers_ = std::move(trailers);
    phase_ = phase::finished;
    let_go();
    notify_readers();
}

void fetch::producer_fail(failure why) {
    const std::lock_guard lock{guard_};
    why_ = std::move(why);
    phase_ = phase::failed;
    whole_ = false;
    notify_readers();
}

void fetch::producer_validated(stored_ptr fresh, std::shared_ptr<const confirmation> by) {
    const std::lock_guard lock{guard_};
    validated_ = std::move(fresh);
    validated_by_ = std::move(by);
    phase_ = phase::validated;
    notify_readers();
}

void fetch::producer_upgraded() {
    const std::lock_guard lock{guard_};
    phase_ = phase::upgraded;
    notify_readers();
}

bool fetch::producer_ends_if_unread() {
    const std::lock_guard lock{guard_};
    abandoned_ = abandoned_ || !is_read();
    return abandoned_;
}

bool fetch::abandoned() const noexcept {
    return abandoned_.load(std::memory_order_acquire);
}

std::uint64_t fetch::received() const {
    const std::lock_guard lock{guard_};
    return end_;
}

body_ptr fetch::whole_body(std::uint64_t copied) {
    const std::lock_guard lock{guard_};
    if (!whole_ || base_ != 0) {
        return nullptr;
    }
    auto content = std::make_shared<body>();
    content->slices.reserve(slices_.size());
    for (auto& part : slices_) {
        if (part.size == 0) {
            continue;
        }
        // A block that is mostly empty, or passes, costs the store more than one copy now.
        const bool is_rounded = part.memory->footprint() >
                                heap_cost(sizeof(block) + part.memory->capacity());
        if (end_ > copied &&
            (is_rounded || part.memory->capacity() > part.size + part.size / 8 + 64)) {
            auto exact = block::make(part.size);
            std::memcpy(exact->data(), part.memory->data() + part.begin, part.size);
            content->slices.push_back(slice{std::move(exact), 0, part.size});
        } else {
            content->slices.push_back(part);
        }
        content->size += part.size;
    }
    return content;
}

void fetch::producer_expects_to_keep() {
    const std::lock_guard lock{guard_};
    expected_ = true;
}

}  // namespace reprise::proxy::cache
