#pragma once
// A disk as it would be if each object could leave it alone: what is worth least for each of its bytes
// goes first, and what is worth no more than what went last is not written.
//
// The real one reclaims a segment at a time and carries what is worth it (disk::space), by the same
// worth of a byte: requests as a sketch counts them, by wait times the seconds of a fetch, over
// bytes ^ exponent. So this is what a log could come to that wrote nothing twice: a second tier for
// ghosts, and a yardstick for the replay tool.

#include "filter/key_hash.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/gdsf.hpp"
#include "proxy/cache/policy/packed_wait.hpp"

#include <cstdint>

namespace reprise::proxy::cache {

/// Threads   none: the owner locks.
/// Memory    gdsf's heap, of 8 bytes per entry; entries are their owner's.
/// Cost      O(log n) for what moves an entry, else O(1).
/// Errors    std::bad_alloc from the constructor and enter, which then has not taken the entry in.
class disk_ghost {
public:
    static constexpr std::uint64_t largest_part = 4;  ///< of all: a larger object is never on it
    static constexpr std::uint64_t free_part = 16;    ///< of all: while more is free it fills

    /// `sketch` has counted every request, and outlives this.
    disk_ghost(std::uint64_t bytes, double exponent, const frequency_sketch& sketch, bool by_wait);

    /// From now on evict() keeps no more than these bytes.
    void set_bytes(std::uint64_t bytes) noexcept { bytes_ = bytes; }
    void set_exponent(double exponent) noexcept;

    /// Whether it would be kept rather than what leaves for it.
    [[nodiscard]] bool is_worth_writing(const filter::key_hash& key,
                                        std::uint64_t bytes,
                                        packed_wait wait) noexcept;
    [[nodiscard]] bool has_room_for(std::uint64_t bytes) const noexcept;
    /// Whether what is written takes nobody's room (disk::space has it likewise).
    [[nodiscard]] bool filling() const noexcept { return used_ < bytes_ - bytes_ / free_part; }

    /// @pre it is in no list of a policy; key, charge and wait are set
    void enter(evictable& entry);
    void use(evictable& entry) noexcept { order_.used(entry); }
    void leave(evictable& entry) noexcept;
    /// What is to go, and is out; null: all fits.
    [[nodiscard]] evictable* evict() noexcept;

    /// Bytes of memory beside the entries.
    [[nodiscard]] std::uint64_t overhead() const noexcept { return order_.overhead(); }

private:
    [[nodiscard]] double density(const filter::key_hash& key,
                                 std::uint64_t bytes,
                                 packed_wait wait) const noexcept;
    void age() noexcept;

    const frequency_sketch& sketch_;
    std::uint64_t bytes_;
    double exponent_;
    bool by_wait_;
    wait_mean waits_;
    gdsf_policy order_;
    std::uint64_t used_ = 0;
    double mean_bytes_ = 0;  // of about the last 256 that came in
    double threshold_ = 0;   // what left last was worth, halved as often as the sketch was since
    std::uint64_t agings_;
};

}  // namespace reprise::proxy::cache
