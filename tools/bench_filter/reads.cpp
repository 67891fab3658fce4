// The split-block filter beside reads of memory.

#include "filter/big_array.hpp"
#include "filter/split_block.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cstdio>
#include <memory>

namespace reprise::bench {

namespace {

struct alignas(64) line {
    std::array<std::uint64_t, 8> words;
};

/// A filter's memory without the filter: as many bytes, from the same place, read line by line.
class plain_memory {
public:
    explicit plain_memory(std::uint64_t bytes) : lines_{(bytes + sizeof(line) - 1) / sizeof(line)} {
        std::uint64_t next = 1;
        for (auto& each : lines_) {
            for (auto& word : each.words) {
                word = next += 0x9e3779b97f4a7c15;
            }
        }
    }

    /// All 64 bytes of a line that the key picks.
    [[nodiscard]] bool read(key_hash key) const noexcept {
        std::uint64_t all = 0;
        for (const auto word : line_of(key).words) {
            all |= word;
        }
        return all != 0;
    }

    /// Eight of them: what bringing the line costs, without taking it in.
    [[nodiscard]] bool touch(key_hash key) const noexcept { return line_of(key).words[0] != 0; }

private:
    [[nodiscard]] const line& line_of(key_hash key) const noexcept {
        __extension__ using uint128 = unsigned __int128;
        return lines_[static_cast<std::uint64_t>((uint128{key.low} * lines_.size()) >> 64)];
    }

    filter::big_array<line> lines_;
};

}  // namespace

void compare_with_reads(std::uint64_t keys, double rate) {
    const workload work{keys, rate};
    filter::split_block_bloom bloom{filter::split_blocks_for(keys, rate)};
    for (std::uint64_t i = 0; i < keys; ++i) {
        bloom.insert(nth_key(1, i));
    }
    const plain_memory memory{bloom.bytes()};
    const auto answers = std::make_unique<bool[]>(work.known.size());
    const auto ask = [&](key_hash key) { return bloom.may_contain(key); };
    const auto read = [&](key_hash key) { return memory.read(key); };
    const auto touch = [&](key_hash key) { return memory.touch(key); };

    // In turn, so that what else the machine does meets all alike.
    enum { reading, touching, hits, misses, batches, reading_alone, asking_alone, kinds };
    std::array<std::array<double, trials>, kinds> taken{};
    for (std::size_t trial = 0; trial < trials; ++trial) {
        taken[reading][trial] = overlapped_ns(work.absent, read);
        taken[touching][trial] = overlapped_ns(work.absent, touch);
        taken[hits][trial] = overlapped_ns(work.known, ask);
        taken[misses][trial] = overlapped_ns(work.absent, ask);
        taken[batches][trial] =
            seconds([&] {
                bloom.may_contain(work.known, {answers.get(), work.known.size()});
            }) *
            1e9 / static_cast<double>(work.known.size());
        taken[reading_alone][trial] = alone_ns(work.mixed, read);
        taken[asking_alone][trial] = alone_ns(work.mixed, ask);
    }
    std::array<double, kinds> ns{};
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        ns[kind] = middle_mean(taken[kind]);
    }
    std::printf("Split block beside reads of 64 bytes of as much memory (%.1f MB), in turn:\n\n"
                "| | ns | of a read |\n|---|---:|---:|\n",
                static_cast<double>(bloom.bytes()) / 1e6);
    const auto print = [&](const char* name, int kind, int base) {
        std::printf("| %s | %.2f | %.2f |\n", name, ns[kind], ns[kind] / ns[base]);
    };
    print("read", reading, reading);
    print("read of 8 of the 64 bytes", touching, reading);
    print("query, hit", hits, reading);
    print("query, miss", misses, reading);
    print("query, many at a time", batches, reading);
    print("read, alone", reading_alone, reading_alone);
    print("query, alone", asking_alone, reading_alone);
    std::printf("\n");
}

}  // namespace reprise::bench
