#include "proxy/peer/benefit.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

// One chance in 2^distance_ is taken. ended() moves distance_ by one step, on or back; at the first
// silence the distance of before is put aside, so that one answer can bring it back at once.

namespace reprise::proxy::peer {
namespace {

/// The weight of a new answer in the means: they remember about the last 30.
constexpr double weight = 1.0 / 16;
/// No sibling is judged by fewer.
constexpr std::uint32_t least_answers = 8;
/// What one that was never asked is taken to cost: little, so that it is tried.
constexpr double untried_us = 1;
/// And one that was asked and never had anything: more than any that has.
constexpr double fruitless_us = 10'000;
/// And one whose last answer did not come: more than any that answers.
constexpr double silent_us = 1e12;

void add(std::atomic<double>& to, double what) noexcept {
    to.store(to.load(relaxed) + what, relaxed);
}

void mean(std::atomic<double>& of, double next, bool first) noexcept {
    const auto before = of.load(relaxed);
    of.store(first ? next : before + weight * (next - before), relaxed);
}

std::size_t class_of(std::chrono::microseconds took) noexcept {
    const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(took.count(), 0)) / 1000;
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(ms)), latency_classes - 1);
}

}  // namespace

std::uint64_t benefit_figures::asked() const noexcept {
    std::uint64_t sum = 0;
    for (const auto one : ended) {
        sum += one;
    }
    return sum;
}

double benefit_figures::quantile_ms(double share) const noexcept {
    std::uint64_t total = 0;
    for (const auto one : latencies) {
        total += one;
    }
    if (total == 0) {
        return 0;
    }
    const auto wanted = std::ceil(share * static_cast<double>(total));
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < latencies.size(); ++i) {
        below += latencies[i];
        if (static_cast<double>(below) >= wanted) {
            return std::ldexp(1.0, static_cast<int>(i));
        }
    }
    return std::ldexp(1.0, latency_classes - 1);
}

double benefit_figures::expected_false(double rate) const noexcept {
    const auto hits = static_cast<double>(ended[static_cast<std::size_t>(asking_end::true_hit)]);
    const auto misses = static_cast<double>(ended[static_cast<std::size_t>(asking_end::false_hit)]);
    const auto found_out = named == 0 ? 1.0
                                      : std::min(1.0, (hits + misses) / static_cast<double>(named));
    return rate * std::max(0.0, static_cast<double>(offered) * found_out - hits);
}

void benefit::offered(std::uint64_t times) noexcept {
    offered_.fetch_add(times, relaxed);
}

void benefit::named() noexcept {
    named_.fetch_add(1, relaxed);
}

bool benefit::may_ask(steady_time now, bool after_others) noexcept {
    const auto distance = distance_.load(relaxed);
    if (distance == 0) {
        return true;
    }
    const auto chance = chances_.fetch_add(1, relaxed);
    if ((chance & ((std::uint64_t{1} << distance) - 1)) == 0) {
        return true;
    }
    const std::chrono::nanoseconds last{last_asked_.load(relaxed)};
    const std::chrono::nanoseconds pause{retry_pause_.load(relaxed)};
    if (!after_others && now.time_since_epoch() - last >= pause) {
        // One of several requests that come together asks.
        last_asked_.store(now.time_since_epoch().count(), relaxed);
        retry_pause_.store(std::min<std::chrono::nanoseconds>(2 * pause, retry_after).count(),
                           relaxed);
        return true;
    }
    held_back_.fetch_add(1, relaxed);
    return false;
}

void benefit::ended(asking_end how,
                    std::chrono::microseconds took,
                    const hit_value& gives,
                    std::uint64_t bytes,
                    steady_time now,
                    said_so_far what) noexcept {
    const bool hit = how == asking_end::true_hit;
    const bool first = answers_.fetch_add(1, relaxed) == 0;
    ended_[static_cast<std::size_t>(how)].fetch_add(1, relaxed);
    (hit ? bytes_ : lost_bytes_).fetch_add(bytes, relaxed);
    last_asked_.store(now.time_since_epoch().count(), relaxed);
    const auto took_us = static_cast<double>(took.count());
    const auto gained_us = hit ? static_cast<double>(gives.time.count()) - took_us : -took_us;
    const auto worth_us = hit ? gained_us + static_cast<double>(gives.beside.count()) : gained_us;
    add(gained_us >= 0 ? saved_ms_ : lost_ms_, std::abs(gained_us) / 1000);
    const bool is_silence = how == asking_end::timed_out || how == asking_end::failed;
    if (what != said_so_far::unclear) {
        note_silence(is_silence && what == said_so_far::nothing);
    }
    if (!is_silence || what == said_so_far::an_answer) {
        was_heard_.store(false, relaxed);
        was_back_.store(false, relaxed);
    }
    if (!is_silence) {
        excused_.store(0, relaxed);
    }
    mean(true_rate_, hit ? 1 : 0, first);
    mean(worth_us_, worth_us, first);
    if (hit) {
        latencies_[class_of(took)].fetch_add(1, relaxed);
        mean(round_trip_us_, took_us, round_trip_us_.load(relaxed) == 0);
    }
    const auto distance = distance_.load(relaxed);
    if (hit && worth_us > 0) {
        // It gives again: what it cost before shall not count for long.
        if (distance > 0) {
            distance_.store(distance - 1, relaxed);
            worth_us_.store(std::max(worth_us_.load(relaxed), 0.0), relaxed);
        }
    } else if (worth_us_.load(relaxed) < 0 && answers_.load(relaxed) >= least_answers) {
        distance_.store(std::min(distance + 1, longest_distance), relaxed);
    }
}

