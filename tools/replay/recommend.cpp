#include "tools/replay/recommend.hpp"

#include "config/quantity.hpp"
#include "tools/replay/made_of.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace reprise::replay {

namespace {

// The least that the settings take: a log of a day on a small site asks for less.
constexpr std::uint64_t least_disk = 16u << 20, least_memory = 1u << 20;

double lost(const tally& counted, objective wanted) noexcept {
    switch (wanted) {
    case objective::requests: return static_cast<double>(counted.misses());
    case objective::bytes: return static_cast<double>(counted.origin_bytes());
    case objective::seconds: return counted.waited;
    }
    return 0;
}

// "256MiB"; what is no whole number of some unit, as bytes.
nlohmann::ordered_json size_as_set(std::uint64_t bytes) {
    constexpr std::uint64_t kib = 1024;
    return bytes % kib == 0 ? nlohmann::ordered_json(config::size_to_string(bytes))
                            : nlohmann::ordered_json(bytes);
}

}  // namespace

bool can_be_set(const setup& what) noexcept {
    using kind = admission_choice::kind;
    return what.policy.kind.has_value() && !what.policy.exponent &&
           !(what.disk && what.disk->by_object) && what.admission.what != kind::exact_second &&
           what.admission.what != kind::exact_window;
}

const result* best_of(std::span<const result> results,
                      const cache_size& size,
                      objective wanted,
                      double close) {
    const auto counts = [&](const result& one) {
        return one.what.size == size && can_be_set(one.what);
    };
    auto fewest = std::numeric_limits<double>::infinity();
    for (const auto& one : results) {
        if (counts(one)) {
            fewest = std::min(fewest, lost(one.counted, wanted));
        }
    }
    const result* best = nullptr;
    for (const auto& one : results) {
        const bool is_close = lost(one.counted, wanted) <= fewest * (1 + close);
        if (counts(one) && is_close &&
            (best == nullptr || one.counted.written_bytes < best->counted.written_bytes)) {
            best = &one;
        }
    }
    return best;
}

std::string settings_for(const result& chosen,
                         objective wanted,
                         std::uint64_t objects,
                         std::uint64_t unit) {
    using kind = admission_choice::kind;
    nlohmann::ordered_json out;
    const auto& what = chosen.what;
    const auto capacity = chosen.capacity * unit;
    const auto settings = options_of(what, capacity);
    if (what.disk) {
        out["disk"]["path"] = "/var/cache/reprise";
        out["disk"]["size"] = size_as_set(std::max(settings.disk.size, least_disk));
        out["disk"]["write"] = what.disk->write == write_when::admission ? "admission" : "eviction";
        out["disk"]["selective"] = what.disk->selective;
        out["disk"]["carry"] = what.disk->carry;
    }
    out["memory"]["size"] = size_as_set(std::max(settings.memory.size, least_memory));
    out["memory"]["policy"] = config::to_string(what.policy.kind.value());
    auto& admission = out["admission"];
    if (what.admission.what == kind::always) {
        admission["policy"] = "always";
    } else if (what.admission.what == kind::tinylfu) {
        admission["policy"] = "tinylfu";
    } else if (what.admission.what == kind::automatic) {
        admission["policy"] = "auto";
    } else if (what.admission.hits == 2) {
        admission["policy"] = "second-hit";
    } else {
        admission["policy"] = "nth-hit";
        admission["hits"] = what.admission.hits;
    }
    // Also where nothing waits, since with a disk the default is "100%". "auto" finds its own, and would
    // not go below what is written.
    if (what.admission.what != kind::automatic) {
        admission["probation"] = config::percentage_to_string(what.probation);
    }
    if (!what.scaled && what.remember_objects != 0) {
        admission["remember"]["objects"] = what.remember_objects;
    } else if (!what.scaled || what.remembers_automatically) {
        admission["remember"] = "auto";
    } else if (what.admission.what == kind::nth_hit) {
        admission["remember"]["objects"] = std::max<std::uint64_t>(objects, 1'000);
    }
    out["caching"]["objective"] = to_string(wanted);
    return out.dump(2);
}

}  // namespace reprise::replay
