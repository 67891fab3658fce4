// See stamped_state.hpp and STAMPED_FORMAT.md.

#define XXH_INLINE_ALL
#include "filter/stamped_state.hpp"

#include "filter/bit_words.hpp"
#include "filter/digest.hpp"
#include "filter/little_endian.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace reprise::filter {

namespace {

constexpr std::string_view stamped_magic{"REPRRING"};
constexpr std::uint32_t stamped_version = 1;
constexpr std::size_t stamped_facts_bytes = 64;  // of the header, without its checksum
constexpr std::size_t stamped_header_bytes = stamped_facts_bytes + 8;

struct stamped_offset {
    static constexpr std::size_t version = 8, generations = 12, places = 16, probes = 24,
                                 current = 28, written = 32, room = 40, seed = 48;
};

void put_sum_after(std::byte* first, std::size_t bytes) noexcept {
    put_little_endian(first + bytes, std::uint64_t{XXH3_64bits(first, bytes)});
}

bool has_sum_after(const std::byte* first, std::size_t bytes) noexcept {
    return get_little_endian<std::uint64_t>(first + bytes) == XXH3_64bits(first, bytes);
}

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class stamped_errors final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "stamped state"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<stamped_errc>(value)) {
        case stamped_errc::truncated: return "cut short";
        case stamped_errc::trailing_bytes: return "bytes follow its end";
        case stamped_errc::bad_magic: return "not the state of a ring";
        case stamped_errc::unknown_version: return "written in another version of the format";
        case stamped_errc::corrupt: return "damaged";
        case stamped_errc::bad_header: return "its header contradicts itself";
        case stamped_errc::sizes_differ: return "made for other keys, rate or generations";
        case stamped_errc::other_seed: return "made under another seed";
        case stamped_errc::bad_stamps: return "it has generations that can't be";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

}  // namespace

/// The filter's inside, as encode and decode need it.
struct stamped_state_access {
    static std::span<const std::uint64_t> words(const stamped_bloom& filter) noexcept {
        return filter.words_;
    }
    static unsigned current(const stamped_bloom& filter) noexcept { return filter.current_; }

    /// False where a place holds what can't be. @pre the filter is new, `body` as long as its words
    static bool restore(stamped_bloom& filter, unsigned current, const std::byte* body) noexcept {
        filter.current_ = current;
        for (auto& word : filter.words_) {
            word = get_little_endian<std::uint64_t>(body);
            body += sizeof word;
        }
        for (std::uint64_t place = 0; place < filter.words_.size() * 16; ++place) {
            const auto stamp = filter.words_[place / 16] >> place % 16 * 4 & 15;
            if (stamp == 0) {
                continue;
            }
            if (place >= filter.size_.bits ||
                filter.age_of(static_cast<unsigned>(stamp)) > filter.generations_) {
                return false;
            }
            ++filter.on_;
        }
        filter.swept_ = 0;
        filter.sweep();
        return true;
    }
};

const boost::system::error_category& stamped_category() noexcept {
    static const stamped_errors instance;
    return instance;
}

boost::system::error_code make_error_code(stamped_errc code) noexcept {
    return {static_cast<int>(code), stamped_category()};
}

std::uint64_t encoded_stamped_size(bloom_size size) noexcept {
    return stamped_header_bytes + words_for(size.bits) * 32 + 8;
}

std::vector<std::byte> encode(const stamped_state& from, const seed_id& seed) {
    const auto size = from.filter.size();
    std::vector<std::byte> out(static_cast<std::size_t>(encoded_stamped_size(size)));
    auto* const at = out.data();
    std::copy_n(reinterpret_cast<const std::byte*>(stamped_magic.data()), stamped_magic.size(), at);
    put_little_endian(at + stamped_offset::version, stamped_version);
    put_little_endian(at + stamped_offset::generations, std::uint32_t{from.filter.generations()});
    put_little_endian(at + stamped_offset::places, size.bits);
    put_little_endian(at + stamped_offset::probes, std::uint32_t{size.probes});
    put_little_endian(at + stamped_offset::current,
                      std::uint32_t{stamped_state_access::current(from.filter)});
    put_little_endian(at + stamped_offset::written, from.written);
    put_little_endian(at + stamped_offset::room, from.room);
    std::copy(seed.begin(), seed.end(), at + stamped_offset::seed);
    put_sum_after(at, stamped_facts_bytes);
    auto* body = at + stamped_header_bytes;
    for (const auto word : stamped_state_access::words(from.filter)) {
        put_little_endian(body, word);
        body += sizeof word;
    }
    put_sum_after(at, out.size() - 8);
    return out;
}

boost::system::result<stamped_state> decode_stamped(std::span<const std::byte> wire,
                                                    bloom_size size,
                                                    unsigned generations,
                                                    const seed_id& seed) {
    if (wire.size() < stamped_header_bytes) {
        return stamped_errc::truncated;
    }
    const auto* const at = wire.data();
    if (!std::equal(stamped_magic.begin(), stamped_magic.end(), at, [](char a, std::byte b) {
            return static_cast<std::byte>(a) == b;
        })) {
        return stamped_errc::bad_magic;
    }
    if (get_little_endian<std::uint32_t>(at + stamped_offset::version) != stamped_version) {
        return stamped_errc::unknown_version;
    }
    if (!has_sum_after(at, stamped_facts_bytes)) {
        return stamped_errc::corrupt;
    }
    const auto its_generations = get_little_endian<std::uint32_t>(at + stamped_offset::generations);
    const bloom_size its_size{
        .bits = get_little_endian<std::uint64_t>(at + stamped_offset::places),
        .probes = get_little_endian<std::uint32_t>(at + stamped_offset::probes)};
    const auto current = get_little_endian<std::uint32_t>(at + stamped_offset::current);
    const auto room = get_little_endian<std::uint64_t>(at + stamped_offset::room);
    if (its_generations < 2 || its_generations > stamped_bloom::most_generations ||
        its_size.bits == 0 || its_size.bits > most_digest_bits || its_size.probes == 0 ||
        its_size.probes > most_digest_probes || current == 0 || current > 15) {
        return stamped_errc::bad_header;
    }
    if (its_size != size || its_generations != generations) {
        return stamped_errc::sizes_differ;
    }
    if (!std::equal(seed.begin(), seed.end(), at + stamped_offset::seed)) {
        return stamped_errc::other_seed;
    }
    const auto bytes = encoded_stamped_size(size);
    if (wire.size() != bytes) {
        return wire.size() < bytes ? stamped_errc::truncated : stamped_errc::trailing_bytes;
    }
    if (!has_sum_after(at, wire.size() - 8)) {
        return stamped_errc::corrupt;
    }
    stamped_state read{.filter = stamped_bloom{size, generations},
                       .written = get_little_endian<std::uint64_t>(at + stamped_offset::written),
                       .room = room};
    if (!stamped_state_access::restore(read.filter, current, at + stamped_header_bytes)) {
        return stamped_errc::bad_stamps;
    }
    return read;
}

}  // namespace reprise::filter
