#include "tools/replay/judge.hpp"

#include "tools/replay/belady.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/trace.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

namespace reprise::replay {

namespace {

constexpr std::array four{"w-tinylfu", "s3-fifo", "sieve", "arc"};
// Limits are met where they are reached, whatever the last digits of a quotient.
constexpr double rounding = 1e-9;
constexpr double close = 0.01 + rounding;
constexpr double bytes_allowed = 0.05 + rounding;
constexpr double way_wanted = 0.7 - rounding;

double share(std::uint64_t part, std::uint64_t of) noexcept {
    return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(1, of));
}

double written_allowed(const std::string& trace) noexcept {
    return trace == "bu1998" || trace == "blog2016" || trace == "cdnweb" ? 0.25 : 0.5;
}

// Everything that is played at one size, by name. The smallest size is (d)'s alone.
std::vector<std::pair<std::string, setup>> setups_at(const cache_size& size, bool only_regret) {
    std::vector<std::pair<std::string, setup>> out;
    const auto one_tier = [&](const std::string& policy, const char* admission) {
        setup what;
        what.size = size;
        what.policy = policy_choice_of(policy).value();
        what.admission = admission_choice_of(admission).value();
        what.counts_overhead = true;
        return what;
    };
    out.emplace_back("lru", one_tier("lru", "always"));
    for (const auto* policy : four) {
        out.emplace_back(policy, one_tier(policy, "always"));
    }
    for (const auto wanted : {objective::requests, objective::bytes}) {
        const std::string name{to_string(wanted)};
        const auto profile = recommended_profile(wanted, size);
        out.emplace_back(name, profile);
        if (only_regret) {
            continue;
        }
        const auto with = [&](const char* what, auto change) {
            auto other = profile;
            change(other);
            out.emplace_back(name + what, other);
        };
        with(", by object", [](setup& it) { it.disk->by_object = true; });
        // As the proxy does it: what is written when it is admitted stays in memory as well.
        with(", at admission", [](setup& it) {
            it.disk->write = write_when::admission;
            it.disk->copies = true;
        });
        with(", take all", [](setup& it) { it.disk->selective = false; });
        with(", at admission, take all", [](setup& it) {
            it.disk->write = write_when::admission;
            it.disk->copies = true;
            it.disk->selective = false;
        });
        with(", strict", [](setup& it) { it.probation = 0; });
    }
    if (!only_regret) {
        for (const std::string policy : {"lru", "w-tinylfu", "s3-fifo", "sieve", "arc"}) {
            out.emplace_back(policy + ", second", one_tier(policy, "second-hit"));
        }
    }
    return out;
}

}  // namespace

setup recommended_profile(objective wanted, const cache_size& size) {
    setup what;
    what.size = size;
    what.policy = {.kind = proxy::cache::eviction_kind::gdsf};
    what.admission = {.what = admission_choice::kind::nth_hit, .hits = 2};
    what.probation = 1;
    what.disk = disk_choice{.memory = 0.4};
    what.wanted = wanted;
    return what;
}

double above(std::uint64_t a, std::uint64_t b) noexcept {
    return share(a, b) - 1;
}

std::string trace_verdicts::best_of_four(const std::string& size, objective wanted) const {
    const auto lost = [&](const char* policy) {
        const auto& counted = of(size, policy);
        return wanted == objective::requests ? counted.misses() : counted.origin_bytes();
    };
    const auto* best = four.front();
    for (const auto* policy : four) {
        if (lost(policy) < lost(best)) {
            best = policy;
        }
    }
    return best;
}

bool meets_requests(const std::string& trace,
                    const tally& profile,
                    const tally& best_of_four,
                    const tally& lru) noexcept {
    return above(profile.misses(), best_of_four.misses()) <= close &&
           above(profile.origin_bytes(), lru.origin_bytes()) <= bytes_allowed &&
           share(profile.written_bytes, lru.written_bytes) <= written_allowed(trace);
}

bool meets_bytes(const tally& profile, const tally& best_of_four, const tally& lru) noexcept {
    return above(profile.origin_bytes(), best_of_four.origin_bytes()) <= close &&
           share(profile.written_bytes, lru.written_bytes) <= 0.5;
}

double way_to_belady(const tally& profile, const tally& lru, const tally& belady) noexcept {
    const auto way = static_cast<double>(lru.misses()) - static_cast<double>(belady.misses());
    const auto gone = static_cast<double>(lru.misses()) - static_cast<double>(profile.misses());
    return way <= 0 ? 1 : gone / way;
}

bool meets_way(const tally& profile, const tally& lru, const tally& belady) noexcept {
    return way_to_belady(profile, lru, belady) >= way_wanted &&
           share(profile.written_bytes, lru.written_bytes) <= 0.7;
}

bool regrets_nothing(const tally& profile, const tally& lru) noexcept {
    return above(profile.misses(), lru.misses()) <= close;
}

trace_verdicts judge_trace(const std::string& path, unsigned threads) {
    trace_verdicts out;
    out.trace = std::filesystem::path{path}.filename().string();
    out.trace.resize(std::min(out.trace.size(), out.trace.find('.')));

    trace source{{path}, log_format::trace};
    const recorded_trace requests{source};
    const auto totals = source.objects().sum();
    const trace_scale scale{.objects = totals.objects,
                            .unique_bytes = totals.bytes,
                            .unit = totals.bytes == totals.objects ? unit_of_unknown : 1};
    const auto next = std::make_shared<const next_uses>(requests);

    std::vector<std::pair<std::string, setup>> wanted;
    std::vector<std::unique_ptr<model>> models;
    for (const double size : {0.001, 0.01, 0.1}) {
        const cache_size of_unique{.of_unique = size};
        const bool only_regret = size < 0.01;
        for (auto& one : setups_at(of_unique, only_regret)) {
            models.push_back(make_model(one.second, scale));
            wanted.push_back(std::move(one));
        }
        if (!only_regret) {
            const auto bytes = of_unique.resolved(totals.bytes);
            models.push_back(std::make_unique<belady>(next, bytes));
            setup yardstick;
            yardstick.size = of_unique;
            wanted.emplace_back("belady", yardstick);
        }
    }
    const auto seconds = run(requests, models, threads);
    for (std::size_t i = 0; i < models.size(); ++i) {
        const auto& [name, what] = wanted[i];
        out.played[{to_string(what.size), name}] = {.what = what,
                                                    .capacity = what.size.resolved(totals.bytes),
                                                    .counted = models[i]->figures(),
                                                    .seconds = seconds[i],
                                                    .without_admission = {}};
    }
    return out;
}

}  // namespace reprise::replay
