#pragma once
// W-TinyLFU (Einziger, Friedman, Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM
// ToS 2017, section 4): a small window for what is new, a large main part, and between them a
// comparison of how often each was asked for.
//
//     newcomer ──> window (LRU) ── the window is over its share ──> contest
//     contest: more frequent than those who would have to leave main for it ──> main, else out
//     main: segmented LRU. Comes in on probation; a hit there is protected (at most 80 % of main),
//           and what protection has no more room for is on probation again
//
// Objects are of very different sizes, so a candidate is compared with the sum of the frequencies
// of all that its bytes would push out (Einziger, Eytan, Friedman, Manes, "Lightweight Robust Size
// Aware Cache Management", ACM ToS 2022: "aggregated victims"); the first of them, when it stays,
// is taken for used, as there. The window's share follows what it brings, by hill climbing
// (Einziger, Eytan, Friedman, Manes, "Adaptive Software Cache Management", Middleware 2018), from 1
// %.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"

namespace reprise::proxy::cache {

/// Cost    a hit relinks and counts; a contest looks at 64 victims at most.
/// Memory  the sketch's: 8 to 16 bytes for each entry there ever was at once since trim().
class w_tinylfu_policy final : public eviction_policy {
public:
    enum class window { fixed, climbing };

    explicit w_tinylfu_policy(std::uint64_t capacity_bytes, window moves = window::climbing);

    void set_capacity(std::uint64_t bytes) override;
    void trim(std::uint64_t keys) override;
    void missed(const filter::key_hash& key) noexcept override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    void expect(std::uint64_t bytes) noexcept override { expected_ = bytes; }
    [[nodiscard]] evictable* evict() noexcept override;
    /// A newcomer larger than the window is its own candidate.
    [[nodiscard]] bool takes(const filter::key_hash& newcomer,
                             std::uint64_t charge) noexcept override;
    /// Above 1 when there is room in main for it, or it beats those who would leave.
    [[nodiscard]] double preference(const filter::key_hash& newcomer,
                                    std::uint64_t charge) const noexcept override;
    [[nodiscard]] std::uint64_t overhead() const noexcept override { return sketch_.memory(); }

    /// Share of the capacity, now.
    [[nodiscard]] double window_share() const noexcept { return window_share_; }

private:
    [[nodiscard]] entry_queue& queue_of(const evictable& entry) noexcept;
    [[nodiscard]] std::size_t count() const noexcept;
    [[nodiscard]] evictable* main_victim() const noexcept;
    [[nodiscard]] std::uint64_t main_bytes() const noexcept;
    [[nodiscard]] std::uint64_t window_bytes() const noexcept;
    [[nodiscard]] bool window_is_over() const noexcept;
    void fill_main() noexcept;
    [[nodiscard]] bool wins(const filter::key_hash& candidate, std::uint64_t charge) noexcept;
    [[nodiscard]] unsigned victims_frequency(std::uint64_t charge, unsigned enough) const noexcept;
    void take_out(evictable& entry) noexcept;
    void climb() noexcept;

    std::uint64_t capacity_;
    window moves_;
    double window_share_;
    frequency_sketch sketch_;
    entry_queue window_;
    entry_queue probation_;
    entry_queue protected_;
    std::uint64_t expected_ = 0;  // bytes, in the window soon

    // The climber: requests and hits of the period in hand, and how the last one went.
    std::uint64_t requests_ = 0, hits_ = 0;
    double last_ratio_ = 0;
    double step_;
};

}  // namespace reprise::proxy::cache
