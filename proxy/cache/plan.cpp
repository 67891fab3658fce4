#include "proxy/cache/plan.hpp"

#include "proxy/cache/admission/admission_gate.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::cache {

eviction_kind kind_of(config::eviction_policy policy) noexcept {
    switch (policy) {
    case config::eviction_policy::lru: return eviction_kind::lru;
    case config::eviction_policy::sieve: return eviction_kind::sieve;
    case config::eviction_policy::s3_fifo: return eviction_kind::s3_fifo;
    case config::eviction_policy::w_tinylfu: return eviction_kind::w_tinylfu;
    case config::eviction_policy::gdsf: return eviction_kind::gdsf;
    case config::eviction_policy::lfu_da: return eviction_kind::lfu_da;
    }
    return eviction_kind::sieve;
}

double exponent_of(config::caching_objective objective) noexcept {
    return objective == config::caching_objective::requests ? 0.3 : 0.05;
}

std::uint64_t capacity_of(const config::options& options) noexcept {
    return options.memory.size + (options.disk.path.empty() ? 0 : options.disk.size);
}

std::uint64_t remembering_bytes(const config::options& options) noexcept {
    return options.memory.size / 64 + (capacity_of(options) - options.memory.size) / 4096;
}

std::shared_ptr<frequency_sketch> sketch_for(const config::options& options) {
    const auto policy = options.memory.policy;
    if (policy != config::eviction_policy::gdsf && policy != config::eviction_policy::lfu_da &&
        options.disk.path.empty() && !counts_requests(options)) {
        return nullptr;
    }
    constexpr std::uint64_t bytes_a_key = 16;
    constexpr std::uint64_t least = 1u << 14;
    return std::make_shared<frequency_sketch>(
        std::max(remembering_bytes(options) / bytes_a_key, least));
}

store_plan plan_of(const config::options& options,
                   std::shared_ptr<const frequency_sketch> requests,
                   contents_listener* told) {
    store_plan plan;
    plan.told = told;
    plan.capacity = options.memory.size;
    plan.policy = kind_of(options.memory.policy);
    plan.exponent = exponent_of(options.caching.objective);
    plan.requests = std::move(requests);
    plan.probation = options.admission.probation;
    return plan;
}

}  // namespace reprise::proxy::cache
