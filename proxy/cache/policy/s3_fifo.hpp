#pragma once
// S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023): three queues, all first in, first out.
//
//     newcomer ──────────────> small (10 %) ── used twice or more ──> main (90 %)
//     newcomer with a ghost ───────────────────────────────────────> main
//     small's oldest, used less ──> out, leaving a ghost
//     main's oldest, used ──> main's newest again, one use less; unused ──> out, no ghost
//
// What is asked for once leaves through the small queue, quickly. Shares are of bytes, not of
// objects as in the paper; ghosts are kept of as many bytes as main has.

#include "proxy/cache/policy/entry_queue.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/ghost_list.hpp"

namespace reprise::proxy::cache {

/// Cost    a hit writes one byte; evict is O(1) amortised (each use pays for one round, at most 3), and
///         passes over most_passed entries at the most.
/// Memory  ghost_list's for the ghosts.
class s3_fifo_policy final : public eviction_policy {
public:
    explicit s3_fifo_policy(std::uint64_t capacity_bytes);

    void set_capacity(std::uint64_t bytes) override;
    void inserted(evictable& entry) override;
    void used(evictable& entry) noexcept override;
    void removed(evictable& entry) noexcept override;
    void expect(std::uint64_t bytes) noexcept override { expected_ = bytes; }
    [[nodiscard]] evictable* evict() noexcept override;
    [[nodiscard]] std::uint64_t overhead() const noexcept override { return ghosts_.memory(); }

private:
    [[nodiscard]] evictable* leave_small() noexcept;
    [[nodiscard]] evictable* leave_main(unsigned passed) noexcept;

    entry_queue small_;
    entry_queue main_;
    ghost_list ghosts_;
    std::uint64_t small_share_ = 0;  // bytes
    std::uint64_t expected_ = 0;     // bytes, in small soon
};

}  // namespace reprise::proxy::cache
