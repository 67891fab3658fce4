#pragma once
// Which of several ways is better, from what each of them made of the same requests.
//
// One way's hit ratio is uncertain by whatever is popular just then. The difference between two ways
// that had the same requests is not: most requests are hits, or misses, of both. So differences are
// taken, batch of requests by batch, and one is believed when its mean is several standard errors (of
// the batches') away from nothing. How many requests that takes is the difference's own matter: one of
// a tenth of the misses is seen after some thousands, one of a hundredth after a hundred thousand.
//
// Batches are kept at several levels: those of the lowest have `batch` requests, and each two of a level
// make one of the next; of each the last `kept` stay. So the low levels say what the traffic is like now,
// soon after it has become another, and the high ones see what is small and lasts.
//
// One of two ways that are as good is taken for better in a few looks of a hundred: whoever acts on
// it and would come to rest has to ask for more each time (gain_of's least and least_requests).
//
// Threads   none: the owner locks.
// Memory    fixed: levels * kept batches of `ways` numbers, 48 KB.
// Cost      hit, end_request: an addition or two; a batch's end copies it. gain_of: levels * kept steps.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace reprise::proxy::cache {

class paired_evidence {
public:
    static constexpr std::size_t ways = 26;
    static constexpr std::uint64_t batch = 128;
    static constexpr std::size_t levels = 13, kept = 16;
    /// So many batches a level must have, or nothing is said by it.
    static constexpr std::size_t fewest = 8;

    /// What one way makes better than another.
    struct gain {
        double of_all = 0;  ///< of all that was asked for, by worth: 0.02 is two hits in a hundred
        double of_misses = 0;        ///< of what the other one missed
        std::uint64_t requests = 0;  ///< that it is seen over
        bool operator==(const gain&) const = default;
    };

    /// The request under way was a hit by this way, worth so much.
    void hit(std::size_t way, double worth) noexcept { now_.won[way] += worth; }
    /// It is over, for all ways. `worth`: what a hit was worth.
    void end_request(double worth) noexcept {
        now_.asked += worth;
        if (++now_.requests == batch) {
            end_batch();
        }
    }

    /// What this way does is not what it did from now on. Only batches that begin later are
    /// evidence of it: the one under way has requests of before. Not between a request's hits and
    /// its end.
    void begin_anew(std::size_t way) noexcept {
        since_[way] = requests_ + (now_.requests != 0 ? 1 : 0);
    }

    /// What `one` gains over `other`, by the longest of the levels where it is beyond chance, at least
    /// `least` of the other's misses, seen over `least_requests`, and a gain too over eight times as many
    /// (or all there are). None where there is no such level, or a shorter one says the opposite as
    /// surely: so of two ways at most one is better.
    [[nodiscard]] std::optional<gain> gain_of(std::size_t one,
                                              std::size_t other,
                                              double least,
                                              std::uint64_t least_requests) const noexcept;

    /// All that were ended.
    [[nodiscard]] std::uint64_t requests() const noexcept { return requests_ + now_.requests; }

private:
    struct sums {
        std::uint64_t begun = 0;  // requests_ when its first one came
        std::uint64_t requests = 0;
        double asked = 0;
        std::array<double, ways> won{};
    };
    struct level {
        std::array<sums, kept> last{};
        std::size_t next = 0, count = 0;  // of all that there were
        [[nodiscard]] const sums& back(std::size_t i) const noexcept {
            return last[(next + kept - 1 - i) % kept];
        }
    };
    struct looked_at {
        gain found;
        double errors = 0;  // standard, that it is away from nothing
        double needed = 0;
    };
    void end_batch() noexcept;
    [[nodiscard]] std::optional<looked_at> look(const level& at,
                                                std::size_t one,
                                                std::size_t other) const noexcept;

    sums now_;
    std::array<level, levels> levels_{};
    std::array<std::uint64_t, ways> since_{};  // batches begun before say nothing of it
    std::uint64_t requests_ = 0;               // of batches that are over
};

}  // namespace reprise::proxy::cache
