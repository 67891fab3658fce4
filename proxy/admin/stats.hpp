#pragma once
// The figures an operator reads, as JSON and as Prometheus text.
// Both are made from one table (metrics_table.cpp): a row is a metric's name, unit, place in the
// JSON, meaning, labels, and how its samples are drawn from the inputs. The list in README.md
// comes from the same rows. Labels have a bounded number of values: never a URL, host or client.

#include "proxy/admin/windows.hpp"
#include "proxy/base/access_log.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "proxy/peer/peer_report.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

/// The store at one moment. Counts since start are marked; the rest is now.
struct store_figures {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;  ///< charged: heads, bodies and what keeping them costs
    std::uint64_t capacity_bytes = 0;
    std::uint64_t inserted = 0;                                ///< since start
    std::uint64_t evicted = 0;                                 ///< since start, for room
    std::uint64_t evicted_bytes = 0;                           ///< since start
    std::uint64_t purged = 0;                                  ///< since start, by prefix and tag
    std::uint64_t probation_objects = 0, probation_bytes = 0;  ///< that wait for another request
    std::uint64_t promoted = 0;      ///< since start, admitted while they waited
    std::uint64_t policy_bytes = 0;  ///< of the eviction policies' own
    std::optional<double> eviction_age_seconds;
};

/// Purges by kind, since start; bans now.
struct purge_view {
    std::uint64_t urls = 0, prefixes = 0, tags = 0;
    std::uint64_t url_responses = 0;  ///< stored responses that purges by URL met
    std::uint64_t bans = 0;
    std::uint64_t forgotten = 0;
};

/// The admission filter at one moment.
struct admission_view {
    double fill = 0;                 ///< of the younger generation: share of its room used, 0..1
    double false_positive_rate = 0;  ///< estimated, of both generations together, now
    std::uint64_t remembered = 0;    ///< objects, about
    std::uint64_t memory_bytes = 0;
    std::optional<double> remembers_for_seconds;  ///< at the present rate; none: not yet known
    double young_age_seconds = 0;
    double old_age_seconds = 0;
    std::uint64_t generations = 0;  ///< turned over since start
};

/// This process, as the kernel sees it; zeros where /proc does not say.
struct process_figures {
    double cpu_seconds = 0;
    std::uint64_t resident_bytes = 0;
    std::uint64_t open_files = 0;
};
[[nodiscard]] process_figures read_process_figures();

enum class readiness : std::uint8_t { ready, starting, draining };
[[nodiscard]] std::string_view to_string(readiness value) noexcept;

struct stats_inputs {
    std::string version;
    std::chrono::nanoseconds uptime{0};
    readiness ready = readiness::ready;
    std::size_t threads = 0;
    totals counts;
    window_figures since_start, last_minute, last_ten_minutes;
    store_figures store;
    std::optional<cache::disk::tier_figures> disk;  ///< none: there is no store on disk
    std::optional<peer::peer_report> peers;         ///< none: there are no peers
    purge_view purges;
    admission_view admission;
    cache::what_if_report what_if;
    std::vector<std::string> rules;  ///< the URL pattern of each admission rule, in order
    access_log_figures access_log;
    std::uint64_t log_dropped = 0;  ///< diagnostic lines overrun since start
    process_figures process;
};

/// Cost: well under a millisecond; belongs on the admin thread.
[[nodiscard]] nlohmann::json stats_json(const stats_inputs& inputs);

/// Prometheus text exposition format 0.0.4.
[[nodiscard]] std::string metrics_text(const stats_inputs& inputs);
inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// README.md's list of all figures, in Markdown.
[[nodiscard]] std::string metrics_reference();

}  // namespace reprise::proxy::admin
