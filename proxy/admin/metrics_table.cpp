// The table of metrics. A new figure is a row here: /stats, /metrics and README.md's list follow
// (run unit_admin with REPRISE_UPDATE_DOCS=1 for the last).

#include "proxy/admin/metrics_table.hpp"

#include "proxy/http/storability.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::proxy::admin {

namespace {

double seconds_of(std::chrono::nanoseconds time) noexcept {
    return std::chrono::duration<double>(time).count();
}

template <class Enum>
std::string_view name_at(std::size_t index) noexcept {
    using proxy::to_string;  // config's enumerations are named in base/
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

/// A number of each host whose answers are at least a hundredth of all bytes; `value` captures nothing.
template <class Value>
consteval metric per_host(std::string_view name,
                          std::string_view json,
                          std::string_view help,
                          Value) {
    return by_label(name, json, "host", help, [](in from, out sink) {
        for (const auto& one : from.by_bytes) {
            if (one.bytes * 100 >= from.counts.bytes_to_clients) {
                draw(sink, Value{}(one), one.host);
            }
        }
    });
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

std::uint64_t remembered(const filter::admission_figures& filter) {
    return static_cast<std::uint64_t>(filter.young.estimated_keys + filter.old.estimated_keys);
}

double age_of(in from, const filter::admission_figures::generation& one) {
    return std::max(0.0, seconds_of(from.admission_at - one.since));
}

constexpr metric own_rows[] = {
    // The process.
    {"reprise_build_info",
     metric_kind::info,
     "version",
     "version",
     "",
     "The program's version.",
     [](in from, out sink) { sink.text(from.version); }},
    plain("reprise_uptime_seconds",
          "uptime_seconds",
          "Since the process began to serve.",
          [](in from) { return seconds_of(from.uptime); }),
    plain("reprise_ready",
          "ready",
          "Whether /readyz says 200: not while starting nor while draining.",
          [](in from) { return from.ready == readiness::ready; }),
    plain("reprise_threads", "threads", "Worker threads.", [](in from) { return from.threads; }),
    plain("process_cpu_seconds_total",
          "process.cpu_seconds",
          "Processor time of all threads, user and system.",
          [](in from) { return from.process.cpu_seconds; }),
    plain("process_resident_memory_bytes",
          "process.resident_bytes",
          "Resident memory.",
          [](in from) { return from.process.resident_bytes; }),
    plain("reprise_heap_bytes",
          "process.heap_bytes",
          "In use on the heap: all that is stored, connections, indexes; not the filters' arrays, "
          "which "
          "have figures of their own. What is resident beside these and the program is free or "
          "stacks.",
          [](in from) { return from.process.heap_bytes; }),
    plain("reprise_program_bytes",
          "process.program_bytes",
          "Resident of the program's file and its libraries'.",
          [](in from) { return from.process.program_bytes; }),
    plain("process_open_fds",
          "process.open_files",
          "Open file descriptors.",
          [](in from) { return from.process.open_files; }),

    // Requests.
    by_label("reprise_requests_total",
             "requests",
             "outcome",
             "Requests by how they ended (counters.hpp says what each outcome is).",
             [](in from, out sink) {
                 for (std::size_t i = 0; i < outcome_count; ++i) {
                     sink.number(from.counts.requests[i], name_at<outcome>(i));
                 }
             }),
    by_label("reprise_responses_total",
             "responses",
             "class",
             "Final responses sent to clients, by class of their status.",
             draw_responses),
    by_label("reprise_failures_total",
             "failures",
             "failure",
             "Requests that met a failure, by its name in failure.hpp.",
             [](in from, out sink) {
                 for (std::size_t i = 0; i < failure_count; ++i) {
                     sink.number(from.counts.failures[i],
                                 facts_of(static_cast<failure_code>(i)).name);
                 }
             }),
    by_label(
        "reprise_hit_ratio",
        "hit_ratio",
        "window",
        "Share of answered requests (hit, revalidated, stale, miss, sibling, collapsed, pass) that "
        "were answered from the store (hit, revalidated, stale).",
        [](in from, out sink) { draw_ratios(from, sink, &window_figures::hit_ratio); }),
    by_label("reprise_byte_hit_ratio",
             "byte_hit_ratio",
             "window",
             "Share of the body bytes of answered requests that came from the store.",
             [](in from, out sink) { draw_ratios(from, sink, &window_figures::byte_hit_ratio); }),
    {"reprise_first_byte_seconds",
     metric_kind::histogram,
     "latency.first_byte",
     "class",
     "",
     "From a request's complete head to the first byte of its response: hits (hit, stale), misses "
     "(miss, revalidated, sibling, collapsed) and what is passed through.",
     [](in from, out sink) { draw_latencies(from.counts.first_byte, sink); }},
    {"reprise_request_seconds",
     metric_kind::histogram,
     "latency.complete",
     "class",
     "",
     "From a request's complete head to the last byte of its response.",
     [](in from, out sink) { draw_latencies(from.counts.complete, sink); }},

    // Bytes.
    plain("reprise_client_received_bytes_total",
          "clients.received_bytes",
          "Bytes from clients: heads, bodies and tunnels.",
          [](in from) { return from.counts.bytes_from_clients; }),
    plain("reprise_client_sent_bytes_total",
          "clients.sent_bytes",
          "Bytes to clients: heads, bodies and tunnels.",
          [](in from) { return from.counts.bytes_to_clients; }),
    plain("reprise_origin_received_bytes_total",
          "origins.received_bytes",
          "Bytes from origins: heads, bodies and tunnels.",
          [](in from) { return from.counts.bytes_from_origins; }),
    plain("reprise_origin_sent_bytes_total",
          "origins.sent_bytes",
          "Bytes to origins: heads, bodies and tunnels.",
          [](in from) { return from.counts.bytes_to_origins; }),
    plain("reprise_body_sent_bytes_total",
          "bodies.sent_bytes",
          "Body bytes of answered requests, to clients.",
          [](in from) { return from.counts.body_bytes_to_clients; }),
    plain("reprise_body_stored_sent_bytes_total",
          "bodies.from_store_bytes",
          "Of those, from stored responses.",
          [](in from) { return from.counts.body_bytes_from_store; }),
    plain("reprise_body_collapsed_sent_bytes_total",
          "bodies.from_collapsing_bytes",
          "Of those, to followers of another request's fetch.",
          [](in from) { return from.counts.body_bytes_from_collapsing; }),
    plain("reprise_body_sibling_received_bytes_total",
          "bodies.from_siblings_bytes",
          "Body bytes that siblings gave, and no origin had to.",
          [](in from) { return from.counts.body_bytes_from_siblings; }),
    per_host(
        "reprise_host_sent_bytes_total",
        "hosts.bytes",
        "Bytes to clients by the host asked for, about: many small answers are told by some of "
        "them. Of the 64 hosts with most, since each is among them, those with a hundredth of "
        "all: clients choose hosts.",
        [](const hosts_by_bytes::one& host) { return host.bytes; }),
    per_host("reprise_host_stored_sent_bytes_total",
             "hosts.from_store_bytes",
             "Of those, in answers that were stored.",
             [](const hosts_by_bytes::one& host) { return host.from_store; }),
    plain("reprise_wait_spared_seconds_total",
          "wait_spared_seconds",
          "Seconds that hits spared clients: what the fetch of each took, 10 at most.",
          [](in from) { return static_cast<double>(from.counts.wait_spared) / 1e6; }),

    // Connections.
    plain("reprise_client_connections",
          "clients.open",
          "Client connections open now.",
          [](in from) { return from.counts.client_open; }),
    plain("reprise_client_connections_accepted_total",
          "clients.accepted",
          "Client connections accepted.",
          [](in from) { return from.counts.client_accepted; }),
    plain("reprise_client_connections_refused_total",
          "clients.refused",
          "Client connections closed at once, and requests refused that a front passed on: "
          "access.clients or a limit on connections.",
          [](in from) { return from.counts.client_refused; }),
    plain(
        "reprise_client_connections_over_limit_total",
        "clients.over_limit",
        "Client connections that limits.client_connections or limits.connections_per_client had no "
        "place for; not those of clients that access.clients does not serve.",
        [](in from) { return from.counts.client_over_limit; }),
    plain(
        "reprise_client_rate_known",
        "clients.rate_known",
        "Clients that limits.client_rate is kept for: with a connection that it bounded, or still "
        "below what may come at once.",
        [](in from) { return from.clients_limited; }),
    plain("reprise_client_rate_waits_total",
          "clients.rate_waits",
          "How often an answer or a tunnel had to wait for its client's turn (limits.client_rate).",
          [](in from) { return from.counts.client_rate_waits; }),
    plain("reprise_origin_connections",
          "origins.open",
          "Connections to origins open now, idle ones included.",
          [](in from) { return from.counts.origin_open; }),
    plain("reprise_origin_connections_opened_total",
          "origins.opened",
          "Connections to origins opened.",
          [](in from) { return from.counts.origin_opened; }),
    plain("reprise_origin_connections_reused_total",
          "origins.reused",
          "Requests sent on a connection that had served one before.",
          [](in from) { return from.counts.origin_reused; }),
    plain("reprise_homes_asked_total",
          "homes.asked",
          "Requests for what belongs to a sibling (peering.homes), which was asked in the origin's "
          "place.",
          [](in from) { return from.counts.handed_to_homes; }),
    plain("reprise_homes_failed_total",
          "homes.failed",
          "Of those, requests that went on to a parent or the origin, since the sibling did not "
          "answer in time, or with an error of its own.",
          [](in from) { return from.counts.homes_failed; }),
    plain("reprise_sites_asked_total",
          "sites.asked",
          "Requests of other sites for what this gateway's siblings hold (peering.gateway_for).",
          [](in from) { return from.counts.asked_by_sites; }),
    plain("reprise_sites_answered_total",
          "sites.answered",
          "Of those, requests that one of its siblings answered.",
          [](in from) { return from.counts.sites_answered; }),
    plain("reprise_origin_connections_surplus_total",
          "origins.surplus",
          "Connections closed since bytes stood behind an answer: the origin's are not reused for "
          "an hour.",
          [](in from) { return from.counts.origin_surplus; }),
    plain(
        "reprise_origin_connections_failed_total",
        "origins.failed",
        "Attempts to reach an origin that gave no connection, names that did not resolve included.",
        [](in from) { return from.counts.origin_failed; }),
    plain("reprise_dns_queries_total",
          "dns.queries",
          "Names asked of a server.",
          [](in from) { return from.counts.dns_queries; }),
    plain("reprise_dns_cached_total",
          "dns.cached",
          "Names answered from memory or the hosts file.",
          [](in from) { return from.counts.dns_cached; }),
    plain("reprise_dns_failures_total",
          "dns.failures",
          "Names that did not resolve.",
          [](in from) { return from.counts.dns_failures; }),

    // The store.
    plain("reprise_store_objects",
          "store.objects",
          "Responses in the store.",
          [](in from) { return from.memory.objects; }),
    plain("reprise_store_bytes",
          "store.bytes",
          "Memory charged for them: heads, bodies and what keeping them costs.",
          [](in from) { return from.memory.bytes; }),
    plain("reprise_store_capacity_bytes",
          "store.capacity_bytes",
          "Most that may be charged: memory.size.",
          [](in from) { return from.memory.capacity; }),
    plain("reprise_store_inserted_total",
          "store.inserted",
          "Responses that entered the store, replacements included.",
          [](in from) { return from.memory.inserted; }),
    plain("reprise_store_evicted_total",
          "store.evicted",
          "Responses that left it to make room.",
          [](in from) { return from.memory.evicted; }),
    plain("reprise_store_evicted_bytes_total",
          "store.evicted_bytes",
          "What they were charged.",
          [](in from) { return from.memory.evicted_bytes; }),
    plain("reprise_stored_total",
          "store.stored",
          "Responses whose body arrived whole and was kept, as the requests saw it.",
          [](in from) { return from.counts.stored_objects; }),
    plain("reprise_stored_bytes_total",
          "store.stored_bytes",
          "Their body bytes.",
          [](in from) { return from.counts.stored_bytes; }),
    plain("reprise_store_refreshed_total",
          "store.refreshed",
          "Stored heads updated by a 304.",
          [](in from) { return from.counts.store_refreshed; }),
    plain(
        "reprise_store_invalidated_total",
        "store.invalidated",
        "Stored responses given up since an unsafe method succeeded on their URL, or a HEAD, a 304 "
        "or a body longer than was said showed that they are outdated.",
        [](in from) { return from.counts.store_invalidated; }),
    by_label("reprise_purges_total",
             "purges.by_kind",
             "kind",
             "Purges asked for, by what they named: a URL, a prefix of URLs, a tag.",
             [](in from, out sink) {
                 sink.number(from.purged_urls, "url");
                 sink.number(from.purges.prefixes, "prefix");
                 sink.number(from.purges.tags, "tag");
             }),
    plain("reprise_purged_responses_total",
          "purges.responses",
          "Stored responses that purges dropped or made stale; by prefix and tag counted when they "
          "are next looked up.",
          [](in from) { return from.purged_url_responses + from.memory.purged; }),
    plain("reprise_purge_bans",
          "purges.bans",
          "Purges by prefix and tag that stored responses are held against.",
          [](in from) { return from.purges.bans; }),
    plain("reprise_purge_bans_forgotten_total",
          "purges.bans_forgotten",
          "Of them, those that left a full list: what was not looked up since they were made is "
          "taken for purged.",
          [](in from) { return from.purges.forgotten; }),
    by_label("reprise_not_stored_total",
             "not_stored",
             "reason",
             "Responses that HTTP does not let a shared cache store, or that are of no use to it.",
             draw_reasons),

    // Admission.
    plain(
        "reprise_admission_refused_total",
        "admission.first_sights_refused",
        "Absent, storable objects that the policy did not let in: under second-hit, first sights.",
        [](in from) { return admission_sum(from, &admission_cells<std::uint64_t>::refused); }),
    plain("reprise_admission_admitted_total",
          "admission.admitted",
          "Absent, storable objects that the policy let in.",
          [](in from) { return admission_sum(from, &admission_cells<std::uint64_t>::admitted); }),
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
    plain("reprise_admission_ledger_objects_total",
          "admission.ledger.objects",
          "The ledger: objects not stored because of admission alone.",
          [](in from) { return admission_sum(from, &admission_cells<std::uint64_t>::refused); }),
    plain("reprise_admission_ledger_bytes_total",
          "admission.ledger.bytes",
          "The ledger: body bytes not stored because of admission alone, counted as bodies end.",
          [](in from) {
              return admission_sum(from, &admission_cells<std::uint64_t>::bytes_refused);
          }),
    by_label("reprise_admission_policy_ledger_bytes_total",
             "admission.ledger.bytes_by_policy",
             "policy",
             "The ledger's bytes, by policy.",
             [](in from, out sink) {
                 for (std::size_t i = 0; i < policy_count; ++i) {
                     sink.number(from.counts.admission_by_policy[i].bytes_refused,
                                 name_at<config::admission_policy>(i));
                 }
             }),
    by_label("reprise_admission_rule_ledger_bytes_total",
             "admission.ledger.bytes_by_rule",
             "rule",
             "The ledger's bytes, by rule.",
             [](in from, out sink) {
                 each_rule(from, [&](std::string_view rule, const auto& cells) {
                     sink.number(cells.bytes_refused, rule);
                 });
             }),
    plain("reprise_admission_hits_lost_total",
          "admission.hits_lost",
          "What admission cost at most: requests that went to the origin for what had been asked "
          "for before. What was stored, has left and is fetched again is among them; where the "
          "policy is always, none is counted.",
          [](in from) { return from.counts.admission_hits_lost; }),
    plain("reprise_admission_hit_bytes_lost_total",
          "admission.hit_bytes_lost",
          "Their body bytes.",
          [](in from) { return from.counts.admission_hit_bytes_lost; }),
    by_label("reprise_admission_host_hits_lost_total",
             "admission.hits_lost_by_host",
             "host",
             "What admission cost at most by the host asked for; of the 64 hosts with most, since "
             "each is "
             "among them, those with a hundredth of all: clients choose hosts.",
             [](in from, out sink) {
                 for (const auto& one : from.costly) {
                     if (one.hits_lost * 100 >= from.counts.admission_hits_lost) {
                         draw(sink, one.hits_lost, one.host);
                     }
                 }
             }),
    plain("reprise_filter_fill_ratio",
          "admission.filter.fill",
          "How much of its room for objects the young generation has used; at 1 the generations "
          "turn over, or sooner by their age.",
          [](in from) { return from.admission.young_used; }),
    plain("reprise_filter_false_positive_ratio",
          "admission.filter.false_positive_rate",
          "Estimated chance, now, that an object never seen is taken for one seen before.",
          [](in from) { return from.admission.false_positive_rate; }),
    plain("reprise_filter_remembered_objects",
          "admission.filter.remembered",
          "Objects that the filter remembers, about.",
          [](in from) { return remembered(from.admission); }),
    plain("reprise_filter_remembers_for_seconds",
          "admission.filter.remembers_for_seconds",
          "How long an object is remembered at the present rate of new ones.",
          [](in from) { return static_cast<double>(from.admission.remembers_for.count()); }),
    by_label("reprise_filter_generation_age_seconds",
             "admission.filter.generation_age_seconds",
             "generation",
             "Since each generation was begun.",
             [](in from, out sink) {
                 sink.real(age_of(from, from.admission.young), "young");
                 sink.real(age_of(from, from.admission.old), "old");
             }),
    plain("reprise_filter_generations_total",
          "admission.filter.generations",
          "Times that the generations turned over.",
          [](in from) { return from.admission.swaps; }),
    plain("reprise_filter_memory_bytes",
          "admission.filter.memory_bytes",
          "Memory of the filter.",
          [](in from) { return from.admission.memory; }),

    // Collapsing.
    plain("reprise_fetches_started_total",
          "collapsing.fetches_started",
          "Fetches begun. Each is for one request, or for all that share it.",
          [](in from) { return from.counts.fetches_started; }),
    by_label("reprise_fetches_ended_total",
             "collapsing.fetches_ended",
             "how",
             "How they ended: whole, failed, or given up because nobody waited any more.",
             [](in from, out sink) {
                 for (std::size_t i = 0; i < fetch_end_count; ++i) {
                     sink.number(from.counts.fetches_ended[i], name_at<fetch_end>(i));
                 }
             }),
    plain("reprise_collapsed_joined_total",
          "collapsing.joined",
          "Requests that joined a fetch under way.",
          [](in from) { return from.counts.collapsed_joined; }),
    plain("reprise_collapsed_released_total",
          "collapsing.released",
          "Of those, sent on to another fetch after all: the response was not for them.",
          [](in from) { return from.counts.collapsed_released; }),

    // The logs.
    plain("reprise_access_log_lines_total",
          "log.access_lines",
          "Lines handed to the access log.",
          [](in from) { return from.access_log.lines; }),
    plain("reprise_access_log_dropped_total",
          "log.access_dropped",
          "Of those, dropped: the file or pipe did not keep up, or refused.",
          [](in from) { return from.access_log.dropped; }),
    plain("reprise_access_log_errors_total",
          "log.access_errors",
          "Writes and reopenings of the access log that failed.",
          [](in from) { return from.access_log.errors; }),
    by_label("reprise_log_lines_total",
             "log.lines",
             "level",
             "Warnings and errors that the diagnostic log was given; /log shows the last of them.",
             [](in from, out sink) {
                 sink.number(from.log_lines.warnings, "warning");
                 sink.number(from.log_lines.errors, "error");
             }),
    plain("reprise_log_dropped_total",
          "log.dropped",
          "Diagnostic lines overrun because standard error did not keep up.",
          [](in from) { return from.log_dropped; }),
    plain("reprise_live_viewers",
          "log.live_viewers",
          "Who watches requests as they end (/live) just now.",
          [](in from) { return from.live_viewers; }),
};

}  // namespace

std::span<const metric> metrics_table() noexcept {
    static const auto all = [] {
        std::vector<metric> rows{std::begin(own_rows), std::end(own_rows)};
        for (const auto more : {memory_metrics(),
                                disk_metrics(),
                                what_if_metrics(),
                                tunnel_metrics(),
                                peer_metrics(),
                                fleet_metrics()}) {
            rows.insert(rows.end(), more.begin(), more.end());
        }
        return rows;
    }();
    return all;
}

}  // namespace reprise::proxy::admin
