#pragma once
// Digests between the nodes of a fleet, in virtual time and without sockets.
//
// Each node has a digest_source (and, where sights are shared, a seen_source); each view has a
// digest_follower for each node. A pull is the proxy's own: the follower's question, the request's
// head as digest_fetch writes it, read by the proxy's parser, answered by peer::answer, and what
// comes back judged by the follower. Only the connection is missing, and its bytes are estimated
// (wire_cost.hpp).
//
// Where nodes are in sites what goes from one to another is counted apart; followed by way of their
// gateways, these have a members_source each, fed by what they follow of their siblings.
//
// Time. A trace's is in whole seconds; all requests of one second come at its beginning, in their
// order, or are spread over it. Then each source that was told something ticks, and again whenever it
// may publish. Pulls come at the followers' own times, jittered in milliseconds; news when a source
// has closed a step, and takes no time.

#include "proxy/peer/digest_source.hpp"
#include "tools/fleet/shared_rule.hpp"
#include "tools/fleet/sites.hpp"
#include "tools/fleet/view.hpp"
#include "tools/fleet/wire_cost.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace reprise::fleet {

using std::chrono::milliseconds;

enum class delivery : std::uint8_t {
    pull,     ///< conditional GETs every `period`: what the proxy does
    push,     ///< a message to each reader at each publication; a what-if
    instant,  ///< all readers know at once, after each request; a yardstick
    news,     ///< kept requests, answered `source.news` after a change at most: what the proxy does
};

struct exchange_plan {
    delivery how = delivery::pull;
    milliseconds period{10'000};      ///< peers[].refresh
    proxy::peer::source_plan source;  ///< digest.*
    bool seen = false;                ///< admission.share
    node_number views = 0;  ///< 0: one a node up to 16 nodes, and in sites; else one for all
    node_number sites = 1;
    milliseconds members_news{0};  ///< by gateways: the pace of members' news; 0: source.news
    bool by_gateways =
        false;  ///< of another site its gateway's digests are followed, not each node's
    std::uint64_t seed = 1;
};

struct traffic {
    std::uint64_t messages = 0, bytes = 0;
};

/// Messages and bytes, each once for each reader.
struct exchange_figures {
    std::uint64_t messages = 0, bytes = 0, bytes_of_paper = 0;
    std::uint64_t wholes = 0, deltas = 0, unchanged = 0, failed = 0, news = 0;
    std::uint64_t refused = 0;  ///< answers that followers would not take, or that had no digest
    std::uint64_t whole_bytes = 0, delta_bytes = 0, news_bytes = 0;  ///< bodies
    std::uint64_t seen_messages = 0, seen_bytes = 0, seen_bytes_of_paper = 0;
    std::uint64_t published = 0;
    double false_positive_rate = 0;  ///< the mean of digests held, in the end
    traffic across,
        across_of_members;    ///< of all these, between sites: nodes' own digests, members'
    double members_rate = 0;  ///< as false_positive_rate, of members' digests
};

/// Threads  none.
class exchange {
public:
    /// @throws std::invalid_argument where sites can't be followed so
    /// `rules`: whose sights are shared; empty where none are. They live as long as this.
    exchange(const exchange_plan& plan,
             node_number nodes,
             const proxy::peer::fleet_secret& secret,
             std::vector<const shared_rule*> rules);

    void stored(node_number node, const filter::key_hash& key);
    void left(node_number node, const filter::key_hash& key);

    /// All that is due before `now`, since the trace began. Not earlier than the last.
    void pass(milliseconds now);
    /// A request is over: for what is instant.
    void end_of_request();

    /// As view's, for the view of node `from`. `store_key` is the node's.
    void look_up(const filter::key_hash& store_key,
                 node_number from,
                 std::vector<digest_number>& out);
    [[nodiscard]] bool seen_elsewhere(const filter::key_hash& store_key, node_number from);

    [[nodiscard]] exchange_figures figures() const;
    [[nodiscard]] const site_map& where() const noexcept { return where_; }

private:
    struct due {
        milliseconds at;
        enum class kind : std::uint8_t { source, seen_source, pull } what;
        digest_number node;
        node_number reader;  // a view
        bool seen = false;
        bool operator>(const due& other) const noexcept { return at > other.at; }
    };

    [[nodiscard]] view& view_of(node_number node) { return *views_[node % views_.size()]; }
    /// How many nodes of a view read that digest.
    [[nodiscard]] std::uint64_t readers(node_number of_view, digest_number of) const noexcept;
    /// And of all views.
    [[nodiscard]] std::uint64_t readers(digest_number of) const noexcept;
    [[nodiscard]] const proxy::peer::publication& published_of(digest_number digest) const;
    [[nodiscard]] proxy::peer::news_shelf* news_of(digest_number digest);
    [[nodiscard]] proxy::steady_time due_at(digest_number digest) const;
    void keep(digest_number digest);
    void tick_touched();
    void tick(digest_number node);
    void tick_members(digest_number digest);
    void deliver(digest_number node, bool seen);
    void pull(node_number reader, digest_number node, bool seen);
    void tell(digest_number node);
    void do_next();
    void count(const due& what, std::uint64_t question, std::uint64_t head, std::uint64_t body);

    exchange_plan plan_;
    node_number nodes_;
    site_map where_;
    digest_number digests_;
    const proxy::peer::fleet_secret& secret_;
    std::mt19937_64 random_;
    milliseconds now_{0};
    std::vector<std::unique_ptr<proxy::peer::digest_source>> sources_;
    std::vector<std::unique_ptr<proxy::peer::seen_source>> seen_sources_;
    std::vector<std::unique_ptr<proxy::peer::members_source>> members_;  // by site
    std::vector<std::unique_ptr<view>> views_;
    std::vector<std::string> names_;
    std::vector<std::uint8_t> touched_;
    std::vector<node_number> touched_list_;
    std::vector<std::uint64_t> generations_;
    std::vector<milliseconds> next_tick_;
    std::vector<filter::digest_generation> told_;
    std::vector<milliseconds> told_at_;
    std::priority_queue<due, std::vector<due>, std::greater<>> queue_;
    exchange_figures counted_;
};

}  // namespace reprise::fleet
