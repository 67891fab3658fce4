// See squid_digest.hpp.

#include "filter/squid_digest.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

namespace reprise::filter {

namespace {

constexpr unsigned places_a_key = 4;
constexpr unsigned current_version = 5;
constexpr unsigned required_version = 3;
// Squid computes capacity * bits_per_entry + 7 in an int and asserts that it fits.
constexpr std::uint64_t most_squid_bits = std::numeric_limits<std::int32_t>::max() - 8;

/// Where each field of the control block begins. What follows 22 is reserved.
struct squid_offset {
    static constexpr std::size_t version = 0, required = 2, capacity = 4, count = 8, deletions = 12,
                                 mask_size = 16, bits_per_entry = 20, hash_count = 21;
};

void put_big_endian(std::byte* at, std::uint64_t value, std::size_t bytes) noexcept {
    for (std::size_t i = 0; i < bytes; ++i) {
        at[i] = static_cast<std::byte>(value >> (8 * (bytes - 1 - i)));
    }
}

std::uint64_t get_big_endian(const std::byte* at, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        value = value << 8 | std::to_integer<std::uint64_t>(at[i]);
    }
    return value;
}

std::uint64_t count_on(std::span<const std::byte> mask) noexcept {
    std::uint64_t on = 0;
    for (const auto byte : mask) {
        on += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
    }
    return on;
}

/// Squid computes in percent and calls a digest useless above 65.
bool is_saturated(std::uint64_t bits_on, std::uint64_t bits) noexcept {
    return bits_on * 100 > bits * 65;
}

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class squid_errors final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "Squid digest"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<squid_errc>(value)) {
        case squid_errc::truncated: return "cut short";
        case squid_errc::trailing_bytes: return "bytes follow its end";
        case squid_errc::unknown_version: return "of a version that does not go with ours";
        case squid_errc::bad_hash_count: return "not of four hash functions";
        case squid_errc::bad_bits_per_entry: return "bits per entry are not from 1 to 127";
        case squid_errc::bad_size: return "mask and capacity do not agree";
        case squid_errc::over_limit: return "larger than the limit";
        case squid_errc::saturated: return "useless: more than 65 % of its bits are on";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

}  // namespace

const boost::system::error_category& squid_category() noexcept {
    static const squid_errors instance;
    return instance;
}

boost::system::error_code make_error_code(squid_errc code) noexcept {
    return {static_cast<int>(code), squid_category()};
}

std::uint64_t squid_size::mask_bytes() const noexcept {
    return (std::uint64_t{capacity} * bits_per_entry + 7) / 8;
}

boost::system::error_code squid_size::judge() const noexcept {
    if (bits_per_entry == 0 || bits_per_entry > squid_most_bits_per_entry) {
        return squid_errc::bad_bits_per_entry;
    }
    if (capacity == 0) {
        return squid_errc::bad_size;
    }
    if (std::uint64_t{capacity} * bits_per_entry > most_squid_bits) {
        return squid_errc::over_limit;
    }
    return {};
}

std::uint32_t squid_capacity(std::uint64_t entries,
                             std::uint32_t current,
                             unsigned bits_per_entry) noexcept {
    assert(bits_per_entry > 0 && bits_per_entry <= squid_most_bits_per_entry);
    const auto wanted = std::clamp<std::uint64_t>(entries, 1, most_squid_bits / bits_per_entry);
    const auto apart = wanted > current ? wanted - current : current - wanted;
    const bool may_keep = current <= most_squid_bits / bits_per_entry && apart * 10 <= wanted;
    return may_keep ? current : static_cast<std::uint32_t>(wanted);
}

squid_digest::squid_digest(squid_size size, std::span<const std::byte> mask)
    : size_{size},
      mask_{mask.begin(), mask.end()},
      bits_on_{count_on(mask_)} {}

