#pragma once
// What a run found, as a table, CSV and JSON.

#include "tools/replay/model.hpp"
#include "tools/replay/object_table.hpp"
#include "tools/replay/setup.hpp"
#include "tools/replay/trace.hpp"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace reprise::replay {

struct result {
    setup what;
    std::uint64_t capacity = 0;  ///< what.size of this trace, bytes
    tally counted;
    double seconds = 0;  ///< that the model took
    /// The same without admission, where it was run too: what admission saved, and cost.
    std::optional<tally> without_admission;
    std::vector<std::string> told{};  ///< what "auto" came to be, and when

    [[nodiscard]] std::int64_t writes_avoided() const noexcept;
    [[nodiscard]] std::int64_t bytes_avoided() const noexcept;
    [[nodiscard]] std::int64_t hits_lost() const noexcept;  ///< below 0: won
};

struct trace_summary {
    std::vector<std::string> paths;
    std::vector<std::optional<log_format>> formats;  ///< of each path; none of an empty file
    trace_figures figures;
    object_table::totals totals;
    /// Hits of a cache that never runs out of room.
    [[nodiscard]] std::uint64_t possible_hits() const noexcept {
        return figures.requests - totals.objects;
    }
};

/// Whether the trace told of any fetch how long it took: else nothing is said of waiting.
[[nodiscard]] bool knows_waits(const std::vector<result>& results) noexcept;

/// "second-hit, probation 2%, disk 20% memory": all that is not size and policy.
[[nodiscard]] std::string describe_rest(const setup& what);

/// "squid", or of several logs "squid, 2 of 3; json, 1 of 3"; empty where nothing was read.
[[nodiscard]] std::string formats_text(const std::vector<std::optional<log_format>>& formats);

/// That queries are hidden, and what that makes of the figures; empty where none are.
[[nodiscard]] std::string hidden_queries(const trace_figures& figures);
void print_summary(std::ostream& out, const trace_summary& of);
void print_table(std::ostream& out, const std::vector<result>& results);
void print_csv(std::ostream& out, const std::vector<result>& results);
/// One object: "trace", "results" and, if it is not empty, "recommended" (which is JSON already).
void print_json(std::ostream& out,
                const trace_summary& of,
                const std::vector<result>& results,
                const std::string& recommended);

}  // namespace reprise::replay
