#include "proxy/peer/parents.hpp"

#include <algorithm>
#include <numeric>

// Rendezvous hashing is a number for each parent and key; what is down is told by relaxed atomics, since
// a request that reads them a moment too early only asks once more. Whoever changes them does so by
// compare-exchange, so that one outage, one recovery and one trial are counted once.

namespace reprise::proxy::peer {
namespace {

// The same on every machine and in every release: nodes of one fleet must agree. FNV-1a (64 bits)
// of the name, and SplitMix64's finaliser (Steele, Lea, Flood 2014) over that and the key.
std::uint64_t number_of(std::string_view name) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

std::uint64_t mixed(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/// How old what is noted of successes may be: not each of them writes what all threads read.
constexpr std::chrono::milliseconds success_step{100};

std::int64_t count_of(steady_time when) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
}

}  // namespace

parent_choice::parent_choice(std::span<const std::string> names,
                             std::chrono::milliseconds first_wait,
                             std::chrono::milliseconds longest_wait)
    : count_{names.size()},
      states_{std::make_unique<state[]>(names.size())},
      first_wait_{first_wait},
      longest_wait_{longest_wait} {
    for (std::size_t i = 0; i < count_; ++i) {
        states_[i].number = number_of(names[i]);
    }
}

void parent_choice::go_on_as(std::size_t parent,
                             const parent_choice& before,
                             std::size_t was) noexcept {
    auto& its = states_[parent];
    const auto& known = before.states_[was];
    its.down_until = known.down_until.load(std::memory_order_relaxed);
    its.answered_at = known.answered_at.load(std::memory_order_relaxed);
    its.spared_at = known.spared_at.load(std::memory_order_relaxed);
    its.spared = known.spared.load(std::memory_order_relaxed);
    its.failures = known.failures.load(std::memory_order_relaxed);
    its.why = known.why.load(std::memory_order_relaxed);
}

// Which of two is asked first: that are up in front of those that are down.
struct parent_choice::rank {
    std::int64_t down_until;  // 0: up
    std::uint64_t number;

    [[nodiscard]] bool is_before(const rank& other) const noexcept {
        return down_until != other.down_until ? down_until < other.down_until
                                              : number > other.number;
    }
};

std::int64_t parent_choice::left_alone_until(std::size_t parent) const noexcept {
    const auto& its = states_[parent];
    const auto until = its.down_until.load(std::memory_order_relaxed);
    // One that succeeded while another began to try it is up.
    return its.failures.load(std::memory_order_relaxed) == 0
               ? until
               : std::max(until, its.tried_until.load(std::memory_order_relaxed));
}

parent_choice::rank parent_choice::rank_of(std::size_t parent,
                                           const filter::key_hash& key,
                                           std::int64_t now) const noexcept {
    const auto until = left_alone_until(parent);
    return {until > now ? until : 0, mixed(mixed(states_[parent].number ^ key.low) ^ key.high)};
}

bool parent_choice::is_down(std::size_t parent, steady_time now) const noexcept {
    return left_alone_until(parent) > count_of(now);
}

std::vector<std::size_t> parent_choice::order(const filter::key_hash& key, steady_time now) const {
    std::vector<rank> ranks(count_);
    for (std::size_t i = 0; i < count_; ++i) {
        ranks[i] = rank_of(i, key, count_of(now));
    }
    std::vector<std::size_t> out(count_);
    std::iota(out.begin(), out.end(), std::size_t{0});
    std::stable_sort(out.begin(), out.end(), [&ranks](std::size_t a, std::size_t b) {
        return ranks[a].is_before(ranks[b]);
    });
    return out;
}

std::size_t parent_choice::best(const filter::key_hash& key, steady_time now) const noexcept {
    std::size_t out = 0;
    auto first = rank_of(0, key, count_of(now));
    for (std::size_t i = 1; i < count_; ++i) {
        const auto next = rank_of(i, key, count_of(now));
        if (next.is_before(first)) {
            first = next;
            out = i;
        }
    }
    return out;
}

std::optional<trial> parent_choice::try_out(std::size_t parent,
                                            steady_time now,
                                            std::chrono::milliseconds patience) noexcept {
    auto& its = states_[parent];
    if (its.failures.load(std::memory_order_relaxed) == 0) {
        return trial{};
    }
    auto known = its.tried_until.load(std::memory_order_relaxed);
    const auto until = count_of(now + patience);
    if (is_down(parent, now) || known > count_of(now) ||
        !its.tried_until.compare_exchange_strong(known, until, std::memory_order_relaxed)) {
        return std::nullopt;
    }
    return trial{trial::claim_ptr{states_, &its.tried_until}, until};
}

std::optional<trial> parent_choice::put_first(std::span<std::size_t> left,
                                              steady_time now,
                                              std::chrono::milliseconds patience) noexcept {
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (auto held = try_out(left.front(), now, patience)) {
            return held;
        }
        std::rotate(left.begin(), left.begin() + 1, left.end());
    }
    return std::nullopt;
}

