#pragma once
// One recommended profile, held on many traces against what it is to reach:
//
//     (a) objective requests: misses at most 1 % above the best of W-TinyLFU, S3-FIFO, SIEVE and
//         ARC without admission, byte misses at most 5 % above LRU's, at most half of LRU's bytes
//         written (a quarter on bu1998, blog2016 and cdnweb)
//     (b) objective bytes: byte misses at most 1 % above the best of the four, at most half of
//         LRU's bytes written
//     (c) on cdnweb and synth1m 70 % of the way from LRU's misses to Belady's by size, at most 0.7
//         of LRU's bytes written
//     (d) at no size more than 1 % more misses than LRU
//
// (a) to (c) at 1 % and 10 % of unique bytes, (d) at 0.1 % too. All shares are relative. What is
// compared with is one tier an object at a time, where all that is stored counts as written; the
// profile has memory and a disk of 128 segments, filter and sketch in them, and only what goes to
// the disk counts, carried bytes included.

#include "tools/replay/results.hpp"

#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reprise::replay {

/// The profile that is recommended.
[[nodiscard]] setup recommended_profile(objective wanted, const cache_size& size);

/// What one trace gave: figures by size and by the name of what was played.
struct trace_verdicts {
    std::string trace;
    std::map<std::pair<std::string, std::string>, result> played;

    [[nodiscard]] const tally& of(const std::string& size, const std::string& name) const {
        return played.at({size, name}).counted;
    }
    /// Of the four, the one with the fewest misses, or missed bytes.
    [[nodiscard]] std::string best_of_four(const std::string& size, objective wanted) const;
};

/// `a` above `b`, relative: 0.01 for one percent.
[[nodiscard]] double above(std::uint64_t a, std::uint64_t b) noexcept;

[[nodiscard]] bool meets_requests(const std::string& trace,
                                  const tally& profile,
                                  const tally& best_of_four,
                                  const tally& lru) noexcept;
[[nodiscard]] bool meets_bytes(const tally& profile,
                               const tally& best_of_four,
                               const tally& lru) noexcept;
/// The share of the way from LRU's misses to Belady's.
[[nodiscard]] double way_to_belady(const tally& profile,
                                   const tally& lru,
                                   const tally& belady) noexcept;
[[nodiscard]] bool meets_way(const tally& profile, const tally& lru, const tally& belady) noexcept;
[[nodiscard]] bool regrets_nothing(const tally& profile, const tally& lru) noexcept;

/// Plays one trace. @throws std::runtime_error when it can't be read
[[nodiscard]] trace_verdicts judge_trace(const std::string& path, unsigned threads);

/// Markdown: a table for each of (a) to (d), and one of the ways to write.
void print_verdicts(std::ostream& out, const std::vector<trace_verdicts>& all);
/// NAME-hits.svg and NAME-written.svg, into a directory that is there.
/// @throws std::runtime_error when one can't be written
void write_plots(const std::string& directory, const trace_verdicts& of);

}  // namespace reprise::replay
