#pragma once
// The stripes of the memory tier, and a visit to one of them. Internal to memory_tier, whose files share it.
//
// A visit is a locked_stripe: it holds the stripe's lock from its beginning to its end, and then adds to the
// counts of the whole tier by how much the stripe's own have changed. So whatever is done in a stripe is
// accounted for once, by nobody who does it.
//
// Threads   any number. A visit locks one stripe; no two are ever locked at once by one thread. The counts
//           are atomics, each right by itself.
// Cost      a visit: one lock, and an atomic addition for each count that has changed, which is none for a hit.
//           fullest: one load for each stripe.
// Errors    stripes: std::bad_alloc. Of a visit settled alone throws, std::bad_alloc, where a soft purge meets
//           something; what left by then is accounted for all the same.

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/memory/memory_stripe.hpp"
#include "proxy/cache/memory/memory_tier.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace reprise::proxy::cache {

struct memory_tier::stripes {
    static constexpr std::size_t most = 64;

    /// @throws std::bad_alloc
    explicit stripes(const memory_plan& plan);

    [[nodiscard]] std::size_t of(const filter::key_hash& key) const noexcept {
        return key.high % count;
    }

    using sizes = std::array<std::atomic<std::uint32_t>, most>;
    /// The fullest by `by`, which is `objects` or `waiting`; begins elsewhere each time, so that equals
    /// take turns. Four cache lines. `count`: all are empty.
    [[nodiscard]] std::size_t fullest(const sizes& by) noexcept;

    const std::size_t count;
    const bool by_size;  ///< its exponent may change; lfu-da's is 0
    const std::shared_ptr<const frequency_sketch> requests;  ///< which the policies look into
    std::array<std::unique_ptr<memory_stripe>, most> all;
    // Beside the stripes, and written when something comes or goes: a hit touches neither.
    sizes objects{}, waiting{};
    std::atomic<std::size_t> turn{0};
};

/// A stripe, locked; what was changed there is accounted for at the end, and what left it destroyed
/// after the lock is gone.
class memory_tier::locked_stripe {
public:
    locked_stripe(const memory_tier& store, std::size_t index)
        : store_{store},
          index_{index},
          home_{*store.stripes_->all[index]},
          lock_{home_.guard},
          bytes_{home_.held.bytes()},
          count_{home_.held.count()},
          waiting_bytes_{home_.held.probation_bytes()},
          line_bytes_{home_.held.line_bytes()},
          waiting_{home_.waiting} {}
    locked_stripe(const memory_tier& store, const filter::key_hash& key)
        : locked_stripe{store, store.stripes_->of(key)} {}
    locked_stripe(const locked_stripe&) = delete;
    locked_stripe& operator=(const locked_stripe&) = delete;

    ~locked_stripe() {
        const auto& held = home_.held;
        if (held.bytes() != bytes_) {
            store_.used_.fetch_add(held.bytes() - bytes_, relaxed);
        }
        if (held.count() != count_) {
            store_.objects_.fetch_add(held.count() - count_, relaxed);
            store_.stripes_->objects[index_].store(static_cast<std::uint32_t>(held.count()),
                                                   relaxed);
        }
        if (held.probation_bytes() != waiting_bytes_) {
            store_.waiting_bytes_.fetch_add(held.probation_bytes() - waiting_bytes_, relaxed);
        }
        if (held.line_bytes() != line_bytes_) {
            store_.line_bytes_.fetch_add(held.line_bytes() - line_bytes_, relaxed);
        }
        if (home_.waiting != waiting_) {
            store_.waiting_.fetch_add(home_.waiting - waiting_, relaxed);
            store_.stripes_->waiting[index_].store(static_cast<std::uint32_t>(home_.waiting),
                                                   relaxed);
        }
        if (purged_ != 0) {
            store_.purged_.fetch_add(purged_, relaxed);
        }
    }

    memory_stripe* operator->() noexcept { return &home_; }
    memory_stripe& operator*() noexcept { return home_; }

    /// memory_stripe::settled with what belongs to this visit.
    memory_stripe::resource settled(const filter::key_hash& key, std::string_view url) {
        return home_.settled(key, url, store_.purges_, purged_, gone);
    }

    void let_go(stored_ptr one) noexcept { memory_stripe::let_go(gone, std::move(one)); }

    /// After what may have made the policy grow or shrink.
    void note_overhead() {
        const auto now = home_.held.overhead();
        store_.overhead_.fetch_add(now - std::exchange(home_.overhead, now), relaxed);
    }

    memory_stripe::released gone;  // before the lock: destroyed after it is given back

private:
    const memory_tier& store_;
    const std::size_t index_;
    memory_stripe& home_;
    const std::lock_guard<std::mutex> lock_;
    const std::uint64_t bytes_;
    const std::size_t count_;
    const std::uint64_t waiting_bytes_;
    const std::uint64_t line_bytes_;
    const std::size_t waiting_;
    std::uint64_t purged_ = 0;
};

}  // namespace reprise::proxy::cache
