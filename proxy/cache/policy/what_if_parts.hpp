#pragma once
// What what_if is made of. Internal to what_if.cpp, what_if_ghosts.cpp and what_if_report.cpp.

#include "proxy/cache/policy/disk_ghost.hpp"
#include "proxy/cache/policy/tinylfu_bar.hpp"
#include "proxy/cache/policy/what_if.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace reprise::proxy::cache {

inline constexpr std::size_t most_ghosts = paired_evidence::ways;

// One cache that might have been.
struct what_if::ghost {
    what_if_row::group of = what_if_row::group::admission;
    std::string name;
    admission_variant admission;
    eviction_kind policy = eviction_kind::sieve;
    double times = 1;                    // the capacity in force
    double exponent = 1;                 // gdsf's
    std::unique_ptr<residents> held{};   // in memory
    std::unique_ptr<disk_ghost> disk{};  // null: none is in force
    std::uint64_t memory = 0, disk_bytes = 0;
    std::uint64_t largest = 0, largest_in_memory = 0;  // that it takes
    tinylfu_bar bar{};                                 // by the sketch of all ghosts
};

// A key that at least one ghost holds, with an entry for each of them.
struct what_if::slot {
    struct entry : evictable {
        slot* home = nullptr;
    };
    std::uint64_t size = 0;
    std::uint32_t held_by = 0;  // a bit per ghost
    std::uint32_t on_disk = 0;  // of these, whose disk holds it
    packed_wait wait;           // the last that was known
    std::array<entry, most_ghosts> in;
};

struct what_if::minute {
    std::int64_t number = -1;
    std::uint64_t requests = 0, bytes = 0, dropped = 0, set_aside = 0;
    std::uint64_t lost = 0, won = 0;
    double seconds = 0;  // of waiting, were nothing stored
    struct line {
        std::uint64_t hits = 0, hit_bytes = 0;
        double hit_seconds = 0;
        double written = 0;  // bytes, of all keys: by the sample's share at the time
    };
    std::array<line, most_ghosts> of{};
};

}  // namespace reprise::proxy::cache
