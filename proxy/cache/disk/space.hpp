#pragma once
// The room of the disk tier: which segment is reclaimed next, which of its records are carried
// forward, and what it takes to be written at all. Pure bookkeeping: no I/O, no clock, no index.
//
// The disk is a log of segments; room comes back a segment at a time. All three questions have one
// answer, the worth of a byte:
//
//     density = frequency / length ^ exponent
//
// where frequency is how often the object was asked for lately (frequency_sketch). Exponent 0 is
// for bytes: an object's size is in its cost and in its use, and cancels. With 1 it is GDSF's, the
// most requests per byte (Cherkasova, HP Labs TR 98-69), which gives up more bytes than it need;
// what `caching.objective` makes of it, and why, is in tools/results. Where that is seconds, density
// is seconds x frequency / length ^ exponent: what the object's fetch took (packed_wait.hpp), and of
// what nobody timed, the mean of what was.
//
//     carrying    the densest records of a reclaimed segment, up to a share of its bytes. As each
//                 segment that is written then has that share of carried bytes, it is also the
//                 share of all bytes written, and write amplification is 1 / (1 - share).
//     writing     what is denser than the best of what was let go lately: TinyLFU's comparison
//                 with the victim (Einziger, Friedman, Manes, ACM ToS 2017), made without knowing
//                 the victim. While the disk fills, everything: empty room serves nobody.
//     reclaiming  the oldest segment. The coldest would be better if it were known; sums of
//                 density that are kept up by hits are off by as much as they would gain, and
//                 what is carried or not evens out what segments are worth (tools/results).
//
// Where nothing may be carried (carry 0) it is a plain log, and everything is written: what is
// there follows from what was written, which is what the crash tests hold against it.
//
// The exponent may change at any time. The threshold then becomes what it would be by the new one for
// an object of the mean length of what was let go lately.
//
// tools/replay runs this class over footers that it keeps in vectors.
//
// Threads   worth_writing(), density(), threshold(), filling(), aged_to(), note_wait(), set_exponent():
//           any, at any time.
//           All else: one thread, the writer's.
// Memory    24 bytes per segment.
// Errors    std::bad_alloc from the constructor and choose(); nothing else throws.

#include "proxy/cache/policy/packed_wait.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::proxy::cache::disk {

using segment_number = std::uint32_t;  ///< which file, not its sequence number

struct space_settings {
    segment_number segments = 128;  ///< at least 2: how many there may be
    segment_number numbers = 0;     ///< one more than their highest number, where that is more
    std::uint64_t segment_bytes = 0;
    double carry = 0.5;     ///< share of a reclaimed segment's bytes, 0 to 0.9
    double exponent = 0.4;  ///< of length in density, 0 to 1
    bool by_wait = false;   ///< the objective is seconds
};

/// For how many keys a disk of so many bytes counts requests: a key takes 8 bytes of memory for
/// 16 KiB of disk, and 16,384 keys are always counted.
[[nodiscard]] constexpr std::uint64_t counted_keys(std::uint64_t disk_bytes) noexcept {
    constexpr std::uint64_t usual_object = 16u << 10, least = 1u << 14;
    return std::max(disk_bytes / usual_object, least);
}

/// A record of the segment that is being reclaimed, which the index still points to.
struct occupant {
    std::uint64_t bytes = 0;   ///< of the log: what carrying it writes
    std::uint64_t length = 0;  ///< the object's; for an extent the whole object's, where known
    unsigned frequency = 0;    ///< frequency_sketch::estimate of its key
    packed_wait wait{};        ///< the object's
};

struct space_figures {
    std::uint64_t written_bytes = 0;  ///< carried ones included
    std::uint64_t carried = 0, carried_bytes = 0;
    std::uint64_t let_go = 0, let_go_bytes = 0;  ///< records that were reclaimed and not carried
    std::uint64_t reclaimed = 0;                 ///< segments
    segment_number free = 0;
};

class space {
public:
    /// @pre settings within the bounds named there
    explicit space(const space_settings& settings);

