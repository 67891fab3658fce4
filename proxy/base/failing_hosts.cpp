#include "proxy/base/failing_hosts.hpp"

#include "proxy/base/ascii.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy {

namespace {

std::int64_t step_of(steady_time at) {
    return std::chrono::floor<std::chrono::seconds>(at.time_since_epoch()) / failing_hosts::step;
}

}  // namespace

void failing_hosts::note(std::string_view host, steady_time now) {
    std::string name{host};
    std::transform(name.begin(), name.end(), name.begin(), ascii_lower);
    const auto at = step_of(now);
    const std::lock_guard lock{guard_};
    auto found = std::find_if(
        entries_.begin(), entries_.end(), [&](const entry& one) { return one.host == name; });
    if (found == entries_.end()) {
        if (entries_.size() < most) {
            entries_.emplace_back();
            found = entries_.end() - 1;
        } else {
            found = std::min_element(
                entries_.begin(), entries_.end(), [](const entry& a, const entry& b) {
                    return a.last < b.last;
                });
        }
        *found = {std::move(name), at, {}};
    }
    // What stands there of steps that nobody failed in is of a minute before.
    const auto forget = std::min<std::int64_t>(at - found->last, steps);
    for (std::int64_t i = 0; i < forget; ++i) {
        found->of[static_cast<std::size_t>(at - i) % steps] = 0;
    }
    found->last = std::max(found->last, at);
    ++found->of[static_cast<std::size_t>(at) % steps];
}

std::vector<failing_hosts::one> failing_hosts::last_minute(steady_time now) const {
    std::vector<one> out;
    const auto at = step_of(now);
    {
        const std::lock_guard lock{guard_};
        for (const auto& entry : entries_) {
            std::uint64_t failures = 0;
            for (auto step = std::max<std::int64_t>({0, at - 6, entry.last - 6});
                 step <= entry.last;
                 ++step) {
                failures += entry.of[static_cast<std::size_t>(step) % steps];
            }
            if (failures != 0) {
                out.push_back({entry.host, failures});
            }
        }
    }
    std::sort(out.begin(), out.end(), [](const one& a, const one& b) {
        return a.failures != b.failures ? a.failures > b.failures : a.host < b.host;
    });
    return out;
}

}  // namespace reprise::proxy
