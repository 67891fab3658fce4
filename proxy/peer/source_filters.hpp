#pragma once
// Everything in a digest_source that follows the keys and has a size: the counting filter, which bits of it changed, Squid's
// form, the journal. One of a size, and another while it is filled.
//
// Threads   one.

#include "filter/bit_changes.hpp"
#include "filter/counting.hpp"
#include "filter/key_hash.hpp"
#include "filter/squid_key.hpp"
#include "filter/squid_source.hpp"
#include "proxy/peer/change_journal.hpp"

#include <cstdint>
#include <optional>

namespace reprise::proxy::peer {

struct source_plan;

/// The capacity for so many keys: `least` by a power of two, with room for more. @pre least > 0
[[nodiscard]] std::uint64_t capacity_for(std::uint64_t listed, std::uint64_t least);

struct source_filters {
    source_filters(std::uint64_t keys, const source_plan& plan);

    /// What Squids are not told of has no key of theirs.
    void insert(const filter::key_hash& key, const filter::squid_key& squid_key) noexcept;
    /// @pre it was inserted
    void erase(const filter::key_hash& key, const filter::squid_key& squid_key) noexcept;

    [[nodiscard]] std::uint64_t bytes() const noexcept;

    std::uint64_t capacity;
    filter::counting_bloom counts;
    filter::bit_changes bits;
    std::optional<filter::squid_source> squid;
    std::optional<change_journal> journal;
    std::uint64_t keys_at_step = 0;  ///< listed when the last step was closed

private:
    void turn(std::uint64_t place, bool is_on) noexcept;
};

}  // namespace reprise::proxy::peer
