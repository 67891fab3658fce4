// What the ghosts have to tell, and the advice that follows from it.

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "proxy/cache/policy/what_if_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace reprise::proxy::cache {

namespace {

std::string percent(double share, int digits = 1) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f%%", digits, share * 100);
    return text;
}

std::uint64_t memory_of(const filter::admission_filter* filter) noexcept {
    constexpr std::uint64_t generations = 2, a_block = 64;
    return filter == nullptr ? 0
                             : generations * filter->settings().layers * filter->blocks() * a_block;
}

}  // namespace

std::string gained(config::caching_objective wanted, double gain) {
    switch (wanted) {
    case config::caching_objective::requests:
        return "made " + percent(gain) + " of requests hits that were none";
    case config::caching_objective::bytes:
        return "made " + percent(gain) + " of bytes hits that were none";
    case config::caching_objective::seconds:
        return "spared " + percent(gain) + " of all waiting more";
    }
    return {};
}

std::string to_string(const admission_variant& variant) {
    std::string text;
    switch (variant.what) {
    case admission_variant::kind::always: text = "always"; break;
    case admission_variant::kind::tinylfu: text = "tinylfu"; break;
    case admission_variant::kind::nth_hit:
        text = variant.hits == 2 ? "second-hit" : "nth-hit " + std::to_string(variant.hits);
        break;
    }
    if (variant.probation > 0) {
        text += " with probation " + percent(variant.probation, variant.probation < 0.01 ? 1 : 0);
    }
    return text;
}

double what_if::sample() const noexcept {
    return std::ldexp(static_cast<double>(threshold_.load(relaxed)), -32);
}

what_if_report what_if::report(steady_time now) const {
    const std::lock_guard lock{guard_};
    return made_report(now);
}

what_if_report what_if::made_report(steady_time now) const {
    what_if_report out;
    const auto last = std::chrono::floor<std::chrono::minutes>(now.time_since_epoch()).count();
    minute sum;
    for (const auto& one : minutes_) {
        if (one.number < 0 || one.number > last || last - one.number > covered.count()) {
            continue;
        }
        sum.requests += one.requests;
        sum.bytes += one.bytes;
        sum.seconds += one.seconds;
        sum.dropped += one.dropped;
        sum.set_aside += one.set_aside;
        sum.lost += one.lost;
        sum.won += one.won;
        for (std::size_t i = 0; i < ghosts_.size(); ++i) {
            sum.of[i].hits += one.of[i].hits;
            sum.of[i].hit_bytes += one.of[i].hit_bytes;
            sum.of[i].hit_seconds += one.of[i].hit_seconds;
            sum.of[i].written += one.of[i].written;
        }
    }
    out.span = std::chrono::floor<std::chrono::seconds>(
        std::clamp<steady_time::duration>(now - begun_, steady_time::duration{}, covered));
    out.requests = sum.requests;
    out.dropped = sum.dropped + dropped_.load(relaxed);
    out.set_aside = sum.set_aside;
    if (setup_.policy == eviction_kind::gdsf) {
        out.exponent = setup_.exponent;
    }
    out.sample = sample();
    out.keys = slots_.size();
    // A key's slot and its node in the table, with what the heap adds to each.
    constexpr auto per_key = sizeof(slot) + sizeof(decltype(slots_)::value_type) +
                             4 * sizeof(void*);
    out.memory_bytes = (slots_.size() + spare_.size()) * per_key +
                       slots_.bucket_count() * sizeof(void*) + minutes_.size() * sizeof(minute) +
                       sizeof(evidence_) + requests_->memory() + memory_of(filter_.get()) +
                       memory_of(former_.get());
    for (const auto& one : ghosts_) {
        out.memory_bytes += one->held->overhead() + (one->disk ? one->disk->overhead() : 0);
    }
    if (sum.requests == 0) {
        out.text = "nothing that may be stored was asked for yet";
        return out;
    }
    const auto requests = static_cast<double>(sum.requests);
    const auto bytes = std::max(1.0, static_cast<double>(sum.bytes));
    out.lost_to_admission = static_cast<double>(sum.lost) / requests;
    out.won_by_admission = static_cast<double>(sum.won) / requests;
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        const auto& line = sum.of[i];
        out.rows.push_back({.of = ghosts_[i]->of,
                            .name = ghosts_[i]->name,
                            .in_force = i == in_force_,
                            .hit_ratio = static_cast<double>(line.hits) / requests,
                            .byte_hit_ratio = static_cast<double>(line.hit_bytes) / bytes,
                            .wait_hit_ratio = line.hit_seconds / sum.seconds,
                            .written_bytes = static_cast<std::uint64_t>(line.written)});
    }
    advise(out);
    return out;
}