    /// A start found `segment` with `sequence` and `live` bytes. There may be more of them than `segments`, until some
    /// are given back.
    void found(segment_number segment, std::uint64_t sequence, std::uint64_t live);

    /// The segment to write next: one that is free, else the oldest that is closed. The caller
    /// reads its footer, asks choose() and then calls open(). Nothing only if all are open.
    /// O(segments).
    [[nodiscard]] std::optional<segment_number> next() const noexcept;

    /// Which of the reclaimed segment's records are carried, as indexes into `live`, ascending
    /// (the order in which they lie on disk). Moves the threshold. O(n log n).
    [[nodiscard]] std::vector<std::uint32_t> choose(std::span<const occupant> live);

    /// `segment` begins anew: what it had is gone. `sequence` is larger than all before.
    void open(segment_number segment, std::uint64_t sequence) noexcept;
    /// None of the free ones can be made: the file system is full. What is written takes somebody's room then,
    /// until one is opened after all.
    void no_more_room() noexcept;
    /// No more records follow.
    void close(segment_number segment) noexcept;
    /// It was one of more than there may be, and is no more.
    void gave_back(segment_number segment) noexcept;

    /// A record of `record` came into `segment`.
    void wrote(segment_number segment, const occupant& record, bool carried) noexcept;
    /// A record went otherwise than by reclaiming: replaced, purged, damaged.
    void died(segment_number segment, const occupant& record) noexcept;
    /// How often the sketch has halved its counters (frequency_sketch::agings): the threshold is
    /// halved with them. To be told before worth_writing is asked: without it a threshold that has
    /// become too high for anything would stay so, for nothing would be reclaimed.
    void aged_to(std::uint64_t agings) noexcept;

    /// A fetch took so long: of what nobody timed it is the mean.
    void note_wait(packed_wait took) noexcept { waits_.note(took); }

    /// For judgements from now on. One at a time.
    void set_exponent(double exponent) noexcept;

    /// The worth of a byte.
    [[nodiscard]] double density(unsigned frequency,
                                 std::uint64_t length,
                                 packed_wait wait) const noexcept;
    /// The density of the best of what is let go nowadays; 0 until something was.
    [[nodiscard]] double threshold() const noexcept {
        return threshold_.load(std::memory_order_relaxed);
    }
    /// More than a sixteenth of the segments is free: whatever is written takes nobody's room.
    [[nodiscard]] bool filling() const noexcept { return filling_.load(std::memory_order_relaxed); }
    /// Whether an object asked for `frequency` times lately would be kept rather than what is let
    /// go for it. Once is never enough: an admission filter may remember a request of long ago,
    /// and where little is asked for twice the threshold is low.
    [[nodiscard]] bool worth_writing(unsigned frequency,
                                     std::uint64_t length,
                                     packed_wait wait) const noexcept {
        return settings_.carry == 0 || filling() ||
               (frequency >= 2 && density(frequency, length, wait) > threshold());
    }

    [[nodiscard]] std::uint64_t live_bytes() const noexcept { return live_; }
    [[nodiscard]] std::uint64_t live_bytes(segment_number segment) const noexcept;
    [[nodiscard]] space_figures figures() const noexcept;

private:
    enum class state : std::uint8_t { free, open, closed };
    struct slot {
        std::uint64_t sequence = 0;
        std::uint64_t live = 0;  // bytes
        state is = state::free;
    };

    void left_free() noexcept;
    template <class Change>
    void change_threshold(const Change& change) noexcept;

    const space_settings settings_;
    std::vector<slot> segments_;
    wait_mean waits_;
    std::atomic<double> exponent_;
    std::atomic<double> mean_length_{0};  // of what decides the threshold
    std::atomic<double> threshold_{0};
    std::atomic<bool> filling_;
    std::atomic<std::uint64_t> agings_{0};
    std::uint64_t live_ = 0;
    space_figures figures_;
};

}  // namespace reprise::proxy::cache::disk
