#include "tools/fleet/fleet.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace reprise::fleet {

namespace {

constexpr node_number no_node = ~node_number{0};
constexpr std::uint64_t first_sketch = 64;  // it grows with what is stored

constexpr std::array names{std::pair{finding::alone, "alone"},
                           std::pair{finding::digests, "digests"},
                           std::pair{finding::hints, "hints"},
                           std::pair{finding::oracle, "oracle"},
                           std::pair{finding::routed, "routed"}};

// A fleet has a secret, or its requests for digests would not be signed.
proxy::peer::fleet_secret some_secret() {
    return proxy::peer::fleet_secret::from_content(std::string(64, 'R')).value();
}

std::vector<std::string> node_names(node_number nodes) {
    std::vector<std::string> out;
    for (node_number node = 0; node < nodes; ++node) {
        out.push_back("cache-" + std::to_string(node));
    }
    return out;
}

}  // namespace

std::string_view to_string(finding how) noexcept {
    for (const auto& [value, name] : names) {
        if (value == how) {
            return name;
        }
    }
    return "?";
}

std::optional<finding> finding_of(std::string_view name) noexcept {
    for (const auto& [value, known] : names) {
        if (known == name) {
            return value;
        }
    }
    return std::nullopt;
}

node_parts fleet::parts_of_one() {
    using proxy::cache::eviction_kind;
    node_parts out;
    out.capacity = plan_.capacity / plan_.nodes;
    if (plan_.strict) {
        auto rule = plan_.remember
                        ? std::make_unique<shared_rule>(secret_, *plan_.remember)
                        : std::make_unique<shared_rule>(secret_, out.capacity * plan_.unit);
        rules_.push_back(rule.get());
        out.admission = std::move(rule);
    } else {
        out.admission = replay::make_rule({}, 0, {});
    }
    if (plan_.policy.kind == eviction_kind::gdsf || plan_.policy.kind == eviction_kind::lfu_da) {
        out.requests = std::make_unique<proxy::cache::frequency_sketch>(first_sketch);
    }
    replay::setup named;
    named.policy = plan_.policy;
    out.policy = replay::make_policy(named, out.capacity, out.requests.get());
    return out;
}

fleet::fleet(const fleet_plan& plan) : plan_{plan}, secret_{some_secret()} {
    contents_watch& watch = *this;
    for (node_number node = 0; node < plan_.nodes; ++node) {
        nodes_.push_back(std::make_unique<cache_node>(node, parts_of_one(), watch));
    }
    if (plan_.exchange.seen && !plan_.strict) {
        throw std::invalid_argument{"sights are shared only where first sights are refused"};
    }
    if (plan_.nodes > 1 && (plan_.how == finding::digests || plan_.how == finding::hints)) {
        exchange_.emplace(plan_.exchange, plan_.nodes, secret_, rules_);
    }
    if (plan_.how == finding::hints || plan_.how == finding::routed) {
        homes_ = std::make_unique<proxy::peer::parent_choice>(node_names(plan_.nodes));
    }
}

fleet::~fleet() = default;

node_number fleet::home_of(const request& wanted) {
    auto& home = home_[wanted.object];
    if (home == no_node) {
        const auto key = proxy::peer::key_of(wanted.key.low, secret_);
        home = static_cast<node_number>(homes_->order(key, proxy::steady_time{}).front());
    }
    return home;
}

void fleet::stored(node_number node, object_number object, const filter::key_hash& key) {
    holders_[object].push_back(node);
    ++tally_.written;
    if (exchange_) {
        exchange_->stored(node, key);
    }
}

void fleet::left(node_number node, object_number object, const filter::key_hash& key) {
    auto& in = holders_[object];
    const auto at = std::find(in.begin(), in.end(), node);
    *at = in.back();
    in.pop_back();
    if (exchange_) {
        exchange_->left(node, key);
    }
}

bool fleet::others_hold(object_number object, node_number at) const {
    const auto& in = holders_[object];
    return in.size() > 1 || (in.size() == 1 && in.front() != at);
}

void fleet::count_sibling_hit(const request& wanted) noexcept {
    ++tally_.sibling_hits;
    tally_.sibling_hit_bytes += wanted.bytes;
}

bool fleet::sibling_has(const request& wanted, node_number sibling) {
    ++tally_.questions;
    if (nodes_[sibling]->lend(wanted)) {
        count_sibling_hit(wanted);
        return true;
    }
    ++tally_.false_hits;
    return false;
}

