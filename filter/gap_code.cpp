// See gap_code.hpp.

#include "filter/gap_code.hpp"

#include "filter/little_endian.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

namespace reprise::filter {

namespace {

constexpr std::uint64_t most_gap = std::uint64_t{1} << 40;

/// Bits of the longer remainders: ceil(log2(divisor)).
unsigned width_of(std::uint64_t divisor) noexcept {
    return static_cast<unsigned>(std::bit_width(divisor - 1));
}

constexpr std::uint64_t low_bits(unsigned count) noexcept {
    return (std::uint64_t{1} << count) - 1;
}

}  // namespace

std::uint64_t golomb_divisor(std::uint64_t listed, std::uint64_t bits) noexcept {
    assert(bits > 0 && listed <= bits);
    if (listed == 0 || listed >= bits - listed) {
        return 1;
    }
    const double share = static_cast<double>(listed) / static_cast<double>(bits);
    const double best = std::ceil(std::log1p(1 - share) / -std::log1p(-share));
    return std::max(std::uint64_t{1}, static_cast<std::uint64_t>(best));
}

// What a bit more says of a gap's length is most in a quotient. So the shortest code has all remainders
// short and as long as these can be, and quotients for the rest.
std::uint64_t least_code_bytes(std::uint64_t listed,
                               std::uint64_t last,
                               std::uint64_t divisor) noexcept {
    assert(listed > 0 && listed - 1 <= last && divisor > 0 && divisor <= most_gap);
    const auto width = width_of(divisor);
    const auto shorts = (std::uint64_t{1} << width) - divisor;
    const auto of_each = shorts > 0 ? width : width + 1;
    const auto remainders = listed * ((shorts > 0 ? shorts : divisor) - 1);
    const auto gaps = last + 1 - listed;
    const auto quotients = gaps > remainders ? (gaps - remainders + divisor - 1) / divisor : 0;
    return (listed * of_each + quotients + 7) / 8;
}

gap_writer::gap_writer(std::uint64_t divisor)
    : divisor_{divisor},
      width_{width_of(divisor)},
      shorts_{(std::uint64_t{1} << width_) - divisor} {
    assert(divisor > 0 && divisor <= most_gap);
}

void gap_writer::put_bits(std::uint64_t value, unsigned count) {
    // At most 31 bits are pending between calls and at most 32 come: nothing is shifted out.
    pending_ |= value << used_;
    used_ += count;
    if (used_ >= 32) {
        const auto at = out_.size();
        out_.resize(at + 4);
        put_little_endian(&out_[at], static_cast<std::uint32_t>(pending_));
        pending_ >>= 32;
        used_ -= 32;
    }
}

void gap_writer::put(std::uint64_t gap) {
    // Nearly all are short, and a processor divides those in half the time.
    const bool is_short = (gap | divisor_) >> 32 == 0;
    auto ones = is_short ? static_cast<std::uint32_t>(gap) / static_cast<std::uint32_t>(divisor_)
                         : gap / divisor_;
    const auto remainder = gap - ones * divisor_;
    for (; ones >= 31; ones -= 31) {
        put_bits(low_bits(31), 31);
    }
    // What is left of the quotient, and its end.
    auto value = low_bits(static_cast<unsigned>(ones));
    auto count = static_cast<unsigned>(ones) + 1;
    if (width_ == 0) {
        put_bits(value, count);
        return;  // a divisor of one leaves nothing over
    }
    auto rest = remainder;
    auto of_rest = width_ - 1;
    if (remainder >= shorts_) {
        const auto raised = remainder + shorts_;
        rest = raised >> 1 | (raised & 1) << of_rest;
        ++of_rest;
    }
    if (count + of_rest <= 32) {
        put_bits(value | rest << count, count + of_rest);
        return;
    }
    put_bits(value, count);
    if (of_rest > 32) {
        put_bits(rest & low_bits(32), 32);
        rest >>= 32;
        of_rest -= 32;
    }
    put_bits(rest, of_rest);
}

std::vector<std::byte> gap_writer::finish() {
    for (; used_ > 0; used_ -= std::min(used_, 8u)) {
        out_.push_back(static_cast<std::byte>(pending_ & 0xff));
        pending_ >>= 8;
    }
    return std::move(out_);
}

gap_reader::gap_reader(std::span<const std::byte> code, std::uint64_t divisor) noexcept
    : rest_{code},
      divisor_{divisor},
      width_{width_of(divisor)},
      shorts_{(std::uint64_t{1} << width_) - divisor},
      most_quotient_{most_gap / divisor} {
    assert(divisor > 0 && divisor <= most_gap);
}

void gap_reader::refill() noexcept {
    while (held_ <= 56 && !rest_.empty()) {
        window_ |= std::to_integer<std::uint64_t>(rest_.front()) << held_;
        rest_ = rest_.subspan(1);
        held_ += 8;
    }
}

std::optional<std::uint64_t> gap_reader::take(unsigned count) noexcept {
    refill();
    if (held_ < count) {
        return std::nullopt;
    }
    const auto taken = window_ & low_bits(count);
    window_ >>= count;
    held_ -= count;
    return taken;
}

std::optional<std::uint64_t> gap_reader::next(std::uint64_t most) noexcept {
    std::uint64_t quotient = 0;
    for (;;) {
        refill();
        // Bits of the window beyond those held are off, so no more ones than that are counted.
        const auto ones = static_cast<unsigned>(std::countr_one(window_));
        quotient += ones;
        if (held_ == 0 || quotient > most_quotient_) {
            return std::nullopt;
        }
        if (ones < held_) {
            window_ = window_ >> ones >> 1;  // in two steps: ones may be 63
            held_ -= ones + 1;
            break;
        }
        window_ = 0;
        held_ = 0;
    }
    auto gap = quotient * divisor_;
    if (width_ > 0) {
        const auto high = take(width_ - 1);
        if (!high) {
            return std::nullopt;
        }
        if (*high < shorts_) {
            gap += *high;
        } else {
            const auto low = take(1);
            if (!low) {
                return std::nullopt;
            }
            gap += 2 * *high + *low - shorts_;
        }
    }
    return gap <= most ? std::optional{gap} : std::nullopt;
}

bool gap_reader::is_at_end() noexcept {
    refill();
    return held_ < 8 && window_ == 0;
}

}  // namespace reprise::filter
