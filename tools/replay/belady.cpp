#include "tools/replay/belady.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::replay {

namespace {

constexpr double classes_an_octave = 16;

}  // namespace

next_uses::next_uses(const recorded_trace& requests) {
    const auto batches = requests.batches();
    std::size_t places = 0, objects = 0;
    for (const auto& batch : batches) {
        places += batch.requests.size();
        objects = std::max(objects, batch.objects);
    }
    next_.resize(places);
    std::vector<std::uint32_t> soonest(objects, never);
    for (auto batch = batches.rbegin(); batch != batches.rend(); ++batch) {
        for (auto one = batch->requests.rbegin(); one != batch->requests.rend(); ++one) {
            --places;
            next_[places] = soonest[one->object];
            soonest[one->object] = static_cast<std::uint32_t>(places);
        }
    }
}

belady::belady(std::shared_ptr<const next_uses> next, std::uint64_t capacity_bytes)
    : next_{std::move(next)},
      capacity_{capacity_bytes} {}

void belady::feed(std::span<const request> requests, std::size_t objects) {
    entries_.make_room(objects);
    for (const auto& one : requests) {
        ask(one);
        ++now_;
    }
}

void belady::ask(const request& wanted) {
    ++tally_.requests;
    tally_.bytes += wanted.bytes;
    const bool is_in = entries_.find(wanted.object) != nullptr;
    if (is_in) {
        ++tally_.hits;
        tally_.hit_bytes += wanted.bytes;
        take(wanted.object);
    }
    const auto next = (*next_)[now_];
    if (next == next_uses::never || wanted.bytes > capacity_) {
        return;
    }
    put(wanted, next);
    while (used_ > capacity_) {
        evict();
    }
    if (!is_in && entries_.find(wanted.object) != nullptr) {
        ++tally_.written;
        tally_.written_bytes += wanted.bytes;
    }
}

belady::size_class& belady::class_of(std::uint64_t bytes) {
    const auto octaves = std::log2(static_cast<double>(std::max<std::uint64_t>(1, bytes)));
    const auto index = static_cast<std::size_t>(octaves * classes_an_octave);
    if (index >= classes_.size()) {
        classes_.resize(index + 1);
    }
    return classes_[index];
}

void belady::put(const request& wanted, std::uint32_t next) {
    auto& fresh = entries_.add(wanted.object);
    fresh.bytes = wanted.bytes;
    fresh.next = next;
    used_ += wanted.bytes;
    class_of(wanted.bytes).emplace(next, wanted.object);
}

void belady::take(object_number object) {
    const auto& gone = *entries_.find(object);
    used_ -= gone.bytes;
    class_of(gone.bytes).erase({gone.next, object});
    entries_.remove(object);
}

void belady::evict() {
    double most = -1;
    object_number worst = 0;
    for (const auto& one : classes_) {
        if (one.empty()) {
            continue;
        }
        const auto [next, object] = *one.rbegin();
        const auto room = static_cast<double>(entries_.find(object)->bytes) *
                          static_cast<double>(next - now_);
        if (room > most) {
            most = room;
            worst = object;
        }
    }
    take(worst);
}

}  // namespace reprise::replay
