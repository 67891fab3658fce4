#include "proxy/admin/history.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace reprise::proxy::admin {

namespace {

struct named_count {
    std::string_view name;
    std::uint64_t tally::*count;
};

// Every member of a tally, by its name in /history.
constexpr named_count named_counts[] = {
    {"requests", &tally::requests},
    {"hits", &tally::hits},
    {"by_siblings", &tally::by_siblings},
    {"body_bytes", &tally::body_bytes},
    {"body_bytes_from_store", &tally::body_bytes_from_store},
    {"kept_out", &tally::kept_out},
    {"kept_out_bytes", &tally::kept_out_bytes},
    {"hits_lost", &tally::hits_lost},
    {"unreached", &tally::unreached},
    {"unresolved", &tally::unresolved},
    {"untrusted", &tally::untrusted},
    {"ill_answered", &tally::ill_answered},
    {"lines_dropped", &tally::lines_dropped},
};
static_assert(sizeof(tally) == std::size(named_counts) * sizeof(std::uint64_t));

std::uint64_t failed_with(const totals& counts,
                          std::initializer_list<failure_code> codes) noexcept {
    std::uint64_t sum = 0;
    for (const auto code : codes) {
        sum += counts.failures[static_cast<std::size_t>(code)];
    }
    return sum;
}

nlohmann::ordered_json columns_of(const std::vector<history::sample>& samples, steady_time now) {
    using nlohmann::ordered_json;
    const auto in_seconds = [](std::chrono::nanoseconds time) {
        return std::round(std::chrono::duration<double>(time).count() * 10) / 10;
    };
    auto columns = ordered_json::object();
    auto& ago = columns["ended_seconds_ago"] = ordered_json::array();
    for (const auto& one : samples) {
        ago.push_back(in_seconds(now - one.until));
    }
    auto spans = ordered_json::array();
    for (const auto& one : samples) {
        spans.push_back(in_seconds(one.span));
    }
    columns["seconds"] = std::move(spans);
    for (const auto& [name, count] : named_counts) {
        auto values = ordered_json::array();
        for (const auto& one : samples) {
            values.push_back(one.happened.*count);
        }
        columns[std::string{name}] = std::move(values);
    }
    return columns;
}

}  // namespace

tally operator-(const tally& later, const tally& earlier) noexcept {
    tally between;
    for (const auto& one : named_counts) {
        between.*one.count = later.*one.count - earlier.*one.count;
    }
    return between;
}

tally tally_of(const totals& counts, std::uint64_t lines_dropped) noexcept {
    using enum failure_code;
    tally sum{
        .requests = answered_requests(counts),
        .hits = hits(counts),
        .by_siblings = counts.requests[static_cast<std::size_t>(outcome::sibling)],
        .body_bytes = counts.body_bytes_to_clients,
        .body_bytes_from_store = counts.body_bytes_from_store,
        .hits_lost = counts.admission_hits_lost,
        .unreached = failed_with(
            counts,
            {connect_refused, connect_unreachable, connect_timeout, no_parent, parent_refused}),
        .unresolved = failed_with(counts, {dns_error, dns_timeout}),
        .untrusted = failed_with(counts, {tls_client_certificate, tls_certificate, tls_failed}),
        .ill_answered = failed_with(counts,
                                    {origin_closed,
                                     origin_upload_timeout,
                                     origin_head_timeout,
                                     origin_body_timeout,
                                     bad_response,
                                     response_head_too_large,
                                     response_cut_short}),
        .lines_dropped = lines_dropped};
    for (const auto& cells : counts.admission_by_policy) {
        sum.kept_out += cells.refused;
        sum.kept_out_bytes += cells.bytes_refused;
    }
    return sum;
}

history::ring::ring(std::chrono::seconds every, std::chrono::seconds covers, steady_time start)
    : step{every},
      readings(static_cast<std::size_t>(covers / every) + 1, reading{start, {}}) {}

void history::ring::tick(steady_time now, const tally& counted) {
    if (now - readings[newest].at < step) {
        return;
    }
    newest = (newest + 1) % readings.size();
    readings[newest] = {now, counted};
    kept = std::min(kept + 1, readings.size());
}

const history::reading& history::ring::back(std::size_t steps) const noexcept {
    return readings[(newest + readings.size() - steps) % readings.size()];
}

std::vector<history::sample> history::ring::samples(steady_time now, const tally& counted) const {
    std::vector<sample> all;
    all.reserve(kept);
    for (auto steps = kept; steps-- > 0;) {
        const auto& from = back(steps);
        const auto to = steps == 0 ? reading{now, counted} : back(steps - 1);
        all.push_back({to.at, to.at - from.at, to.counted - from.counted});
    }
    return all;
}

history::history(steady_time start)
    : fine_{fine_step, fine_span, start},
      coarse_{coarse_step, coarse_span, start} {}

void history::tick(steady_time now, const tally& counted) {
    fine_.tick(now, counted);
    coarse_.tick(now, counted);
}

std::vector<history::sample> history::last_hour(steady_time now, const tally& counted) const {
    return fine_.samples(now, counted);
}

std::vector<history::sample> history::last_day(steady_time now, const tally& counted) const {
    return coarse_.samples(now, counted);
}

tally history::within(std::chrono::seconds span, steady_time now, const tally& counted) const {
    // The youngest reading that is old enough; failing that, the oldest there is.
    const auto& kept = span <= fine_span ? fine_ : coarse_;
    std::size_t steps = 0;
    while (steps + 1 < kept.kept && kept.back(steps).at > now - span) {
        ++steps;
    }
    return counted - kept.back(steps).counted;
}

std::string history_json(const history& from, steady_time now, const tally& counted) {
    nlohmann::ordered_json root;
    root["hour"] = columns_of(from.last_hour(now, counted), now);
    root["day"] = columns_of(from.last_day(now, counted), now);
    return root.dump();
}

}  // namespace reprise::proxy::admin
