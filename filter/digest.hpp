#pragma once
// What a cache says of its contents at one moment: the bits of a Bloom filter, and of which
// generation, parameters and secret they are. Immutable; a reader asks it, a sibling is sent it.
//
// Few probes in many bits, not the other way round. A filter with few bits on compresses, and its
// wire size at a given rate falls with the number of probes while the reader's memory grows
// (Mitzenmacher, "Compressed Bloom Filters", IEEE/ACM ToN 2002). At a rate of 1 %, two probes in 19
// bits per key travel in 9.0 bits and change by 4.2 % when one key in a hundred left and another
// came; seven probes in 9.6 bits, the least memory, do not compress at all. The plane from which
// two was picked: `bench_filter --only digests` (kept in tools/results).
//
// Bytes of a digest, whole or as a change: digest_wire.hpp, DIGEST_FORMAT.md.

#include "filter/bloom.hpp"
#include "filter/counting.hpp"
#include "filter/key_hash.hpp"
#include "filter/line_words.hpp"
#include "filter/seed_id.hpp"
#include "filter/sizing.hpp"
#include "filter/stamped.hpp"
#include "filter/standard.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::filter {

/// How a key's bits are found.
enum class digest_layout : std::uint8_t {
    standard = 0,  ///< `probes` places anywhere, by `indices`: standard and counting filters
    blocked = 1,   ///< one bit in each of the eight words of one 64-byte block: blocked_bloom
};

struct digest_shape {
    digest_layout layout = digest_layout::standard;
    std::uint64_t bits = 0;
    unsigned probes = 0;
    bool operator==(const digest_shape&) const = default;
};

/// So that a stranger's digest can't make look-ups slow.
inline constexpr unsigned most_digest_probes = 32;
inline constexpr std::uint64_t most_digest_bits = std::uint64_t{1} << 40;

/// Whether digests of this shape exist: 0 < bits <= most_digest_bits, 0 < probes <=
/// most_digest_probes; a blocked one has eight probes and whole blocks.
[[nodiscard]] bool is_valid(const digest_shape& shape) noexcept;

/// The size for `keys` keys at `rate`: the fewest probes, hence the shortest wire form, that need
/// at most 20 bits per key; where no number does (below a rate of 0.00007), the best one for
/// memory. 1 % gives two probes and 19.0 bits per key. Bits are a multiple of 64, and at most
/// most_digest_bits, which may miss the rate. @pre keys > 0, 0 < rate < 1
[[nodiscard]] bloom_size digest_size(std::uint64_t keys, double rate) noexcept;

/// Which state of its owner's filter a digest is. The epoch is drawn at random whenever an owner
/// starts or changes its shape, so that numbers of before never meet numbers of after; the counter
/// grows with each published digest.
struct digest_generation {
    std::uint64_t epoch = 0;
    std::uint64_t counter = 0;
    bool operator==(const digest_generation&) const = default;
};

/// What an owner knows of a digest beside its bits.
struct digest_stamp {
    seed_id seed{};  ///< of the secret that keys are hashed under
    digest_generation generation;
    std::uint64_t keys = 0;  ///< that the owner counted; a reader may compare estimated_keys()
    bool operator==(const digest_stamp&) const = default;
};

/// Memory    bits / 8 bytes, rounded up to 8, and about 150 more.
/// Threads   immutable: any number. Share it by shared_ptr<const digest>.
/// Errs      may_contain may be true for a key that the owner lacks, at about
///           false_positive_rate(); false only for one that it did not count at that generation.
class digest {
public:
    /// Bit i of the filter is bit i mod 64 of word i / 64. O(bits).
    /// @pre is_valid(shape), words.size() == ceil(bits / 64), and no bit on past the last
    digest(digest_shape shape, line_words words, digest_stamp stamp);
    /// A copy of them.
    template <std::same_as<std::vector<std::uint64_t>> Words>
    digest(digest_shape shape, const Words& words, digest_stamp stamp)
        : digest{shape, line_words(words.begin(), words.end()), stamp} {}

