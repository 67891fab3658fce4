#pragma once
// A Squid digest of a cache that changes: keys come and go, and what is published is always true.
//
// Squid sets bits and builds its mask anew every hour, which stops the process; between two builds
// its digest lists what is gone. Here each place has a counter of four bits (counters.hpp), so that
// a key that leaves takes its bits along. To resize, the owner makes a new source, puts its keys
// in, some at a time, and changes over.

#include "filter/counters.hpp"
#include "filter/squid_digest.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::filter {

/// Memory    half a byte per bit of the mask: 2.5 bytes per entry at Squid's 5 bits, 4 at 8.
/// Threads   one, or any number that only ask.
/// Errs      as a Bloom filter of four places. Where 15 keys have met in one place (with 5 bits per
///           entry at capacity one place in 10^14) its bit stays on until clear().
class squid_source {
public:
    /// @pre !size.judge() @throws std::bad_alloc
    explicit squid_source(squid_size size);

    void insert(const squid_key& key) noexcept;

    /// Takes out a key that was put in; one that surely never was (a counter of it is too low)
    /// changes nothing and gives false. Taking out another that was not damages the digest: keys
    /// that share places with it may be missed.
    bool erase(const squid_key& key) noexcept;

    [[nodiscard]] bool may_contain(const squid_key& key) const noexcept;
    void clear() noexcept;

    [[nodiscard]] squid_size size() const noexcept { return size_; }
    /// Keys put in and not taken out.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] double fill() const noexcept;
    [[nodiscard]] std::uint64_t bytes() const noexcept { return counters_.bytes(); }
    [[nodiscard]] const counters& places() const noexcept { return counters_; }

    /// The control block and the mask as Squid takes them; `saturated` above 65 % of bits on, when
    /// it is time for a larger source. O(bits / 64). @throws std::bad_alloc
    [[nodiscard]] boost::system::result<std::vector<std::byte>> encode() const;

private:
    squid_size size_;
    counters counters_;
    std::uint64_t keys_ = 0;
};

}  // namespace reprise::filter