// The best of the admission rows, if it is noticeably better than what is in force. Among those
// within a fifth of a point of the best, the one that writes least.
void what_if::advise(what_if_report& out) const {
    const auto worth = [&](const what_if_row& row) {
        switch (setup_.wanted) {
        case config::caching_objective::requests: return row.hit_ratio;
        case config::caching_objective::bytes: return row.byte_hit_ratio;
        case config::caching_objective::seconds: return row.wait_hit_ratio;
        }
        return 0.0;
    };
    if (out.requests < least_requests) {
        out.text = "too few requests to tell: " + std::to_string(out.requests) + " sampled of " +
                   std::to_string(least_requests) + " needed";
        return;
    }
    double most = 0;
    for (const auto& row : out.rows) {
        if (row.of == what_if_row::group::admission) {
            most = std::max(most, worth(row));
        }
    }
    constexpr double as_good = 0.002;
    std::size_t best = in_force_;
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
        const auto& row = out.rows[i];
        if (row.of != what_if_row::group::admission || worth(row) < most - as_good) {
            continue;
        }
        if (worth(out.rows[best]) < most - as_good ||
            row.written_bytes < out.rows[best].written_bytes) {
            best = i;
        }
    }
    const auto gain = worth(out.rows[best]) - worth(out.rows[in_force_]);
    const auto lost = percent(out.lost_to_admission);
    if (gain < least_advice) {
        out.text = out.lost_to_admission < least_advice
                       ? "admission costs little: " + lost + " of requests missed for it"
                       : lost + " of requests missed for admission, and " +
                             percent(out.won_by_admission) +
                             " were hits by it: nothing that was tried does better by 1%";
        return;
    }
    const auto& to = ghosts_[best]->admission;
    out.advice = what_if_advice{.admission = to, .exponent = setup_.exponent, .gain = gain};
    std::string settings = to.what == admission_variant::kind::always    ? "\"policy\": \"always\""
                           : to.what == admission_variant::kind::tinylfu ? "\"policy\": \"tinylfu\""
                           : to.hits == 2
                               ? "\"policy\": \"second-hit\""
                               : "\"policy\": \"nth-hit\", \"hits\": " + std::to_string(to.hits);
    settings += ", \"probation\": \"" + percent(to.probation, 0) + '"';
    out.text = "\"admission\": { " + settings + " } would have " + gained(setup_.wanted, gain) +
               "; " + lost + " of requests missed for admission";
}

std::size_t what_if::rung_in_force() const noexcept {
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        if (ghosts_[i]->of == what_if_row::group::exponent &&
            ghosts_[i]->exponent == setup_.exponent) {
            return i;
        }
    }
    return in_force_;
}

void what_if::leave(std::size_t way, what_if_row::group of) noexcept {
    for (auto* count : {&left_[way], &steps_[of == what_if_row::group::exponent ? 1 : 0]}) {
        *count = static_cast<std::uint8_t>(std::min(*count + 1u, 255u));
    }
    settled_at_ = evidence_.requests();
}

// n of the header: what a change to this one costs.
unsigned what_if::dearth_of(std::size_t way) const noexcept {
    constexpr unsigned cheap = 4;
    const auto steps = steps_[ghosts_[way]->of == what_if_row::group::exponent ? 1 : 0];
    return std::min(std::max<unsigned>(left_[way], steps > cheap ? steps - cheap : 0u), dearest);
}

void what_if::forgive() noexcept {
    unsigned most = 0;
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        most = std::max(most, dearth_of(i));
    }
    constexpr std::uint64_t times = 16;
    if (evidence_.requests() - settled_at_ < times * (least_evidence << most)) {
        return;
    }
    settled_at_ = evidence_.requests();
    const auto less = [](auto& counts) {
        for (auto& one : counts) {
            one = static_cast<std::uint8_t>(one - (one > 0 ? 1 : 0));
        }
    };
    less(left_);
    less(steps_);
}

// What is surely better than the one in force, and better by most of its group. Where writing is
// dear (a disk), it is the one that writes least among those that are about as good. What could not be
// put in force is left out: chosen, it would change nothing, and hide what would.
std::optional<what_if_advice> what_if::best_of(what_if_row::group of,
                                               const what_if_report& told,
                                               double least_probation) const {
    const bool admits = of == what_if_row::group::admission;
    const auto here = admits ? in_force_ : rung_in_force();
    const double as_good = setup_.memory_share < 1 ? least_gain : 0;
    const auto is_allowed = [&](const ghost& one) {
        return !admits || one.admission.probation >= least_probation ||
               one.admission.what == admission_variant::kind::always;
    };
    const auto written = [&told](std::size_t way) {
        return way < told.rows.size() ? told.rows[way].written_bytes : 0;
    };
    std::array<std::optional<paired_evidence::gain>, most_ghosts> gains;
    double most = 0;
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        if (ghosts_[i]->of == of && i != here && is_allowed(*ghosts_[i])) {
            const auto dear = dearth_of(i);
            gains[i] = evidence_.gain_of(
                i, here, std::ldexp(least_gain, static_cast<int>(dear)), least_evidence << dear);
            most = gains[i] ? std::max(most, gains[i]->of_misses) : most;
        }
    }
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        if (gains[i] && gains[i]->of_misses >= most - as_good &&
            (!best || written(i) < written(*best))) {
            best = i;
        }
    }
    if (!best) {
        return std::nullopt;
    }
    return what_if_advice{.admission = admits ? ghosts_[*best]->admission : setup_.admission,
                          .exponent = admits ? setup_.exponent : ghosts_[*best]->exponent,
                          .gain = gains[*best]->of_all,
                          .of_misses = gains[*best]->of_misses};
}

std::optional<what_if_advice> what_if::decide(steady_time now, double least_probation) {
    const std::lock_guard lock{guard_};
    forgive();
    const auto told = made_report(now);
    const auto admission = best_of(what_if_row::group::admission, told, least_probation);
    const auto exponent = best_of(what_if_row::group::exponent, told, least_probation);
    const bool is_first = admission && (!exponent || admission->of_misses >= exponent->of_misses);
    return is_first ? admission : exponent;
}

}  // namespace reprise::proxy::cache
