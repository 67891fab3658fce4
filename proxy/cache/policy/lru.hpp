#pragma once
// Least recently used: what every other policy is compared with.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"

namespace reprise::proxy::cache {

/// Cost  O(1). A hit relinks three entries.
class lru_policy final : public eviction_policy {
public:
    void set_capacity(std::uint64_t bytes) override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    [[nodiscard]] evictable* evict() noexcept override;

private:
    entry_queue entries_;  // newest: used last
};

}  // namespace reprise::proxy::cache
