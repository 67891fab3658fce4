// See digest_wire.hpp and DIGEST_FORMAT.md. Decoding goes from the cheap refusals to the dear ones:
// header, what the reader holds and allows, length, checksum of the body, and only then memory.

#define XXH_INLINE_ALL
#include "filter/digest_wire.hpp"

#include "filter/bit_words.hpp"
#include "filter/gap_code.hpp"
#include "filter/little_endian.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

namespace reprise::filter {

namespace {

constexpr std::array digest_magic{std::byte{'R'},
                                  std::byte{'E'},
                                  std::byte{'P'},
                                  std::byte{'D'},
                                  std::byte{'G'},
                                  std::byte{'E'},
                                  std::byte{'S'},
                                  std::byte{'T'}};
constexpr std::uint16_t digest_version = 1;
constexpr std::uint8_t xxh3_128_by_secret = 1;
constexpr std::size_t summed_header_bytes = digest_header_bytes - 8;

/// Where each field begins.
struct offset {
    static constexpr std::size_t version = 8, form = 10, encoding = 11, layout = 12, hash = 13,
                                 probes = 14, bits = 16, keys = 24, seed = 32, epoch = 48,
                                 counter = 56, checksum = 64, base_counter = 72, base_checksum = 80,
                                 listed = 88, divisor = 96, body_bytes = 104, body_checksum = 112,
                                 header_checksum = 120;
};

constexpr std::uint64_t raw_bytes(std::uint64_t bits) noexcept {
    return (bits + 7) / 8;
}

/// The bits that are on as gaps; nothing if that is no shorter than the bits themselves.
std::optional<std::vector<std::byte>> code_gaps(std::span<const std::uint64_t> words,
                                                std::uint64_t divisor,
                                                std::uint64_t most_bytes) {
    gap_writer out{divisor};
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        for (auto left = words[i]; left != 0; left &= left - 1) {
            const auto place = i * 64 + static_cast<unsigned>(std::countr_zero(left));
            out.put(place - expected);
            expected = place + 1;
        }
        if (out.bytes() >= most_bytes) {
            return std::nullopt;
        }
    }
    return out.finish();
}

/// `head` completed by what lists the bits of `words`.
std::vector<std::byte> write_listing(digest_head head, std::span<const std::uint64_t> words) {
    const auto raw = raw_bytes(head.shape.bits);
    head.listed = count_on(words);
    head.divisor = golomb_divisor(head.listed, head.shape.bits);
    if (const auto coded = code_gaps(words, head.divisor, raw)) {
        head.encoding = digest_encoding::golomb;
        return write_digest(head, *coded);
    }
    head.encoding = digest_encoding::raw;
    head.divisor = 0;
    return write_digest(head, std::as_bytes(words).first(static_cast<std::size_t>(raw)));
}

/// Flips what a raw body lists. @pre body.size() == raw_bytes(bits)
bool flip_raw(std::span<const std::byte> body,
              const digest_head& head,
              std::span<std::uint64_t> words) noexcept {
    std::uint64_t listed = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, body.data() + i * 8, std::min<std::size_t>(8, body.size() - i * 8));
        listed += static_cast<unsigned>(std::popcount(word));
        words[i] ^= word;
    }
    // Bits past the last are in no digest: what flipped one of them is on there now.
    const auto used = head.shape.bits % 64;
    return listed == head.listed && (used == 0 || words.back() >> used == 0);
}

bool flip_gaps(std::span<const std::byte> body,
               const digest_head& head,
               std::span<std::uint64_t> words) noexcept {
    gap_reader in{body, head.divisor};
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < head.listed; ++i) {
        if (expected == head.shape.bits) {
            return false;
        }
        const auto gap = in.next(head.shape.bits - 1 - expected);
        if (!gap) {
            return false;
        }
        const auto place = expected + *gap;
        words[place / 64] ^= bit_at(place);
        expected = place + 1;
    }
    return in.is_at_end();
}

/// The digest that the body makes of `words`.
boost::system::result<digest> flip_body(std::span<const std::byte> body,
                                        const digest_head& head,
                                        line_words words,
                                        const digest_limits& limits) {
    const bool is_good = head.encoding == digest_encoding::raw ? flip_raw(body, head, words)
                                                               : flip_gaps(body, head, words);
    if (!is_good) {
        return digest_errc::bad_body;
    }
    digest made{head.shape, std::move(words), head.stamp};
    if (made.checksum() != head.checksum) {
        return digest_errc::corrupt;
    }
    if (!(made.false_positive_rate() <= limits.false_positive_rate)) {
        return digest_errc::saturated;
    }
    return made;
}

