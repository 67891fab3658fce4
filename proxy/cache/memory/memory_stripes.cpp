#include "proxy/cache/memory/memory_stripes.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace reprise::proxy::cache {

namespace {

std::size_t stripes_for(const memory_plan& plan, std::size_t most) noexcept {
    constexpr std::uint64_t bytes_a_stripe = 16u << 20;
    return plan.stripes != 0
               ? std::min(plan.stripes, most)
               : std::bit_floor(std::clamp<std::size_t>(plan.capacity / bytes_a_stripe, 1, most));
}

}  // namespace

memory_tier::stripes::stripes(const memory_plan& plan)
    : count{stripes_for(plan, most)},
      by_size{plan.policy == eviction_kind::gdsf},
      requests{plan.requests} {
    const auto part = plan.capacity / count;
    for (std::size_t i = 0; i < count; ++i) {
        auto policy = make_policy(
            plan.policy,
            part,
            {.exponent = plan.exponent, .by_wait = plan.by_wait, .frequencies = requests.get()});
        all[i] = std::make_unique<memory_stripe>(
            std::move(policy), part, plan.probation, plan.told);
    }
}

std::size_t memory_tier::stripes::fullest(const sizes& by) noexcept {
    const auto from = turn.fetch_add(1, relaxed);
    std::size_t best = count;
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = (from + i) % count;
        if (const auto size = by[at].load(relaxed); size > largest) {
            largest = size;
            best = at;
        }
    }
    return best;
}

}  // namespace reprise::proxy::cache
