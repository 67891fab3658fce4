// Which ghosts there are, what room each has, and how they go on when something else is put in force.

#include "config/eviction.hpp"
#include "config/options.hpp"
#include "proxy/cache/policy/disk_ghost.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "proxy/cache/policy/what_if.hpp"
#include "proxy/cache/policy/what_if_parts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

namespace {

constexpr std::array probations{0.02, 0.1, 1.0};
constexpr std::array sizes{0.25, 0.5, 2.0, 4.0};
constexpr std::array size_names{"x1/4", "x1/2", "x2", "x4"};

std::vector<admission_variant> candidates() {
    using enum admission_variant::kind;
    std::vector<admission_variant> all{
        {.what = always}, {}, {.hits = 3}, {.what = tinylfu}, {.what = tinylfu, .probation = 0.1}};
    for (const auto share : probations) {
        all.push_back({.probation = share});
    }
    return all;
}

std::string short_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

}  // namespace

// `before`: null at the beginning. The ghosts are always in the same order, but for what is in
// force and none of the candidates, which comes last: so each goes on in its place.
void what_if::begin_ghosts(const what_if_setup* before) {
    std::vector<std::unique_ptr<ghost>> wanted;
    const auto want = [&](ghost one) { wanted.push_back(std::make_unique<ghost>(std::move(one))); };
    using group = what_if_row::group;
    const auto all = candidates();
    const bool by_size = setup_.policy == eviction_kind::gdsf;
    // What throws leaves the ghosts that there are.
    auto in_force = all.size() + sizes.size() + config::eviction_names.size() - 1 +
                    (by_size ? ladder.size() : 0);
    std::size_t always = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        want({.of = group::admission,
              .name = to_string(all[i]),
              .admission = all[i],
              .policy = setup_.policy,
              .exponent = setup_.exponent});
        in_force = all[i] == setup_.admission ? i : in_force;
        always = all[i].what == admission_variant::kind::always ? i : always;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        want({.of = group::size,
              .name = size_names[i],
              .admission = setup_.admission,
              .policy = setup_.policy,
              .times = sizes[i],
              .exponent = setup_.exponent});
    }
    for (const auto& [name, kind] : config::eviction_names) {
        if (kind != setup_.policy) {
            want({.of = group::policy,
                  .name = std::string{to_string(kind)},
                  .admission = setup_.admission,
                  .policy = kind,
                  .exponent = setup_.exponent});
        }
    }
    for (std::size_t i = 0; by_size && i < ladder.size(); ++i) {
        const auto exponent = ladder[i];
        want({.of = group::exponent,
              .name = short_text(exponent),
              .admission = setup_.admission,
              .policy = setup_.policy,
              .exponent = exponent});
    }
    if (in_force == wanted.size()) {
        want({.of = group::admission,
              .name = to_string(setup_.admission),
              .admission = setup_.admission,
              .policy = setup_.policy,
              .exponent = setup_.exponent});
    }
    const bool same_tiers = before != nullptr &&
                            (before->memory_share < 1) == (setup_.memory_share < 1);
    std::uint32_t ending = ~std::uint32_t{0};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        auto& next = *wanted[i];
        plan(next);
        if (same_tiers && i < ghosts_.size() && ghosts_[i]->policy == next.policy &&
            before->wanted == setup_.wanted) {
            ending &= ~(1u << i);
            continue;
        }
        const bool by_wait = setup_.wanted == config::caching_objective::seconds;
        next.held = std::make_unique<residents>(
            make_policy(
                next.policy,
                next.memory,
                {.exponent = next.exponent, .by_wait = by_wait, .frequencies = requests_.get()}),
            next.memory,
            next.admission.probation);
        if (setup_.memory_share < 1) {
            next.disk = std::make_unique<disk_ghost>(
                next.disk_bytes, next.exponent, *requests_, by_wait);
        }
    }
    // Entries of what ends are forgotten before it is.
    for (auto it = slots_.begin(); it != slots_.end();) {
        it->second->held_by &= ~ending;
        it->second->on_disk &= ~ending;
        it = it->second->held_by == 0 ? forget(it) : std::next(it);
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if ((ending >> i & 1) == 0) {
            const auto& former = *ghosts_[i];
            wanted[i]->held = std::move(ghosts_[i]->held);
            wanted[i]->disk = std::move(ghosts_[i]->disk);
            wanted[i]->bar = former.bar;
            if (former.admission == wanted[i]->admission &&
                former.exponent == wanted[i]->exponent && before->capacity == setup_.capacity &&
                before->memory_share == setup_.memory_share) {
                continue;
            }
        }
        evidence_.begin_anew(i);
    }
    ghosts_ = std::move(wanted);
    in_force_ = in_force;
    always_ = always;
    // Whatever has no memory to plan anew goes on by the former plan.
    for (std::size_t i = 0; i < ghosts_.size(); ++i) {
        auto& one = *ghosts_[i];
        if ((ending >> i & 1) != 0) {
            continue;
        }
        one.held->set_capacity(one.memory);
        one.held->set_probation(one.admission.probation);
        if (one.policy == eviction_kind::gdsf) {  // lfu-da's is 0
            one.held->set_exponent(one.exponent);
        }
        if (one.disk) {
            one.disk->set_bytes(one.disk_bytes);
            one.disk->set_exponent(one.exponent);
        }
        static_cast<void>(make_room(i, nullptr));  // no request wrote that
    }
}

void what_if::plan(ghost& one) const {
    const auto all = one.times * static_cast<double>(setup_.capacity);
    one.memory = scaled(all * setup_.memory_share);
    one.disk_bytes = scaled(all) - one.memory;
    const auto at_most = [&one](std::uint64_t largest, std::uint64_t room) {
        const auto bytes = one.times * static_cast<double>(largest);
        return bytes < static_cast<double>(room) ? static_cast<std::uint64_t>(bytes) : room;
    };
    one.largest = at_most(setup_.largest, one.memory + one.disk_bytes);
    one.largest_in_memory = std::min(one.largest, at_most(setup_.largest_in_memory, one.memory));
}

}  // namespace reprise::proxy::cache
