// What probation and the eviction policies do in memory, as rows of the table of metrics.

#include "proxy/admin/metrics_table.hpp"

namespace reprise::proxy {

namespace {

using in = const stats_inputs&;
using out = sample_sink&;

constexpr auto counter_kind = metric_kind::counter;
constexpr auto gauge = metric_kind::gauge;

constexpr metric table[] = {
    {"reprise_store_probation_objects",
     gauge,
     "store.probation.objects",
     "",
     "",
     "Responses in memory that wait on probation for a second request.",
     [](in from, out sink) { sink.number(from.store.probation_objects); }},
    {"reprise_store_probation_bytes",
     gauge,
     "store.probation.bytes",
     "",
     "",
     "Their bytes, which are of the store's.",
     [](in from, out sink) { sink.number(from.store.probation_bytes); }},
    {"reprise_store_promoted_total",
     counter_kind,
     "store.probation.admitted",
     "",
     "",
     "Responses that a further request admitted while they waited: fetches spared.",
     [](in from, out sink) { sink.number(from.store.promoted); }},
    {"reprise_store_policy_bytes",
     gauge,
     "store.policy_bytes",
     "",
     "",
     "Memory that eviction policies take for themselves: ghosts, sketches.",
     [](in from, out sink) { sink.number(from.store.policy_bytes); }},
    {"reprise_store_eviction_age_seconds",
     gauge,
     "store.eviction_age_seconds",
     "",
     "",
     "For how long what left memory lately had not been used; none before anything did.",
     [](in from, out sink) { sink.real(from.store.eviction_age_seconds); }},
};

}  // namespace

std::span<const metric> memory_metrics() noexcept {
    return table;
}

}  // namespace reprise::proxy
