#include "proxy/cache/plan.hpp"

#include "proxy/cache/admission/admission_gate.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::cache {

double exponent_of(config::caching_objective objective) noexcept {
    switch (objective) {
    case config::caching_objective::requests: return 0.3;
    case config::caching_objective::bytes: return 0.05;
    case config::caching_objective::seconds: return 1;
    }
    return 1;
}

double first_exponent(const config::options& options) noexcept {
    const bool automatic = options.admission.choice.policy == config::admission_policy::automatic;
    return automatic && options.disk.path.empty() &&
                   options.caching.objective == config::caching_objective::requests
               ? 1
               : exponent_of(options.caching.objective);
}

bool goes_by_wait(config::caching_objective objective) noexcept {
    return objective == config::caching_objective::seconds;
}

std::uint64_t capacity_of(const config::options& options) noexcept {
    return options.memory.size + (options.disk.path.empty() ? 0 : options.disk.size);
}

std::uint64_t remembering_bytes(const config::options& options) noexcept {
    return options.memory.size / 64 + (capacity_of(options) - options.memory.size) / 4096;
}

std::uint64_t keys_counted(const config::options& options) noexcept {
    constexpr std::uint64_t bytes_a_key = 16;
    constexpr std::uint64_t least = 1u << 14;
    return std::max(remembering_bytes(options) / bytes_a_key, least);
}

std::uint64_t largest_body(const config::options& options) noexcept {
    const auto on_disk = options.disk.path.empty() ? 0 : options.disk.largest();
    return std::max(options.memory.largest(), on_disk);
}

std::shared_ptr<frequency_sketch> sketch_for(const config::options& options) {
    const auto policy = options.memory.policy;
    if (policy != eviction_kind::gdsf && policy != eviction_kind::lfu_da &&
        options.disk.path.empty() && !counts_requests(options)) {
        return nullptr;
    }
    return std::make_shared<frequency_sketch>(keys_counted(options));
}

memory_plan plan_of(const config::options& options,
                    std::shared_ptr<const frequency_sketch> requests,
                    contents_listener* told) {
    memory_plan plan;
    plan.told = told;
    plan.capacity = options.memory.size;
    plan.policy = options.memory.policy;
    plan.exponent = first_exponent(options);
    plan.by_wait = goes_by_wait(options.caching.objective);
    plan.requests = std::move(requests);
    plan.probation = options.admission.probation;
    return plan;
}

}  // namespace reprise::proxy::cache
