// The filters of filter/, each by a line.

#include "filter/admission.hpp"
#include "filter/aging.hpp"
#include "filter/bloom.hpp"
#include "filter/counting.hpp"
#include "filter/layered.hpp"
#include "filter/partitioned.hpp"
#include "filter/scalable.hpp"
#include "filter/sizing.hpp"
#include "filter/split_block.hpp"
#include "filter/stable.hpp"
#include "filter/stamped.hpp"
#include "filter/standard.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cstdio>
#include <memory>

namespace reprise::bench {

namespace {

using namespace filter;

constexpr std::chrono::sys_seconds now{std::chrono::seconds{1'700'000'000}};

split_block_bloom split_block_for(std::uint64_t keys, double rate) {
    return split_block_bloom{split_blocks_for(keys, rate)};
}

layered_filter<split_block_bloom> layers_for(std::uint64_t keys, double rate) {
    std::vector<split_block_bloom> layers;
    layers.push_back(split_block_for(keys, rate));
    layers.push_back(split_block_for(keys, rate));
    return layered_filter<split_block_bloom>{std::move(layers)};
}

/// The admission filter can't be moved, being shared by threads.
struct admission {
    std::unique_ptr<admission_filter> held;
    [[nodiscard]] std::uint64_t bytes() const { return held->figures(now).memory; }
};

admission admission_for(std::uint64_t keys, double rate) {
    return {std::make_unique<admission_filter>(
        admission_settings{.objects = keys, .false_positive_rate = rate}, now)};
}

}  // namespace

std::vector<subject> our_filters() {
    return {
        growing("standard",
                [](auto keys, auto rate) { return standard_bloom{classic_size(keys, rate)}; }),
        growing(
            "partitioned",
            [](auto keys, auto rate) { return partitioned_bloom{partitioned_size(keys, rate)}; }),
        growing("blocked, 64 bytes, atomic",
                [](auto keys, auto rate) { return blocked_bloom{blocks_for(keys, rate)}; }),
        growing("split block, 32 bytes", split_block_for),
        growing("counting, 4 bits",
                [](auto keys, auto rate) { return counting_bloom{classic_size(keys, rate)}; }),
        growing("stamped, 4 bits, one generation",
                [](auto keys, auto rate) { return stamped_bloom{classic_size(keys, rate)}; }),
        // Both generations hold something: half of the keys each.
        growing("two active buffers, split blocks",
                [](auto keys, auto rate) {
                    const auto each = (keys + 1) / 2;
                    return two_active_buffers<split_block_bloom>{
                        each, split_blocks_for(each, two_active_rate(rate))};
                }),
        growing("double buffer, split blocks",
                [](auto keys, auto rate) {
                    return double_buffer<split_block_bloom>{keys, split_blocks_for(keys, rate)};
                }),
        growing("stable, 2-bit cells, 10 bits a key",
                [](auto keys, auto rate) {
                    return stable_bloom{stable_size_for(5 * keys, 2, 4, rate), 1};
                }),
        growing(
            "layered, 2 layers of split blocks",
            layers_for,
            [](auto& filter, key_hash key) { filter.insert(key); },
            [](const auto& filter, key_hash key) { return filter.count(key) != 0; }),
        growing("scalable, from 1,000 keys, split blocks",
                [](std::uint64_t, double rate) {
                    return scalable_filter<split_block_bloom>{{.rate = rate}, split_block_for};
                }),
        growing(
            "admission (note, peek), one of two generations full",
            admission_for,
            [](auto& filter, key_hash key) { (void)filter.held->note(key, now); },
            [](const auto& filter, key_hash key) { return filter.held->peek(key) != 0; }),
    };
}

void print_admission(std::uint64_t keys, double rate) {
    // Twice the keys: then both generations are full.
    auto filter = admission_for(keys, rate);
    for (std::uint64_t i = 0; i < 2 * keys; ++i) {
        (void)filter.held->note(nth_key(1, i), now);
    }
    const workload work{keys, rate};
    const auto stranger = middle_of([&] {
        return overlapped_ns(work.absent, [&](key_hash key) { return filter.held->peek(key); });
    });
    // The newest keys, asked for once before: the young generation knows them.
    std::vector<key_hash> newest;
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(keys / 4, 1); ++i) {
        newest.push_back(nth_key(1, 2 * keys - 1 - i));
        filter.held->refresh(newest.back(), now);
    }
    const auto refresh = middle_of([&] {
        return overlapped_ns(newest, [&](key_hash key) {
            filter.held->refresh(key, now);
            return 0;
        });
    });
    std::printf("Admission with both generations full, %.1f bytes an object: `peek` of a stranger "
                "%.1f ns, `refresh` of a key that the young generation knows %.1f ns.\n\n",
                static_cast<double>(filter.bytes()) / static_cast<double>(keys),
                stranger,
                refresh);
}

}  // namespace reprise::bench
