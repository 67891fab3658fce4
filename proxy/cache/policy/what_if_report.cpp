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
    out.memory_bytes = slots_.size() * per_key + slots_.bucket_count() * sizeof(void*) +
                       minutes_.size() * sizeof(minute) + requests_->memory();
    for (const auto& one : ghosts_) {
        out.memory_bytes += one->held->overhead();
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
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
        const auto gain = worth(out.rows[i]) - worth(out.rows[in_force_]);
        if (out.rows[i].of == what_if_row::group::exponent && gain >= least_step &&
            (!out.step || gain > out.step->gain)) {
            out.step = what_if_advice{
                .admission = setup_.admission, .exponent = ghosts_[i]->exponent, .gain = gain};
        }
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
    if (gain < least_gain) {
        out.text = out.lost_to_admission < least_gain
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

// Whether the same was advised often enough; then it is forgotten.
bool what_if::leaning::is_old(const std::optional<what_if_advice>& next) noexcept {
    const bool same = to && next && to->admission == next->admission &&
                      to->exponent == next->exponent;
    times = same ? times + 1 : next ? 1 : 0;
    to = next;
    if (times < patience) {
        return false;
    }
    times = 0;
    return true;
}

std::optional<what_if_advice> what_if::decide(steady_time now) {
    const std::lock_guard lock{guard_};
    const auto told = made_report(now);
    const bool admit = admission_.is_old(told.advice);
    const bool step = exponent_.is_old(told.step);
    return admit ? told.advice : step ? told.step : std::nullopt;
}

}  // namespace reprise::proxy::cache
