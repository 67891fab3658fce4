#include "proxy/cache/disk/format.hpp"

#include <xxhash.h>
#if defined(__x86_64__)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#endif

#include <algorithm>
#include <charconv>
#include <chrono>

namespace reprise::proxy::cache::disk {

namespace {

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class category final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "disk format"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<format_errc>(value)) {
        case format_errc::truncated: return "it ends before its own lengths say";
        case format_errc::bad_magic: return "something else stands here";
        case format_errc::other_version: return "it is of another version of the format";
        case format_errc::bad_checksum: return "its checksum is wrong";
        case format_errc::other_round: return "it is left over from an earlier use of the segment";
        case format_errc::bad_length: return "a length in it leads out of it";
        case format_errc::bad_field: return "a value in it is one that is never written";
        case format_errc::too_large: return "it is too large to be written";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

constexpr std::uint64_t store_magic = 0x45524f5453504552;  // "REPSTORE"
constexpr std::uint32_t format_version = 1;
constexpr std::uint64_t segment_step = 64u << 10;
// The superblock, the lock, and the blocks that a file system rounds them and the journal up to.
constexpr std::uint64_t small_files = 64u << 10;

constexpr std::string_view segment_prefix = "s-";
constexpr std::size_t segment_digits = 8;

using quarter_hours = std::chrono::duration<std::int64_t, std::ratio<900>>;
constexpr std::int64_t coarse_modulus = 65535;
constexpr quarter_hours coarse_most = std::chrono::hours{24 * 340};

std::int64_t quarters(wall_time at) noexcept {
    return std::chrono::floor<quarter_hours>(at.time_since_epoch()).count();
}

std::int64_t wrapped(std::int64_t count) noexcept {
    return ((count % coarse_modulus) + coarse_modulus) % coarse_modulus;
}

/// 0 for what is now or past.
std::int64_t quarters_ahead(std::uint16_t coarse, wall_time now) noexcept {
    if (coarse == 0) {
        return 0;
    }
    const auto ahead = wrapped(std::int64_t{coarse} - 1 - quarters(now));
    return ahead <= coarse_modulus / 2 ? ahead : 0;
}

}  // namespace

const boost::system::error_category& format_category() noexcept {
    static const category instance;
    return instance;
}

boost::system::error_code make_error_code(format_errc code) noexcept {
    return {static_cast<int>(code), format_category()};
}

geometry plan(std::uint64_t size, std::uint64_t segment) noexcept {
    geometry made;
    made.journal_most = std::clamp<std::uint64_t>(size / 32, 128u << 10, largest_journal);
    const auto usable = size - made.journal_most - small_files;
    // Larger ones than wished for where there would be too many to name.
    const auto least = std::clamp(
        round_up(usable / most_segments + 1, segment_step), smallest_segment, largest_segment);
    made.segment_bytes = std::clamp(
        round_up(segment != 0 ? segment : size / 128, segment_step), least, largest_segment);
    made.segments = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(usable / made.segment_bytes, most_segments));
    made.inline_most = std::min<std::uint64_t>(1u << 20, made.segment_bytes / 8);
    made.record_most = made.segment_bytes / 2;
    return made;
}

std::uint64_t least_size_for(std::uint64_t segment) noexcept {
    constexpr std::uint64_t step = 1u << 20;
    auto size = std::max(smallest_store, round_up(fewest_segments * segment, step));
    while (plan(size, segment).segments < fewest_segments) {
        size += step;  // a few times: the journal takes a 32nd
    }
    return size;
}

std::uint64_t checksum(std::span<const char> bytes, std::uint64_t store_id) noexcept {
#if defined(__x86_64__)
    // By the widest vectors that this processor has: three times the speed of those that all have.
    return XXH3_64bits_withSeed_dispatch(bytes.data(), bytes.size(), store_id);
#else
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), store_id);
#endif
}

superblock_image encode(const superblock& made) noexcept {
    superblock_image image{};
    char* const at = image.data();
    store_at(at + 8, store_magic);
    store_at(at + 16, format_version);
    store_at(at + 24, made.store_id);
    std::memcpy(at + 32, made.seed.data(), made.seed.size());
    store_at(at + 64, made.segment_bytes);
    store_at(at + 72, std::int64_t{made.made.time_since_epoch().count()});
    store_at(at, checksum(std::span{image}.subspan(8), made.store_id));
    return image;
}

result<superblock> read_superblock(std::span<const char> bytes) noexcept {
    if (bytes.size() < superblock_bytes) {
        return format_errc::truncated;
    }
    const char* const at = bytes.data();
    if (load_at<std::uint64_t>(at + 8) != store_magic) {
        return format_errc::bad_magic;
    }
    superblock read;
    read.store_id = load_at<std::uint64_t>(at + 24);
    if (load_at<std::uint64_t>(at) !=
        checksum(bytes.first(superblock_bytes).subspan(8), read.store_id)) {
        return format_errc::bad_checksum;
    }
    if (load_at<std::uint32_t>(at + 16) != format_version) {
        return format_errc::other_version;  // it is whole, so that is no damage
    }
    std::memcpy(read.seed.data(), at + 32, read.seed.size());
    read.segment_bytes = load_at<std::uint64_t>(at + 64);
    read.made = wall_time{std::chrono::milliseconds{load_at<std::int64_t>(at + 72)}};
    if (read.segment_bytes < smallest_segment || read.segment_bytes > largest_segment ||
        read.segment_bytes % segment_step != 0) {
        return format_errc::bad_field;
    }
    return read;
}

std::string segment_name(std::uint32_t number) {
    std::array<char, segment_digits> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
    const auto count = static_cast<std::size_t>(written.ptr - digits.data());
    std::string name{segment_prefix};
    name.append(segment_digits - count, '0');
    return name.append(digits.data(), count);
}

std::uint32_t segment_number_in(std::string_view name) noexcept {
    if (name.size() != segment_prefix.size() + segment_digits ||
        !name.starts_with(segment_prefix)) {
        return most_segments;
    }
    name.remove_prefix(segment_prefix.size());
    const bool lower_hex = std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
    std::uint32_t number = most_segments;
    if (lower_hex) {
        (void)std::from_chars(name.data(), name.data() + name.size(), number, 16);
    }
    return std::min(number, most_segments);
}

std::uint16_t coarse_time(wall_time until, wall_time now) noexcept {
    if (until <= now) {
        return 0;
    }
    const auto at = std::min(quarters(until), quarters(now) + coarse_most.count());
    return static_cast<std::uint16_t>(wrapped(at) + 1);
}

bool is_after(std::uint16_t coarse, wall_time now) noexcept {
    return quarters_ahead(coarse, now) > 0;
}

bool is_later(std::uint16_t one, std::uint16_t other, wall_time now) noexcept {
    return quarters_ahead(one, now) > quarters_ahead(other, now);
}

}  // namespace reprise::proxy::cache::disk
