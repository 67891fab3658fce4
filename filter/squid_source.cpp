// See squid_source.hpp. A key's four places may repeat; each is counted as often as it comes, in
// both directions, so nothing needs to know.

#include "filter/squid_source.hpp"

#include "filter/little_endian.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>

namespace reprise::filter {

squid_source::squid_source(squid_size size) : size_{size}, counters_{size.bits()} {
    assert(!size.judge());
}

void squid_source::insert(const squid_key& key) noexcept {
    for (const auto place : squid_places(key, counters_.places())) {
        counters_.raise(place);
    }
    ++keys_;
}

bool squid_source::erase(const squid_key& key) noexcept {
    const auto places = squid_places(key, counters_.places());
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (counters_.lower(places[i]) == counter_step::underflow) {
            // What was lowered is raised again; a counter that sticks did neither.
            std::for_each_n(places.begin(), i, [this](auto place) { counters_.raise(place); });
            return false;
        }
    }
    keys_ -= keys_ > 0 ? 1 : 0;
    return true;
}

bool squid_source::may_contain(const squid_key& key) const noexcept {
    const auto places = squid_places(key, counters_.places());
    return std::all_of(places.begin(), places.end(), [this](std::uint64_t place) {
        return counters_.is_on(place);
    });
}

void squid_source::clear() noexcept {
    counters_.clear();
    keys_ = 0;
}

double squid_source::fill() const noexcept {
    return static_cast<double>(counters_.places_on()) / static_cast<double>(counters_.places());
}

boost::system::result<std::vector<std::byte>> squid_source::encode() const {
    const auto words = static_cast<std::size_t>(counters_.bit_words());
    std::vector<std::byte> mask(words * 8);
    for (std::size_t i = 0; i < words; ++i) {
        put_little_endian(mask.data() + i * 8, counters_.bits_on(i));
    }
    mask.resize(static_cast<std::size_t>(size_.mask_bytes()));  // the last word may be past the end
    // As if it had been built just now: Squid's own digest never has a deletion.
    return encode_squid_digest(size_, {.added = keys_, .deleted = 0}, mask);
}

}  // namespace reprise::filter
