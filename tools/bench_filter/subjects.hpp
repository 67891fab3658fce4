#pragma once
// Which filters are compared. To add one, add a line to its list.

#include "tools/bench_filter/harness.hpp"

#include <cstdint>
#include <vector>

namespace reprise::bench {

/// Those of filter/.
[[nodiscard]] std::vector<subject> our_filters();

/// Those of tools/alternatives/.
[[nodiscard]] std::vector<subject> alternative_filters();

/// From a URL's text to the answer: ours and Squid's.
[[nodiscard]] std::vector<subject> from_text();

/// The split-block filter beside what it cannot be faster than, trial by trial in turn: a read of
/// one random line of as much memory. Prints a table.
void compare_with_reads(std::uint64_t keys, double rate);

/// What a digest of so many keys takes in its owner's memory, on the wire and in a reader's, and what else might be
/// published. Prints tables.
void print_digests(std::uint64_t keys, double rate);

/// The index of siblings' digests beside these asked one by one. Prints a table.
void compare_siblings(std::uint64_t keys);

/// What else might index siblings, beside ours. Some 100 bytes a key of each of 64. Prints a table.
void compare_sibling_alternatives(std::uint64_t keys, double rate);

/// What comes before any filter: hashing a URL. Prints a table.
void print_hashes();

/// What else the admission filter does. Prints a table.
void print_admission(std::uint64_t keys, double rate);

}  // namespace reprise::bench
