#pragma once
// One tier, an object at a time: the memory tier's residents with one stripe, each object charged
// with its size. What enters as admitted counts as written. This is what papers simulate.

#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::replay {

struct one_tier_parts {
    /// Where given it is noted, for a policy or a rule that asks it, and may grow with what is
    /// stored.
    std::shared_ptr<proxy::cache::frequency_sketch> requests{};
    bool requests_grow = true;
    std::uint64_t largest = ~std::uint64_t{0};  ///< a larger object is not stored
};

class one_tier final : public model {
public:
    /// `probation`: share of the capacity for what admission refused, 0 to 1.
    one_tier(std::unique_ptr<proxy::cache::eviction_policy> policy,
             std::unique_ptr<admission_rule> admission,
             std::uint64_t capacity_bytes,
             double probation,
             one_tier_parts with = {});

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override;
    [[nodiscard]] std::vector<std::string> told() const override { return admission_->told(); }

private:
    struct entry : proxy::cache::evictable {
        object_number object = 0;
        std::uint32_t last_used = 0;  // seconds
    };

    void ask(const request& wanted);
    void store(const request& wanted, proxy::cache::standing as);
    void count_write(std::uint64_t bytes) noexcept;

    void evict(const request& now);

    std::shared_ptr<proxy::cache::frequency_sketch> requests_;
    bool requests_grow_;
    std::uint64_t largest_;
    proxy::cache::residents residents_;
    std::unique_ptr<admission_rule> admission_;
    std::uint64_t capacity_;
    bool has_probation_;
    object_pool<entry> entries_;
    tally tally_;
};

}  // namespace reprise::replay
