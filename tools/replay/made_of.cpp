#include "tools/replay/made_of.hpp"

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/memory/reservation.hpp"
#include "proxy/cache/plan.hpp"

#include <algorithm>
#include <limits>

namespace reprise::replay {

namespace {

using proxy::cache::frequency_sketch;

constexpr std::uint64_t first_sketch = 64;  // it grows with what is stored
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// What a disk is divided into where the proxy does not say.
constexpr std::uint32_t scaled_segments = 128, scaled_extents = 64, small_extents = 8;
constexpr std::uint64_t least_segment = 16;

// Until the sizes of misses are known a sketch that grows is for objects of a usual size.
constexpr std::uint64_t usual_object = 64u << 10;
constexpr std::uint64_t least_growing_sketch = 16;

std::uint64_t share_of_bytes(std::uint64_t whole, double share) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(whole) * share);
}

config::admission_choice choice_of(const admission_choice& rule) noexcept {
    using enum config::admission_policy;
    using kind = admission_choice::kind;
    switch (rule.what) {
    case kind::always: return {always, 2};
    case kind::tinylfu: return {tinylfu, 2};
    case kind::automatic: return {automatic, 2};
    case kind::nth_hit: return {rule.hits == 2 ? second_hit : nth_hit, rule.hits};
    case kind::exact_second:
    case kind::exact_window: break;
    }
    return {};
}

bool counts_requests(const setup& wanted) noexcept {
    using proxy::cache::eviction_kind;
    return wanted.policy.kind == eviction_kind::gdsf ||
           wanted.policy.kind == eviction_kind::lfu_da ||
           wanted.admission.what == admission_choice::kind::tinylfu;
}

void divide(parts& out, const disk_choice& disk, std::uint32_t segments, std::uint32_t extents) {
    out.disk.segments = disk.segments != 0 ? disk.segments : segments;
    out.disk.segment_bytes = std::max(least_segment, out.disk_bytes / out.disk.segments);
    out.extents = disk.extents != 0 ? disk.extents : extents;
}

parts scaled_parts(const setup& wanted, const trace_scale& scale, std::uint64_t bytes) {
    parts out;
    out.memory_bytes = memory_of(wanted, bytes);
    out.disk_bytes = bytes - out.memory_bytes;
    out.largest_in_memory = out.largest_on_disk = no_limit;
    out.filter = {.automatic = wanted.remembers_automatically,
                  .objects = keys_remembered(wanted, scale),
                  .memory_bytes = out.memory_bytes,
                  .disk_bytes = out.disk_bytes};
    if (!wanted.disk) {
        if (counts_requests(wanted)) {
            out.requests = std::make_shared<frequency_sketch>(first_sketch);
            out.requests_grow = true;
        }
        return out;
    }
    const auto& disk = *wanted.disk;
    config::memory_options memory;
    memory.size = out.memory_bytes;
    out.largest_in_memory = memory.largest();
    out.requests = std::make_shared<frequency_sketch>(
        disk.sketch != 0 ? disk.sketch : std::max(least_growing_sketch, bytes / usual_object));
    out.requests_grow = disk.sketch == 0;
    divide(out, disk, scaled_segments, scaled_extents);
    out.copies = disk.copies;
    out.counts_overhead = disk.counts_overhead;
    return out;
}

}  // namespace

std::uint64_t memory_of(const setup& wanted, std::uint64_t bytes) noexcept {
    if (!wanted.disk) {
        return bytes;
    }
    const auto named = wanted.disk->memory_bytes;
    if (named == 0 || wanted.size.bytes == 0) {
        return share_of_bytes(bytes, wanted.disk->memory);
    }
    return std::min(named * (bytes / wanted.size.bytes), bytes);
}

config::options options_of(const setup& wanted, std::uint64_t bytes) {
    config::options out;
    out.memory.size = memory_of(wanted, bytes);
    out.memory.policy = wanted.policy.kind.value_or(proxy::cache::eviction_kind::lru);
    if (wanted.disk) {
        const auto& disk = *wanted.disk;
        out.disk.path = "/var/cache/reprise";
        out.disk.size = bytes - out.memory.size;
        out.disk.write = disk.write == write_when::admission ? config::disk_write::admission
                                                             : config::disk_write::eviction;
        out.disk.selective = disk.selective;
        out.disk.carry = disk.carry;
    }
    out.admission.choice = choice_of(wanted.admission);
    out.admission.probation = wanted.probation;
    if (wanted.remember_objects != 0) {
        out.admission.remember.automatic = false;
        out.admission.remember.objects = wanted.remember_objects;
    }
    out.caching.objective = setting_of(wanted.wanted);
    return out;
}

parts parts_of(const setup& wanted, const trace_scale& scale) {
    const auto whole = wanted.size.resolved(scale.unique_bytes) * scale.unit;
    const auto of_sample = [&](std::uint64_t count) { return share_of_bytes(count, scale.sample); };
    if (wanted.scaled) {
        auto out = scaled_parts(wanted, scale, of_sample(whole));
        out.filter.objects = std::max<std::uint64_t>(1, of_sample(out.filter.objects));
        return out;
    }
    const auto options = options_of(wanted, whole);
    parts out;
    out.memory_bytes = of_sample(options.memory.size);
    out.largest_in_memory = options.memory.largest();
    out.filter = {.automatic = options.admission.remember.automatic,
                  .as_set = true,
                  .objects = std::max<std::uint64_t>(1, of_sample(wanted.remember_objects)),
                  .memory_bytes = out.memory_bytes};
    out.requests = proxy::cache::sketch_for(options);
    if (out.requests && scale.sample < 1) {
        out.requests = std::make_shared<frequency_sketch>(of_sample(out.requests->keys()));
    }
    if (!wanted.disk) {
        return out;
    }
    const auto& disk = *wanted.disk;
    namespace on_disk = proxy::cache::disk;
    out.disk_bytes = of_sample(options.disk.size);
    out.filter.disk_bytes = out.disk_bytes;
    out.largest_on_disk = options.disk.largest();
    out.disk_keys = of_sample(disk.sketch != 0 ? disk.sketch
                                               : on_disk::counted_keys(options.disk.size));
    if (options.disk.size >= on_disk::smallest_store) {
        const auto shape = on_disk::plan(options.disk.size);
        out.disk_bytes = of_sample(shape.segment_bytes * shape.segments);
        divide(out,
               disk,
               shape.segments,
               static_cast<std::uint32_t>(shape.segment_bytes / shape.inline_most));
    } else {
        divide(out, disk, scaled_segments, small_extents);
    }
    // As cache::store has it: what is written as it is admitted stays in memory as well.
    out.copies = disk.copies || disk.write == write_when::admission;
    return out;
}

}  // namespace reprise::replay
