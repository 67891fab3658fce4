#include "proxy/admin/history.hpp"
#include "proxy/admin/stats.hpp"
#include "proxy/base/log.hpp"
#include "proxy/net/kept_leaves.hpp"
#include "proxy/server/listening_worker.hpp"
#include "proxy/server/server.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>

// What the program tells of itself: gathered from where each part counts, on the admin thread.

namespace reprise::proxy::server {

admin::readiness server::readiness_now() const noexcept {
    if (common_.draining.load(std::memory_order_relaxed)) {
        return admin::readiness::draining;
    }
    return accepts_.load(std::memory_order_relaxed) ? admin::readiness::ready
                                                    : admin::readiness::starting;
}

admin::tally server::tally_now() const {
    return admin::tally_of(common_.counters.snapshot(),
                           common_.access.figures().dropped + log_lines_dropped());
}

std::string server::history_at(steady_time now) {
    const std::lock_guard lock{history_guard_};
    return admin::history_json(history_, now, tally_now());
}

// Its clients' requests: what siblings asked is somebody's request once already.
peer::node_figures server::figures_for_fleet(steady_time now) const {
    const auto counts = common_.counters.snapshot();
    const auto without = [](std::uint64_t all, std::uint64_t of_siblings) {
        return all - std::min(all, of_siblings);
    };
    auto asked = counts.requests;
    for (std::size_t how = 0; how < outcome_count; ++how) {
        asked[how] = without(asked[how], counts.requests_of_siblings[how]);
    }
    peer::node_figures out;
    out.up_ms = static_cast<std::uint64_t>(
        std::chrono::floor<std::chrono::milliseconds>(now - started_).count());
    out.requests = answered_requests(asked);
    out.hits = hits(asked);
    out.siblings = asked[static_cast<std::size_t>(outcome::sibling)];
    out.joined = asked[static_cast<std::size_t>(outcome::collapsed)] + counts.handed_on_joined;
    out.bytes = without(counts.body_bytes_to_clients, counts.body_bytes_to_siblings);
    out.bytes_from_store = without(counts.body_bytes_from_store,
                                   counts.body_bytes_to_siblings_from_store);
    out.bytes_from_siblings = counts.body_bytes_of_sibling_hits;
    out.bytes_joined = without(counts.body_bytes_from_collapsing,
                               counts.body_bytes_to_siblings_from_collapsing);
    for (const auto& one : workers_) {
        out.sights_told += one->w.peers ? one->w.peers->seen.told() : 0;
    }
    return out;
}

admin::stats_inputs server::stats() {
    admin::stats_inputs in;
    const auto now = steady_now();
    in.version = version_;
    in.at = wall_now();
    in.uptime = now - started_;
    in.ready = readiness_now();
    in.threads = workers_.size();
    in.counts = common_.counters.snapshot();
    for (const auto& one : workers_) {
        const auto& pool = one->w.origins.figures();
        in.counts.origin_opened += pool.opened.load(std::memory_order_relaxed);
        in.counts.origin_surplus += pool.surplus.load(std::memory_order_relaxed);
        in.counts.origin_failed += pool.failures.load(std::memory_order_relaxed);
        in.counts.origin_open += pool.open.load(std::memory_order_relaxed);
        in.counts.dns_queries += one->w.names.asked();
        in.counts.dns_cached += one->w.names.answered_from_cache();
        in.counts.dns_failures += one->w.names.failures();
    }
    in.since_start = windows_.since_start(now, in.counts);
    in.last_minute = windows_.last(std::chrono::minutes{1}, now, in.counts);
    in.last_ten_minutes = windows_.last(std::chrono::minutes{10}, now, in.counts);
    {
        constexpr std::chrono::hours day{24};
        const auto counted = tally_now();
        const std::lock_guard lock{history_guard_};
        in.within_a_minute = history_.within(std::chrono::minutes{1}, now, counted);
        in.within_a_day = history_.within(day, now, counted);
        in.day_covers = history_.covered(day, now);
        in.over_upgrade = history_.has_adopted();
    }
    in.failing = common_.failing.last_minute(now);
    in.costly = common_.costly.figures();
    in.by_bytes = common_.by_bytes.figures();
    in.memory = common_.store.memory().figures();
    if (const auto* disk = common_.store.disk()) {
        in.disk = disk->figures();
        in.unadmitted = common_.store.written_unadmitted();
        in.room = room_.last();
    }
    if (common_.peers) {
        in.peers = common_.peers->report(*current_book());
    }
    in.purges = common_.store.purges().figures();
    in.purged_urls = common_.purged_urls.load(std::memory_order_relaxed);
    in.purged_url_responses = common_.purged_url_responses.load(std::memory_order_relaxed);
    in.admission_at = resident_now();
    in.admission = common_.admission.figures(in.admission_at);
    const auto in_force = current();
    for (const auto& rule : in_force->options.admission.rules) {
        in.rules.push_back(rule.url);
    }
    in.what_if = common_.advice.report(now);
    in.tunnels = common_.tunnels.figures();
    in.intercept = in_force->options.intercept;
    if (const auto& leaves = in_force->leaves) {
        const std::chrono::duration<double> left = leaves->authority().until() - wall_now();
        in.leaves = {leaves->made(), leaves->reused(), leaves->size(), left.count()};
    }
    in.access_log = common_.access.figures();
    // A minute, as within_a_minute has it: with the step that it begins in.
    if (const auto& last = in.access_log.last_refusal;
        last && now - last->at < std::chrono::seconds{70}) {
        in.lines_refused = last->why.message();
    }
    in.log_dropped = log_lines_dropped();
    in.log_lines = log::recent().counted();
    in.live_viewers = common_.live.viewers();
    in.clients_limited = common_.client_rates.known(now);
    in.process = admin::read_process_figures();
    return in;
}

}  // namespace reprise::proxy::server
