#pragma once
// Which records were dropped one by one (tier::drop), or had their place taken by a newer response, for
// those that have found them or still could.
//
// Only the writer can tell whether what the index has under a key is the very record that is to go, for
// it has to read it. Until it has, look-ups find the record and ask here. What was found before may come
// into memory (promote), or be given a newer head (freshen), after the writer is done: so the last ids
// of each stripe are known beyond that.
//
// What a newer response replaces needs no writer to be told apart: it goes to the last ids at once
// (went). Drops and replacements are kept in two of these, so that neither pushes out the other's.
//
// Threads   any number; a short lock of one stripe, and one load while nothing was ever dropped.
// Memory    35 KiB, and some 40 bytes for each that waits for the writer, whose notes are bounded.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace reprise::proxy::cache::disk {

class dropped_records {
public:
    /// The record with this id is to go. @pre id != 0
    void note(std::uint64_t id) {
        auto& home = stripe_of(id);
        const std::lock_guard lock{home.guard};
        home.waiting.insert(id);
        any_.store(true, std::memory_order_release);
    }
    /// It has gone: no look-up that begins from now on can find it.
    void gone(std::uint64_t id) noexcept {
        auto& home = stripe_of(id);
        const std::lock_guard lock{home.guard};
        if (home.waiting.erase(id) != 0) {
            home.lately[home.went++ % remembered] = id;
        }
    }
    /// It can't be found any more, or won't be in a moment. @pre id != 0
    void went(std::uint64_t id) noexcept {
        auto& home = stripe_of(id);
        const std::lock_guard lock{home.guard};
        home.lately[home.went++ % remembered] = id;
        any_.store(true, std::memory_order_release);
    }
    /// Whether it is to go, or went lately.
    [[nodiscard]] bool has(std::uint64_t id) const {
        if (id == 0 || !any_.load(std::memory_order_acquire)) {
            return false;
        }
        const auto& home = stripe_of(id);
        const std::lock_guard lock{home.guard};
        for (const auto one : home.lately) {
            if (one == id) {
                return true;
            }
        }
        return home.waiting.contains(id);
    }

private:
    // Ids are given in turn, so those of one time are spread over all stripes.
    static constexpr std::size_t stripes = 64;
    static constexpr std::size_t remembered = 64;
    struct stripe {
        mutable std::mutex guard;
        std::unordered_set<std::uint64_t> waiting;
        std::array<std::uint64_t, remembered> lately{};
        std::size_t went = 0;
    };
    [[nodiscard]] stripe& stripe_of(std::uint64_t id) noexcept { return stripes_[id % stripes]; }
    [[nodiscard]] const stripe& stripe_of(std::uint64_t id) const noexcept {
        return stripes_[id % stripes];
    }

    std::array<stripe, stripes> stripes_;
    std::atomic<bool> any_{false};
};

}  // namespace reprise::proxy::cache::disk
