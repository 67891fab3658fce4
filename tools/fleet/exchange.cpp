#include "tools/fleet/exchange.hpp"

#include "proxy/http/message_head.hpp"
#include "proxy/net/address.hpp"
#include "proxy/peer/digest_fetch.hpp"
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
      secret_{secret},
      random_{plan.seed},
      touched_(nodes),
      generations_(nodes),
      next_tick_(nodes, never),
      told_(nodes),
      told_at_(nodes, milliseconds{0}) {
    if (plan_.how != delivery::news) {
        plan_.source.news = milliseconds{0};
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
    follow.key_of = [&secret](std::uint64_t name) { return key_of(name, secret); };
    auto count = plan_.views;
    if (count == 0) {
        count = nodes <= views_of_their_own ? nodes : 1;
    }
    for (node_number i = 0; i < std::min(count, nodes); ++i) {
        views_.push_back(
            std::make_unique<view>(nodes, follow, plan_.seen, random_(), steady(milliseconds{0})));
    }
    for (node_number node = 0; node < nodes; ++node) {
        names_.push_back(name_of_node(node));
    }
    for (node_number node = 0; node < nodes; ++node) {
        sources_.push_back(std::make_unique<digest_source>(plan_.source, secret, draw));
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
        for (node_number node = 0; node < nodes; ++node) {
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

std::uint64_t exchange::readers(node_number of_view, node_number of) const noexcept {
    const auto views = static_cast<node_number>(views_.size());
    const auto in_view = nodes_ / views + (of_view < nodes_ % views ? 1 : 0);
    return in_view - (of % views == of_view ? 1 : 0);
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
void exchange::tick(node_number node) {
    auto& source = *sources_[node];
    source.tick(steady(now_), wall(now_));
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
                                  ? rules.publish_at_most + std::chrono::seconds{figures.bits >> 24}
                                  : milliseconds{rules.publish_after};
    const auto at = std::max(*figures.published_at + wait - wall(milliseconds{0}),
                             now_ + milliseconds{100});
    if (next_tick_[node] != at) {
        next_tick_[node] = at;
        queue_.push({at, due::kind::source, node, 0});
    }
}

// What a source's keeper does when a step has ended: all who wait are answered, and ask again.
void exchange::tell(node_number node) {
    auto& source = *sources_[node];
    const auto newest = source.news()->newest();
    if (newest != told_[node]) {
        told_[node] = newest;
        deliver(node, false);
        told_at_[node] = now_;
    }
    if (source.due_at() == steady_time::max()) {
        next_tick_[node] = never;
        return;
    }
    const auto at = std::max(since_start(source.due_at()), now_ + milliseconds{1});
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

void exchange::deliver(node_number node, bool seen) {
    for (node_number reader = 0; reader < views_.size(); ++reader) {
        if (readers(reader, node) != 0) {
            pull(reader, node, seen);
        }
    }
}

void exchange::pull(node_number reader, node_number node, bool seen) {
    auto& follower = views_[reader]->follower(node, seen);
    const followed sibling{.name = names_[node], .host = names_[node] + ".example", .port = port};
    const auto question = digest_request(
        sibling,
        proxy::net::endpoint_text(proxy::asio::ip::address_v4{0x0a000000 + node}, port),
        seen ? seen_path : digest_path,
        follower.ask(steady(now_)),
        secret_,
        names_[reader],
        wall(now_),
        [this] { return random_(); });
    proxy::http::request_head head;
    if (proxy::http::parse_request_head(question, head, {}).state !=
        proxy::http::head_state::done) {
        throw std::logic_error{"a digest's request is not one"};
    }
    const bool by_news = plan_.how == delivery::news && !seen;
    offered what;
    what.digest_news = by_news ? sources_[node]->news() : nullptr;
    (seen ? what.seen : what.digest) = seen ? seen_sources_[node]->digests().now()
                                            : sources_[node]->digests().now();
    what.node = names_[node];
    const asker who{.is_reprise = true, .signing = true, .signature = signature_verdict::good};
    auto reply = answer(head, who, what, false, wall(now_));
    for (int tries = 0; reply.what == answered::waiting && tries < 3; ++tries) {
        sources_[node]->tick(steady(now_), wall(now_));  // it makes what is wished for
        what.digest = sources_[node]->digests().now();
        what.waited = tries == 2;
        reply = answer(head, who, what, false, wall(now_));
    }
    static const std::vector<std::byte> nothing;
    const auto& body = reply.body ? *reply.body : nothing;
    if (reply.handed_out) {
        reply.handed_out->fetched.store(true, std::memory_order_relaxed);
    }
    const auto etag = reply.handed_out ? reply.handed_out->etag : std::string{};
    follower.answered(
        {.status = reply.status, .etag = etag, .node = {}, .tells_news = by_news, .body = body},
        {},
        steady(now_));
    if (by_news) {
        // It asks again, and is told nothing every now and then while there is nothing.
        (void)sources_[node]->news()->look(told_[node]);
        const auto idle = static_cast<std::uint64_t>((now_ - told_at_[node]) / kept_for);
        for (std::uint64_t i = 0; i < idle; ++i) {
            count(
                {now_, due::kind::pull, node, reader, seen}, question.size(), reply.head.size(), 0);
        }
        counted_.unchanged += idle * readers(reader, node);
    }
    views_[reader]->follow_up(node, seen);
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
    (what.seen ? counted_.seen_messages : counted_.messages) += messages;
    (what.seen ? counted_.seen_bytes : counted_.bytes) += bytes;
    (what.seen ? counted_.seen_bytes_of_paper : counted_.bytes_of_paper) += of_paper;
}

void exchange::look_up(const filter::key_hash& store_key,
                       node_number from,
                       std::vector<node_number>& out) {
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
    for (const auto& one : views_) {
        for (node_number node = 0; node < nodes_; ++node) {
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
