#pragma once
// Of which URLs a record may lie in the log that neither the index has nor the journal calls dead: a
// restart may find it.
//
// Nearly all that leaves the index has an entry in the journal, or goes with its segment. What is left
// is rare: a record that was damaged when it was read, one whose writing failed and whose bytes may be
// in the file, one that was invalidated in the moment that it came. An invalidation of such a URL must
// be kept in the journal although the index has nothing of it.
//
// Whoever takes a record out of the index without an entry notes it here first, and whoever wants to
// know looks into the index first: so one of the two is seen.
//
// Threads   any: relaxed atomics, since the index' locks are between those who note and those who ask.
// Memory    256 KiB: 32,768 slots of 8 bytes.
// Errs      only towards "may lie there", since URLs share slots.

#include "filter/key_hash.hpp"
#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace reprise::proxy::cache::disk {

class unlisted_records {
public:
    unlisted_records() : up_to_{std::make_unique<std::atomic<std::uint64_t>[]>(slots)} {}

    /// A record of this URL may lie in a segment with this sequence, or in an older one.
    void note(const filter::key_hash& primary, std::uint64_t sequence) noexcept {
        auto& slot = up_to_[primary.low % slots];
        auto held = slot.load(relaxed);
        while (held < sequence && !slot.compare_exchange_weak(held, sequence, relaxed)) {
        }
    }
    [[nodiscard]] bool may_have(const filter::key_hash& primary) const noexcept {
        return up_to_[primary.low % slots].load(relaxed) != 0;
    }
    /// No file has records of a segment with a lower sequence any more. O(slots).
    void forget_before(std::uint64_t sequence) noexcept {
        for (std::size_t i = 0; i < slots; ++i) {
            auto held = up_to_[i].load(relaxed);
            while (held != 0 && held < sequence &&
                   !up_to_[i].compare_exchange_weak(held, 0, relaxed)) {
            }
        }
    }

private:
    static constexpr std::size_t slots = 32'768;
    std::unique_ptr<std::atomic<std::uint64_t>[]> up_to_;  // a sequence; 0: nothing
};

}  // namespace reprise::proxy::cache::disk