bool fleet::found_elsewhere(const request& wanted, node_number at) {
    switch (plan_.how) {
    case finding::alone:
    case finding::routed: return false;
    case finding::oracle: {
        // The next one round from here that has it, as view::look_up orders them.
        auto nearest = plan_.nodes;
        for (const auto holder : holders_[wanted.object]) {
            nearest = std::min(nearest, (holder + plan_.nodes - at) % plan_.nodes);
        }
        return nearest != plan_.nodes && sibling_has(wanted, (at + nearest) % plan_.nodes);
    }
    case finding::digests:
    case finding::hints: break;
    }
    exchange_->look_up(wanted.key, at, candidates_);
    for (const auto candidate : candidates_) {
        if (sibling_has(wanted, candidate)) {
            return true;
        }
    }
    return plan_.how == finding::hints && found_by_hint(wanted, at);
}

bool fleet::found_by_hint(const request& wanted, node_number at) {
    if (home_of(wanted) != at) {
        ++tally_.hint_queries;
    }
    const auto& known = hints_[wanted.object];
    if (!known.known || known.node == at ||
        std::chrono::seconds{wanted.seconds - known.seconds} > plan_.hints_for ||
        std::find(candidates_.begin(), candidates_.end(), known.node) != candidates_.end()) {
        return false;
    }
    return sibling_has(wanted, known.node);
}

void fleet::fetch(const request& wanted, node_number at) {
    if (others_hold(wanted.object, at)) {
        ++tally_.missed;
    }
    const bool seen = exchange_ && exchange_->seen_elsewhere(wanted.key, at);
    const auto before = tally_.written;
    const bool kept = nodes_[at]->take(wanted, cache_node::keep::if_admitted, seen);
    if (seen && tally_.written != before) {
        ++tally_.from_the_seen;
    }
    if (kept && plan_.how == finding::hints) {
        hints_[wanted.object] = {.node = at, .seconds = wanted.seconds, .known = true};
    }
}

void fleet::route(const request& wanted, node_number at) {
    const auto home = home_of(wanted);
    if (home == at) {
        fetch(wanted, at);
        return;
    }
    ++tally_.handed_on;
    if (nodes_[home]->ask(wanted)) {
        count_sibling_hit(wanted);
    } else {
        fetch(wanted, home);
    }
    nodes_[at]->take(wanted, plan_.copies, false);
}

void fleet::ask(const request& wanted, node_number at) {
    if (wanted.object >= holders_.size()) {
        const auto room = std::max<std::size_t>(wanted.object + 1, 2 * holders_.size());
        holders_.resize(room);
        hints_.resize(plan_.how == finding::hints ? room : 0);
        home_.resize(homes_ ? room : 0, no_node);
    }
    if (!start_) {
        start_ = second_ = wanted.seconds;
    }
    if (exchange_ && wanted.seconds > second_) {
        second_ = wanted.seconds;
        exchange_->pass(std::chrono::seconds{second_ - *start_});
    }
    ++tally_.requests;
    tally_.bytes += wanted.bytes;
    if (nodes_[at]->ask(wanted)) {
        ++tally_.local_hits;
        tally_.local_hit_bytes += wanted.bytes;
    } else if (plan_.how == finding::routed) {
        route(wanted, at);
    } else if (found_elsewhere(wanted, at)) {
        nodes_[at]->take(wanted, plan_.copies, false);
    } else {
        fetch(wanted, at);
    }
    if (exchange_) {
        exchange_->end_of_request();
    }
}

fleet_tally fleet::figures() const {
    auto out = tally_;
    if (exchange_) {
        out.exchange = exchange_->figures();
    }
    const auto& wire = plan_.wire;
    out.icp_messages = 2 * (plan_.nodes - 1) * out.local_misses();
    out.icp_bytes = out.icp_messages * wire.icp_message();
    out.icp_bytes_of_paper = out.icp_messages * wire_cost::icp_message_of_paper();
    out.messages = 2 * out.false_hits + 2 * out.hint_queries + out.exchange.messages +
                   out.exchange.seen_messages;
    out.wire_bytes = out.false_hits * wire.false_hit() + 2 * out.hint_queries * wire.icp_message() +
                     out.exchange.bytes + out.exchange.seen_bytes;
    out.paper_bytes = out.false_hits * wire_cost::false_hit_of_paper() +
                      2 * out.hint_queries * wire_cost::icp_message_of_paper() +
                      out.exchange.bytes_of_paper + out.exchange.seen_bytes_of_paper;
    return out;
}

}  // namespace reprise::fleet
