#include "tools/replay/answer.hpp"

#include "config/load.hpp"
#include "config/options.hpp"
#include "proxy/cache/disk/format.hpp"
#include "tools/replay/recommend.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace reprise::replay {

namespace {

using proxy::cache::eviction_kind;
using rule_kind = admission_choice::kind;

constexpr double noticeable = 0.01;  // of all requests, or bytes
constexpr std::uint64_t least_disk_of_all = 16u << 20;
constexpr std::uint64_t least_room = 1u << 20;
constexpr int most_rooms = 10;
constexpr double hottest_matter = 0.05;  // of all requests, that a sample has too few

constexpr admission_choice always_in{.what = rule_kind::always};
constexpr admission_choice second_hit{.what = rule_kind::nth_hit, .hits = 2};
constexpr admission_choice by_tinylfu{.what = rule_kind::tinylfu};

struct player {
    const question& asked;
    const recorded_trace& requests;
    const trace_summary& of;
    std::uint64_t unit;
    unsigned threads;

    // `bytes` of all tiers, `memory` of them.
    [[nodiscard]] setup made(eviction_kind policy,
                             const admission_choice& admission,
                             double probation,
                             std::uint64_t memory,
                             std::uint64_t disk) const {
        setup out;
        out.size.bytes = std::max<std::uint64_t>(1, (memory + disk) / unit);
        out.policy = {.kind = policy};
        out.admission = admission;
        out.probation = probation;
        out.wanted = asked.wanted;
        if (disk != 0) {
            out.disk = disk_choice{.memory_bytes = std::max<std::uint64_t>(1, memory / unit)};
        }
        return out;
    }

    // All that is admitted is written, once, and nothing of it again: a plain log.
    [[nodiscard]] setup plain_disk(setup one) const { return on_disk_of({}, std::move(one)); }

    // As it comes with a disk: what its settings make of a path, and of nothing else.
    [[nodiscard]] setup as_it_comes(std::uint64_t memory, std::uint64_t disk) const {
        const auto read = config::load(R"({"disk": {"path": "/var/cache/reprise"}})");
        const auto& usual = std::get<config::options>(read);
        return on_disk_of(
            usual.disk,
            made(usual.memory.policy, second_hit, usual.admission.probation, memory, disk));
    }

    [[nodiscard]] static setup on_disk_of(const config::disk_options& usual, setup one) {
        one.disk->write = usual.write == config::disk_write::admission ? write_when::admission
                                                                       : write_when::eviction;
        one.disk->carry = usual.carry;
        one.disk->selective = usual.selective;
        return one;
    }

    [[nodiscard]] setup lru(std::uint64_t bytes) const {
        auto out = made(eviction_kind::lru, always_in, 0, bytes, 0);
        out.scaled = true;  // nobody's: it has no limits but its room
        return out;
    }

    // A sample's count, as that of the whole.
    [[nodiscard]] tally of_whole(const tally& part) const {
        const auto sample = requests.sample();
        if (sample >= 1) {
            return part;
        }
        const auto grown = [&](std::uint64_t count) {
            return static_cast<std::uint64_t>(static_cast<double>(count) / sample);
        };
        tally out = part;
        out.requests = of.figures.requests;
        out.bytes = of.figures.bytes;
        out.waiting = part.waiting / sample;
        out.waited = part.waited / sample;
        // Keys that are asked for very often are in the sample or not, and are hits nearly always:
        // requests that the sample has too many or too few count as such (SHARDS-adj). Bytes do
        // not, for what is large is a hit less surely, but where much is missing.
        const auto whole = static_cast<double>(out.requests);
        const auto more = whole - static_cast<double>(part.requests) / sample;
        out.hits = static_cast<std::uint64_t>(
            std::clamp(static_cast<double>(part.hits) / sample + more, 0.0, whole));
        const auto all_bytes = static_cast<double>(out.bytes);
        auto hit_bytes = part.byte_hit_ratio() * all_bytes;
        if (more > hottest_matter * whole) {
            // Whole keys of the hottest are not in it, and their bytes are hits as they are.
            const auto those = std::max(0.0, all_bytes - static_cast<double>(part.bytes) / sample);
            hit_bytes = static_cast<double>(part.hit_bytes) / sample + those;
        }
        out.hit_bytes = static_cast<std::uint64_t>(std::min(hit_bytes, all_bytes));
        for (auto* count : {&out.disk_hits,
                            &out.written,
                            &out.written_bytes,
                            &out.carried_bytes,
                            &out.refused,
                            &out.refused_bytes,
                            &out.too_large,
                            &out.memory_bytes}) {
            *count = grown(*count);
        }
        return out;
    }

