#pragma once
// How many times a key was seen, up to a few: what "store at the third request" needs, where a
// counter per key would be a waste.
//
// Layer i is a plain filter of the keys seen at least i + 1 times. A sight goes into the first
// layer that does not have the key; the count is the number of layers, from the first, that have
// it. Most keys of a web's traffic are seen once, so upper layers may be small; how small is the
// traffic's business, and the caller's.
//
// The admission filter (admission.hpp) is this with two generations, atomic words and a clock.

#include "filter/set_filter.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace reprise::filter {

/// The probability that a key seen `sights` times is counted higher, when the layers err with
/// `rates`: the next layer's rate, 0 beyond the last. That it is higher by j or more is the product
/// of the next j. @pre rates in [0, 1]
[[nodiscard]] double overcount_rate(std::span<const double> rates, std::size_t sights) noexcept;

/// Memory    its layers'.
/// Threads   one, or any number that only ask.
/// Cost      one operation of a layer for each sight that the key had, and one more.
/// Errs      upwards only: a count is never less than the sights noted (up to the layers), and more
///           at overcount_rate. A key counted too high fills a layer that it does not belong to, so
///           size a layer for its keys and the rate below it times the keys of the layer below.
template <set_filter Filter>
class layered_filter {
public:
    /// Empty filters, the one for first sights first. @pre there is one at least
    explicit layered_filter(std::vector<Filter> layers) : layers_{std::move(layers)} {
        assert(!layers_.empty());
    }

    /// Records one sight and returns how many there were before it, at most max_count().
    std::size_t note(key_hash key) {
        std::size_t before = 0;
        for (auto& layer : layers_) {
            if (!insert_and_test(layer, key)) {
                break;  // and now it is in this layer, and in none above
            }
            ++before;
        }
        return before;
    }

    void insert(key_hash key) { (void)note(key); }

    /// What note would return.
    [[nodiscard]] std::size_t count(key_hash key) const {
        std::size_t seen = 0;
        while (seen < layers_.size() && layers_[seen].may_contain(key)) {
            ++seen;
        }
        return seen;
    }

    /// Seen at all.
    [[nodiscard]] bool may_contain(key_hash key) const { return layers_[0].may_contain(key); }

    void clear() {
        for (auto& layer : layers_) {
            layer.clear();
        }
    }

    /// The highest count told apart: as many as there are layers.
    [[nodiscard]] std::size_t max_count() const noexcept { return layers_.size(); }
    [[nodiscard]] const Filter& layer(std::size_t i) const noexcept { return layers_[i]; }
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const auto& layer : layers_) {
            sum += layer.bytes();
        }
        return sum;
    }

private:
    std::vector<Filter> layers_;
};

}  // namespace reprise::filter
