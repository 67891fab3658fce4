#pragma once
// One tier, an object at a time: the memory tier's residents with one stripe, each object charged
// with its size. What enters as admitted counts as written. This is what papers simulate.

#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"

#include <cstdint>
#include <memory>

namespace reprise::replay {

class one_tier final : public model {
public:
    /// `probation`: share of the capacity for what admission refused, 0 to 0.5.
    one_tier(std::unique_ptr<proxy::cache::eviction_policy> policy,
             std::unique_ptr<admission_rule> admission,
             std::uint64_t capacity_bytes,
             double probation);

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override;

private:
    struct entry : proxy::cache::evictable {
        object_number object = 0;
    };

    void ask(const request& wanted);
    void store(const request& wanted, proxy::cache::standing as);
    void count_write(std::uint64_t bytes) noexcept;

    proxy::cache::residents residents_;
    std::unique_ptr<admission_rule> admission_;
    std::uint64_t capacity_;
    bool has_probation_;
    object_pool<entry> entries_;
    tally tally_;
};

}  // namespace reprise::replay
