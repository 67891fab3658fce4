#pragma once
// What the models of a setup are made of: how large sketches and filters are, how a disk is divided,
// which objects are too large.
//
// By default as the proxy makes them for itself at that size: the settings that the setup stands
// for are written down as config::options, and the proxy's own functions (cache::sketch_for,
// cache::remembering_bytes, disk::plan, disk::counted_keys, reservation) are asked. A scaled setup
// has them as large as the trace wants, because a small cache then stands for a large one.

#include "config/options.hpp"
#include "proxy/cache/disk/space.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>

namespace reprise::replay {

/// The settings of a proxy that is what `wanted` says, with `bytes` for all tiers. What settings
/// cannot say (ARC, exact rules) is left as it is by default.
[[nodiscard]] config::options options_of(const setup& wanted, std::uint64_t bytes);

/// Bytes of the memory tier; the disk has the rest.
[[nodiscard]] std::uint64_t memory_of(const setup& wanted, std::uint64_t bytes) noexcept;

struct parts {
    std::uint64_t memory_bytes = 0, disk_bytes = 0;
    std::uint64_t largest_in_memory = 0, largest_on_disk = 0;  ///< bytes of an object
    remembering filter;

    /// Counts for memory's policy and for admission; null: neither asks.
    std::shared_ptr<proxy::cache::frequency_sketch> requests;
    bool requests_grow = false;  ///< with what is stored
    /// For how many keys the disk counts requests; 0: it asks `requests`.
    std::uint64_t disk_keys = 0;
    proxy::cache::disk::space_settings disk;
    std::uint32_t extents = 0;     ///< in a segment
    bool copies = false;           ///< what is on disk stays in memory too
    bool counts_overhead = false;  ///< sketch and filter take room from memory
};

/// Where the trace is a sample of the keys, all but an object's size is smaller by as much.
/// @throws std::bad_alloc
[[nodiscard]] parts parts_of(const setup& wanted, const trace_scale& scale);

}  // namespace reprise::replay