    [[nodiscard]] std::vector<result> play(const std::vector<setup>& setups,
                                           const std::function<void(double)>& progress) const {
        trace_scale scale{.objects = of.totals.objects,
                          .unique_bytes = of.totals.bytes,
                          .unit = unit,
                          .sample = requests.sample()};
        std::vector<std::unique_ptr<model>> models;
        for (const auto& one : setups) {
            models.push_back(make_model(one, scale));
        }
        const auto seconds = run(requests, models, threads, progress);
        std::vector<result> out;
        for (std::size_t i = 0; i < setups.size(); ++i) {
            out.push_back({.what = setups[i],
                           .capacity = setups[i].size.bytes,
                           .counted = of_whole(models[i]->figures()),
                           .seconds = seconds[i],
                           .without_admission = {}});
        }
        return out;
    }

    [[nodiscard]] double worth(const result& one) const {
        switch (asked.wanted) {
        case objective::requests: return one.counted.hit_ratio();
        case objective::bytes: return one.counted.byte_hit_ratio();
        case objective::seconds: return one.counted.spared_ratio();
        }
        return 0;
    }
    [[nodiscard]] const result& better(const result& a, const result& b) const {
        return worth(b) > worth(a) ? b : a;
    }
    [[nodiscard]] double trace_seconds() const {
        return static_cast<double>(of.figures.last_second - of.figures.first_second);
    }
};

// Powers of two that end where all that was asked for fits; and those that were named.
std::vector<std::uint64_t> rooms_to_try(std::uint64_t unique,
                                        std::uint64_t memory,
                                        std::uint64_t disk) {
    const auto most = std::bit_ceil(std::max(unique, least_room));
    std::vector<std::uint64_t> out;
    for (auto bytes = most; bytes >= least_room && out.size() < most_rooms; bytes /= 2) {
        out.push_back(bytes);
    }
    out.push_back(memory);
    if (disk != 0) {
        for (const auto part : {disk / 4, disk / 2, disk, 2 * disk, 4 * disk}) {
            if (part >= least_disk_of_all) {
                out.push_back(memory + part);
            }
        }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

std::vector<setup> sweep_of_memory(const player& by, std::uint64_t memory) {
    std::vector<setup> out;
    for (const auto policy : {eviction_kind::lru,
                              eviction_kind::sieve,
                              eviction_kind::s3_fifo,
                              eviction_kind::w_tinylfu,
                              eviction_kind::gdsf}) {
        out.push_back(by.made(policy, always_in, 0, memory, 0));
        for (const double probation : {0.0, 0.1, 0.3}) {
            out.push_back(by.made(policy, second_hit, probation, memory, 0));
        }
        out.push_back(by.made(policy, by_tinylfu, 0.1, memory, 0));
    }
    return out;
}

std::vector<setup> sweep_of_disk(const player& by, std::uint64_t memory, std::uint64_t disk) {
    std::vector<setup> out;
    for (const auto policy : {eviction_kind::sieve,
                              eviction_kind::s3_fifo,
                              eviction_kind::w_tinylfu,
                              eviction_kind::gdsf}) {
        out.push_back(by.made(policy, always_in, 0, memory, disk));
        for (const double probation : {0.0, 0.1, 1.0}) {
            out.push_back(by.made(policy, second_hit, probation, memory, disk));
        }
    }
    for (const auto policy : {eviction_kind::sieve, eviction_kind::gdsf}) {
        for (const double probation : {0.0, 1.0}) {
            out.push_back(by.plain_disk(by.made(policy, second_hit, probation, memory, disk)));
        }
    }
    return out;
}

// What the curve is drawn with: what did best on the traces of tools/results.
std::vector<setup> curve_at(const player& by, std::uint64_t bytes, std::uint64_t memory) {
    const auto in_memory = std::min(bytes, memory);
    const auto disk = bytes - in_memory;
    if (disk == 0) {
        return {by.made(eviction_kind::gdsf, always_in, 0, bytes, 0),
                by.made(eviction_kind::w_tinylfu, always_in, 0, bytes, 0),
                by.lru(bytes)};
    }
    return {by.made(eviction_kind::gdsf, second_hit, 1, in_memory, disk),
            by.made(eviction_kind::gdsf, always_in, 0, in_memory, disk),
            by.lru(bytes)};
}

std::vector<room_step> curve_of(const player& by,
                                std::uint64_t memory,
                                std::uint64_t disk,
                                std::vector<result>& all,
                                const std::function<void(double)>& progress) {
    std::vector<room_step> out;
    std::vector<setup> setups;
    for (const auto bytes : rooms_to_try(by.of.totals.bytes * by.unit, memory, disk)) {
        // Beside a disk of less than settings take there is nothing to try.
        if (bytes > memory && (by.asked.disk == 0u || bytes - memory < least_disk_of_all)) {
            continue;
        }
        out.push_back({.bytes = bytes, .memory = std::min(bytes, memory), .best = {}, .lru = {}});
        const auto here = curve_at(by, bytes, memory);
        setups.insert(setups.end(), here.begin(), here.end());
    }
    const auto played = by.play(setups, progress);
    const auto each = played.size() / std::max<std::size_t>(1, out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        auto& step = out[i];
        step.best = by.better(played[each * i], played[each * i + 1]);
        step.lru = played[each * i + 2];
        step.cost = monthly_cost(by.asked.costs,
                                 step.memory,
                                 step.bytes - step.memory,
                                 step.best.counted,
                                 by.trace_seconds());
    }
    all.insert(all.end(), played.begin(), played.end());
    return out;
}

std::uint64_t enough_of(const player& by, const std::vector<room_step>& rooms) {
    double most = 0;
    for (const auto& one : rooms) {
        most = std::max(most, by.worth(one.best));
    }
    for (const auto& one : rooms) {
        if (by.worth(one.best) > most - noticeable) {
            return one.bytes;
        }
    }
    return 0;
}

std::uint64_t cheapest_of(const std::vector<room_step>& rooms) {
    const auto least = std::min_element(
        rooms.begin(), rooms.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
    return least == rooms.end() ? 0 : least->bytes;
}

}  // namespace

double monthly_cost(const prices& costs,
                    std::uint64_t memory,
                    std::uint64_t disk,
                    const tally& counted,
                    double trace_seconds) {
    constexpr double gb = 1e9, month = 30.0 * 24 * 3600;
    const auto months = std::max(trace_seconds, 1.0) / month;
    const auto room = costs.memory * static_cast<double>(memory) / gb +
                      costs.disk * static_cast<double>(disk) / gb;
    const auto traffic = costs.origin * static_cast<double>(counted.origin_bytes()) / gb;
    const auto waiting = costs.second * costs.miss_seconds * static_cast<double>(counted.misses());
    return room + (traffic + waiting) / months;
}

answer find_answer(const question& asked,
                   const recorded_trace& requests,
                   const trace_summary& of,
                   std::uint64_t unit,
                   unsigned threads,
                   const std::function<void(double)>& progress) {
    const player by{asked, requests, of, unit, threads};
    const auto half = [&progress](double from) {
        return [&progress, from](double share) {
            if (progress) {
                progress(from + share / 2);
            }
        };
    };
    answer out;
    out.sample = requests.sample();
    out.memory = asked.memory.value_or(config::options{}.memory.size);
    out.disk_was_named = asked.disk.has_value();
    out.rooms = curve_of(by, out.memory, asked.disk.value_or(0), out.results, half(0));
    out.enough = enough_of(by, out.rooms);
    out.cheapest = asked.costs.any() ? cheapest_of(out.rooms) : 0;
    const auto wanted_room = out.cheapest != 0 ? out.cheapest : out.enough;
    out.disk = asked.disk.value_or(wanted_room > out.memory ? wanted_room - out.memory : 0);

    const auto in_memory = sweep_of_memory(by, out.memory);
    auto setups = in_memory;
    const config::options usual;
    setups.push_back(by.made(usual.memory.policy, second_hit, 0, out.memory, 0));
    setups.push_back(by.lru(out.memory));
    const auto first_of_disk = setups.size();
    if (out.disk != 0) {
        setups.push_back(by.as_it_comes(out.memory, out.disk));
        setups.push_back(by.lru(out.memory + out.disk));
        const auto more = sweep_of_disk(by, out.memory, out.disk);
        setups.insert(setups.end(), more.begin(), more.end());
    }
    const auto played = by.play(setups, half(0.5));
    out.as_it_comes = played[in_memory.size()];
    out.plain_lru = played[in_memory.size() + 1];
    // What is written to memory wears nothing out.
    out.best_in_memory = played.front();
    for (std::size_t i = 0; i < in_memory.size(); ++i) {
        out.best_in_memory = by.better(out.best_in_memory, played[i]);
    }
    out.recommended = out.best_in_memory;
    for (const auto& one : out.rooms) {
        if (one.bytes == out.cheapest && one.bytes < out.memory && !asked.disk) {
            out.recommended = one.best;
        }
    }
    if (out.disk != 0) {
        out.disk_as_it_comes = played[first_of_disk];
        out.lru_of_both = played[first_of_disk + 1];
        const std::span on_disk{played.begin() + static_cast<std::ptrdiff_t>(first_of_disk) + 2,
                                played.end()};
        out.best_with_disk = *best_of(on_disk, on_disk.front().what.size, asked.wanted);
        if (out.disk_was_named || out.cheapest != 0 ||
            by.worth(*out.best_with_disk) > by.worth(out.best_in_memory) + noticeable) {
            out.recommended = *out.best_with_disk;
        }
    }
    out.settings = settings_for(out.recommended, asked.wanted, of.totals.objects, unit);
    for (const auto& one : played) {
        const auto is_same = [&one](const result& other) { return other.what == one.what; };
        if (std::none_of(out.results.begin(), out.results.end(), is_same)) {
            out.results.push_back(one);
        }
    }
    return out;
}

}  // namespace reprise::replay
