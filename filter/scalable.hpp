#pragma once
// A filter for a set whose size nobody knows beforehand: it grows, and still keeps to its rate.
//
// A row of plain filters. Keys go into the last; when that holds what it was made for, a larger one
// with a stricter rate is added. With rates P, Pr, Pr^2, ... the whole errs with at most
// 1 - (1 - P)(1 - Pr)... <= P / (1 - r), however long the row; so the first is made for
// rate * (1 - r). (Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom Filters", Information
// Processing Letters 101(6), 2007, section 3.)
//
// What it costs beside one filter of the right size: a query of an absent key asks every filter of
// the row, log_growth(keys / first) of them; the last may be nearly empty, half of the memory on
// average with a growth of 2; and stricter rates take log2(1 / r) more probes, 1.44 times as many
// bits per key, from each filter to the next. A growth of 4 asks half as many filters and wastes
// more; the paper advises r between 0.8 and 0.9 for growths of 2 to 4, which costs fewer bits per
// key than 0.5 once the row is longer than three. Just after a filter was added the row takes up to
// 2.4 times the bits of one plain filter of the right size and rate; of split blocks, which need
// more for strict rates than plain filters, up to 3.5 times (tools/bench_filter).
//
// A key that the row already answers for is not inserted again, so that repeats take no room.

#include "filter/set_filter.hpp"

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace reprise::filter {

/// How a scalable filter grows.
struct scalable_growth {
    std::uint64_t first_keys = 1'000;  ///< what the first filter is made for
    double rate = 0.001;               ///< of the whole row, however long; in (0, 1)
    double growth = 2;                 ///< of one filter's keys over those before it; at least 1
    double tightening = 0.85;          ///< r: of one filter's rate over that before it; in (0, 1)
    bool operator==(const scalable_growth&) const = default;
};

/// The keys that filter `i` of the row is made for. @pre growth as its members' comments say
[[nodiscard]] std::uint64_t scalable_keys(const scalable_growth& growth, std::size_t i) noexcept;

/// The rate that filter `i` of the row is made for: rate * (1 - r) * r^i.
[[nodiscard]] double scalable_rate(const scalable_growth& growth, std::size_t i) noexcept;

/// What the first `filters` of the row, all full, err with together: 1 minus the product of
/// 1 - scalable_rate; below growth.rate for any number of them.
[[nodiscard]] double scalable_compound_rate(const scalable_growth& growth,
                                            std::size_t filters) noexcept;

/// Memory    grows with the keys; one filter is allocated at a time.
/// Threads   one, or any number that only ask.
/// Cost      a query asks up to filters() filters, the newest (and largest) first.
/// Errs      towards containing, at most at growth.rate; never the other way.
template <set_filter Filter>
class scalable_filter {
public:
    /// Makes a filter for so many keys at such a rate.
    using maker = std::function<Filter(std::uint64_t keys, double rate)>;

    /// @pre growth as its members' comments say
    /// @throws std::bad_alloc, and what `make` throws
    scalable_filter(const scalable_growth& growth, maker make)
        : growth_{growth},
          make_{std::move(make)} {
        assert(growth.first_keys > 0 && growth.rate > 0 && growth.rate < 1);
        assert(growth.growth >= 1 && growth.tightening > 0 && growth.tightening < 1);
        add_filter();
    }

    void insert(key_hash key) { (void)insert_and_test(key); }

    /// Inserts unless the row already answers for the key, and returns whether it did.
    /// @throws std::bad_alloc, when it is time for another filter; then nothing has changed
    bool insert_and_test(key_hash key) {
        if (may_contain(key)) {
            return true;
        }
        if (keys_in_last_ == room_) {
            add_filter();
        }
        row_.back().insert(key);
        ++keys_in_last_;
        ++keys_;
        return false;
    }

    [[nodiscard]] bool may_contain(key_hash key) const {
        for (auto one = row_.rbegin(); one != row_.rend(); ++one) {
            if (one->may_contain(key)) {
                return true;
            }
        }
        return false;
    }

    /// Begins again with one small filter.
    void clear() {
        row_.erase(row_.begin() + 1, row_.end());
        row_.front().clear();
        keys_ = keys_in_last_ = 0;
        room_ = scalable_keys(growth_, 0);
    }

    [[nodiscard]] std::size_t filters() const noexcept { return row_.size(); }
    /// Distinct keys taken, as counted when they came: a stranger mistaken for a known key is not.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (const auto& one : row_) {
            sum += one.bytes();
        }
        return sum;
    }

private:
    void add_filter() {
        const auto i = row_.size();
        row_.push_back(make_(scalable_keys(growth_, i), scalable_rate(growth_, i)));
        room_ = scalable_keys(growth_, i);
        keys_in_last_ = 0;
    }

    scalable_growth growth_;
    maker make_;
    std::vector<Filter> row_;
    std::uint64_t keys_ = 0;
    std::uint64_t keys_in_last_ = 0;
    std::uint64_t room_ = 0;
};

}  // namespace reprise::filter