boost::system::result<squid_digest> squid_digest::decode(std::span<const std::byte> wire,
                                                         std::uint64_t most_bytes) {
    if (wire.size() < squid_block_bytes) {
        return squid_errc::truncated;
    }
    const auto field = [&wire](std::size_t place, std::size_t bytes) {
        return get_big_endian(wire.data() + place, bytes);
    };
    const auto version = field(squid_offset::version, 2);
    const auto required = field(squid_offset::required, 2);
    if (version < required_version || version < required || required > current_version) {
        return squid_errc::unknown_version;
    }
    if (field(squid_offset::hash_count, 1) != places_a_key) {
        return squid_errc::bad_hash_count;
    }
    const squid_size size{
        .capacity = static_cast<std::uint32_t>(field(squid_offset::capacity, 4)),
        .bits_per_entry = static_cast<unsigned>(field(squid_offset::bits_per_entry, 1))};
    if (const auto refusal = size.judge()) {
        return refusal;
    }
    const auto mask_bytes = field(squid_offset::mask_size, 4);
    if (mask_bytes != size.mask_bytes()) {
        return squid_errc::bad_size;
    }
    if (mask_bytes > most_bytes) {
        return squid_errc::over_limit;
    }
    const auto whole = squid_block_bytes + mask_bytes;
    if (wire.size() != whole) {
        return wire.size() < whole ? squid_errc::truncated : squid_errc::trailing_bytes;
    }
    squid_digest read{size, wire.subspan(squid_block_bytes)};
    if (is_saturated(read.bits_on_, size.bits())) {
        return squid_errc::saturated;
    }
    read.reported_.added = field(squid_offset::count, 4);
    read.reported_.deleted = field(squid_offset::deletions, 4);
    return read;
}

bool squid_digest::may_contain(const squid_key& key) const noexcept {
    const auto places = squid_places(key, size_.bits());
    return std::all_of(places.begin(), places.end(), [this](std::uint64_t place) {
        return (std::to_integer<unsigned>(mask_[place / 8]) >> (place % 8) & 1) != 0;
    });
}

double squid_digest::fill() const noexcept {
    return static_cast<double>(bits_on_) / static_cast<double>(size_.bits());
}

double squid_digest::false_positive_rate() const noexcept {
    return std::pow(fill(), places_a_key);
}

double squid_digest::estimated_keys() const noexcept {
    // A digest has at least eight bits and 35 % of them off: both logarithms are finite.
    return std::log1p(-fill()) /
           (places_a_key * std::log1p(-1 / static_cast<double>(size_.bits())));
}

boost::system::result<std::vector<std::byte>> encode_squid_digest(squid_size size,
                                                                  squid_report report,
                                                                  std::span<const std::byte> mask) {
    if (const auto refusal = size.judge()) {
        return refusal;
    }
    assert(mask.size() == size.mask_bytes());
    if (is_saturated(count_on(mask), size.bits())) {
        return squid_errc::saturated;
    }
    // A reader checks neither count; what an int can't hold is cut to what it can.
    const auto as_int = [](std::uint64_t count) {
        return std::min<std::uint64_t>(count, std::numeric_limits<std::int32_t>::max());
    };
    std::vector<std::byte> out(squid_block_bytes + mask.size());
    auto* const at = out.data();
    put_big_endian(at + squid_offset::version, current_version, 2);
    put_big_endian(at + squid_offset::required, required_version, 2);
    put_big_endian(at + squid_offset::capacity, size.capacity, 4);
    put_big_endian(at + squid_offset::count, as_int(report.added), 4);
    put_big_endian(at + squid_offset::deletions, as_int(report.deleted), 4);
    put_big_endian(at + squid_offset::mask_size, mask.size(), 4);
    put_big_endian(at + squid_offset::bits_per_entry, size.bits_per_entry, 1);
    put_big_endian(at + squid_offset::hash_count, places_a_key, 1);
    std::copy(mask.begin(), mask.end(), at + squid_block_bytes);
    return out;
}

}  // namespace reprise::filter
