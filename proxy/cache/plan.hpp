#pragma once
// From what an operator wrote to what the memory tier, its ghosts and the admission gate are made
// with.

#include "config/options.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/what_if.hpp"

#include <cstdint>
#include <memory>

namespace reprise::proxy::cache {

/// gdsf's exponent of size for an objective: 0.3 for requests, 0.05 for bytes
/// (tools/results/2026-11-22-policies.md says why), and 1 for seconds, which have no use for bytes
/// (tools/results/2026-11-25-seconds.md).
[[nodiscard]] double exponent_of(config::caching_objective objective) noexcept;

/// The exponent to begin with: an objective's, which weighs bytes too and is for a disk as well; for
/// requests in memory alone under "auto" 1, the best on all traces that it was tried on
/// (tools/results/2026-11-25-auto-thin.md).
[[nodiscard]] double first_exponent(const config::options& options) noexcept;

/// Whether a hit is worth what the fetch took (policy_tuning, disk::space_settings).
[[nodiscard]] bool goes_by_wait(config::caching_objective objective) noexcept;

/// Bytes that what is remembered of requests may take: a 64th of memory, and a 4,096th of the disk.
[[nodiscard]] std::uint64_t remembering_bytes(const config::options& options) noexcept;

/// Keys that a sketch of requests counts.
[[nodiscard]] std::uint64_t keys_counted(const config::options& options) noexcept;

/// The largest body that any tier takes.
[[nodiscard]] std::uint64_t largest_body(const config::options& options) noexcept;

/// Bytes of all tiers.
[[nodiscard]] std::uint64_t capacity_of(const config::options& options) noexcept;

/// Counts requests for every part that asks how often a key was asked for: policies of memory, and
/// admission. Null where none does. The disk counts for itself (disk/core.hpp).
/// @throws std::bad_alloc
[[nodiscard]] std::shared_ptr<frequency_sketch> sketch_for(const config::options& options);

/// `requests`: what sketch_for made. `told` hears of what the store holds; null: nobody does.
[[nodiscard]] memory_plan plan_of(const config::options& options,
                                  std::shared_ptr<const frequency_sketch> requests,
                                  contents_listener* told = nullptr);

}  // namespace reprise::proxy::cache
