#include "proxy/peer/seen_source.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

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
    std::vector<std::shared_ptr<const filter::digest>> there;
    std::copy_if(by_slot_.begin(), by_slot_.end(), std::back_inserter(there), [](const auto& one) {
        return one != nullptr;
    });
    set_ = std::make_shared<const filter::digest_set>(std::move(there));
    version_.fetch_add(1, std::memory_order_release);
}

bool seen_elsewhere::reader::may_contain(filter::key_hash key) {
    if (const auto version = of_.version_.load(std::memory_order_acquire); version != version_) {
        const std::scoped_lock lock{of_.guard_};
        held_ = of_.set_;
        version_ = of_.version_.load(std::memory_order_relaxed);
    }
    return held_ != nullptr && held_->may_contain(key);
}

}  // namespace reprise::proxy::peer