/// Whether the fields that depend on one another can be a writer's.
bool is_consistent(const digest_head& head) noexcept {
    const auto raw = raw_bytes(head.shape.bits);
    const bool has_base = head.base_counter != 0 || head.base_checksum != 0;
    const bool base_is_good = head.form == digest_form::whole
                                  ? !has_base
                                  : head.base_counter < head.stamp.generation.counter;
    // News lists changes alone; names are news's, and have their number in front.
    const bool is_news = head.form == digest_form::news;
    const bool fits = head.encoding == digest_encoding::raw     ? !is_news
                      : head.encoding == digest_encoding::names ? is_news && head.body_bytes >= 8
                                                                : true;
    // A gap takes at least a bit, and a writer whose gaps are no shorter sends the bits.
    const bool body_is_good = head.encoding == digest_encoding::raw
                                  ? head.divisor == 0 && head.body_bytes == raw
                                  : head.divisor > 0 && head.divisor <= head.shape.bits &&
                                        head.body_bytes < raw && head.listed <= head.body_bytes * 8;
    return base_is_good && fits && body_is_good && head.listed <= head.shape.bits;
}

}  // namespace

std::vector<std::byte> write_digest(const digest_head& head, std::span<const std::byte> body) {
    std::vector<std::byte> out(digest_header_bytes + body.size());
    auto* const at = out.data();
    std::copy(digest_magic.begin(), digest_magic.end(), at);
    put_little_endian(at + offset::version, digest_version);
    put_little_endian(at + offset::form, static_cast<std::uint8_t>(head.form));
    put_little_endian(at + offset::encoding, static_cast<std::uint8_t>(head.encoding));
    put_little_endian(at + offset::layout, static_cast<std::uint8_t>(head.shape.layout));
    put_little_endian(at + offset::hash, xxh3_128_by_secret);
    put_little_endian(at + offset::probes, static_cast<std::uint16_t>(head.shape.probes));
    put_little_endian(at + offset::bits, head.shape.bits);
    put_little_endian(at + offset::keys, head.stamp.keys);
    std::copy(head.stamp.seed.begin(), head.stamp.seed.end(), at + offset::seed);
    put_little_endian(at + offset::epoch, head.stamp.generation.epoch);
    put_little_endian(at + offset::counter, head.stamp.generation.counter);
    put_little_endian(at + offset::checksum, head.checksum);
    put_little_endian(at + offset::base_counter, head.base_counter);
    put_little_endian(at + offset::base_checksum, head.base_checksum);
    put_little_endian(at + offset::listed, head.listed);
    put_little_endian(at + offset::divisor, head.divisor);
    put_little_endian(at + offset::body_bytes, std::uint64_t{body.size()});
    put_little_endian(at + offset::body_checksum,
                      std::uint64_t{XXH3_64bits(body.data(), body.size())});
    put_little_endian(at + offset::header_checksum,
                      std::uint64_t{XXH3_64bits(at, summed_header_bytes)});
    std::copy(body.begin(), body.end(), at + digest_header_bytes);
    return out;
}

boost::system::error_code judge_digest(std::span<const std::byte> wire,
                                       const digest_head& head,
                                       const digest_limits& limits) noexcept {
    if (words_for(head.shape.bits) * 8 > limits.bytes) {
        return digest_errc::over_limit;
    }
    const auto size = digest_header_bytes + head.body_bytes;
    if (wire.size() != size) {
        return wire.size() < size ? digest_errc::truncated : digest_errc::trailing_bytes;
    }
    const auto body = wire.subspan(digest_header_bytes);
    if (XXH3_64bits(body.data(), body.size()) != head.body_checksum) {
        return digest_errc::corrupt;
    }
    return {};
}

