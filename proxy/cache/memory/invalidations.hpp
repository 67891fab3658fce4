#pragma once
// What was invalidated lately, so that what was asked of the origin before an invalidation is not
// stored after it, in either tier.

#include "filter/key_hash.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace reprise::proxy::cache {

/// A moment in a key's history of invalidations. What was asked of the origin before an
/// invalidation may tell how things were before the unsafe method: it must not be stored after it.
struct invalidation_mark {
    std::uint64_t count = 0;
    std::uint64_t purges = 0;  ///< the epoch of the purges by prefix and tag
};

/// Anybody's unsafe method on any URL is noted here, whether anything is held of it or not, and a
/// download may take hours. So a stripe knows its last keys one by one, and of all before them which
/// was the last in each of its slots: what began before those is held against its slot alone. It is
/// refused for nothing only where another key that shares the slot was invalidated meanwhile: with 50
/// invalidations a second, each of another URL, that is 1.9 % of what takes 100 s to come (5,000 of
/// 262,144 slots), and 17 % of what takes 1,000 s.
///
/// Memory    1.1 MiB: 64 stripes of the last 64 keys (64 KiB in all) and 4,096 slots of 4 bytes (1 MiB
///           in all).
/// Cost      a short lock per stripe, and a look at one slot; where that has something since, at up to
///           64 keys.
/// Threads   any number.
class invalidations {
public:
    invalidations();

    [[nodiscard]] std::uint64_t count(const filter::key_hash& key) const;
    void note(const filter::key_hash& key);
    /// False: `key` was not invalidated after its count was `since`. True may be said without need, of
    /// what more than 64 keys of the stripe have been invalidated since, one of its slot among them.
    [[nodiscard]] bool since(const filter::key_hash& key, std::uint64_t since) const;
    /// True: it was. False where nobody knows any more.
    [[nodiscard]] bool surely_since(const filter::key_hash& key, std::uint64_t since) const;

private:
    static constexpr std::size_t stripe_count = 64;
    static constexpr std::size_t remembered = 64;
    static constexpr std::size_t slots = 4'096;
    struct stripe {
        mutable std::mutex guard;
        std::uint64_t made = 0;
        // The last keys invalidated here, the i-th of all at i modulo the size.
        std::array<filter::key_hash, remembered> keys{};
        // What `made` had become with the last invalidation of each slot, modulo 2^32; 0: there was
        // none.
        std::array<std::uint32_t, slots> last{};
        [[nodiscard]] bool holds(const filter::key_hash& key, std::uint64_t from) const;
        [[nodiscard]] bool has_slot_since(const filter::key_hash& key, std::uint64_t since) const;
    };
    [[nodiscard]] stripe& stripe_of(const filter::key_hash& key) const noexcept;
    std::unique_ptr<stripe[]> stripes_;
};

}  // namespace reprise::proxy::cache
