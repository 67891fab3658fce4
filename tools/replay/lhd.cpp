#include "tools/replay/lhd.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace reprise::replay {

using proxy::cache::evictable;

namespace {

constexpr std::size_t drawn_to_choose = 64;
constexpr std::uint64_t least_between_renewals = 1'024;
constexpr std::uint64_t requests_to_the_last = 100;
constexpr double fading = 0.9;
constexpr std::uint64_t one_explores_in = 32, exploring_share = 100;

}  // namespace

void hit_densities(std::span<const double> hits,
                   std::span<const double> left,
                   std::span<double> densities) noexcept {
    // From the last age down: hits to come, and for how long all that are that old will stay on.
    double to_come = 0, alive = 0, time = 0;
    for (auto age = hits.size(); age-- > 0;) {
        to_come += hits[age];
        alive += hits[age] + left[age];
        time += alive;
        densities[age] = time > 0 ? to_come / time : 0;
    }
}

lhd_policy::lhd_policy(std::uint64_t capacity_bytes) : capacity_{capacity_bytes}, groups_(classes) {
    // Before anything is known: the longer it was not asked for, the less it promises; and what comes
    // back soon, more.
    for (std::size_t i = 0; i < classes; ++i) {
        for (std::size_t age = 0; age < ages; ++age) {
            groups_[i].density[age] = static_cast<double>(classes - i) /
                                      static_cast<double>(age + 1);
        }
    }
}

std::uint64_t lhd_policy::drawn() noexcept {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
}

std::size_t lhd_policy::age_of(const held& one) const noexcept {
    return std::min<std::size_t>((now_ - one.asked_at) >> coarse_, ages - 1);
}

lhd_policy::group& lhd_policy::group_of(const held& one) noexcept {
    // What was never hit is in the last one.
    const auto sum = (one.last_age + one.age_before) >> coarse_;
    return one.last_age == 0 ? groups_[classes - 1]
                             : groups_[std::min<std::size_t>(std::bit_width(sum), classes - 2)];
}

double lhd_policy::worth_of(const held& one) noexcept {
    const auto age = age_of(one);
    if (age == ages - 1) {
        return -1;
    }
    if (one.explores) {
        return std::numeric_limits<double>::infinity();
    }
    return group_of(one).density[age] /
           static_cast<double>(std::max<std::uint64_t>(1, one.entry->charge));
}

void lhd_policy::next_request() noexcept {
    ++now_;
    if (now_ - renewed_at_ >= std::max<std::uint64_t>(least_between_renewals, held_.size())) {
        renewed_at_ = now_;
        renew();
    }
}

void lhd_policy::renew() noexcept {
    // The last age is that of what was not asked for in a hundred times as many requests as there are
    // objects.
    const bool coarser = (std::uint64_t{ages} << coarse_) < requests_to_the_last * held_.size();
    coarse_ += coarser ? 1 : 0;
    for (auto& one : groups_) {
        for (auto* counts : {&one.hits, &one.left}) {
            for (std::size_t age = 0; age < ages; ++age) {
                const auto pair = 2 * age < ages ? (*counts)[2 * age] + (*counts)[2 * age + 1] : 0;
                (*counts)[age] = fading * (coarser ? pair : (*counts)[age]);
            }
        }
        if (std::any_of(one.hits.begin(), one.hits.end(), [](double count) { return count > 0; })) {
            hit_densities(one.hits, one.left, one.density);
        }
    }
}

void lhd_policy::missed(const filter::key_hash&) noexcept {
    next_request();
}

void lhd_policy::inserted(evictable& entry) {
    held_.push_back({.entry = &entry, .asked_at = now_});
    entry.by = {0, static_cast<std::uint32_t>(held_.size() - 1)};
    let_explore(held_.back());
}

void lhd_policy::let_explore(held& one) noexcept {
    if (drawn() % one_explores_in == 0 && exploring_bytes_ < capacity_ / exploring_share) {
        one.explores = true;
        exploring_bytes_ += one.entry->charge;
    }
}

void lhd_policy::used(evictable& entry) noexcept {
    next_request();
    auto& one = held_[entry.by.place];
    ++group_of(one).hits[age_of(one)];
    one.age_before = one.last_age;
    one.last_age = std::max<std::uint64_t>(1, now_ - one.asked_at);
    one.asked_at = now_;
    if (one.explores) {
        one.explores = false;
        exploring_bytes_ -= entry.charge;
    }
    let_explore(one);
}

void lhd_policy::take_out(std::size_t place) noexcept {
    if (held_[place].explores) {
        exploring_bytes_ -= held_[place].entry->charge;
    }
    held_[place] = held_.back();
    held_[place].entry->by.place = static_cast<std::uint32_t>(place);
    held_.pop_back();
}

void lhd_policy::removed(evictable& entry) noexcept {
    take_out(entry.by.place);
}

evictable* lhd_policy::evict() noexcept {
    if (held_.empty()) {
        return nullptr;
    }
    const bool few = held_.size() <= drawn_to_choose;
    std::size_t least = few ? 0 : drawn() % held_.size();
    auto worth = worth_of(held_[least]);
    for (std::size_t i = 1; i < (few ? held_.size() : drawn_to_choose); ++i) {
        const auto at = few ? i : drawn() % held_.size();
        const auto next = worth_of(held_[at]);
        if (next < worth) {
            worth = next;
            least = at;
        }
    }
    auto& gone = held_[least];
    ++group_of(gone).left[age_of(gone)];
    auto* const entry = gone.entry;
    take_out(least);
    return entry;
}

}  // namespace reprise::replay
