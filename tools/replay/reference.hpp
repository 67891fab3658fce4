#pragma once
// Holds the models against published counts: a CSV of plain LRU caches with an exact admission
// rule, "trace,capacity,rule,N,requests,misses,rmr,bmr,inserts,insert_bytes" (tests/data/traces).

#include <cstdint>
#include <iosfwd>
#include <istream>
#include <string>
#include <vector>

namespace reprise::replay {

struct reference_row {
    std::string trace;
    std::uint64_t capacity = 0;
    std::string rule;  ///< "none", "second" or "window"
    std::uint64_t window = 0;
    std::uint64_t requests = 0, misses = 0, inserts = 0, insert_bytes = 0;
    double byte_miss_ratio = 0;  ///< rounded to six digits
};

/// The rows below a header line. @throws std::runtime_error naming the line that can't be read
[[nodiscard]] std::vector<reference_row> read_reference(std::istream& in);

/// What this project's classes counted for a row.
struct reference_check {
    reference_row row;
    std::uint64_t requests = 0, misses = 0, inserts = 0, insert_bytes = 0;
    double byte_miss_ratio = 0;

    // Rows of "second" once more, with the real filter at most 2 bytes a key and generation.
    std::uint64_t filter_misses = 0, filter_insert_bytes = 0;
    double filter_bytes_a_key = 0;

    /// To the request and the byte.
    [[nodiscard]] bool is_exact() const noexcept;
    /// How far the filter's run is off: in points of the miss ratio, and in percent of the bytes.
    [[nodiscard]] double filter_miss_points() const noexcept;
    [[nodiscard]] double filter_bytes_percent() const noexcept;
    /// Within 0.2 points and 2 %; true of rows that have no such run.
    [[nodiscard]] bool filter_is_close() const noexcept;
};

/// Plays `path` once for all `rows`, which are of this trace.
/// @throws std::runtime_error when it can't be read
[[nodiscard]] std::vector<reference_check> check_reference(const std::vector<reference_row>& rows,
                                                           const std::string& path,
                                                           unsigned threads);

/// Every row of the file `reference`, its traces being DIRECTORY/NAME.csv.zst or .csv, as a table
/// on `out`. A trace that is not there is named and skipped. True when all rows that were checked
/// hold and there was one.
bool print_reference_check(const std::string& reference,
                           const std::string& directory,
                           unsigned threads,
                           std::ostream& out);

}  // namespace reprise::replay