boost::system::result<digest_head> read_digest_head(std::span<const std::byte> wire) {
    if (wire.size() < digest_header_bytes) {
        return digest_errc::truncated;
    }
    if (!std::equal(digest_magic.begin(), digest_magic.end(), wire.begin())) {
        return digest_errc::bad_magic;
    }
    const auto* const at = wire.data();
    const auto byte_at = [at](std::size_t place) {
        return std::to_integer<std::uint8_t>(at[place]);
    };
    const auto word_at = [at](std::size_t place) {
        return get_little_endian<std::uint64_t>(at + place);
    };
    if (get_little_endian<std::uint16_t>(at + offset::version) != digest_version) {
        return digest_errc::unknown_version;
    }
    if (XXH3_64bits(at, summed_header_bytes) != word_at(offset::header_checksum)) {
        return digest_errc::corrupt;
    }
    if (byte_at(offset::form) < 1 || byte_at(offset::form) > 3) {
        return digest_errc::bad_header;
    }
    if (byte_at(offset::hash) != xxh3_128_by_secret) {
        return digest_errc::unknown_hash;
    }
    if (byte_at(offset::layout) > 1) {
        return digest_errc::unknown_layout;
    }
    if (byte_at(offset::encoding) > 2) {
        return digest_errc::unknown_encoding;
    }
    digest_head head{.form = static_cast<digest_form>(byte_at(offset::form)),
                     .encoding = static_cast<digest_encoding>(byte_at(offset::encoding)),
                     .shape = {.layout = static_cast<digest_layout>(byte_at(offset::layout)),
                               .bits = word_at(offset::bits),
                               .probes = get_little_endian<std::uint16_t>(at + offset::probes)},
                     .stamp = {.seed = {},
                               .generation = {.epoch = word_at(offset::epoch),
                                              .counter = word_at(offset::counter)},
                               .keys = word_at(offset::keys)},
                     .checksum = word_at(offset::checksum),
                     .base_counter = word_at(offset::base_counter),
                     .base_checksum = word_at(offset::base_checksum),
                     .listed = word_at(offset::listed),
                     .divisor = word_at(offset::divisor),
                     .body_bytes = word_at(offset::body_bytes),
                     .body_checksum = word_at(offset::body_checksum)};
    std::copy_n(at + offset::seed, head.stamp.seed.size(), head.stamp.seed.begin());
    if (!is_valid(head.shape)) {
        return digest_errc::bad_shape;
    }
    if (!is_consistent(head)) {
        return digest_errc::bad_header;
    }
    return head;
}

std::vector<std::byte> encode(const digest& from) {
    return write_listing({.form = digest_form::whole,
                          .shape = from.shape(),
                          .stamp = from.stamp(),
                          .checksum = from.checksum()},
                         from.words());
}

boost::system::result<std::vector<std::byte>> encode_delta(const digest& base, const digest& next) {
    if (base.shape() != next.shape()) {
        return digest_errc::shapes_differ;
    }
    if (base.stamp().seed != next.stamp().seed) {
        return digest_errc::other_seed;
    }
    const auto from = base.stamp().generation;
    const auto to = next.stamp().generation;
    if (from.epoch != to.epoch) {
        return digest_errc::epochs_differ;
    }
    if (from.counter >= to.counter) {
        return digest_errc::not_newer;
    }
    std::vector<std::uint64_t> flipped(next.words().size());
    std::transform(base.words().begin(),
                   base.words().end(),
                   next.words().begin(),
                   flipped.begin(),
                   std::bit_xor{});
    return write_listing({.form = digest_form::delta,
                          .shape = next.shape(),
                          .stamp = next.stamp(),
                          .checksum = next.checksum(),
                          .base_counter = from.counter,
                          .base_checksum = base.checksum()},
                         flipped);
}

boost::system::result<digest> decode_digest(std::span<const std::byte> wire,
                                            const seed_id& seed,
                                            const digest_limits& limits) {
    const auto head = read_digest_head(wire);
    if (head.has_error()) {
        return head.error();
    }
    if (head->form != digest_form::whole) {
        return head->form == digest_form::delta ? digest_errc::is_delta : digest_errc::is_news;
    }
    if (head->stamp.seed != seed) {
        return digest_errc::other_seed;
    }
    if (const auto refusal = judge_digest(wire, *head, limits)) {
        return refusal;
    }
    line_words words(static_cast<std::size_t>(words_for(head->shape.bits)));
    return flip_body(wire.subspan(digest_header_bytes), *head, std::move(words), limits);
}

boost::system::result<digest> apply_delta(std::span<const std::byte> wire,
                                          const digest& base,
                                          const digest_limits& limits) {
    const auto head = read_digest_head(wire);
    if (head.has_error()) {
        return head.error();
    }
    if (head->form != digest_form::delta) {
        return head->form == digest_form::whole ? digest_errc::is_whole : digest_errc::is_news;
    }
    if (head->stamp.seed != base.stamp().seed) {
        return digest_errc::other_seed;
    }
    const digest_generation from{.epoch = head->stamp.generation.epoch,
                                 .counter = head->base_counter};
    if (head->shape != base.shape() || from != base.stamp().generation ||
        head->base_checksum != base.checksum()) {
        return digest_errc::wrong_base;
    }
    if (const auto refusal = judge_digest(wire, *head, limits)) {
        return refusal;
    }
    return flip_body(wire.subspan(digest_header_bytes),
                     *head,
                     {base.words().begin(), base.words().end()},
                     limits);
}

}  // namespace reprise::filter
