#include "tools/fleet/news.hpp"

#include "filter/digest.hpp"
#include "proxy/net/address.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/resource.hpp"
#include "tools/fleet/wire_cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

namespace reprise::fleet {

using filter::bloom_size;
using filter::key_hash;
using filter::sibling_index;

namespace {

constexpr std::uint64_t header = 128;       // of a digest's wire form
constexpr std::uint64_t answer_head = 250;  // as resource.cpp composes it
constexpr double head_room = 1.6;           // as digest_source makes room
constexpr std::uint64_t shrink_below = 4;

// Golomb's code of `listed` places out of `places`: within some per cent of the entropy.
std::uint64_t coded(std::uint64_t listed, std::uint64_t places) noexcept {
    if (listed == 0 || places <= listed) {
        return places / 8;
    }
    const auto of = static_cast<double>(places);
    const auto n = static_cast<double>(listed);
    const auto bits = n * (std::log2(of / n) + 1.5);
    return static_cast<std::uint64_t>(std::min(bits, of) / 8) + 1;
}

}  // namespace

struct news::teller {
    teller(std::uint64_t keys, double rate) { make(keys, rate); }

    void make(std::uint64_t keys, double rate) {
        capacity = keys;
        counts = std::make_unique<filter::counting_bloom>(filter::digest_size(keys, rate));
        turned.clear();
        came.clear();
        for (const auto& key : held) {
            counts->insert(key);
        }
    }

    // A place that turns twice is as it was.
    void turn(std::uint64_t place) {
        if (const auto [at, fresh] = turned.insert(place); !fresh) {
            turned.erase(at);
        }
    }

