#include "proxy/peer/seen_source.hpp"

#include <utility>

namespace reprise::proxy::peer {

void seen_source::tick(steady_time steady, wall_time now) {
    if (any_ && steady - last_ < publish_after_) {
        return;
    }
    last_ = steady;
    any_ = true;
    auto next = take_({.seed = seed_, .generation = {.epoch = epoch_, .counter = counter_ + 1}});
    if (!next) {
        return;
    }
    if (counter_ != 0 && next->shape() == shape_ && next->checksum() == checksum_) {
        return;
    }
    if (counter_ != 0 && next->shape() != shape_) {
        epoch_ = random_();
        counter_ = 0;
        next = take_({.seed = seed_, .generation = {.epoch = epoch_, .counter = 1}});
        if (!next) {
            return;
        }
    }
    ++counter_;
    shape_ = next->shape();
    checksum_ = next->checksum();
    digests_.publish(std::move(*next), now);
}

void seen_elsewhere::put(unsigned sibling, std::shared_ptr<const filter::digest> seen) {
    const std::scoped_lock lock{guard_};
    by_slot_[sibling] = std::move(seen);
    auto list = std::make_shared<std::vector<std::shared_ptr<const filter::digest>>>();
    for (const auto& one : by_slot_) {
        if (one) {
            list->push_back(one);
        }
    }
    list_ = std::move(list);
    version_.fetch_add(1, std::memory_order_release);
}

bool seen_elsewhere::reader::may_contain(filter::key_hash key) {
    if (const auto version = of_.version_.load(std::memory_order_acquire); version != version_) {
        const std::scoped_lock lock{of_.guard_};
        held_ = of_.list_;
        version_ = of_.version_.load(std::memory_order_relaxed);
    }
    if (held_) {
        for (const auto& one : *held_) {
            if (one->may_contain(key)) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace reprise::proxy::peer
