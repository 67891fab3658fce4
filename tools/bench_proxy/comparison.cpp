#include "tools/bench_proxy/comparison.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::bench {

namespace {

/// The n-th least; of fewer the greatest.
double from_below(std::vector<double> values, std::size_t n) {
    std::sort(values.begin(), values.end());
    return values[std::min(n, values.size() - 1)];
}

/// From how many rounds on the luckiest is left out.
constexpr std::size_t rounds_with_luck = 4;

bool lies_above(const std::vector<double>& these, const std::vector<double>& those) {
    const std::size_t low = these.size() >= rounds_with_luck ? 1 : 0;
    const std::size_t high = those.size() >= rounds_with_luck ? 1 : 0;
    return from_below(these, low) > from_below(those, those.size() - 1 - high);
}

}  // namespace

const char* to_string(verdict one) noexcept {
    switch (one) {
    case verdict::no_row: return "absent";
    case verdict::same: return "";
    case verdict::better: return "better";
    case verdict::unclear: return "unclear";
    case verdict::worse: return "WORSE";
    }
    return "";
}

verdict compare(const row& now, const row& kept) {
    if (now.rounds.empty() || kept.rounds.empty()) {
        return verdict::no_row;
    }
    const auto mine = median_of(now.rounds);
    const auto theirs = median_of(kept.rounds);
    const bool differs = std::abs(mine - theirs) > std::max(now.grain, kept.grain);
    if (!now.judged || !differs) {
        return verdict::same;
    }
    if (mine > theirs * (1 + tolerance)) {
        return lies_above(now.rounds, kept.rounds) ? verdict::worse : verdict::unclear;
    }
    if (mine < theirs * (1 - tolerance) && lies_above(kept.rounds, now.rounds)) {
        return verdict::better;
    }
    return verdict::same;
}

std::vector<compared_row> compare(const result& now, const result& kept, bool whole) {
    std::vector<compared_row> out;
    for (const auto& one : now.rows) {
        compared_row next{one.name, one.unit, median_of(one.rounds), 0, verdict::no_row};
        if (const auto* const other = kept.find(one.name)) {
            next.kept = median_of(other->rounds);
            next.said = compare(one, *other);
        }
        out.push_back(std::move(next));
    }
    for (const auto& one : kept.rows) {
        if (whole && one.judged && now.find(one.name) == nullptr) {
            out.push_back({one.name, one.unit, 0, median_of(one.rounds), verdict::no_row});
        }
    }
    return out;
}

}  // namespace reprise::bench