bool parent_choice::has_failed(std::size_t parent) const noexcept {
    return states_[parent].failures.load(std::memory_order_relaxed) != 0;
}

failure_code parent_choice::trouble(std::size_t parent) const noexcept {
    return states_[parent].why.load(std::memory_order_relaxed);
}

bool parent_choice::failed(std::size_t parent,
                           steady_time begun,
                           steady_time now,
                           failure_code why) noexcept {
    auto& its = states_[parent];
    auto known = its.down_until.load(std::memory_order_relaxed);
    if (known > count_of(begun)) {
        return false;
    }
    const auto failures = its.failures.load(std::memory_order_relaxed);
    auto wait = first_wait_;
    for (unsigned i = 0; i < failures && wait < longest_wait_; ++i) {
        wait *= 2;
    }
    const auto until = count_of(now + std::min(wait, longest_wait_));
    if (!its.down_until.compare_exchange_strong(known, until, std::memory_order_relaxed)) {
        return false;
    }
    its.why.store(why, std::memory_order_relaxed);
    return its.failures.fetch_add(1, std::memory_order_relaxed) == 0;
}

bool parent_choice::succeeded(std::size_t parent, steady_time now) noexcept {
    auto& its = states_[parent];
    // Read before written: the line is shared by all threads, and nearly always says so already.
    if (!has_succeeded_since(parent, now - success_step)) {
        its.answered_at.store(count_of(now), std::memory_order_relaxed);
    }
    if (its.spared.load(std::memory_order_relaxed) != 0) {
        its.spared.store(0, std::memory_order_relaxed);
    }
    if (its.failures.load(std::memory_order_relaxed) == 0 ||
        its.failures.exchange(0, std::memory_order_relaxed) == 0) {
        return false;
    }
    its.down_until.store(0, std::memory_order_relaxed);
    return true;
}

bool parent_choice::has_succeeded_since(std::size_t parent, steady_time begun) const noexcept {
    return states_[parent].answered_at.load(std::memory_order_relaxed) > count_of(begun);
}

parent_choice::silence parent_choice::judge_silence(std::size_t parent,
                                                    steady_time begun,
                                                    steady_time now) noexcept {
    auto& its = states_[parent];
    auto last = its.spared_at.load(std::memory_order_relaxed);
    if (last > count_of(begun)) {
        return silence::asked;
    }
    if (its.spared.load(std::memory_order_relaxed) >= most_spared) {
        return silence::its_own;
    }
    if (!its.spared_at.compare_exchange_strong(last, count_of(now), std::memory_order_relaxed)) {
        return silence::asked;
    }
    its.spared.fetch_add(1, std::memory_order_relaxed);
    return silence::unclear;
}

}  // namespace reprise::proxy::peer
