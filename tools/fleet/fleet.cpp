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
                           std::pair{finding::sites, "sites"},
                           std::pair{finding::hints, "hints"},
                           std::pair{finding::oracle, "oracle"},
                           std::pair{finding::routed, "routed"},
                           std::pair{finding::homes, "homes"}};

// A fleet has a secret, or its requests for digests would not be signed.
proxy::peer::fleet_secret some_secret() {
    return proxy::peer::fleet_secret::from_content(std::string(64, 'R')).value();
}

constexpr std::uint64_t place_of(object_number object, node_number node) noexcept {
    return std::uint64_t{object} << 32 | node;
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

node_parts fleet::parts_of_one(double share) {
    using proxy::cache::eviction_kind;
    node_parts out;
    out.capacity = static_cast<std::uint64_t>(static_cast<double>(plan_.capacity / plan_.nodes) *
                                              share);
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
    const double hot = plan_.how == finding::homes ? plan_.hot : 0;
    for (node_number node = 0; node < plan_.nodes; ++node) {
        nodes_.push_back(std::make_unique<cache_node>(node, parts_of_one(1 - hot), watch));
        if (hot > 0) {
            hot_.push_back(std::make_unique<cache_node>(node, parts_of_one(hot), watch));
        }
    }
    if (plan_.exchange.seen && !plan_.strict) {
        throw std::invalid_argument{"sights are shared only where first sights are refused"};
    }
    plan_.exchange.by_gateways = plan_.how == finding::sites;
    if (plan_.exchange.by_gateways && plan_.exchange.sites < 2) {
        throw std::invalid_argument{"one site has no other whose gateway it could follow"};
    }
    if (plan_.nodes > 1 && (plan_.how == finding::digests || plan_.how == finding::sites ||
                            plan_.how == finding::hints)) {
        exchange_.emplace(plan_.exchange, plan_.nodes, secret_, rules_);
    }
    if (plan_.how == finding::hints || plan_.how == finding::routed ||
        plan_.how == finding::homes) {
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

bool fleet::gives(const request& wanted, node_number asked) {
    return nodes_[asked]->lend(wanted) || (plan_.under_way && is_fetching(wanted.object, asked) &&
                                           fetching_.at(place_of(wanted.object, asked)));
}

bool fleet::sibling_has(const request& wanted, node_number sibling) {
    ++tally_.questions;
    if (gives(wanted, sibling)) {
        count_sibling_hit(wanted);
        return true;
    }
    ++tally_.false_hits;
    return false;
}

bool fleet::found_elsewhere(const request& wanted, node_number at) {
    switch (plan_.how) {
    case finding::alone:
    case finding::routed:
    case finding::homes: return false;
    case finding::oracle: {
        // The next one round from here that has it, as view::look_up orders them.
        auto nearest = plan_.nodes;
        for (const auto holder : holders_[wanted.object]) {
            nearest = std::min(nearest, (holder + plan_.nodes - at) % plan_.nodes);
        }
        return nearest != plan_.nodes && sibling_has(wanted, (at + nearest) % plan_.nodes);
    }
    case finding::digests:
    case finding::sites: return found_by_digests(wanted, at);
    case finding::hints: break;
    }
    return found_by_digests(wanted, at) || found_by_hint(wanted, at);
}

bool fleet::found_by_digests(const request& wanted, node_number at) {
    const auto& where = exchange_->where();
    exchange_->look_up(wanted.key, at, candidates_);
    if (where.sites() > 1) {
        where.put_near_first(at, candidates_);
    }
    for (const auto candidate : candidates_) {
        const bool is_apart = where.are_apart(at, where.teller_of(candidate));
        if (is_apart ? other_site_has(wanted, candidate) : sibling_has(wanted, candidate)) {
            return true;
        }
    }
    return false;
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

bool fleet::is_fetching(object_number object, node_number node) const {
    return fetching_.contains(place_of(object, node));
}

cache_node& fleet::room(node_number node, const request& wanted) {
    return *(hot_.empty() || home_of(wanted) == node ? nodes_ : hot_)[node];
}

void fleet::fetch(const request& wanted, node_number at) {
    if (others_hold(wanted.object, at)) {
        ++tally_.missed;
    }
    ++tally_.fetched;
    const bool seen = exchange_ && exchange_->seen_elsewhere(wanted.key, at);
    const bool kept = room(at, wanted).admits(wanted, cache_node::keep::if_admitted, seen);
    if (kept && seen) {
        ++tally_.from_the_seen;
    }
    const auto head = now_ + plan_.head_takes;
    const fetch_under_way begun{wanted, head, head + plan_.body_takes, at, kept, false};
    if (begun.end == now_) {
        end(begun);
        return;
    }
    under_way_.push(begun);
    fetching_[place_of(wanted.object, at)] = false;
}

// The whole of what was fetched from the origin is there.
void fleet::end(const fetch_under_way& what) {
    const auto& wanted = what.wanted;
    const auto at = what.node;
    fetching_.erase(place_of(wanted.object, at));
    const bool is_held = what.kept && room(at, wanted).store(wanted);
    if (is_held && plan_.how == finding::hints) {
        hints_[wanted.object] = {.node = at, .seconds = wanted.seconds, .known = true};
    }
    if (what.kept && what.head_is_there && tells_of_fetches() && !is_held) {
        exchange_->left(at, wanted.key);
    }
}

void fleet::route(const request& wanted, node_number at) {
    const auto home = home_of(wanted);
    if (home == at) {
        fetch(wanted, at);
        return;
    }
    ++tally_.handed_on;
    if (is_fetching(wanted.object, home)) {
        count_sibling_hit(wanted);
    } else if (nodes_[home]->ask(wanted)) {
        count_sibling_hit(wanted);
    } else {
        ++tally_.handed_in_vain;
        fetch(wanted, home);
    }
    room(at, wanted).take(wanted, plan_.copies, false);
}

void fleet::pass(milliseconds now) {
    while (!under_way_.empty() && under_way_.top().due() <= now) {
        auto next = under_way_.top();
        under_way_.pop();
        now_ = next.due();
        if (exchange_) {
            exchange_->pass(now_);
        }
        if (next.head_is_there) {
            end(next);
            continue;
        }
        next.head_is_there = true;
        fetching_[place_of(next.wanted.object, next.node)] = true;
        if (next.kept && tells_of_fetches()) {
            exchange_->stored(next.node, next.wanted.key);
        }
        under_way_.push(next);
    }
    now_ = now;
    if (exchange_) {
        exchange_->pass(now);
    }
}

void fleet::ask(const request& wanted, node_number at, milliseconds within) {
    if (wanted.object >= holders_.size()) {
        const auto room = std::max<std::size_t>(wanted.object + 1, 2 * holders_.size());
        holders_.resize(room);
        hints_.resize(plan_.how == finding::hints ? room : 0);
        home_.resize(homes_ ? room : 0, no_node);
    }
    if (!start_) {
        start_ = wanted.seconds;
    }
    if (const auto now = std::chrono::seconds{wanted.seconds - *start_} + within; now > now_) {
        pass(now);
    }
    ++tally_.requests;
    tally_.bytes += wanted.bytes;
    const bool here = room(at, wanted).ask(wanted);
    if (here || is_fetching(wanted.object, at)) {
        ++tally_.local_hits;
        tally_.local_hit_bytes += wanted.bytes;
        tally_.joined += here ? 0 : 1;
    } else if (plan_.how == finding::routed || plan_.how == finding::homes) {
        route(wanted, at);
    } else if (found_elsewhere(wanted, at)) {
        room(at, wanted).take(wanted, plan_.copies, false);
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
    const auto& digests_across = out.exchange.across;
    const auto& members_across = out.exchange.across_of_members;
    out.between.messages = digests_across.messages + members_across.messages +
                           2 * out.across.in_vain;
    out.between.bytes = digests_across.bytes + members_across.bytes +
                        out.across.in_vain * wire.false_hit() +
                        out.across_members.in_vain * wire_cost::site_fields;
    out.icp_messages = 2 * (plan_.nodes - 1) * out.local_misses();
    out.icp_bytes = out.icp_messages * wire.icp_message();
    out.icp_bytes_of_paper = out.icp_messages * wire_cost::icp_message_of_paper();
    // Who is handed a miss and must fetch it was asked in vain, as a sibling is by a false hit.
    const auto in_vain = out.false_hits + out.handed_in_vain;
    out.messages = 2 * in_vain + 2 * out.hint_queries + out.exchange.messages +
                   out.exchange.seen_messages;
    out.wire_bytes = in_vain * wire.false_hit() +
                     out.across_members.in_vain * wire_cost::site_fields +
                     2 * out.hint_queries * wire.icp_message() + out.exchange.bytes +
                     out.exchange.seen_bytes;
    out.paper_bytes = in_vain * wire_cost::false_hit_of_paper() +
                      2 * out.hint_queries * wire_cost::icp_message_of_paper() +
                      out.exchange.bytes_of_paper + out.exchange.seen_bytes_of_paper;
    return out;
}

}  // namespace reprise::fleet
