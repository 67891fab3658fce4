#pragma once
// When each key was last invalidated here, so that what others hold of it since before is not taken
// for what it is now.
//
// `invalidations` knows what was invalidated in the last moments, exactly, for what is on its way.
// A sibling's copy may be days old: this remembers for as long as it lasts, and keys share slots
// where they must.
//
// Times are steady: a copy's age is counted back from now, and by wall time a clock that was set forward
// meanwhile would put an invalidation further back than it lies. While the machine was suspended steady
// time stood still, so that an invalidation seems nearer than it is.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace reprise::proxy::cache {

/// Memory    256 KiB: 65,536 slots of seconds. A slot keeps its latest time until a later one.
/// Threads   any number: relaxed atomics.
/// Errs      only towards "since": a key may share the slot of one that was invalidated later, and
///           times are rounded up to whole seconds.
class invalidation_times {
public:
    invalidation_times();

    void note(const filter::key_hash& key, steady_time when) noexcept;
    /// Notes every key.
    void note_all(steady_time when) noexcept;
    /// False: nothing noted of `key` happened at `moment` or later.
    [[nodiscard]] bool since(const filter::key_hash& key, steady_time moment) const noexcept;

private:
    static constexpr std::size_t slots = 65'536;
    static void raise(std::atomic<std::uint32_t>& slot, steady_time when) noexcept;
    [[nodiscard]] std::atomic<std::uint32_t>& slot_of(const filter::key_hash& key) const noexcept;
    std::unique_ptr<std::atomic<std::uint32_t>[]> seconds_;  // of steady time; 0: never
};

}  // namespace reprise::proxy::cache
