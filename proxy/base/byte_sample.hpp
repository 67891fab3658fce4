#pragma once
// Which requests stand for the bytes of all, so that whoever adds up bytes need look at few of them.
//
// A request of more bytes than the threshold stands for itself; of smaller ones each stands, when it is
// taken, for those since the last one that was taken (Duffield, Lund and Thorup, "Learn More, Sample
// Less: Control of Volume and Variance in Network Measurement", IEEE Trans. Inf. Theory 51(5), 2005).
// So the weights of those taken add up to all bytes, and a host's share of them is its share of the
// bytes, whatever the sizes. Where the next one is taken is drawn by lot, so that no pattern of requests
// is always taken, or never.
//
// The threshold is a thousandth of all bytes so far, and at most 4 MiB: the first requests are all
// taken, and after 4 GiB one for each 4 MiB.

#include <algorithm>
#include <cstdint>

namespace reprise::proxy {

/// Threads  one.
/// Cost     an addition and two comparisons.
class byte_sample {
public:
    static constexpr std::uint64_t largest_threshold = std::uint64_t{4} << 20;

    explicit byte_sample(std::uint64_t seed = 0) noexcept : drawn_{seed} {}

    /// For how many bytes a request of so many stands. 0: for none, and it need not be looked at.
    [[nodiscard]] std::uint64_t weight_of(std::uint64_t bytes) noexcept {
        all_ += bytes;
        if (bytes >= threshold_) {
            raise_threshold();
            return bytes;
        }
        since_ += bytes;
        if (since_ < next_) [[likely]] {
            return 0;
        }
        const auto weight = since_;
        since_ = 0;
        raise_threshold();
        draw_next();
        return weight;
    }

private:
    void raise_threshold() noexcept { threshold_ = std::min(all_ / 1000, largest_threshold); }

    // The next one after a threshold on average, and between half of one and one and a half.
    void draw_next() noexcept {
        drawn_ += 0x9e3779b97f4a7c15;  // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)
        auto mixed = (drawn_ ^ (drawn_ >> 30)) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
        mixed ^= mixed >> 31;
        next_ = threshold_ / 2 + mixed % (threshold_ + 1);
    }

    std::uint64_t threshold_ = 0;
    std::uint64_t next_ = 0;
    std::uint64_t since_ = 0;
    std::uint64_t all_ = 0;
    std::uint64_t drawn_;
};

}  // namespace reprise::proxy
