#pragma once
// What was invalidated lately, so that what was asked of the origin before an invalidation is not
// stored after it, in either tier.

#include "filter/key_hash.hpp"

#include <array>
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

/// Memory    64 stripes of the last 64 keys each.
/// Threads   any number; a short lock per stripe.
class invalidations {
public:
    invalidations();

    [[nodiscard]] std::uint64_t count(const filter::key_hash& key) const;
    void note(const filter::key_hash& key);
    /// True when `key` was invalidated after its count was `since`, or when nobody knows any more.
    [[nodiscard]] bool since(const filter::key_hash& key, std::uint64_t since) const;
    /// False where nobody knows any more.
    [[nodiscard]] bool surely_since(const filter::key_hash& key, std::uint64_t since) const;

private:
    static constexpr std::size_t stripe_count = 64;
    static constexpr std::size_t remembered = 64;
    struct stripe {
        mutable std::mutex guard;
        std::uint64_t made = 0;
        // The last keys invalidated here, the i-th of all at i modulo the size.
        std::array<filter::key_hash, remembered> keys{};
        [[nodiscard]] bool holds(const filter::key_hash& key, std::uint64_t from) const;
    };
    [[nodiscard]] stripe& stripe_of(const filter::key_hash& key) const noexcept;
    std::unique_ptr<stripe[]> stripes_;
};

}  // namespace reprise::proxy::cache
