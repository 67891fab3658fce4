#include "config/units.hpp"
#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/space.hpp"
#include "proxy/cache/memory/reservation.hpp"
#include "proxy/cache/plan.hpp"
#include "tools/replay/made_of.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace reprise::replay;
using reprise::config::gib;
using reprise::config::mib;
namespace cache = reprise::proxy::cache;

namespace {

setup made_setup(const std::string& policy, const std::string& admission, std::uint64_t bytes) {
    setup out;
    out.size = {.bytes = bytes};
    out.policy = policy_choice_of(policy).value();
    out.admission = admission_choice_of(admission).value();
    return out;
}

setup with_disk(std::uint64_t memory, std::uint64_t disk) {
    auto out = made_setup("gdsf", "second-hit", memory + disk);
    out.disk = disk_choice{.memory_bytes = memory};
    return out;
}

constexpr trace_scale some_scale{.objects = 1'000, .unique_bytes = 40 * mib};

}  // namespace

TEST_SUITE_BEGIN("replay/made_of");

TEST_CASE("sketches are as large as a proxy of that size has them, however few objects there are") {
    const auto small = parts_of(with_disk(mib, 16 * mib), some_scale);
    REQUIRE(small.requests);
    CHECK(small.requests->keys() == 1u << 14);
    CHECK_FALSE(small.requests_grow);
    CHECK(small.disk_keys == 1u << 14);
    const auto large = parts_of(with_disk(gib, 64 * gib), some_scale);
    REQUIRE(large.requests);
    // A key for each KiB of memory, and one for 64 KiB of disk.
    CHECK(large.requests->keys() >= (gib >> 10) + (64 * gib >> 16));
    CHECK(large.disk_keys == 64 * gib >> 14);
}

TEST_CASE("without a disk requests are counted where the proxy counts them") {
    CHECK(parts_of(made_setup("gdsf", "always", gib), some_scale).requests);
    CHECK(parts_of(made_setup("lru", "tinylfu", gib), some_scale).requests);
    CHECK_FALSE(parts_of(made_setup("sieve", "second-hit", gib), some_scale).requests);
}

TEST_CASE("the filter follows the store, or remembers as many keys as were asked for") {
    auto what = made_setup("lru", "second-hit", gib);
    CHECK(parts_of(what, some_scale).filter.automatic);
    CHECK(parts_of(what, some_scale).filter.memory_bytes == gib);
    what.remember_objects = 12'345;
    CHECK_FALSE(parts_of(what, some_scale).filter.automatic);
    CHECK(parts_of(what, some_scale).filter.as_set);
    CHECK(parts_of(what, some_scale).filter.objects == 12'345);
}

TEST_CASE("a disk is divided as the proxy divides it, and what it cannot have is no room") {
    const auto made = parts_of(with_disk(256 * mib, 4 * gib), some_scale);
    const auto shape = cache::disk::plan(4 * gib);
    CHECK(made.disk.segments == shape.segments);
    CHECK(made.disk.segment_bytes == shape.segment_bytes);
    CHECK(made.extents == shape.segment_bytes / shape.inline_most);
    CHECK(made.disk_bytes == shape.segment_bytes * shape.segments);
    CHECK(made.disk_bytes < 4 * gib);
}

TEST_CASE("objects are too large where the proxy would say so") {
    const auto alone = parts_of(made_setup("lru", "always", 16 * gib), some_scale);
    CHECK(alone.largest_in_memory == 16 * gib / 5);
    const auto small = parts_of(made_setup("lru", "always", 10 * mib), some_scale);
    CHECK(small.largest_in_memory == cache::reservation::largest_of(10 * mib));
    CHECK(small.largest_in_memory == 2 * mib);
    const auto both = parts_of(with_disk(mib, gib), some_scale);
    CHECK(both.largest_on_disk == 256 * mib);
}

TEST_CASE("what is written as it is admitted stays in memory too") {
    auto what = with_disk(mib, gib);
    CHECK_FALSE(parts_of(what, some_scale).copies);
    what.disk->write = write_when::admission;
    CHECK(parts_of(what, some_scale).copies);
}

TEST_CASE("a scaled setup has one sketch that grows, a filter for the trace, and no limits") {
    auto what = with_disk(mib, 16 * mib);
    what.scaled = true;
    const auto made = parts_of(what, some_scale);
    CHECK(made.requests_grow);
    CHECK(made.disk_keys == 0);
    CHECK(made.counts_overhead);
    CHECK_FALSE(made.filter.as_set);
    CHECK(made.largest_on_disk > gib);
    CHECK(made.largest_in_memory == mib / 5);
    what = made_setup("lru", "second-hit", gib);
    what.scaled = true;
    CHECK(parts_of(what, some_scale).filter.objects == some_scale.objects);
    CHECK(parts_of(what, some_scale).largest_in_memory > 16 * gib);
}

TEST_CASE("of a sample of the keys all is smaller by as much, but objects are as large") {
    auto sampled = some_scale;
    sampled.sample = 0.25;
    const auto whole = parts_of(with_disk(gib, 64 * gib), some_scale);
    const auto part = parts_of(with_disk(gib, 64 * gib), sampled);
    CHECK(part.memory_bytes == gib / 4);
    CHECK(part.disk_keys == whole.disk_keys / 4);
    CHECK(part.requests->keys() == whole.requests->keys() / 4);
    CHECK(part.disk.segments == whole.disk.segments);
    CHECK(part.disk.segment_bytes == whole.disk.segment_bytes / 4);
    CHECK(part.largest_in_memory == whole.largest_in_memory);
    auto scaled = made_setup("lru", "always", gib);
    scaled.scaled = true;
    CHECK(parts_of(scaled, sampled).memory_bytes == gib / 4);
}

TEST_CASE("the options that a setup stands for say what was played") {
    auto what = with_disk(256 * mib, 4 * gib);
    what.probation = 1;
    what.wanted = objective::bytes;
    const auto options = options_of(what, what.size.bytes);
    CHECK(options.memory.size == 256 * mib);
    CHECK(options.memory.policy == cache::eviction_kind::gdsf);
    CHECK(options.disk.size == 4 * gib);
    CHECK(options.disk.write == reprise::config::disk_write::eviction);
    CHECK(options.disk.selective);
    CHECK(options.admission.choice.policy == reprise::config::admission_policy::second_hit);
    CHECK(options.admission.probation == 1);
    CHECK(options.admission.remember.automatic);
    CHECK(options.caching.objective == reprise::config::caching_objective::bytes);
}

TEST_SUITE_END();