    /// A copy of a filter's bits, layout `standard`; for counters and stamps, those that are not
    /// zero.
    /// @pre at most most_digest_bits bits and most_digest_probes probes
    /// @throws std::bad_alloc
    [[nodiscard]] static digest of(const standard_bloom& filter, digest_stamp stamp);
    [[nodiscard]] static digest of(const counting_bloom& filter, digest_stamp stamp);
    [[nodiscard]] static digest of(const stamped_bloom& filter, digest_stamp stamp);

    /// The same of a blocked filter, layout `blocked`. While others insert, a key inserted before
    /// the call is in it; one inserted meanwhile may be there in part, that is, not.
    [[nodiscard]] static digest of(const blocked_bloom& filter, digest_stamp stamp);
    /// What either has. @pre as many blocks in both
    [[nodiscard]] static digest of(const blocked_bloom& a,
                                   const blocked_bloom& b,
                                   digest_stamp stamp);
    /// What any of them has. @pre at least one, and as many blocks in each
    [[nodiscard]] static digest of(std::span<const blocked_bloom* const> filters,
                                   digest_stamp stamp);

    digest(digest&&) noexcept = default;
    digest& operator=(digest&&) noexcept = default;
    digest(const digest&) = delete;  // megabytes: copying is never meant
    digest& operator=(const digest&) = delete;
    ~digest() = default;

    /// At most `probes` reads (if blocked, of one line), no allocation.
    [[nodiscard]] bool may_contain(key_hash key) const noexcept;

    [[nodiscard]] const digest_shape& shape() const noexcept { return shape_; }
    [[nodiscard]] const digest_stamp& stamp() const noexcept { return stamp_; }
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

    /// XXH3 (64 bits, no seed) of the bits as ceil(bits / 8) bytes: what a delta names its base by.
    [[nodiscard]] std::uint64_t checksum() const noexcept { return checksum_; }

    [[nodiscard]] std::uint64_t bits_on() const noexcept { return bits_on_; }
    /// Share of bits on.
    [[nodiscard]] double fill() const noexcept;

    /// Distinct keys that would leave this many bits off: ln(off / bits) / (probes ln(1 - 1/bits)),
    /// Swamidass and Baldi 2007; for blocked as blocked_bloom::measure. Finite even when full.
    /// estimators.hpp has standard errors.
    [[nodiscard]] double estimated_keys() const noexcept;

    /// The chance that a key which was never counted is answered as if it were, for these bits:
    /// fill^probes, or for blocked the mean over blocks of the product of its words' fills.
    [[nodiscard]] double false_positive_rate() const noexcept { return rate_; }

private:
    friend class digest_replica;  // turns bits of its own one, which nobody else may keep

    /// Checksum, bits on and rate, of the bits as they are. O(bits).
    void settle();

    digest_shape shape_;
    digest_stamp stamp_;
    line_words words_;
    std::uint64_t checksum_ = 0;
    std::uint64_t bits_on_ = 0;
    double rate_ = 0;
};

/// The rate of a standard digest with this share of bits on; of a blocked one, whose blocks differ,
/// what it would be if they did not, which is less.
[[nodiscard]] double rate_of_fill(const digest_shape& shape, double fill) noexcept;

/// The places where two digests of one shape differ, rising: what sibling_index::flip takes once a
/// delta was applied. O(bits / 64). @pre before.shape() == after.shape() @throws std::bad_alloc
[[nodiscard]] std::vector<std::uint64_t> flipped_places(const digest& before, const digest& after);
/// The same, or nothing where there are more than one piece of news may turn (news_bound.hpp): each takes 64 times what
/// its bit does, and a delta from a stranger may turn all. Then the whole is to be put in place. O(bits / 64).
/// @pre before.shape() == after.shape() @throws std::bad_alloc
[[nodiscard]] std::optional<std::vector<std::uint64_t>> few_flipped_places(const digest& before,
                                                                           const digest& after);

}  // namespace reprise::filter