    std::unique_ptr<filter::counting_bloom> counts;
    std::uint64_t capacity = 0;
    std::unordered_set<key_hash> held;
    std::set<std::uint64_t> turned;  // and not told yet
    std::unordered_set<key_hash> came;
    std::uint64_t off = 0;  // turned off since the last piece
    bool is_due = false;
    milliseconds told_at{0};
};

news::news(const news_plan& plan, node_number nodes, const proxy::peer::fleet_secret& secret)
    : plan_{plan},
      nodes_{nodes},
      secret_{secret} {
    for (node_number first = 0; first < nodes; first += sibling_index::capacity) {
        blocks_.push_back(std::make_unique<block>());
    }
    masks_.resize(blocks_.size());
    for (node_number node = 0; node < nodes; ++node) {
        tellers_.push_back(std::make_unique<teller>(plan_.least_capacity, plan_.rate));
        tell_whole(node);
    }
    const proxy::peer::followed sibling{
        .name = "cache-00000001", .host = "cache-00000001.example", .port = 3128};
    proxy::peer::digest_follower::question question;
    question.query = "since=0123456789abcdef-12345&wait=30";
    question_ = digest_request(
                    sibling,
                    proxy::net::endpoint_text(proxy::asio::ip::address_v4{0x0a000001}, 3128),
                    proxy::peer::digest_path,
                    question,
                    secret_,
                    "cache-00000002",
                    proxy::wall_time{std::chrono::hours{24 * 365 * 50}},
                    [] { return ~std::uint64_t{0}; })
                    .size();
}

news::~news() = default;

// To every other node, an answer and its next question.
void news::count(std::uint64_t pieces, std::uint64_t body) {
    const auto readers = nodes_ - 1;
    counted_.messages += 2 * pieces * readers;
    counted_.bytes += pieces * readers *
                      (wire_cost::one_way(question_) + wire_cost::one_way(answer_head + body));
    counted_.bytes_of_paper += pieces * readers * wire_cost::pull_of_paper(body);
    counted_.deltas += pieces * readers;
    counted_.delta_bytes += pieces * readers * body;
}

void news::tell_whole(node_number node) {
    auto& from = *tellers_[node];
    const auto bits = from.counts->snapshot();
    blocks_[node / sibling_index::capacity]->index.put(
        node % sibling_index::capacity, from.counts->size(), bits.words());
    from.turned.clear();
    from.came.clear();
    from.off = 0;
    const auto body = header + coded(from.counts->bits_on(), from.counts->size().bits);
    counted_.wholes += nodes_ - 1;
    counted_.whole_bytes += (nodes_ - 1) * body;
    count(1, body);
}

void news::changed(node_number node) {
    auto& from = *tellers_[node];
    if (!from.is_due) {
        from.is_due = true;
        queue_.push({now_ + plan_.interval, node});
    }
}

void news::stored(node_number node, const key_hash& key) {
    auto& from = *tellers_[node];
    const auto name = proxy::peer::key_of(key.low, secret_);
    if (!from.held.insert(name).second) {
        return;
    }
    from.counts->insert(name, [&from](std::uint64_t place) { from.turn(place); });
    from.came.insert(name);
    changed(node);
}

void news::left(node_number node, const key_hash& key) {
    auto& from = *tellers_[node];
    const auto name = proxy::peer::key_of(key.low, secret_);
    if (from.held.erase(name) == 0) {
        return;
    }
    (void)from.counts->erase(name, [&from](std::uint64_t place) {
        from.turn(place);
        ++from.off;
    });
    from.came.erase(name);
    changed(node);
}

std::uint64_t news::weight_of(const teller& from) const noexcept {
    const auto places = from.counts->size().bits;
    const auto as_bits = coded(from.turned.size(), places);
    const auto as_keys = 8 * from.came.size() + (from.off == 0 ? 0 : coded(from.off, places));
    return header + std::min<std::uint64_t>(as_bits, as_keys);
}

void news::tell(node_number node, milliseconds at) {
    auto& from = *tellers_[node];
    from.is_due = false;
    // Requests that ended with nothing to tell meanwhile.
    const auto quiet = at - plan_.interval - from.told_at;
    if (quiet > plan_.wait) {
        count(static_cast<std::uint64_t>(quiet / plan_.wait), 0);
    }
    from.told_at = at;
    ++counted_.published;
    const auto listed = from.held.size();
    if (listed > from.capacity ||
        (from.capacity > plan_.least_capacity && listed * shrink_below < from.capacity)) {
        auto capacity = plan_.least_capacity;
        while (static_cast<double>(capacity) < static_cast<double>(listed) * head_room) {
            capacity *= 2;
        }
        from.make(capacity, plan_.rate);
        tell_whole(node);
        return;
    }
    count(1, weight_of(from));
    const std::vector<std::uint64_t> places{from.turned.begin(), from.turned.end()};
    (void)blocks_[node / sibling_index::capacity]->index.flip(
        node % sibling_index::capacity, from.counts->size(), places);
    from.turned.clear();
    from.came.clear();
    from.off = 0;
}

void news::pass(milliseconds now) {
    while (!queue_.empty() && queue_.top().at <= now) {
        const auto next = queue_.top();
        queue_.pop();
        now_ = std::max(now_, next.at);
        tell(next.node, next.at);
    }
    now_ = now;
}

void news::look_up(const key_hash& store_key, node_number from, std::vector<node_number>& out) {
    const auto key = proxy::peer::key_of(store_key.low, secret_);
    out.clear();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        masks_[i] = blocks_[i]->reader.may_hold(key);
    }
    for (node_number step = 1; step < nodes_; ++step) {
        const auto at = (from + step) % nodes_;
        if ((masks_[at / sibling_index::capacity] >> (at % sibling_index::capacity) & 1) != 0) {
            out.push_back(at);
        }
    }
}

exchange_figures news::figures() const {
    auto out = counted_;
    double rates = 0;
    for (const auto& one : tellers_) {
        rates += one->counts->false_positive_rate();
    }
    out.false_positive_rate = rates / nodes_;
    return out;
}

}  // namespace reprise::fleet
