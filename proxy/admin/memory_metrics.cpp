// What probation and the eviction policies do in memory, as rows of the table of metrics.

#include "proxy/admin/metrics_table.hpp"

namespace reprise::proxy::admin {

namespace {

constexpr metric memory_rows[] = {
    plain("reprise_store_probation_objects",
          "store.probation.objects",
          "Responses in memory that wait on probation for a second request.",
          [](in from) { return from.memory.probation_objects; }),
    plain("reprise_store_probation_bytes",
          "store.probation.bytes",
          "Their bytes, which are of the store's.",
          [](in from) { return from.memory.probation_bytes; }),
    plain("reprise_store_promoted_total",
          "store.probation.admitted",
          "Responses that a further request admitted while they waited: fetches spared.",
          [](in from) { return from.memory.promoted; }),
    plain("reprise_store_policy_bytes",
          "store.policy_bytes",
          "Memory that eviction policies take for themselves: ghosts, sketches.",
          [](in from) { return from.memory.overhead; }),
    plain("reprise_store_eviction_age_seconds",
          "store.eviction_age_seconds",
          "For how long what left memory lately had not been used, or for how long nothing has, "
          "where "
          "that is longer; none before anything did.",
          [](in from) {
              const auto& age = from.memory.eviction_age;
              return age ? std::optional{static_cast<double>(age->count())} : std::nullopt;
          }),
};

}  // namespace

std::span<const metric> memory_metrics() noexcept {
    return memory_rows;
}

}  // namespace reprise::proxy::admin
