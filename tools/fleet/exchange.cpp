#include "tools/fleet/exchange.hpp"

#include "config/options.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/address.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/publication.hpp"
#include "proxy/peer/resource.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace reprise::fleet {

using namespace proxy::peer;
using proxy::steady_time;
using proxy::wall_time;

namespace {

constexpr milliseconds never{-1};
// Freshness is no matter here: longer than the table of a source can look ahead.
constexpr auto fresh_for = std::chrono::hours{24 * 80};
constexpr std::uint16_t port = 3128;
constexpr node_number views_of_their_own = 16;
constexpr std::size_t pseudonym = 8;  // digits of a node's name in Via
constexpr milliseconds kept_for{
    25'000};  // a request for news that nothing answers (digest_follower)

steady_time steady(milliseconds at) {
    return steady_time{} + std::chrono::hours{1} + at;
}

milliseconds since_start(steady_time at) {
    return std::chrono::ceil<milliseconds>(at - steady(milliseconds{0}));
}

wall_time wall(milliseconds at) {
    return wall_time{std::chrono::hours{24 * 365 * 50}} + at;
}

std::string name_of_node(node_number node) {
    auto digits = std::to_string(node);
    return "cache-" + std::string(pseudonym - digits.size(), '0') + digits;
}

}  // namespace

exchange::exchange(const exchange_plan& plan,
                   node_number nodes,
                   const fleet_secret& secret,
                   std::vector<const shared_rule*> rules)
    : plan_{plan},
      nodes_{nodes},
      where_{nodes, plan.sites},
      digests_{nodes + (plan.by_gateways ? plan.sites : 0)},
      secret_{secret},
      random_{plan.seed},
      touched_(nodes),
      generations_(nodes),
      next_tick_(digests_, never),
      told_(digests_),
      told_at_(digests_, milliseconds{0}) {
    if (plan_.sites > 1 && plan_.views != 0 && plan_.views < nodes) {
        throw std::invalid_argument{"nodes that are in sites share no view"};
    }
    if (plan_.by_gateways &&
        (plan_.seen || plan_.how == delivery::push || plan_.how == delivery::instant)) {
        throw std::invalid_argument{"gateways are followed by pulls or news, and tell no sights"};
    }
    if (plan_.how != delivery::news) {
        plan_.source.news = milliseconds{0};
        plan_.members_news = milliseconds{0};
    } else if (plan_.members_news == milliseconds{0}) {
        plan_.members_news = plan_.source.news;
    }
    if (plan_.how == delivery::instant) {
        plan_.source.publish_at_most = milliseconds{0};
        plan_.source.publish_after_change = 0;
    }
    const auto draw = [this] { return random_(); };
    follow_plan follow;
    follow.refresh = std::max(plan_.period, milliseconds{1});
    follow.stale_after = std::chrono::hours{24 * 365};
    follow.seed = secret.id();
    follow.news = plan_.source.news;
    follow.site_nodes = plan_.by_gateways ? config::most_site_nodes : plan_.source.site_nodes;
    follow.key_of = [&secret](std::uint64_t name) { return key_of(name, secret); };
    auto count = plan_.views;
    if (count == 0) {
        count = nodes <= views_of_their_own || plan_.sites > 1 ? nodes : 1;
    }
    for (node_number i = 0; i < std::min(count, nodes); ++i) {
        views_.push_back(std::make_unique<view>(
            digests_, follow, plan_.seen, random_(), steady(milliseconds{0})));
    }
    for (node_number node = 0; node < nodes; ++node) {
        names_.push_back(name_of_node(node));
    }
    for (auto digest = nodes; digest < digests_; ++digest) {
        members_.push_back(std::make_unique<members_source>(
            secret.id(),
            plan_.source.publish_after,
            draw,
            news_plan{.every = plan_.members_news, .key_of = follow.key_of}));
    }
    for (node_number node = 0; node < nodes; ++node) {
        source_signals signals;
        signals.readers = [many = readers(node)] { return many; };
        sources_.push_back(
            std::make_unique<digest_source>(plan_.source, secret, draw, std::move(signals)));
        sources_.back()->loaded();
        tick(node);
        if (plan_.seen) {
            const auto& rule = *rules.at(node);
            seen_sources_.push_back(std::make_unique<seen_source>(
                secret.id(),
                plan_.how == delivery::instant ? std::chrono::seconds{0}
                                               : plan_.source.publish_after,
                [&rule](const filter::digest_stamp& stamp) { return rule.young(stamp); },
                [this] { return random_(); }));
            seen_sources_.back()->tick(steady(now_), wall(now_));
            const auto phase = milliseconds{
                random_() %
                (1 + static_cast<std::uint64_t>(milliseconds{plan_.source.publish_after}.count()))};
            queue_.push({phase, due::kind::seen_source, node, 0});
        }
    }
    if (plan_.how != delivery::pull && plan_.how != delivery::news) {
        return;
    }
    for (node_number reader = 0; reader < views_.size(); ++reader) {
        for (digest_number node = 0; node < digests_; ++node) {
            for (const bool seen : {false, true}) {
                const bool pulls = seen ? plan_.seen : plan_.how == delivery::pull;
                if (readers(reader, node) != 0 && pulls) {
                    const auto at = since_start(views_[reader]->follower(node, seen).next());
                    queue_.push({at, due::kind::pull, node, reader, seen});
                }
            }
        }
    }
}

std::uint64_t exchange::readers(node_number of_view, digest_number of) const noexcept {
    if (plan_.by_gateways) {
        return where_.follows(of_view, of) ? 1 : 0;
    }
    const auto views = static_cast<node_number>(views_.size());
    const auto in_view = nodes_ / views + (of_view < nodes_ % views ? 1 : 0);
    return in_view - (of % views == of_view ? 1 : 0);
}

std::uint64_t exchange::readers(digest_number of) const noexcept {
    std::uint64_t all = 0;
    for (node_number view = 0; view < views_.size(); ++view) {
        all += readers(view, of);
    }
    return all;
}

const publication& exchange::published_of(digest_number digest) const {
    return where_.is_of_members(digest) ? members_[digest - nodes_]->digests()
                                        : sources_[digest]->digests();
}

news_shelf* exchange::news_of(digest_number digest) {
    return where_.is_of_members(digest) ? members_[digest - nodes_]->news()
                                        : sources_[digest]->news();
}

steady_time exchange::due_at(digest_number digest) const {
    return where_.is_of_members(digest) ? members_[digest - nodes_]->due_at()
                                        : sources_[digest]->due_at();
}

// A look of its keeper's at a source, which makes what is wished for.
void exchange::keep(digest_number digest) {
    if (where_.is_of_members(digest)) {
        members_[digest - nodes_]->tick(steady(now_), wall(now_));
    } else {
        sources_[digest]->tick(steady(now_), wall(now_));
    }
}

void exchange::stored(node_number node, const filter::key_hash& key) {
    sources_[node]->held(holder::memory, key, key.low, wall(now_) + fresh_for, wall(now_));
    if (touched_[node] == 0) {
        touched_[node] = 1;
        touched_list_.push_back(node);
    }
}

void exchange::left(node_number node, const filter::key_hash& key) {
    sources_[node]->gone(holder::memory, key);
    if (touched_[node] == 0) {
        touched_[node] = 1;
        touched_list_.push_back(node);
    }
}

// Ticks a source as the keeper of a proxy would, and plans the next tick that could publish.
void exchange::tick(digest_number node) {
    if (where_.is_of_members(node)) {
        tick_members(node);
        return;
    }
    keep(node);
    const auto& source = *sources_[node];
    const auto figures = source.figures();
    if (figures.generations != generations_[node]) {
        counted_.published += figures.generations - generations_[node];
        generations_[node] = figures.generations;
        if (plan_.how == delivery::push || plan_.how == delivery::instant) {
            deliver(node, false);
        }
    }
    if (plan_.how == delivery::news) {
        tell(node);
        return;
    }
    if (figures.changed == 0 || !figures.published_at) {
        next_tick_[node] = never;
        return;
    }
    const auto& rules = plan_.source;
    const auto enough = static_cast<double>(figures.bits_on) * rules.publish_after_change;
    const milliseconds wait = static_cast<double>(figures.changed) >= enough
                                  ? publish_gap(figures.bits, rules.publish_at_most)
                                  : milliseconds{rules.publish_after};
    const auto at = std::max(*figures.published_at + wait - wall(milliseconds{0}),
                             now_ + milliseconds{100});
    if (next_tick_[node] != at) {
        next_tick_[node] = at;
        queue_.push({at, due::kind::source, node, 0});
    }
}

// By pulls the next one is when it publishes next, which is every publish_after.
void exchange::tick_members(digest_number digest) {
    keep(digest);
    if (plan_.how == delivery::news) {
        tell(digest);
        return;
    }
    const milliseconds every = plan_.source.publish_after;
    const auto at = (now_ / every + 1) * every;
    if (next_tick_[digest] != at) {
        next_tick_[digest] = at;
        queue_.push({at, due::kind::source, digest, 0});
    }
}

// What a source's keeper does when a step has ended: all who wait are answered, and ask again.
void exchange::tell(digest_number node) {
    const auto newest = news_of(node)->newest();
    if (newest != told_[node]) {
        told_[node] = newest;
        deliver(node, false);
        told_at_[node] = now_;
    }
    const auto due = due_at(node);
    if (due == steady_time::max()) {
        next_tick_[node] = never;
        return;
    }
    const auto at = std::max(since_start(due), now_ + milliseconds{1});
    if (next_tick_[node] != at) {
        next_tick_[node] = at;
        queue_.push({at, due::kind::source, node, 0});
    }
}

void exchange::tick_touched() {
    for (const auto node : touched_list_) {
        touched_[node] = 0;
        tick(node);
    }
    touched_list_.clear();
}

void exchange::end_of_request() {
    if (plan_.how != delivery::instant) {
        return;
    }
    tick_touched();
    if (plan_.seen) {
        for (node_number node = 0; node < nodes_; ++node) {
            seen_sources_[node]->tick(steady(now_), wall(now_));
            deliver(node, true);
        }
    }
}

void exchange::pass(milliseconds now) {
    tick_touched();
    while (!queue_.empty() && queue_.top().at < now) {
        do_next();
    }
    now_ = now;
}

void exchange::do_next() {
    const auto next = queue_.top();
    queue_.pop();
    now_ = std::max(now_, next.at);
    switch (next.what) {
    case due::kind::source:
        if (next_tick_[next.node] == next.at) {
            tick(next.node);
        }
        return;
    case due::kind::seen_source: {
        auto& source = *seen_sources_[next.node];
        const auto before = source.digests().now();
        source.tick(steady(now_), wall(now_));
        if (plan_.how == delivery::push && source.digests().now() != before) {
            deliver(next.node, true);
        }
        queue_.push({next.at + std::max(milliseconds{plan_.source.publish_after}, milliseconds{1}),
                     due::kind::seen_source,
                     next.node,
                     0});
        return;
    }
    case due::kind::pull: {
        pull(next.reader, next.node, next.seen);
        const auto again = since_start(views_[next.reader]->follower(next.node, next.seen).next());
        queue_.push({std::max(again, now_ + milliseconds{1}),
                     due::kind::pull,
                     next.node,
                     next.reader,
                     next.seen});
        return;
    }
    }
}

void exchange::deliver(digest_number node, bool seen) {
    for (node_number reader = 0; reader < views_.size(); ++reader) {
        if (readers(reader, node) != 0) {
            pull(reader, node, seen);
        }
    }
}

void exchange::pull(node_number reader, digest_number node, bool seen) {
    auto& follower = views_[reader]->follower(node, seen);
    const auto teller = where_.teller_of(node);
    const bool of_members = where_.is_of_members(node);
    const followed sibling{
        .name = names_[teller], .host = names_[teller] + ".example", .port = port};
    const auto question = digest_request(
        sibling,
        proxy::net::endpoint_text(proxy::asio::ip::address_v4{0x0a000000 + teller}, port),
        seen         ? seen_path
        : of_members ? members_path
                     : digest_path,
        follower.ask(steady(now_)),
        secret_,
        names_[reader],
        wall(now_),
        proxy::peer::nonces{[this] { return random_(); }}.take());
    proxy::http::request_head head;
    if (proxy::http::parse_request_head(question, head, {}).state !=
        proxy::http::head_state::done) {
        throw std::logic_error{"a digest's request is not one"};
    }
    const bool by_news = plan_.how == delivery::news && !seen;
    offered what;
    what.serves_members = of_members;
    (of_members ? what.members_news : what.digest_news) = by_news ? news_of(node) : nullptr;
    auto& told = seen ? what.seen : of_members ? what.members : what.digest;
    told = seen ? seen_sources_[node]->digests().now() : published_of(node).now();
    what.node = names_[teller];
    const asker who{.is_reprise = true, .signing = true, .signature = signature_verdict::good};
    auto reply = answer(head, who, what, false, wall(now_));
    for (int tries = 0; reply.what == answered::waiting && tries < 3; ++tries) {
        keep(node);
        told = published_of(node).now();
        what.waited = tries == 2;
        reply = answer(head, who, what, false, wall(now_));
    }
    static const std::vector<std::byte> nothing;
    const auto& body = reply.body ? *reply.body : nothing;
    const bool is_digest = reply.what == answered::whole || reply.what == answered::delta;
    const auto etag = is_digest ? told->etag : std::string{};
    follower.answered(
        {.status = reply.status, .etag = etag, .node = {}, .tells_news = by_news, .body = body},
        {},
        steady(now_));
    if (by_news) {
        // It asks again, and is told nothing every now and then while there is nothing.
        (void)news_of(node)->look(told_[node]);
        const auto idle = static_cast<std::uint64_t>((now_ - told_at_[node]) / kept_for);
        for (std::uint64_t i = 0; i < idle; ++i) {
            count(
                {now_, due::kind::pull, node, reader, seen}, question.size(), reply.head.size(), 0);
        }
        counted_.unchanged += idle * readers(reader, node);
    }
    const auto change = views_[reader]->follow_up(node, seen);
    count({now_, due::kind::pull, node, reader, seen},
          question.size(),
          reply.head.size(),
          body.size());
    if (!seen) {
        const auto times = readers(reader, node);
        switch (reply.what) {
        case answered::whole:
            counted_.wholes += times;
            counted_.whole_bytes += times * body.size();
            break;
        case answered::delta:
            counted_.deltas += times;
            counted_.delta_bytes += times * body.size();
            break;
        case answered::not_modified: counted_.unchanged += times; break;
        case answered::not_a_peer:
        case answered::not_signed:
        case answered::no_resource:
        case answered::not_ready:
        case answered::news:
            counted_.news += times;
            counted_.news_bytes += times * body.size();
            break;
        case answered::wrong_method:
        case answered::bad_question:
        case answered::waiting: counted_.failed += times; break;
        }
    }
    const auto site = where_.site_of(teller);
    if (plan_.by_gateways && reader == where_.gateway_of(site)) {
        hear(*members_[site], node, follower, change);
        tick_members(where_.members_of(site));
    }
}

void exchange::count(const due& what,
                     std::uint64_t question,
                     std::uint64_t head,
                     std::uint64_t body) {
    const auto times = readers(what.reader, what.node);
    const bool asked = plan_.how == delivery::pull || plan_.how == delivery::news;
    const auto messages = times * (asked ? 2 : 1);
    const auto bytes = times * (wire_cost::one_way(head + body) +
                                (asked ? wire_cost::one_way(question) : 0));
    const auto of_paper = times * (asked ? wire_cost::pull_of_paper(body)
                                         : wire_cost::update_of_paper(body));
    if (where_.are_apart(what.reader, where_.teller_of(what.node))) {
        auto& across = where_.is_of_members(what.node) ? counted_.across_of_members
                                                       : counted_.across;
        across.messages += messages;
        across.bytes += bytes;
    }
    (what.seen ? counted_.seen_messages : counted_.messages) += messages;
    (what.seen ? counted_.seen_bytes : counted_.bytes) += bytes;
    (what.seen ? counted_.seen_bytes_of_paper : counted_.bytes_of_paper) += of_paper;
}

void exchange::look_up(const filter::key_hash& store_key,
                       node_number from,
                       std::vector<digest_number>& out) {
    view_of(from).look_up(key_of(store_key.low, secret_), from, out);
}

bool exchange::seen_elsewhere(const filter::key_hash& store_key, node_number from) {
    return plan_.seen && view_of(from).seen(key_of(store_key.low, secret_));
}

exchange_figures exchange::figures() const {
    auto out = counted_;
    double rates = 0;
    for (node_number node = 0; node < nodes_; ++node) {
        rates += sources_[node]->digests().now()->bits->false_positive_rate();
    }
    out.false_positive_rate = rates / nodes_;
    for (auto digest = nodes_; digest < digests_; ++digest) {
        const auto reader = digest == nodes_ ? nodes_ - 1 : 0;  // of another site
        const auto& held = views_[reader]->follower(digest, false).held();
        out.members_rate += held ? held->false_positive_rate() / where_.sites() : 0;
    }
    for (const auto& one : views_) {
        for (digest_number node = 0; node < digests_; ++node) {
            for (const bool seen : {false, true}) {
                if (!seen || plan_.seen) {
                    out.refused += one->follower(node, seen).figures().failed;
                }
            }
        }
    }
    return out;
}

}  // namespace reprise::fleet
