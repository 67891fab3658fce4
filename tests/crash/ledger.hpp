#pragma once
// What a store must have after a kill, going by what it said before.
//
// An object is owed when its reply said `stored` and its last byte reached the client a second or
// more before the kill, when no change was made to it since (acknowledged or not), when the store
// did not say that it still waits to be written, or that its queue had no room at that time, and
// when the log did not come round to it meanwhile. The last is judged by the store's own count of
// bytes written (README.md, "What the store can still hold").
//
// Threads   any number; a lock of a few words' work for each of 64 stripes of slots.

#include "tests/crash/catalogue.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace reprise::tests::crash {

using steady = std::chrono::steady_clock;

class ledger {
public:
    explicit ledger(const catalogue& of);

    /// Bytes that the log took in all its lives, as last heard; grows only.
    void log_at(std::uint64_t bytes) noexcept { log_.store(bytes); }
    [[nodiscard]] std::uint64_t log() const noexcept { return log_.load(); }
    /// What was offered to the store before `when` is in a file, it says.
    void written_until(steady::time_point when) noexcept { written_.store(when); }
    [[nodiscard]] steady::time_point written() const noexcept { return written_.load(); }
    /// Some of what was offered between the two was not taken: nobody knows which. Called by one
    /// thread, not beside is_owed().
    void skipped(steady::time_point from, steady::time_point to);

    /// A reply said that it is stored, and is complete. `begun` is log() before it was asked for.
    /// Not `settled`: a change was on its way then, so that nobody knows whether it is owed.
    void admitted(
        std::uint32_t url, unsigned flavour, const stamp& at, bool settled, std::uint64_t begun);
    /// A 304 gave what is stored another day.
    void freshened(std::uint32_t url, const stamp& at);
    /// It is not there: it is owed no longer.
    void lost(std::uint32_t url, unsigned flavour);

    [[nodiscard]] bool was_stored(std::uint32_t url, unsigned flavour) const;
    /// How many replies said stored.
    [[nodiscard]] std::uint64_t stored() const noexcept { return stored_.load(); }

    struct moment {
        steady::time_point killed;
        steady::time_point written;  ///< what was offered before is in a file
        std::uint64_t log = 0;       ///< log() then
        std::uint64_t may_hold = 0;  ///< bytes written after which an object may be gone
    };
    [[nodiscard]] bool is_owed(std::uint32_t url, unsigned flavour, const moment& at) const;
    /// How long before the kill it was admitted. @pre it is owed
    [[nodiscard]] steady::duration age(std::uint32_t url, unsigned flavour, const moment& at) const;

private:
    struct entry {
        stamp at;
        bool stored = false;  ///< ever
        bool owed = false;
        std::uint64_t begun = 0;
        steady::time_point admitted;
    };
    [[nodiscard]] std::size_t slot(std::uint32_t url, unsigned flavour) const noexcept {
        return std::size_t{url} * flavours + flavour;
    }
    struct span {
        steady::time_point from, to;
    };
    [[nodiscard]] bool may_be_skipped(steady::time_point admitted) const;
    [[nodiscard]] std::mutex& guard_of(std::uint32_t url) const noexcept {
        return guards_[url % guards_.size()];
    }

    const catalogue& catalogue_;
    std::vector<entry> entries_;
    std::vector<span> skipped_;  // in order
    mutable std::array<std::mutex, 64> guards_;
    std::atomic<std::uint64_t> log_{0}, stored_{0};
    std::atomic<steady::time_point> written_{};
};

}  // namespace reprise::tests::crash
