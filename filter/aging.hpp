#pragma once
// Filters that forget: the latest keys of an endless stream in fixed memory. Two ways, both made of
// two filters of any plain kind that are cleared in turn.
//
//   double_buffer       One filter is asked. Once it is half full, new keys go into the other one
//                       too, which takes its place when it is full. (Chang, Feng and Li,
//                       "Approximate Caches for Packet Classification", INFOCOM 2004.)
//   two_active_buffers  Both are asked; keys go into the young one only. When that is full the old
//                       one is cleared and they change roles. (Yoon, "Aging Bloom Filter with Two
//                       Active Buffers for Dynamic Sets", TKDE 22(1), 2010: its A2.)
//
// What the second gains. Let a filter of the size at hand hold n keys at the rate asked for. The
// first remembers between the latest n/2 and n distinct keys, because half of what its memory holds
// is a copy of the other half. The second stores nothing twice, but both filters err: each must
// keep to 1 - sqrt(1 - rate), about half of it, and at that holds n' keys, of which it remembers
// between n' and 2n'. In a plain filter one halving of the rate costs 1.44 bits per key beside
// 1.44 * log2(1 / rate), so n' = n * L / (L + 1) with L = log2(1 / rate): at a rate of 0.01 n' is
// 0.87 n, and the same memory surely remembers 1.74 times as many keys, at 0.001 1.82 times, never
// below 1 for a rate under 1/2 (Yoon's theorem). aging_span below has the figures of any size.
//
// The price is a second filter asked for a key that the young one does not have. The admission
// filter (admission.hpp) is of the second kind with atomic words, a clock and clearing in slices.
//
// Neither reads a clock: to age by time, call advance().

#include "filter/set_filter.hpp"
#include "filter/sizing.hpp"

#include <cassert>
#include <cstdint>
#include <utility>

namespace reprise::filter {

/// How many of the latest distinct keys are remembered: right after the roles changed, and right
/// before.
struct aging_span {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    bool operator==(const aging_span&) const = default;
};

/// What each of two filters that are asked together may err with, so that both err with `rate`:
/// 1 - sqrt(1 - rate). @pre 0 < rate < 1
[[nodiscard]] double two_active_rate(double rate) noexcept;

/// The span of a double_buffer of two standard filters of `size`, at most erring with `rate`; by
/// the classic formula. @pre size's members > 0, 0 < rate < 1
[[nodiscard]] aging_span double_buffer_span(bloom_size size, double rate) noexcept;

/// The same of two_active_buffers.
[[nodiscard]] aging_span two_active_span(bloom_size size, double rate) noexcept;

/// Memory    two filters, made at construction.
/// Threads   one, or any number that only ask.
/// Forgets   a key not before capacity / 2 (rounded down) other distinct keys were inserted after
///           it, and not later than `capacity` other new ones.
/// Errs      towards containing, at most at the rate of one filter holding `capacity` keys.
template <set_filter Filter>
class double_buffer {
public:
    /// Two filters, each made of `arguments`, each for `capacity` distinct keys.
    /// @pre capacity > 1
    template <class... Arguments>
    explicit double_buffer(std::uint64_t capacity, const Arguments&... arguments)
        : capacity_{capacity},
          active_{arguments...},
          warming_{arguments...} {
        assert(capacity > 1);
    }

    void insert(key_hash key) { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before. A key that comes again is
    /// as one that came just now.
    bool insert_and_test(key_hash key) {
        // When all keys are new both become true at once. Where known keys come again the second
        // does first; to wait for the first would fill the other filter with them beyond half, and
        // give it up soon after its turn began.
        if (keys_ >= capacity_ || warming_keys_ >= capacity_ / 2) {
            advance();
        }
        if (keys_ >= capacity_ / 2) {
            warming_keys_ += filter::insert_and_test(warming_, key) ? 0 : 1;
        }
        const bool before = filter::insert_and_test(active_, key);
        keys_ += before ? 0 : 1;
        return before;
    }

    [[nodiscard]] bool may_contain(key_hash key) const { return active_.may_contain(key); }

    /// Forgets the active filter now, whatever it holds: the other one takes its place.
    void advance() {
        std::swap(active_, warming_);
        keys_ = std::exchange(warming_keys_, 0);
        warming_.clear();
    }

    void clear() {
        active_.clear();
        warming_.clear();
        keys_ = warming_keys_ = 0;
    }

    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    /// Distinct keys that the active filter took, as counted when they came.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] std::uint64_t bytes() const { return active_.bytes() + warming_.bytes(); }

private:
    std::uint64_t capacity_;
    std::uint64_t keys_ = 0;          // of the active one
    std::uint64_t warming_keys_ = 0;  // of the other
    Filter active_;
    Filter warming_;
};

/// Memory    two filters, made at construction.
/// Threads   one, or any number that only ask.
/// Forgets   a key after at least capacity and at most 2 * capacity other new keys; one that comes
///           again while only the old filter has it is new to the young one.
/// Errs      towards containing, at most at 1 - (1 - p)^2 where p is the rate of one filter holding
///           `capacity` keys: size each for two_active_rate of the rate wanted.
template <set_filter Filter>
class two_active_buffers {
public:
    /// Two filters, each made of `arguments`, each for `capacity` distinct keys.
    /// @pre capacity > 0
    template <class... Arguments>
    explicit two_active_buffers(std::uint64_t capacity, const Arguments&... arguments)
        : capacity_{capacity},
          young_{arguments...},
          old_{arguments...} {
        assert(capacity > 0);
    }

    void insert(key_hash key) { (void)insert_and_test(key); }

    /// Inserts, and returns what may_contain would have returned before.
    bool insert_and_test(key_hash key) {
        if (young_.may_contain(key)) {
            return true;  // as young as it can be
        }
        const bool before = old_.may_contain(key);
        if (keys_ == capacity_) {
            advance();
        }
        young_.insert(key);
        ++keys_;
        return before;
    }

    [[nodiscard]] bool may_contain(key_hash key) const {
        return young_.may_contain(key) || old_.may_contain(key);
    }

    /// Forgets the old filter now: the young one becomes old, and an empty one young.
    void advance() {
        std::swap(young_, old_);
        young_.clear();
        keys_ = 0;
    }

    void clear() {
        young_.clear();
        old_.clear();
        keys_ = 0;
    }

    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    /// Distinct keys that the young filter took, as counted when they came.
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
    [[nodiscard]] std::uint64_t bytes() const { return young_.bytes() + old_.bytes(); }

private:
    std::uint64_t capacity_;
    std::uint64_t keys_ = 0;  // of the young one
    Filter young_;
    Filter old_;
};

}  // namespace reprise::filter
