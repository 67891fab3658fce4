#pragma once
// What nodes hold, told to all others as it changes: news, in virtual time and without sockets.
//
// A what-if of the plane, by its bits and its messages, not by the proxy's own code as `exchange`
// is: each node has a counting filter of the size that its digest would have, and what turned in it
// is put into everybody's index `interval` after the first change that was not told yet. So false
// hits are those of real filters, and an event costs what turned.
//
// A piece of news is the answer to a request that each sibling keeps open (peer/resource.hpp:
// ?since=…&wait=…), and the next such request. What it weighs: heads as the proxy writes them, and
// for each key that came 8 bytes, or the bits that turned, Golomb coded, whichever is less. With
// nothing to tell a request ends after `wait` and is made again.

#include "filter/counting.hpp"
#include "filter/sibling_index.hpp"
#include "proxy/peer/secret.hpp"
#include "tools/fleet/cache_node.hpp"
#include "tools/fleet/exchange.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <unordered_set>
#include <vector>

namespace reprise::fleet {

struct news_plan {
    milliseconds interval{200};  ///< peering.news
    milliseconds wait{30'000};   ///< an open request's
    double rate = 0.01;          ///< digest.false_positive_rate
    std::uint64_t least_capacity = 1024;
};

/// Threads  none.
class news {
public:
    news(const news_plan& plan, node_number nodes, const proxy::peer::fleet_secret& secret);
    ~news();

    void stored(node_number node, const filter::key_hash& key);
    void left(node_number node, const filter::key_hash& key);

    /// All that is due until `now`, since the trace began. Not earlier than the last.
    void pass(milliseconds now);

    /// The nodes that are known to have it, maybe, as view's.
    void look_up(const filter::key_hash& store_key,
                 node_number from,
                 std::vector<node_number>& out);

    [[nodiscard]] exchange_figures figures() const;

private:
    struct teller;
    struct block {
        block() : reader{index} {}
        filter::sibling_index index;
        filter::sibling_index::reader reader;
    };
    struct due {
        milliseconds at;
        node_number node;
        bool operator>(const due& other) const noexcept { return at > other.at; }
    };

    void changed(node_number node);
    void tell(node_number node, milliseconds at);
    void tell_whole(node_number node);
    [[nodiscard]] std::uint64_t weight_of(const teller& from) const noexcept;
    void count(std::uint64_t pieces, std::uint64_t body);

    news_plan plan_;
    node_number nodes_;
    const proxy::peer::fleet_secret& secret_;
    milliseconds now_{0};
    std::vector<std::unique_ptr<teller>> tellers_;
    std::vector<std::unique_ptr<block>> blocks_;
    std::vector<filter::sibling_mask> masks_;
    std::priority_queue<due, std::vector<due>, std::greater<>> queue_;
    std::uint64_t question_ = 0;  // bytes of one, head and all
    exchange_figures counted_;
};

}  // namespace reprise::fleet