void benefit::note_silence(bool silent) noexcept {
    if (silent == silent_.exchange(silent, relaxed)) {
        return;
    }
    if (silent) {
        distance_before_.store(distance_.load(relaxed), relaxed);
    } else {
        distance_.store(std::min(distance_before_.load(relaxed), distance_.load(relaxed)), relaxed);
        worth_us_.store(std::max(worth_us_.load(relaxed), 0.0), relaxed);
    }
    const std::chrono::nanoseconds pause = silent ? first_retry : retry_after;
    retry_pause_.store(pause.count(), relaxed);
}

bool benefit::is_excused(steady_time begun, steady_time now) noexcept {
    auto last = excused_at_.load(relaxed);
    if (last > begun.time_since_epoch().count()) {
        return true;
    }
    if (excused_.load(relaxed) >= most_excused) {
        return false;
    }
    if (excused_at_.compare_exchange_strong(last, now.time_since_epoch().count(), relaxed)) {
        excused_.fetch_add(1, relaxed);
    }
    return true;
}

void benefit::take_back_once(std::atomic<bool>& was) noexcept {
    if (silent_.load(relaxed) && !was.exchange(true, relaxed)) {
        note_silence(false);
    }
}

void benefit::came_back() noexcept {
    take_back_once(was_back_);
}

void benefit::heard() noexcept {
    take_back_once(was_heard_);
}

double benefit::cost(steady_time now) const noexcept {
    if (answers_.load(relaxed) == 0) {
        return untried_us;
    }
    const auto measured = round_trip_us_.load(relaxed);
    const auto round_trip = measured == 0 ? fruitless_us : std::max(measured, untried_us);
    const auto rate = std::max(true_rate_.load(relaxed), 0.001);
    const std::chrono::nanoseconds last{last_asked_.load(relaxed)},
        pause{retry_pause_.load(relaxed)};
    const bool is_last = silent_.load(relaxed) && now.time_since_epoch() - last < pause;
    return round_trip / rate + (is_last ? silent_us : 0);
}

std::chrono::microseconds benefit::patience(std::chrono::microseconds budget) const noexcept {
    constexpr std::chrono::microseconds least{10'000};
    const auto most = budget / 2;
    const auto usual = static_cast<std::int64_t>(round_trip_us_.load(relaxed));
    return usual == 0 ? most
                      : std::min(most, std::max(least, std::chrono::microseconds{4 * usual}));
}

benefit_figures benefit::figures() const noexcept {
    benefit_figures out;
    out.offered = offered_.load(relaxed);
    out.named = named_.load(relaxed);
    for (std::size_t i = 0; i < asking_ends; ++i) {
        out.ended[i] = ended_[i].load(relaxed);
    }
    for (std::size_t i = 0; i < latency_classes; ++i) {
        out.latencies[i] = latencies_[i].load(relaxed);
    }
    out.bytes = bytes_.load(relaxed);
    out.lost_bytes = lost_bytes_.load(relaxed);
    out.held_back = held_back_.load(relaxed);
    out.saved_ms = saved_ms_.load(relaxed);
    out.lost_ms = lost_ms_.load(relaxed);
    out.round_trip_ms = round_trip_us_.load(relaxed) / 1000;
    out.true_hit_rate = answers_.load(relaxed) == 0 ? 0 : true_rate_.load(relaxed);
    out.worth_ms = worth_us_.load(relaxed) / 1000;
    out.one_in = 1u << distance_.load(relaxed);
    return out;
}

void benefit::forget() noexcept {
    for (auto* counter : {&offered_, &named_, &bytes_, &lost_bytes_, &held_back_, &chances_}) {
        counter->store(0, relaxed);
    }
    for (auto& one : ended_) {
        one.store(0, relaxed);
    }
    for (auto& one : latencies_) {
        one.store(0, relaxed);
    }
    for (auto* sum : {&saved_ms_, &lost_ms_, &round_trip_us_, &worth_us_}) {
        sum->store(0, relaxed);
    }
    true_rate_.store(1, relaxed);
    answers_.store(0, relaxed);
    distance_.store(0, relaxed);
    distance_before_.store(0, relaxed);
    silent_.store(false, relaxed);
    was_heard_.store(false, relaxed);
    was_back_.store(false, relaxed);
    excused_.store(0, relaxed);
    excused_at_.store(0, relaxed);
    retry_pause_.store(std::chrono::nanoseconds{retry_after}.count(), relaxed);
    last_asked_.store(0, relaxed);
}

}  // namespace reprise::proxy::peer
