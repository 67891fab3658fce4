#include "filter/digest_set.hpp"

#include "filter/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace reprise::filter {

digest_set::digest_set(std::vector<std::shared_ptr<const digest>> digests)
    : digests_{std::move(digests)} {
    const auto first = std::stable_partition(
        digests_.begin(), digests_.end(), [](const std::shared_ptr<const digest>& one) {
            return one->shape().layout != digest_layout::blocked;
        });
    for (auto it = first; it != digests_.end(); ++it) {
        const auto words = (*it)->words();
        blocked_.push_back({words.data(), words.size() / lanes});
    }
}

bool digest_set::may_contain(key_hash key) const noexcept {
    for (const auto& one : blocked_) {
        __builtin_prefetch(one.words + block_of(key, one.blocks) * lanes);
    }
    const auto others = digests_.size() - blocked_.size();
    for (std::size_t i = 0; i < others; ++i) {
        if (digests_[i]->may_contain(key)) {
            return true;
        }
    }
    for (const auto& one : blocked_) {
        const auto* const block = one.words + block_of(key, one.blocks) * lanes;
        if (is_on_in_block(key, [block](unsigned lane) {
                // An atomic_ref of const is C++26's; nothing is written through this one.
                return std::atomic_ref<std::uint64_t>{const_cast<std::uint64_t&>(block[lane])}
                    // NOLINT
                    .load(std::memory_order_relaxed);
            })) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise::filter
