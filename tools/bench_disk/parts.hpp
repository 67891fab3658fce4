#pragma once
// The parts of bench_disk. Each prints its own table.

#include <cstdint>
#include <string>

namespace reprise::tools {

struct bench_plan {
    std::string directory;  ///< on the disk to be measured; what is made there goes at the end
    std::uint64_t objects = 1'000'000;
    std::size_t object_bytes = 1024;  ///< of body
    std::uint64_t sequential_bytes = std::uint64_t{2} << 30;
    std::size_t block_bytes = std::size_t{1} << 20;  ///< dd's
    unsigned trials = 5;
};

/// Memory an object, and the time to the first hit after a clean stop and after a kill.
void measure_starts(const bench_plan& plan);
/// Sequential writing beside dd.
void measure_writing(const bench_plan& plan);
/// Look-ups whose bytes the page cache has, and whose it has not.
void measure_reading(const bench_plan& plan);

}  // namespace reprise::tools
