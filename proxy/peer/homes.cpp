#include "proxy/peer/homes.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::peer {

namespace {

std::vector<live_node> told_apart(std::string_view own, std::span<const live_node> others) {
    std::vector<live_node> out;
    for (const auto& one : others) {
        const bool is_alone = std::count_if(others.begin(), others.end(), [&](const auto& other) {
                                  return other.name == one.name;
                              }) == 1;
        if (is_alone && !one.name.empty() && one.name != own) {
            out.push_back(one);
        }
    }
    return out;
}

std::vector<std::string> names_of(std::span<const live_node> others, std::string_view own) {
    std::vector<std::string> out;
    for (const auto& one : others) {
        out.push_back(one.name);
    }
    out.emplace_back(own);
    return out;
}

}  // namespace

std::vector<live_node> who_is_who::instances_of(std::span<const heard_node> heard) {
    std::vector<live_node> out;
    for (auto one = heard.begin(); one != heard.end(); ++one) {
        const bool is_first = std::none_of(heard.begin(), one, [&](const heard_node& before) {
            return before.node.name == one->node.name && before.epoch == one->epoch;
        });
        if (is_first) {
            out.push_back(one->node);
        }
    }
    return out;
}

std::vector<std::string> who_is_who::namesakes_among(std::span<const heard_node> heard,
                                                     steady_time now) {
    std::map<std::string, std::uint64_t> first;
    std::map<std::string, doubled> next;
    for (const auto& one : heard) {
        const auto& name = one.node.name;
        if (first.try_emplace(name, one.epoch).first->second != one.epoch) {
            const auto before = doubled_.find(name);
            next.try_emplace(name,
                             before == doubled_.end() ? doubled{.since = now} : before->second);
        }
    }
    doubled_ = std::move(next);
    std::vector<std::string> out;
    if (now < not_before_) {
        return out;
    }
    for (auto& [name, is] : doubled_) {
        if (!is.is_told && now - is.since >= for_long) {
            out.push_back(name);
            is.is_told = true;
            not_before_ = now + between;
        }
    }
    return out;
}

homes::homes(std::string_view own, std::span<const live_node> others)
    : others_{told_apart(own, others)},
      choice_{std::make_unique<parent_choice>(names_of(others_, own))} {}

std::optional<homes::home> homes::of(const filter::key_hash& key,
                                     bool secure,
                                     steady_time now) const noexcept {
    const auto at = choice_->best(key, now);
    if (at == others_.size() || (secure && !others_[at].https)) {
        return std::nullopt;
    }
    return home{at, others_[at].slot, others_[at].name};
}

// This instance is never down: so another thread was faster wherever the trial is not to be had.
std::optional<homes::home> homes::to_ask(const filter::key_hash& key,
                                         bool secure,
                                         steady_time now,
                                         std::chrono::milliseconds patience,
                                         trial& held) const noexcept {
    for (;;) {
        const auto one = of(key, secure, now);
        if (!one) {
            return std::nullopt;
        }
        if (auto taken = choice_->try_out(one->at, now, patience)) {
            held = std::move(*taken);
            return one;
        }
    }
}

void homes::failed(std::size_t at, steady_time begun, const failure& why) const {
    if (!is_our_own_lack(why.code) && choice_->failed(at, begun, steady_now())) {
        log::warn("peers: ",
                  others_[at].name,
                  ": a home that is passed by from now on: ",
                  facts_of(why.code).name,
                  why.detail.empty() ? "" : ": ",
                  why.detail);
    }
}

void homes::go_on_as(const homes& before) noexcept {
    for (std::size_t i = 0; i < others_.size(); ++i) {
        const auto& one = others_[i];
        const auto was = std::ranges::find_if(before.others_, [&one](const live_node& other) {
            return other.name == one.name && other.slot == one.slot;
        });
        if (was != before.others_.end()) {
            const auto at = static_cast<std::size_t>(was - before.others_.begin());
            choice_->go_on_as(i, *before.choice_, at);
        }
    }
}

void homes::succeeded(std::size_t at) const {
    if (choice_->succeeded(at, steady_now())) {
        log::info("peers: ", others_[at].name, ": a home that answers again");
    }
}

}  // namespace reprise::proxy::peer
