// The table of metrics. A new figure is a row here: /stats, /metrics and README.md's list follow
// (run unit_admin with REPRISE_UPDATE_DOCS=1 for the last).

#include "proxy/admin/metrics_table.hpp"

#include "proxy/http/storability.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::proxy {

namespace {

using in = const stats_inputs&;
using out = sample_sink&;

double seconds_of(std::chrono::nanoseconds time) noexcept {
    return std::chrono::duration<double>(time).count();
}

template <class Enum>
std::string_view name_at(std::size_t index) noexcept {
    return to_string(static_cast<Enum>(index));
}

void draw_responses(in from, out sink) {
    static constexpr std::string_view names[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
    for (std::size_t i = 1; i <= std::size(names); ++i) {  // "other" last
        const auto at = i % std::size(names);
        sink.number(from.counts.responses_by_class[at], names[at]);
    }
}

void draw_ratios(in from,
                 out sink,
                 std::optional<double> (window_figures::*ratio)() const noexcept) {
    sink.real((from.since_start.*ratio)(), "since_start");
    sink.real((from.last_minute.*ratio)(), "1m");
    sink.real((from.last_ten_minutes.*ratio)(), "10m");
}

void draw_reasons(in from, out sink) {
    constexpr auto last = static_cast<std::size_t>(http::storability::useless);
    static_assert(last < counted_reasons);
    for (std::size_t i = 0; i <= last; ++i) {
        if (static_cast<http::storability>(i) != http::storability::storable) {
            sink.number(from.counts.not_stored_by_reason[i], name_at<http::storability>(i));
        }
    }
}

std::uint64_t admission_sum(in from, std::uint64_t admission_cells<std::uint64_t>::*cell) {
    std::uint64_t sum = 0;
    for (const auto& cells : from.counts.admission_by_policy) {
        sum += cells.*cell;
    }
    return sum;
}

// A rule's label: its index, since two rules may have the same pattern, and its pattern, since an
// index alone says nothing and moves when rules are edited.
template <class Each>
void each_rule(in from, Each each) {
    const auto& cells = from.counts.admission_by_rule;
    for (std::size_t i = 0; i < std::min(from.rules.size(), cells.size()); ++i) {
        const bool shared = i + 1 == cells.size() && from.rules.size() > cells.size();
        each(std::to_string(i) + (shared ? " and later" : " " + from.rules[i]), cells[i]);
    }
}

template <class Histograms>
void draw_latencies(const Histograms& histograms, out sink) {
    for (std::size_t i = 0; i < histograms.size(); ++i) {
        sink.histogram(histograms[i], name_at<latency_class>(i));
    }
}

constexpr auto counter_kind = metric_kind::counter;
constexpr auto gauge = metric_kind::gauge;

constexpr metric table[] = {
    // The process.
    {"reprise_build_info",
     metric_kind::info,
     "version",
     "version",
     "",
     "The program's version.",
     [](in from, out sink) { sink.text(from.version); }},
    {"reprise_uptime_seconds",
     gauge,
     "uptime_seconds",
     "",
     "",
     "Since the process began to serve.",
     [](in from, out sink) { sink.real(seconds_of(from.uptime)); }},
    {"reprise_ready",
     gauge,
     "ready",
     "",
     "",
     "Whether /readyz says 200: not while starting nor while draining.",
     [](in from, out sink) { sink.truth(from.ready == readiness::ready); }},
    {"reprise_threads",
     gauge,
     "threads",
     "",
     "",
     "Worker threads.",
     [](in from, out sink) { sink.number(from.threads); }},
    {"process_cpu_seconds_total",
     counter_kind,
     "process.cpu_seconds",
     "",
     "",
     "Processor time of all threads, user and system.",
     [](in from, out sink) { sink.real(from.process.cpu_seconds); }},
    {"process_resident_memory_bytes",
     gauge,
     "process.resident_bytes",
     "",
     "",
     "Resident memory.",
     [](in from, out sink) { sink.number(from.process.resident_bytes); }},
    {"process_open_fds",
     gauge,
     "process.open_files",
     "",
     "",
     "Open file descriptors.",
     [](in from, out sink) { sink.number(from.process.open_files); }},

    // Requests.
    {"reprise_requests_total",
     counter_kind,
     "requests",
     "outcome",
     "",
     "Requests by how they ended (counters.hpp says what each outcome is).",
     [](in from, out sink) {
         for (std::size_t i = 0; i < outcome_count; ++i) {
             sink.number(from.counts.requests[i], name_at<outcome>(i));
         }
     }},
    {"reprise_responses_total",
     counter_kind,
     "responses",
     "class",
     "",
     "Final responses sent to clients, by class of their status.",
     draw_responses},
    {"reprise_failures_total",
     counter_kind,
     "failures",
     "failure",
     "",
     "Requests that met a failure, by its name in failure.hpp.",
     [](in from, out sink) {
         for (std::size_t i = 0; i < failure_count; ++i) {
             sink.number(from.counts.failures[i], facts_of(static_cast<failure_code>(i)).name);
         }
     }},
    {"reprise_hit_ratio",
     gauge,
     "hit_ratio",
     "window",
     "",
     "Share of answered requests (hit, revalidated, stale, miss, collapsed, pass) that were "
     "answered "
     "from the store (hit, revalidated, stale).",
     [](in from, out sink) { draw_ratios(from, sink, &window_figures::hit_ratio); }},
    {"reprise_byte_hit_ratio",
     gauge,
     "byte_hit_ratio",
     "window",
     "",
     "Share of the body bytes of answered requests that came from the store.",
     [](in from, out sink) { draw_ratios(from, sink, &window_figures::byte_hit_ratio); }},
    {"reprise_first_byte_seconds",
     metric_kind::histogram,
     "latency.first_byte",
     "class",
     "",
     "From a request's complete head to the first byte of its response: hits (hit, stale), misses "
     "(miss, revalidated, collapsed) and what is passed through.",
     [](in from, out sink) { draw_latencies(from.counts.first_byte, sink); }},
    {"reprise_request_seconds",
     metric_kind::histogram,
     "latency.complete",
     "class",
     "",
     "From a request's complete head to the last byte of its response.",
     [](in from, out sink) { draw_latencies(from.counts.complete, sink); }},

    // Bytes.
    {"reprise_client_received_bytes_total",
     counter_kind,
     "clients.received_bytes",
     "",
     "",
     "Bytes from clients: heads, bodies and tunnels.",
     [](in from, out sink) { sink.number(from.counts.bytes_from_clients); }},
    {"reprise_client_sent_bytes_total",
     counter_kind,
     "clients.sent_bytes",
     "",
     "",
     "Bytes to clients: heads, bodies and tunnels.",
     [](in from, out sink) { sink.number(from.counts.bytes_to_clients); }},
    {"reprise_origin_received_bytes_total",
     counter_kind,
     "origins.received_bytes",
     "",
     "",
     "Bytes from origins: heads, bodies and tunnels.",
     [](in from, out sink) { sink.number(from.counts.bytes_from_origins); }},
    {"reprise_origin_sent_bytes_total",
     counter_kind,
     "origins.sent_bytes",
     "",
     "",
     "Bytes to origins: heads, bodies and tunnels.",
     [](in from, out sink) { sink.number(from.counts.bytes_to_origins); }},
    {"reprise_body_sent_bytes_total",
     counter_kind,
     "bodies.sent_bytes",
     "",
     "",
     "Body bytes of answered requests, to clients.",
     [](in from, out sink) { sink.number(from.counts.body_bytes_to_clients); }},
    {"reprise_body_stored_sent_bytes_total",
     counter_kind,
     "bodies.from_store_bytes",
     "",
     "",
     "Of those, from stored responses.",
     [](in from, out sink) { sink.number(from.counts.body_bytes_from_store); }},
    {"reprise_body_collapsed_sent_bytes_total",
     counter_kind,
     "bodies.from_collapsing_bytes",
     "",
     "",
     "Of those, to followers of another request's fetch.",
     [](in from, out sink) { sink.number(from.counts.body_bytes_from_collapsing); }},

    // Connections.
    {"reprise_client_connections",
     gauge,
     "clients.open",
     "",
     "",
     "Client connections open now.",
     [](in from, out sink) { sink.number(from.counts.client_open); }},
    {"reprise_client_connections_accepted_total",
     counter_kind,
     "clients.accepted",
     "",
     "",
     "Client connections accepted.",
     [](in from, out sink) { sink.number(from.counts.client_accepted); }},
    {"reprise_client_connections_refused_total",
     counter_kind,
     "clients.refused",
     "",
     "",
     "Client connections closed at once: access.clients or a limit on connections.",
     [](in from, out sink) { sink.number(from.counts.client_refused); }},
    {"reprise_origin_connections",
     gauge,
     "origins.open",
     "",
     "",
     "Connections to origins open now, idle ones included.",
     [](in from, out sink) { sink.number(from.counts.origin_open); }},
    {"reprise_origin_connections_opened_total",
     counter_kind,
     "origins.opened",
     "",
     "",
     "Connections to origins opened.",
     [](in from, out sink) { sink.number(from.counts.origin_opened); }},
    {"reprise_origin_connections_reused_total",
     counter_kind,
     "origins.reused",
     "",
     "",
     "Requests sent on a connection that had served one before.",
     [](in from, out sink) { sink.number(from.counts.origin_reused); }},
    {"reprise_origin_connections_surplus_total",
     counter_kind,
     "origins.surplus",
     "",
     "",
     "Connections closed since bytes stood behind an answer: the origin's are not reused for an "
     "hour.",
     [](in from, out sink) { sink.number(from.counts.origin_surplus); }},
    {"reprise_origin_connections_failed_total",
     counter_kind,
     "origins.failed",
     "",
     "",
     "Attempts to reach an origin that gave no connection, names that did not resolve included.",
     [](in from, out sink) { sink.number(from.counts.origin_failed); }},
    {"reprise_dns_queries_total",
     counter_kind,
     "dns.queries",
     "",
     "",
     "Names asked of a server.",
     [](in from, out sink) { sink.number(from.counts.dns_queries); }},
    {"reprise_dns_cached_total",
     counter_kind,
     "dns.cached",
     "",
     "",
     "Names answered from memory or the hosts file.",
     [](in from, out sink) { sink.number(from.counts.dns_cached); }},
    {"reprise_dns_failures_total",
     counter_kind,
     "dns.failures",
     "",
     "",
     "Names that did not resolve.",
     [](in from, out sink) { sink.number(from.counts.dns_failures); }},

    // The store.
    {"reprise_store_objects",
     gauge,
     "store.objects",
     "",
     "",
     "Responses in the store.",
     [](in from, out sink) { sink.number(from.store.objects); }},
    {"reprise_store_bytes",
     gauge,
     "store.bytes",
     "",
     "",
     "Memory charged for them: heads, bodies and what keeping them costs.",
     [](in from, out sink) { sink.number(from.store.bytes); }},
    {"reprise_store_capacity_bytes",
     gauge,
     "store.capacity_bytes",
     "",
     "",
     "Most that may be charged: memory.size.",
     [](in from, out sink) { sink.number(from.store.capacity_bytes); }},
    {"reprise_store_inserted_total",
     counter_kind,
     "store.inserted",
     "",
     "",
     "Responses that entered the store, replacements included.",
     [](in from, out sink) { sink.number(from.store.inserted); }},
    {"reprise_store_evicted_total",
     counter_kind,
     "store.evicted",
     "",
     "",
     "Responses that left it to make room.",
     [](in from, out sink) { sink.number(from.store.evicted); }},
    {"reprise_store_evicted_bytes_total",
     counter_kind,
     "store.evicted_bytes",
     "",
     "",
     "What they were charged.",
     [](in from, out sink) { sink.number(from.store.evicted_bytes); }},
    {"reprise_stored_total",
     counter_kind,
     "store.stored",
     "",
     "",
     "Responses whose body arrived whole and was kept, as the requests saw it.",
     [](in from, out sink) { sink.number(from.counts.stored_objects); }},
    {"reprise_stored_bytes_total",
     counter_kind,
     "store.stored_bytes",
     "",
     "",
     "Their body bytes.",
     [](in from, out sink) { sink.number(from.counts.stored_bytes); }},
    {"reprise_store_refreshed_total",
     counter_kind,
     "store.refreshed",
     "",
     "",
     "Stored heads updated by a 304.",
     [](in from, out sink) { sink.number(from.counts.store_refreshed); }},
    {"reprise_store_invalidated_total",
     counter_kind,
     "store.invalidated",
     "",
     "",
     "Stored responses given up after an unsafe method succeeded on their URL.",
     [](in from, out sink) { sink.number(from.counts.store_invalidated); }},
    {"reprise_purges_total",
     counter_kind,
     "purges.by_kind",
     "kind",
     "",
     "Purges asked for, by what they named: a URL, a prefix of URLs, a tag.",
     [](in from, out sink) {
         sink.number(from.purges.urls, "url");
         sink.number(from.purges.prefixes, "prefix");
         sink.number(from.purges.tags, "tag");
     }},
    {"reprise_purged_responses_total",
     counter_kind,
     "purges.responses",
     "",
     "",
     "Stored responses that purges dropped or made stale; by prefix and tag counted when they are "
     "next looked up.",
     [](in from, out sink) { sink.number(from.purges.url_responses + from.store.purged); }},
    {"reprise_purge_bans",
     gauge,
     "purges.bans",
     "",
     "",
     "Purges by prefix and tag that stored responses are held against.",
     [](in from, out sink) { sink.number(from.purges.bans); }},
    {"reprise_purge_bans_forgotten_total",
     counter_kind,
     "purges.bans_forgotten",
     "",
     "",
     "Of them, those that left a full list: what was not looked up since they were made is taken "
     "for purged.",
     [](in from, out sink) { sink.number(from.purges.forgotten); }},
    {"reprise_not_stored_total",
     counter_kind,
     "not_stored",
     "reason",
     "",
     "Responses that HTTP does not let a shared cache store, or that are of no use to it.",
     draw_reasons},

    // Admission.
    {"reprise_admission_refused_total",
     counter_kind,
     "admission.first_sights_refused",
     "",
     "",
     "Absent, storable objects that the policy did not let in: under second-hit, first sights.",
     [](in from, out sink) {
         sink.number(admission_sum(from, &admission_cells<std::uint64_t>::refused));
     }},
    {"reprise_admission_admitted_total",
     counter_kind,
     "admission.admitted",
     "",
     "",
     "Absent, storable objects that the policy let in.",
     [](in from, out sink) {
         sink.number(admission_sum(from, &admission_cells<std::uint64_t>::admitted));
     }},
    {"reprise_admission_decisions_total",
     counter_kind,
     "admission.by_policy",
     "policy",
     "verdict",
     "The same, by policy.",
     [](in from, out sink) {
         for (std::size_t i = 0; i < policy_count; ++i) {
             const auto policy = name_at<config::admission_policy>(i);
             sink.number(from.counts.admission_by_policy[i].admitted, policy, "admitted");
             sink.number(from.counts.admission_by_policy[i].refused, policy, "refused");
         }
     }},
    {"reprise_admission_rule_decisions_total",
     counter_kind,
     "admission.by_rule",
     "rule",
     "verdict",
     "The same, by the rule of admission.rules that chose the policy; counts stay with the place "
     "in "
     "the list when a reload changes it.",
     [](in from, out sink) {
         each_rule(from, [&](std::string_view rule, const auto& cells) {
             sink.number(cells.admitted, rule, "admitted");
             sink.number(cells.refused, rule, "refused");
         });
     }},
    {"reprise_admission_ledger_objects_total",
     counter_kind,
     "admission.ledger.objects",
     "",
     "",
     "The ledger: objects not stored because of admission alone.",
     [](in from, out sink) {
         sink.number(admission_sum(from, &admission_cells<std::uint64_t>::refused));
     }},
    {"reprise_admission_ledger_bytes_total",
     counter_kind,
     "admission.ledger.bytes",
     "",
     "",
     "The ledger: body bytes not stored because of admission alone, counted as bodies end.",
     [](in from, out sink) {
         sink.number(admission_sum(from, &admission_cells<std::uint64_t>::bytes_refused));
     }},
    {"reprise_admission_policy_ledger_bytes_total",
     counter_kind,
     "admission.ledger.bytes_by_policy",
     "policy",
     "",
     "The ledger's bytes, by policy.",
     [](in from, out sink) {
         for (std::size_t i = 0; i < policy_count; ++i) {
             sink.number(from.counts.admission_by_policy[i].bytes_refused,
                         name_at<config::admission_policy>(i));
         }
     }},
    {"reprise_admission_rule_ledger_bytes_total",
     counter_kind,
     "admission.ledger.bytes_by_rule",
     "rule",
     "",
     "The ledger's bytes, by rule.",
     [](in from, out sink) {
         each_rule(from, [&](std::string_view rule, const auto& cells) {
             sink.number(cells.bytes_refused, rule);
         });
     }},
    {"reprise_admission_hits_lost_total",
     counter_kind,
     "admission.hits_lost",
     "",
     "",
     "What admission cost: requests that went to the origin and that an earlier, refused sight "
     "would "
     "have made hits.",
     [](in from, out sink) { sink.number(from.counts.admission_hits_lost); }},
    {"reprise_admission_hit_bytes_lost_total",
     counter_kind,
     "admission.hit_bytes_lost",
     "",
     "",
     "Their body bytes.",
     [](in from, out sink) { sink.number(from.counts.admission_hit_bytes_lost); }},
    {"reprise_filter_fill_ratio",
     gauge,
     "admission.filter.fill",
     "",
     "",
     "How much of its room the young generation has used; at 1 the generations turn over.",
     [](in from, out sink) { sink.real(from.admission.fill); }},
    {"reprise_filter_false_positive_ratio",
     gauge,
     "admission.filter.false_positive_rate",
     "",
     "",
     "Estimated chance, now, that an object never seen is taken for one seen before.",
     [](in from, out sink) { sink.real(from.admission.false_positive_rate); }},
    {"reprise_filter_remembered_objects",
     gauge,
     "admission.filter.remembered",
     "",
     "",
     "Objects that the filter remembers, about.",
     [](in from, out sink) { sink.number(from.admission.remembered); }},
    {"reprise_filter_remembers_for_seconds",
     gauge,
     "admission.filter.remembers_for_seconds",
     "",
     "",
     "How long an object is remembered at the present rate of new ones.",
     [](in from, out sink) { sink.real(from.admission.remembers_for_seconds); }},
    {"reprise_filter_generation_age_seconds",
     gauge,
     "admission.filter.generation_age_seconds",
     "generation",
     "",
     "Since each generation's first object.",
     [](in from, out sink) {
         sink.real(from.admission.young_age_seconds, "young");
         sink.real(from.admission.old_age_seconds, "old");
     }},
    {"reprise_filter_generations_total",
     counter_kind,
     "admission.filter.generations",
     "",
     "",
     "Times that the generations turned over.",
     [](in from, out sink) { sink.number(from.admission.generations); }},
    {"reprise_filter_memory_bytes",
     gauge,
     "admission.filter.memory_bytes",
     "",
     "",
     "Memory of the filter.",
     [](in from, out sink) { sink.number(from.admission.memory_bytes); }},

    // Collapsing.
    {"reprise_fetches_started_total",
     counter_kind,
     "collapsing.fetches_started",
     "",
     "",
     "Fetches that other requests for the same object could join.",
     [](in from, out sink) { sink.number(from.counts.fetches_started); }},
    {"reprise_fetches_ended_total",
     counter_kind,
     "collapsing.fetches_ended",
     "how",
     "",
     "How they ended: whole, failed, or given up because nobody waited any more.",
     [](in from, out sink) {
         for (std::size_t i = 0; i < fetch_end_count; ++i) {
             sink.number(from.counts.fetches_ended[i], name_at<fetch_end>(i));
         }
     }},
    {"reprise_collapsed_joined_total",
     counter_kind,
     "collapsing.joined",
     "",
     "",
     "Requests that joined a fetch under way.",
     [](in from, out sink) { sink.number(from.counts.collapsed_joined); }},
    {"reprise_collapsed_released_total",
     counter_kind,
     "collapsing.released",
     "",
     "",
     "Of those, sent on a fetch of their own after all: the response was not for sharing.",
     [](in from, out sink) { sink.number(from.counts.collapsed_released); }},

    // The logs.
    {"reprise_access_log_lines_total",
     counter_kind,
     "log.access_lines",
     "",
     "",
     "Lines handed to the access log.",
     [](in from, out sink) { sink.number(from.access_log.lines); }},
    {"reprise_access_log_dropped_total",
     counter_kind,
     "log.access_dropped",
     "",
     "",
     "Of those, dropped: the file or pipe did not keep up, or refused.",
     [](in from, out sink) { sink.number(from.access_log.dropped); }},
    {"reprise_access_log_errors_total",
     counter_kind,
     "log.access_errors",
     "",
     "",
     "Writes and reopenings of the access log that failed.",
     [](in from, out sink) { sink.number(from.access_log.errors); }},
    {"reprise_log_dropped_total",
     counter_kind,
     "log.dropped",
     "",
     "",
     "Diagnostic lines overrun because standard error did not keep up.",
     [](in from, out sink) { sink.number(from.log_dropped); }},
};

}  // namespace

std::span<const metric> metrics_table() noexcept {
    static const auto all = [] {
        std::vector<metric> rows{std::begin(table), std::end(table)};
        for (const auto more :
             {memory_metrics(), disk_metrics(), what_if_metrics(), peer_metrics()}) {
            rows.insert(rows.end(), more.begin(), more.end());
        }
        return rows;
    }();
    return all;
}

}  // namespace reprise::proxy
