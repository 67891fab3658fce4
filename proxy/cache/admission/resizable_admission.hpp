#pragma once
// Which keys were seen lately, in an admission filter that can be exchanged for a larger or smaller
// one while requests use it.
//
// A filter has one size from its making. So a change makes a new one, and the old one is asked
// beside it, written to no more, until the new one has filled a generation: what was seen before
// the change is known for as long after it as the new settings promise.
//
//     before     current
//     change     current (new, empty)   former (asked while current is in its first generation)
//     after      current
//
// A reader registers in one of a few counters; what was taken out of use is freed when each of
// these has been seen at rest once since. So no reader waits or is waited for.
//
// Errs   as its filters do, towards "seen": while there are two, with 1.5 times the rate of one at
//        most (the new one has only one generation filled), so whoever promises a rate makes
//        filters for two thirds of it.

#include "filter/admission.hpp"
#include "filter/digest.hpp"
#include "filter/key_hash.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace reprise::proxy::cache {

/// Memory   one filter's; while a change is under way, two filters'.
/// Threads  any number. note, peek, refresh, generation: lock-free; the others share a lock.
class resizable_admission {
public:
    explicit resizable_admission(std::unique_ptr<filter::admission_filter> first);
    ~resizable_admission();
    resizable_admission(const resizable_admission&) = delete;
    resizable_admission& operator=(const resizable_admission&) = delete;

    /// As admission_filter's. What the former filter alone knows of a key is carried over whole.
    unsigned note(const filter::key_hash& key, std::chrono::sys_seconds now) noexcept;
    [[nodiscard]] unsigned peek(const filter::key_hash& key) const noexcept;
    void refresh(const filter::key_hash& key, std::chrono::sys_seconds now) noexcept;

    /// Grows with each new generation and each change: a key refreshed since it last did need not
    /// be refreshed again. One load.
    [[nodiscard]] std::uint32_t generation() const noexcept {
        return generation_.load(std::memory_order_relaxed);
    }

    /// How often the generations turned over, in all filters; to begin another filter is one such.
    [[nodiscard]] std::uint64_t turns() const;

    /// True while the last change is not over: no other may begin.
    [[nodiscard]] bool changing() const;
    /// Begins to use a filter of these settings. @pre !changing(), settings.layers as before
    /// @throws std::bad_alloc, and nothing changes
    void change_to(const filter::admission_settings& settings, std::chrono::sys_seconds now);
    /// Ends a change that is over, frees what nobody uses any more. Call it about once a second.
    void tidy() noexcept;

    [[nodiscard]] std::shared_ptr<const filter::admission_filter> current() const;
    /// The figures of what is asked: the current filter's, and while the former counts, its
    /// generations in the place of the current one's old generation, which has nothing yet. A key
    /// that two know counts twice. Notes, refreshes, swaps, remembers_for and memory are the
    /// current one's alone.
    [[nodiscard]] filter::admission_figures figures(std::chrono::sys_seconds now) const;
    /// As admission_filter's, with what the former saw lately while it counts and has as many blocks:
    /// siblings do not forget what was seen for a change of age. A filter of another size makes a
    /// digest of another shape, which begins with what came since. @throws std::bad_alloc
    [[nodiscard]] filter::digest recent_digest(filter::digest_stamp stamp) const;
    /// Bytes, with what is kept for readers that may still be there.
    [[nodiscard]] std::uint64_t memory() const;

private:
    // What a reader sees at once. Immutable, but for what the filters are.
    struct view {
        std::shared_ptr<filter::admission_filter> current;
        std::shared_ptr<filter::admission_filter> former;  // null: no change is under way
        std::uint32_t generations_before = 0;

        /// Whether the former filter counts.
        [[nodiscard]] bool asks_former() const noexcept {
            return former && current->generations() == 0;
        }
    };
    // What outlives the look at it.
    struct asked {
        std::shared_ptr<const filter::admission_filter> current;
        std::shared_ptr<const filter::admission_filter> former;  // null: it does not count
    };
    struct alignas(64) desk {
        std::atomic<std::uint32_t> readers{0};
    };
    struct retired {
        std::unique_ptr<const view> what;
        std::uint32_t seen_at_rest = 0;  // a bit per desk
    };
    class reading;
    static constexpr std::size_t desks = 16;

    [[nodiscard]] asked now_asked() const;
    void publish(std::unique_ptr<const view> next);
    void note_generation(const view& now) noexcept;

    mutable std::array<desk, desks> desks_;
    std::atomic<const view*> view_;
    std::atomic<std::uint32_t> generation_{0};
    mutable std::mutex guard_;           // guards what follows; held to publish
    std::unique_ptr<const view> owned_;  // what view_ points to
    std::vector<retired> retired_;
};

}  // namespace reprise::proxy::cache
