#pragma once
// A digest as bytes: whole, or as the change from a generation that the reader holds.
//
// DIGEST_FORMAT.md has the layout byte by byte. Both forms list bits: a whole digest those that are
// on, a delta those that flipped; as they stand, or as Golomb-coded gaps (gap_code.hpp), whichever
// is shorter. A third form, news, is made of changes and not of digests (news_wire.hpp). Bytes only:
// nothing is fetched, and who may read a digest is decided elsewhere.

#include "filter/digest.hpp"

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace reprise::filter {

/// Why bytes are no digest that can be used here, or two digests have no delta. From `is_whole` on
/// the bytes may be in order and the reader hold the wrong thing.
enum class digest_errc {
    truncated = 1,     ///< shorter than its header says, or than a header
    trailing_bytes,    ///< longer than its header says
    bad_magic,         ///< not a digest at all
    unknown_version,   ///< of another version of the format, older or newer
    corrupt,           ///< damaged: a checksum does not match
    bad_header,        ///< a field holds what no writer writes
    bad_shape,         ///< no such number of bits or probes, or not in this layout
    unknown_hash,      ///< keys hashed by something else than key_hash
    unknown_layout,    ///< bits chosen in a way that this release does not know
    unknown_encoding,  ///< coded in a way that this release does not know
    bad_body,          ///< the code names bits that are not there, or not as many as it says
    over_limit,        ///< would take more memory than the reader allows
    saturated,         ///< its rate of false positives is above what the reader allows
    is_whole,          ///< a whole digest where a delta was wanted: decode_digest it
    is_delta,          ///< a delta where a whole digest was wanted: apply_delta it to its base
    other_seed,        ///< keys hashed under another secret
    wrong_base,        ///< a delta to another digest than the one held: ask for the whole
    shapes_differ,     ///< no delta: bits, probes or layout changed
    epochs_differ,     ///< no delta: the owner began anew in between
    not_newer,         ///< no delta: the generation's counter did not grow
    is_news,           ///< news, where a digest or a delta was wanted: digest_replica applies it
};

[[nodiscard]] const boost::system::error_category& digest_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(digest_errc code) noexcept;

enum class digest_form : std::uint8_t { whole = 1, delta = 2, news = 3 };
enum class digest_encoding : std::uint8_t { raw = 0, golomb = 1, names = 2 };

/// What the first 128 bytes say.
struct digest_head {
    digest_form form = digest_form::whole;
    digest_encoding encoding = digest_encoding::raw;
    digest_shape shape;
    digest_stamp stamp;              ///< of the digest that it makes
    std::uint64_t checksum = 0;      ///< digest::checksum() of what it makes; news: place_sum
    std::uint64_t base_counter = 0;  ///< but of a whole: the generation it starts from, same epoch
    std::uint64_t base_checksum = 0;
    std::uint64_t listed = 0;   ///< bits that the body lists
    std::uint64_t divisor = 0;  ///< of the Golomb code
    std::uint64_t body_bytes = 0;
    std::uint64_t body_checksum = 0;
    bool operator==(const digest_head&) const = default;
};

inline constexpr std::size_t digest_header_bytes = 128;

/// What a reader allows.
struct digest_limits {
    /// Memory for the bits; ten million keys at 1 % take 24 MB. A message of 128 bytes may ask
    /// for all of it (no bit on), so let it be near what a sibling can need.
    std::uint64_t bytes = std::uint64_t{256} << 20;
    /// Above this a digest says too little to be asked. Half of the bits on with two probes is
    /// 0.25.
    double false_positive_rate = 0.2;
};

/// The header of any form, judged by itself: every field in range, its checksum right. The body
/// need not be there. No allocation.
[[nodiscard]] boost::system::result<digest_head> read_digest_head(std::span<const std::byte> wire);

/// The whole form, in the shorter encoding. At most digest_header_bytes + ceil(bits / 8) bytes.
/// O(bits / 64 + bits on). @throws std::bad_alloc
[[nodiscard]] std::vector<std::byte> encode(const digest& from);

/// What makes `next` of `base`. May be longer than the whole form when much changed: send the
/// shorter. Refuses by shapes_differ, other_seed, epochs_differ or not_newer.
/// @throws std::bad_alloc
[[nodiscard]] boost::system::result<std::vector<std::byte>> encode_delta(const digest& base,
                                                                         const digest& next);

/// A digest of keys hashed under `seed`'s secret, or the reason why not; total. Reads nothing past
/// `wire`, allocates nothing before header, length and checksums are right and then ceil(bits / 64)
/// * 8 bytes, at most limits.bytes. O(wire + bits / 64) time. @throws std::bad_alloc
[[nodiscard]] boost::system::result<digest> decode_digest(std::span<const std::byte> wire,
                                                          const seed_id& seed,
                                                          const digest_limits& limits = {});

/// The digest that a delta makes of `base`, which is left as it is; total and bounded as above. The
/// delta must name `base`: its shape, seed, generation and checksum.
[[nodiscard]] boost::system::result<digest> apply_delta(std::span<const std::byte> wire,
                                                        const digest& base,
                                                        const digest_limits& limits = {});

// What all forms are written and judged by: for news_wire and digest_replica.

/// A message: `head` completed by length and checksums. @throws std::bad_alloc
[[nodiscard]] std::vector<std::byte> write_digest(const digest_head& head,
                                                  std::span<const std::byte> body);
/// Why a reader refuses what follows the header, before there is memory for it: too many bits, a
/// wrong length, a damaged body. No error: nothing yet.
[[nodiscard]] boost::system::error_code judge_digest(std::span<const std::byte> wire,
                                                     const digest_head& head,
                                                     const digest_limits& limits) noexcept;

}  // namespace reprise::filter

template <>
struct boost::system::is_error_code_enum<reprise::filter::digest_errc> : std::true_type {};
