#include "proxy/cache/policy/paired_evidence.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::proxy::cache {

namespace {

// Standard errors that chance alone exceeds about once in a hundred times, by how many batches they
// were estimated from (Student's t, within a tenth from 8 to 16).
double beyond_chance(std::size_t batches) noexcept {
    return 2.3 + 6.0 / static_cast<double>(batches - 1);
}

// What is true of a burst need not be of what it is a part of: eight times as long must not say the
// opposite.
constexpr std::size_t confirming = 3;

}  // namespace

void paired_evidence::end_batch() noexcept {
    requests_ += now_.requests;
    auto done = now_;
    now_ = {};
    now_.begun = requests_;
    for (auto& at : levels_) {
        at.last[at.next] = done;
        at.next = (at.next + 1) % kept;
        ++at.count;
        if (at.count % 2 != 0) {
            return;
        }
        const auto& former = at.back(1);
        done.begun = former.begun;
        done.requests += former.requests;
        done.asked += former.asked;
        for (std::size_t way = 0; way < ways; ++way) {
            done.won[way] += former.won[way];
        }
    }
}

std::optional<paired_evidence::looked_at> paired_evidence::look(const level& at,
                                                                std::size_t one,
                                                                std::size_t other) const noexcept {
    const auto since = std::max(since_[one], since_[other]);
    std::size_t count = 0;
    double sum = 0, squares = 0, asked = 0, others = 0;
    std::uint64_t requests = 0;
    while (count < std::min(at.count, kept) && at.back(count).begun >= since) {
        const auto& batch_of = at.back(count);
        const auto difference = batch_of.won[one] - batch_of.won[other];
        sum += difference;
        squares += difference * difference;
        asked += batch_of.asked;
        others += batch_of.won[other];
        requests += batch_of.requests;
        ++count;
    }
    if (count < fewest || !(asked > 0)) {
        return std::nullopt;
    }
    const auto n = static_cast<double>(count);
    const auto spread = std::max(0.0, squares - sum * sum / n) / (n - 1);
    const auto error = std::sqrt(n * spread);
    const auto missed = std::max(asked - others, asked * 1e-9);
    return looked_at{
        .found = {.of_all = sum / asked, .of_misses = sum / missed, .requests = requests},
        .errors = error > 0  ? sum / error
                  : sum != 0 ? std::copysign(1e9, sum)
                             : 0,
        .needed = beyond_chance(count)};
}

std::optional<paired_evidence::gain> paired_evidence::gain_of(
    std::size_t one, std::size_t other, double least, std::uint64_t least_requests) const noexcept {
    std::array<looked_at, levels> seen{};
    std::size_t count = 0;
    for (const auto& at : levels_) {
        const auto found = look(at, one, other);
        if (!found) {
            break;  // nor is there enough at the levels above
        }
        seen[count++] = *found;
    }
    std::optional<gain> best;
    for (std::size_t level = 0; level < count; ++level) {
        const auto& here = seen[level];
        const auto longer = seen[std::min(level + confirming, count - 1)].found.of_all;
        if (here.errors <= -here.needed && longer < 0) {
            break;
        }
        if (here.found.of_misses >= least && here.errors >= here.needed &&
            here.found.requests >= least_requests && longer > 0) {
            best = here.found;
        }
    }
    return best;
}

}  // namespace reprise::proxy::cache
