#include "proxy/peer/change_journal.hpp"

#include "filter/place_sum.hpp"
#include "proxy/base/let_go.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <new>
#include <numeric>
#include <utility>

// A step that is open only appends. close() puts it in order and drops what turned twice. One that
// grew too long, or had no memory, is lost: close() then begins anew, and nobody goes on from
// before it.

namespace reprise::proxy::peer {
namespace {

/// Sorts by one digit after the other, lowest first: for many places a comparison's branch, which
/// nobody can foretell, costs more than a place's moves. Without memory for a copy, as ever.
void sort_places(std::vector<std::uint64_t>& places) noexcept {
    constexpr std::size_t few = 512;
    constexpr unsigned most_digit = 11;
    if (places.size() >= few) {
        try {
            const auto greatest = *std::max_element(places.begin(), places.end());
            const auto width = static_cast<unsigned>(std::bit_width(greatest));
            const auto digits = std::max(1u, (width + most_digit - 1) / most_digit);
            const auto digit = std::max(1u, (width + digits - 1) / digits);
            const auto mask = (std::uint64_t{1} << digit) - 1;
            std::vector<std::uint64_t> other(places.size());
            for (unsigned shift = 0; shift < width; shift += digit) {
                std::array<std::size_t, std::size_t{1} << most_digit> next{};
                for (const auto place : places) {
                    ++next[place >> shift & mask];
                }
                std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
                for (const auto place : places) {
                    other[next[place >> shift & mask]++] = place;
                }
                std::swap(places, other);
            }
            return;
        } catch (const std::bad_alloc&) {
        }
    }
    std::sort(places.begin(), places.end());
}

/// Sorted, and of equal ones only the last of an odd number: a place that turned twice is as it was.
void keep_odd(std::vector<std::uint64_t>& places) noexcept {
    sort_places(places);
    auto out = places.begin();
    for (auto at = places.begin(); at != places.end();) {
        auto next = at + 1;
        while (next != places.end() && *next == *at) {
            ++next;
        }
        if ((next - at) % 2 != 0) {
            *out++ = *at;
        }
        at = next;
    }
    places.erase(out, places.end());
}

void keep_unique(std::vector<url_name>& names) noexcept {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

void change_journal::turned(std::uint64_t place, bool is_on) noexcept {
    sum_ = filter::turned(sum_, place, is_on);
    if (lost_) {
        return;
    }
    any_off_ = any_off_ || !is_on;
    try {
        if (places_.size() < most_) {
            places_.push_back(place);
            return;
        }
    } catch (const std::bad_alloc&) {
    }
    lose_step();
    lost_ = true;
}

void change_journal::came(url_name name, std::size_t its, urgency what) noexcept {
    of_step_ = its == 0 ? of_step_ : std::max(of_step_, what);
    if (lost_ || names_.size() >= most_) {
        return;  // its places are told all the same
    }
    try {
        names_.push_back(name);
        named_ += its;
    } catch (const std::bad_alloc&) {
    }
}

void change_journal::begin_step() noexcept {
    places_.clear();
    names_.clear();
    named_ = 0;
    any_off_ = false;
    of_step_ = urgency::ordinary;
}

void change_journal::lose_step() noexcept {
    begin_step();
    let_go(places_);
    let_go(names_);
}

bool change_journal::close(std::uint64_t counter) {
    assert(counter > newest_);
    if (lost_) {
        begin(counter);
        return true;
    }
    const bool names_say_all = !any_off_ && named_ == places_.size();
    // Where they do each place turned once, and no order is needed while names are the shorter, as
    // they are not where a key has two places or three.
    if (!names_say_all || 3 * names_.size() >= places_.size()) {
        keep_odd(places_);
        keep_unique(names_);
    }
    if (places_.empty()) {
        begin_step();
        return false;
    }
    step made{
        .base = newest_, .base_sum = closed_sum_, .changes = {places_, names_, names_say_all}};
    const auto size = size_of(made);
    steps_.push_back(std::move(made));
    held_ += size;
    begin_step();
    newest_ = counter;
    closed_sum_ = sum_;
    while (held_ > most_) {
        held_ -= size_of(steps_.front());
        steps_.pop_front();
    }
    return true;
}

void change_journal::begin(std::uint64_t counter) noexcept {
    steps_.clear();
    held_ = 0;
    newest_ = counter;
    closed_sum_ = sum_;
    lose_step();
    lost_ = false;
}

bool change_journal::knows(std::uint64_t counter) const noexcept {
    if (counter == newest_) {
        return true;
    }
    const auto at = std::lower_bound(
        steps_.begin(), steps_.end(), counter, [](const step& one, std::uint64_t base) {
            return one.base < base;
        });
    return at != steps_.end() && at->base == counter;
}

change_journal::merged change_journal::since(std::uint64_t counter) const {
    assert(knows(counter));
    merged out;
    if (counter == newest_) {
        out.base_sum = closed_sum_;
        return out;
    }
    auto at = std::lower_bound(steps_.begin(),
                               steps_.end(),
                               counter,
                               [](const step& one, std::uint64_t base) { return one.base < base; });
    out.base_sum = at->base_sum;
    if (at + 1 == steps_.end()) {
        out.changes = at->changes;  // in order already, where that is needed
        return out;
    }
    out.changes.names_say_all = true;
    for (; at != steps_.end(); ++at) {
        const auto& its = at->changes;
        out.changes.names_say_all = out.changes.names_say_all && its.names_say_all;
        out.changes.places.insert(out.changes.places.end(), its.places.begin(), its.places.end());
        out.changes.names.insert(out.changes.names.end(), its.names.begin(), its.names.end());
    }
    keep_odd(out.changes.places);
    keep_unique(out.changes.names);
    return out;
}

std::uint64_t change_journal::bytes() const noexcept {
    return 8 * (held_ + places_.capacity() + names_.capacity()) + steps_.size() * sizeof(step);
}

}  // namespace reprise::proxy::peer
