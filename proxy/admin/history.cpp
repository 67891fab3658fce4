#include "proxy/admin/history.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

// A reading is what all counters had come to, a sample the difference of two that are neighbours.
// named_counts is the one list of what is counted: subtracting, writing and reading again all walk
// it.

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
    {"bytes_by_siblings", &tally::bytes_by_siblings},
    {"by_sharing", &tally::by_sharing},
    {"bytes_by_sharing", &tally::bytes_by_sharing},
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

// What columns_of made, read again by whoever trusts no text. None: it is nothing of the kind.
struct told_sample {
    double ended_seconds_ago = 0, seconds = 0;
    tally happened;
};

constexpr std::size_t most_samples = 4096;
constexpr double longest_ago = 14 * 86'400.0;

std::optional<double> seconds_in(const nlohmann::json& value) {
    if (!value.is_number()) {
        return std::nullopt;
    }
    const auto seconds = value.get<double>();
    return seconds >= 0 && seconds <= longest_ago ? std::optional{seconds} : std::nullopt;
}

std::optional<std::vector<told_sample>> samples_of(const nlohmann::json& columns) {
    const auto column = [&](std::string_view name) -> const nlohmann::json* {
        const auto found = columns.find(name);
        return found != columns.end() && found->is_array() ? &*found : nullptr;
    };
    if (!columns.is_object()) {
        return std::nullopt;
    }
    const auto* ended = column("ended_seconds_ago");
    const auto* spans = column("seconds");
    if (ended == nullptr || spans == nullptr || ended->empty() || ended->size() > most_samples ||
        spans->size() != ended->size()) {
        return std::nullopt;
    }
    std::vector<told_sample> all(ended->size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto ago = seconds_in((*ended)[i]);
        const auto span = seconds_in((*spans)[i]);
        if (!ago || !span || (i != 0 && *ago > all[i - 1].ended_seconds_ago)) {
            return std::nullopt;
        }
        all[i].ended_seconds_ago = *ago;
        all[i].seconds = *span;
    }
    for (const auto& [name, count] : named_counts) {
        const auto* values = column(name);
        if (values == nullptr) {
            continue;  // of another release
        }
        if (values->size() != all.size()) {
            return std::nullopt;
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!(*values)[i].is_number_unsigned()) {
                return std::nullopt;
            }
            all[i].happened.*count = (*values)[i].get<std::uint64_t>();
        }
    }
    return all;
}

std::chrono::nanoseconds nanoseconds_in(double seconds) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>{seconds});
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
    const auto ended = [&](outcome how) { return counts.requests[static_cast<std::size_t>(how)]; };
    tally sum{.requests = answered_requests(counts),
              .hits = hits(counts),
              .by_siblings = ended(outcome::sibling),
              .bytes_by_siblings = counts.body_bytes_from_siblings,
              .by_sharing = ended(outcome::collapsed),
              .bytes_by_sharing = counts.body_bytes_from_collapsing,
              .body_bytes = counts.body_bytes_to_clients,
              .body_bytes_from_store = counts.body_bytes_from_store,
              .hits_lost = counts.admission_hits_lost,
              .lines_dropped = lines_dropped};
    for (std::size_t i = 0; i < failure_count; ++i) {
        const auto failed = counts.failures[i];
        switch (origin_trouble_of(static_cast<failure_code>(i))) {
        case origin_trouble::none: break;
        case origin_trouble::unreached: sum.unreached += failed; break;
        case origin_trouble::unresolved: sum.unresolved += failed; break;
        case origin_trouble::untrusted: sum.untrusted += failed; break;
        case origin_trouble::ill_answered: sum.ill_answered += failed; break;
        }
    }
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

// The youngest of them, where there are too many. @pre there is one
void history::ring::fill(const std::vector<reading>& with) {
    kept = std::min(with.size(), readings.size());
    std::copy(with.end() - static_cast<std::ptrdiff_t>(kept), with.end(), readings.begin());
    newest = kept - 1;
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

// The counts of this process begin at zero where the other's ended: its readings are of before, so below
// zero. Differences alone are looked at, and those are right modulo 2^64.
bool history::adopt(std::string_view text, steady_time told_at) {
    const auto root = nlohmann::json::parse(text, nullptr, false);
    if (!root.is_object() || !root.contains("hour") || !root.contains("day")) {
        return false;
    }
    const auto readings_of = [&](const std::vector<told_sample>& samples) {
        // Where each began: the last is under way here too.
        std::vector<reading> all(samples.size());
        tally later;
        for (auto i = samples.size(); i-- > 0;) {
            const auto begun = i == 0 ? samples[0].ended_seconds_ago + samples[0].seconds
                                      : samples[i - 1].ended_seconds_ago;
            later = later - samples[i].happened;
            all[i] = {told_at - nanoseconds_in(begun), later};
        }
        return all;
    };
    const auto hour = samples_of(root["hour"]);
    const auto day = samples_of(root["day"]);
    if (!hour || !day || told_at > fine_.readings[fine_.newest].at) {
        return false;
    }
    fine_.fill(readings_of(*hour));
    coarse_.fill(readings_of(*day));
    adopted_ = true;
    return true;
}

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

// The youngest reading that is old enough; failing that, the oldest there is.
const history::reading& history::beginning(std::chrono::seconds span, steady_time now) const {
    const auto& kept = span <= fine_span ? fine_ : coarse_;
    std::size_t steps = 0;
    while (steps + 1 < kept.kept && kept.back(steps).at > now - span) {
        ++steps;
    }
    return kept.back(steps);
}

tally history::within(std::chrono::seconds span, steady_time now, const tally& counted) const {
    return counted - beginning(span, now).counted;
}

std::chrono::nanoseconds history::covered(std::chrono::seconds span, steady_time now) const {
    return now - beginning(span, now).at;
}

std::string history_json(const history& from, steady_time now, const tally& counted) {
    nlohmann::ordered_json root;
    root["hour"] = columns_of(from.last_hour(now, counted), now);
    root["day"] = columns_of(from.last_day(now, counted), now);
    return root.dump();
}

}  // namespace reprise::proxy::admin
