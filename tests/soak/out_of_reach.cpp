#include "tests/soak/out_of_reach.hpp"

#include <algorithm>
#include <map>

namespace reprise::tests::new_urls {

namespace {

using time_point = steady_clock::time_point;

constexpr milliseconds waited_for{100};  // peering.budget

bool is_away(std::span<const absence> troubles, unsigned node, time_point from, time_point to) {
    return std::any_of(troubles.begin(), troubles.end(), [&](const absence& one) {
        return one.node == node && one.from <= to && one.to >= from;
    });
}

bool was_killed_since(std::span<const absence> troubles,
                      unsigned node,
                      time_point then,
                      time_point now) {
    return std::any_of(troubles.begin(), troubles.end(), [&](const absence& one) {
        return one.node == node && one.from >= then && one.from <= now;
    });
}

}  // namespace

std::size_t out_of_reach(const plan& of,
                         std::span<const origin_fetch> fetches,
                         std::span<const held_copy> copies,
                         std::span<const absence> troubles) {
    // Whoever fetches has it, or will in a moment.
    std::multimap<std::uint32_t, held_copy> holders;
    for (const auto& one : copies) {
        holders.emplace(one.url, one);
    }
    std::map<std::uint32_t, time_point> first;
    for (const auto& one : fetches) {
        holders.emplace(one.url, held_copy{one.url, one.by, one.at});
        const auto [at, is_new] = first.emplace(one.url, one.at);
        at->second = std::min(at->second, one.at);
    }
    const bool is_cut = of.trouble == "partition";
    const bool forgets = of.trouble == "kill" && !of.disk;
    const auto could_be_had = [&](const origin_fetch& by, const held_copy& from) {
        return from.by != by.by && from.since < by.at &&
               !is_away(troubles, from.by, by.at - waited_for, by.at) &&
               !(is_cut && is_away(troubles, by.by, by.at, by.at)) &&
               !(forgets && was_killed_since(troubles, from.by, from.since, by.at));
    };
    return static_cast<std::size_t>(
        std::count_if(fetches.begin(), fetches.end(), [&](const origin_fetch& one) {
            const auto [begin, end] = holders.equal_range(one.url);
            return one.at != first[one.url] && std::none_of(begin, end, [&](const auto& each) {
                       return could_be_had(one, each.second);
                   });
        }));
}

}  // namespace reprise::tests::new_urls
