#pragma once
// The figures an operator reads, as JSON and as Prometheus text.
// Both are made from one table (metrics_table.cpp): a row is a metric's name, unit, place in the
// JSON, meaning, labels, and how its samples are drawn from the inputs. The list in README.md
// comes from the same rows. Labels have a bounded number of values: never a URL or client, and of hosts
// 64.

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "proxy/admin/history.hpp"
#include "proxy/admin/windows.hpp"
#include "proxy/base/access_log.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/costly_hosts.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/base/failing_hosts.hpp"
#include "proxy/base/hosts_by_bytes.hpp"
#include "proxy/base/recent_lines.hpp"
#include "proxy/base/tunnel_hosts.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "proxy/cache/store.hpp"
#include "proxy/peer/peer_report.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

/// This process, as the kernel sees it; zeros where /proc does not say.
struct process_figures {
    double cpu_seconds = 0;
    std::uint64_t resident_bytes = 0;
    std::uint64_t heap_bytes = 0;     ///< in use, by base/heap_use; 0 where nobody counts
    std::uint64_t program_bytes = 0;  ///< resident, of the program's file and its libraries'
    std::uint64_t open_files = 0;
};
[[nodiscard]] process_figures read_process_figures();

enum class readiness : std::uint8_t { ready, starting, draining };
[[nodiscard]] std::string_view to_string(readiness value) noexcept;

/// What there is to say of the certificates that stand for intercepted hosts; zeros where nothing
/// is opened.
struct leaf_figures {
    std::uint64_t made = 0, reused = 0;  ///< since the settings were read
    std::size_t kept = 0;
    std::optional<double> ca_validity{};  ///< seconds left of the CA; none: there is none
};

/// The room in the file system that the store on disk lies in.
struct disk_room {
    std::string path;        ///< disk.path
    std::uint64_t size = 0;  ///< disk.size
    std::uint64_t held = 0;  ///< blocks of the store's files, whatever is in them
    std::uint64_t free = 0;  ///< bytes that the system has left for whoever runs the proxy

    /// There is less left than the store is yet to take.
    [[nodiscard]] bool is_short() const noexcept { return size > held && size - held > free; }
};

struct stats_inputs {
    std::string version;
    wall_time at{};  ///< when these were gathered
    std::chrono::nanoseconds uptime{0};
    readiness ready = readiness::ready;
    std::size_t threads = 0;
    totals counts;
    window_figures since_start, last_minute, last_ten_minutes;
    tally within_a_minute, within_a_day;
    std::chrono::nanoseconds day_covers{0};  ///< how much of a day within_a_day is of
    bool over_upgrade = false;  ///< some of that is what the program before this counted
    std::vector<failing_hosts::one> failing;    ///< within the last minute, the most frequent first
    std::vector<costly_hosts::one> costly;      ///< the hosts that admission lost most hits of
    std::vector<hosts_by_bytes::one> by_bytes;  ///< the hosts whose answers are most bytes
    std::optional<disk_room> room;  ///< none: it is not known, or there is no store on disk
    cache::memory_figures memory;
    cache::store::unadmitted_writes unadmitted;     ///< what a disk with room took all the same
    std::optional<cache::disk::tier_figures> disk;  ///< none: there is no store on disk
    std::optional<peer::peer_report> peers;         ///< none: there are no peers
    cache::purge_figures purges;
    std::uint64_t purged_urls = 0;           ///< purges by URL, since start
    std::uint64_t purged_url_responses = 0;  ///< stored responses that they met
    filter::admission_figures admission;
    wall_time admission_at{};  ///< when they were taken, in resident time
    cache::what_if_report what_if;
    tunnel_hosts::report tunnels;
    leaf_figures leaves;
    std::optional<config::intercept_options> intercept;  ///< as it is set
    std::vector<std::string> rules;  ///< the URL pattern of each admission rule, in order
    access_log_figures access_log;
    std::string lines_refused;      ///< why log.access lost some within a minute; empty: none
    std::uint64_t log_dropped = 0;  ///< diagnostic lines overrun since start
    recent_lines::counts log_lines;
    std::uint64_t live_viewers = 0;
    std::uint64_t clients_limited = 0;  ///< by limits.client_rate, just now
    process_figures process;
};

/// The summary first, then the rows in the table's order.
/// Cost: well under a millisecond; belongs on the admin thread.
[[nodiscard]] nlohmann::ordered_json stats_json(const stats_inputs& inputs);

/// {"fleet": {...}}: its sums, and under "nodes" what is known of each; null where there are no peers.
[[nodiscard]] nlohmann::ordered_json fleet_json(const stats_inputs& inputs);

/// Prometheus text exposition format 0.0.4.
[[nodiscard]] std::string metrics_text(const stats_inputs& inputs);
inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// README.md's list of all figures, in Markdown.
[[nodiscard]] std::string metrics_reference();

}  // namespace reprise::proxy::admin
