#pragma once
// Which keys weigh most, among any number of them, in fixed memory: Space-Saving (Metwally, Agrawal
// and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
//
// A key that isn't known takes the place of the lightest, and its weight, which is the most that it can
// have weighed before. So whatever weighs more than 1/most of all is there.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy {

/// Memory   `most` keys with a T each.
/// Cost     a comparison with each of them.
/// Threads  one at a time.
template <class T>
class heaviest {
public:
    struct entry {
        std::string key;
        std::uint64_t weight = 0;
        std::uint64_t not_its_own = 0;  ///< so much of that at most
        T about{};                      ///< since it took its place

        /// What it has weighed since then: at least so much of all.
        [[nodiscard]] std::uint64_t own() const noexcept { return weight - not_its_own; }
    };

    /// @pre most > 0
    explicit heaviest(std::size_t most) : most_{most} {}

    /// What is noted about `key`, which weighs so much more now. Good until the next call.
    /// @throws std::bad_alloc, and then nothing has changed
    T& add(std::string_view key, std::uint64_t weight) {
        auto lightest = entries_.begin();
        for (auto at = entries_.begin(); at != entries_.end(); ++at) {
            if (at->key == key) {
                at->weight += weight;
                return at->about;
            }
            if (at->weight < lightest->weight) {
                lightest = at;
            }
        }
        if (entries_.size() < most_) {
            entries_.push_back({std::string{key}, weight, 0, T{}});
            return entries_.back().about;
        }
        entry taken{std::string{key}, lightest->weight + weight, lightest->weight, T{}};
        *lightest = std::move(taken);
        return lightest->about;
    }

    /// Those first that have weighed most of their own.
    [[nodiscard]] std::vector<entry> in_order() const {
        auto all = entries_;
        std::sort(all.begin(), all.end(), [](const entry& a, const entry& b) {
            return a.own() != b.own() ? a.own() > b.own() : a.key < b.key;
        });
        return all;
    }

private:
    std::size_t most_;
    std::vector<entry> entries_;
};

}  // namespace reprise::proxy
