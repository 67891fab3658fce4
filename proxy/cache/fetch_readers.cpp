#include "proxy/base/recycled.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/fetch.hpp"

#include <algorithm>
#include <utility>

// A fetch's readers: who may join, what each is given, who falls behind, and for whom the producer waits.
// Where each stands is asked anew at every step, so nothing has to be kept in step with them.

namespace reprise::proxy::cache {

void fetch::notify_readers() noexcept {
    for (auto* reader : readers_) {
        if (reader->waiting_) {
            reader->waiting_ = false;
            reader->sleeper_.notify();
        }
    }
}

std::uint64_t fetch::fastest() const {
    std::uint64_t offset = 0;
    for (const auto* reader : readers_) {
        if (!reader->fell_out_) {
            offset = std::max(offset, reader->offset_);
        }
    }
    return offset;
}

bool fetch::has_fallen_behind(const fetch_reader& reader) const {
    return !reader.fell_out_ && reader.offset_ < end_ &&
           end_ - reader.offset_ + block_size_ > limits_.window;
}

bool fetch::holds_up() const {
    return !whole_ && head_ && head_->has_body && !can_be_resumed(*head_) &&
           !(head_->length && *head_->length + block_size_ <= limits_.window);
}

bool fetch::must_wait() const {
    if (abandoned_ || !is_read()) {
        return false;
    }
    if (end_ >= fastest() + (whole_ ? limits_.read_ahead : ahead_)) {
        return true;
    }
    return readers_.size() > 1 && holds_up() &&
           std::any_of(readers_.begin(), readers_.end(), [&](const auto* reader) {
               return has_fallen_behind(*reader);
           });
}

void fetch::note_who_is_waited_for() const {
    const bool can_be = pausing_ && readers_.size() > 1 && holds_up() &&
                        std::any_of(readers_.begin(), readers_.end(), [this](const auto* reader) {
                            return reader->waiting_ && reader->offset_ == end_;
                        });
    const auto front = can_be ? fastest() : 0;
    for (auto* reader : readers_) {
        const bool is = can_be && reader->offset_ < front && has_fallen_behind(*reader);
        reader->others_wait_.store(is, relaxed);
    }
}

bool fetch::is_read() const {
    return std::any_of(
        readers_.begin(), readers_.end(), [](const auto* reader) { return !reader->fell_out_; });
}

bool fetch::has_readers() const {
    const std::lock_guard lock{guard_};
    return is_read();
}

void fetch::drop_those_behind() {
    if (whole_ || readers_.size() < 2 || holds_up()) {
        return;
    }
    const auto front = fastest();
    for (auto* reader : readers_) {
        if (has_fallen_behind(*reader) && reader->offset_ < front) {
            reader->fell_out_ = true;
            if (reader->waiting_) {
                reader->waiting_ = false;
                reader->sleeper_.notify();
            }
        }
    }
}

std::size_t fetch::count_clients() const {
    return static_cast<std::size_t>(std::count_if(
        readers_.begin(), readers_.end(), [](const auto* one) { return !one->is_siblings_; }));
}

std::size_t fetch::clients() const {
    const std::lock_guard lock{guard_};
    return count_clients();
}

bool fetch::take_in(fetch_reader& reader) {
    if (abandoned_ || base_ != 0 || phase_ > phase::streaming || (pausing_ && holds_up())) {
        return false;  // the reader was never listed: leaving is harmless
    }
    readers_.push_back(&reader);
    reader.listed_ = true;
    return true;
}

std::unique_ptr<fetch_reader> fetch::join(const std::shared_ptr<fetch>& source,
                                          net::wakeup::signal sleeper,
                                          bool& head_known) {
    auto reader = std::make_unique<fetch_reader>(source, std::move(sleeper));
    const std::lock_guard lock{source->guard_};
    if (!source->take_in(*reader)) {
        return nullptr;
    }
    head_known = source->head_ != nullptr;
    return reader;
}

std::unique_ptr<fetch_reader> fetch::join_for_sibling(const std::shared_ptr<fetch>& source,
                                                      net::wakeup::signal sleeper) {
    auto reader = std::make_unique<fetch_reader>(source, std::move(sleeper));
    const std::lock_guard lock{source->guard_};
    reader->is_siblings_ = true;
    return source->is_for_siblings() && source->take_in(*reader) ? std::move(reader) : nullptr;
}

bool fetch::serves_others() const {
    const std::lock_guard lock{guard_};
    return !holds_up() || !head_->length;
}

bool fetch::may_serve_siblings() const {
    const std::lock_guard lock{guard_};
    return is_for_siblings();
}

bool fetch::is_kept() const {
    const std::lock_guard lock{guard_};
    return phase_ != phase::streaming || whole_ || outside_;
}

bool fetch::is_for_siblings() const {
    if (phase_ == phase::waiting) {
        return expected_ && !abandoned_;
    }
    return phase_ == phase::streaming && head_ && base_ == 0 && !head_->fed_by_sibling &&
           (whole_ || outside_);
}

// One permit lasts to its end, whoever may join it meanwhile and leave again.
bool fetch::is_permitted() {
    if (permit_ || !ask_permit_) {
        return true;
    }
    permit_ = ask_permit_();
    return static_cast<bool>(permit_);
}

void fetch::leave(fetch_reader& reader) noexcept {
    const std::lock_guard lock{guard_};
    readers_.erase(std::remove(readers_.begin(), readers_.end(), &reader), readers_.end());
    if (phase_ > phase::streaming) {
        return;
    }
    const bool was_abandoned = abandoned_;
    if (!was_abandoned && !is_read()) {
        const bool nearly_done = (whole_ || outside_) && head_ && head_->length &&
                                 *head_->length - std::min(end_, *head_->length) <= limits_.finish;
        const bool goes_on = is_wanted() || nearly_done;
        abandoned_ = !goes_on || !is_permitted();
    }
    let_go();
    if (was_abandoned) {
        return;  // and the producer was told
    }
    if (abandoned_ && stop_) {
        std::exchange(stop_, nullptr)();
    }
    if (abandoned_ || pausing_) {
        pausing_ = false;
        note_who_is_waited_for();
        sleeper_.notify();
    }
}

void fetch_reader::report::clear() {
    what = event::nothing;
    interim.clear();
    head.reset();
    slices.clear();
    trailers.clear();
    fresh.reset();
    confirmed.reset();
}

fetch_reader::fetch_reader(std::shared_ptr<fetch> source, net::wakeup::signal sleeper)
    : source_{std::move(source)},
      sleeper_{std::move(sleeper)} {}

void* fetch_reader::operator new(std::size_t /*size*/) {
    return recycled<fetch_reader>{}.allocate(1);
}

void fetch_reader::operator delete(void* at) noexcept {
    recycled<fetch_reader>{}.deallocate(static_cast<fetch_reader*>(at), 1);
}

fetch_reader::~fetch_reader() {
    leave();
}

void fetch_reader::leave() noexcept {
    if (std::exchange(listed_, false)) {
        source_->leave(*this);
    }
}

void fetch_reader::next(report& into, std::size_t most) {
    into.clear();
    auto& f = *source_;
    const std::lock_guard lock{f.guard_};
    if (interim_seen_ < f.interim_.size()) {
        into.what = event::interim;
        into.interim = f.interim_[interim_seen_++];
        return;
    }
    if (f.phase_ == fetch::phase::validated) {
        into.what = event::validated;
        into.fresh = f.validated_;
        into.confirmed = f.validated_by_;
        return;
    }
    if (f.phase_ == fetch::phase::upgraded) {
        into.what = event::upgraded;
        into.head = f.head_;
        return;
    }
    if (!head_seen_ && f.head_) {
        head_seen_ = true;
        into.what = event::head;
        into.head = f.head_;
        return;
    }
    if (fell_out_) {
        into.what = event::fell_out;
        return;
    }
    if (head_seen_ && offset_ < f.end_) {
        auto at = f.base_;
        std::size_t taken = 0;
        for (const auto& part : f.slices_) {
            if (at + part.size > offset_) {
                const auto skip = static_cast<std::size_t>(offset_ - at);
                const auto size = std::min(part.size - skip, most - taken);
                into.slices.push_back(slice{part.memory, part.begin + skip, size});
                taken += size;
                offset_ += size;
                if (taken == most) {
                    break;
                }
            }
            at += part.size;
        }
        into.what = event::data;
        f.let_go();
        if (f.pausing_) {
            if (!f.must_wait()) {
                f.pausing_ = false;
                f.sleeper_.notify();
            }
            f.note_who_is_waited_for();
        }
        return;
    }
    if (f.phase_ == fetch::phase::finished) {
        into.what = event::end;
        into.trailers = f.trailers_;
        return;
    }
    if (f.phase_ == fetch::phase::failed) {
        into.what = event::failed;
        into.why = f.why_;
        return;
    }
    waiting_ = true;
    if (f.pausing_) {
        f.note_who_is_waited_for();
    }
    if (head_seen_ && offset_ != 0) {
        f.pauses_ = 0;
        // A system's buffer (128 KiB of it, net/pace.hpp) takes all at once from the slowest, too.
        const auto proven = std::max(fetch::first_ahead, offset_ / 4);
        f.ahead_ = std::min({f.limits_.read_ahead, proven, 2 * f.ahead_});
    }
}

}  // namespace reprise::proxy::cache
