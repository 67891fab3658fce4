#pragma once
// N proxies over one trace: who answers each request, and what finding that out cost.
//
// Life of a request at its node: look up; on a miss find a node that may have it, ask it with
// only-if-cached, go on to the next when it has not; at last the origin. What has come is stored or
// not as admission says.
//
// Only the origin takes time, if plan.head_takes says so: until its answer's head is there, and then
// until its body is, further requests at that node join the fetch, and what it brings is held from
// the end on. All else is there before the next request.

#include "proxy/peer/parents.hpp"
#include "tools/fleet/cache_node.hpp"
#include "tools/fleet/exchange.hpp"
#include "tools/fleet/wire_cost.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reprise::fleet {

/// How a node that misses finds out who has the object.
enum class finding : std::uint8_t {
    alone,    ///< it does not
    digests,  ///< by digests
    sites,    ///< the same, of other sites by their gateways' two (exchange.sites)
    hints,    ///< by digests, and where they name nobody by asking the key's home node, which
              ///< remembers who stored it last: a query and a reply
    oracle,   ///< it knows what all hold at this moment, which is what ICP finds out by asking all
    routed,   ///< it asks the key's home node as a parent, which fetches and stores what it lacks
    homes,    ///< the same, and a node keeps others' keys in a part of its room alone
};
[[nodiscard]] std::string_view to_string(finding how) noexcept;
[[nodiscard]] std::optional<finding> finding_of(std::string_view name) noexcept;

struct fleet_plan {
    node_number nodes = 4;
    std::uint64_t capacity = 0;  ///< bytes of all nodes together, each has an equal part
    replay::policy_choice policy;
    bool strict = false;     ///< second-hit, remember auto; else all is stored
    std::uint64_t unit = 1;  ///< as replay's --unit
    /// The filter's settings instead of "auto".
    std::optional<filter::admission_settings> remember;
    finding how = finding::digests;
    cache_node::keep copies = cache_node::keep::if_admitted;  ///< of what siblings sent
    std::chrono::seconds hints_for{600};                      ///< how long a home node remembers
    exchange_plan exchange;
    double hot = 0.1;  ///< homes: the share of a node's room for copies of others' keys
    milliseconds head_takes{0}, body_takes{0};  ///< of a fetch from the origin
    bool under_way =
        false;  ///< digests: a fetch is told of, and joined by siblings, from its head on,
                ///< if it will be stored
    wire_cost wire;
};

/// Questions with only-if-cached. Those that found nothing are among them.
struct questioned {
    std::uint64_t questions = 0, in_vain = 0;
};

struct fleet_tally {
    std::uint64_t requests = 0, bytes = 0;
    std::uint64_t local_hits = 0, local_hit_bytes = 0;
    std::uint64_t sibling_hits = 0, sibling_hit_bytes = 0;
    std::uint64_t joined = 0;      ///< of local hits: a fetch that was under way
    std::uint64_t questions = 0;   ///< to siblings and sites, with only-if-cached
    std::uint64_t false_hits = 0;  ///< of these, that found nothing
    std::uint64_t missed = 0;      ///< fetched from the origin while another node held it
    std::uint64_t fetched = 0;     ///< from the origin
    std::uint64_t hint_queries = 0;
    std::uint64_t handed_on = 0;       ///< routed: misses that took the way over another node
    std::uint64_t handed_in_vain = 0;  ///< of these, that it had to fetch
    std::uint64_t written = 0;         ///< objects stored
    std::uint64_t from_the_seen = 0;   ///< of these, at a first sight here that was none elsewhere
    questioned across;                 ///< of the questions, from a site to another
    questioned across_members;         ///< of these, to a gateway for what its members have
    questioned for_sites;  ///< of the questions, a gateway's to its siblings for another site
    std::uint64_t across_hits = 0, across_hit_bytes = 0;  ///< of the siblings', from another site
    exchange_figures exchange;
    /// What crosses from site to site: digests and questions in vain, with their replies.
    traffic between;
    std::uint64_t icp_messages = 0, icp_bytes = 0, icp_bytes_of_paper = 0;
    std::uint64_t messages = 0;  ///< false hits and pulls with their replies, hints with theirs
    std::uint64_t wire_bytes = 0, paper_bytes = 0;

    [[nodiscard]] std::uint64_t hits() const noexcept { return local_hits + sibling_hits; }
    [[nodiscard]] std::uint64_t misses() const noexcept { return requests - hits(); }
    [[nodiscard]] std::uint64_t local_misses() const noexcept { return requests - local_hits; }
};

/// Threads  none.
class fleet final : contents_watch {
public:
    /// @pre plan.nodes > 0
    explicit fleet(const fleet_plan& plan);
    ~fleet();

    /// The next request of the trace, sent to `at`, so long after its second began.
    void ask(const request& wanted, node_number at, milliseconds within = milliseconds{0});

    [[nodiscard]] fleet_tally figures() const;
    [[nodiscard]] bool holds(node_number node, object_number object) const {
        return nodes_[node]->holds(object);
    }
    /// The same of the room for others' keys. @pre homes
    [[nodiscard]] bool holds_hot(node_number node, object_number object) const {
        return hot_[node]->holds(object);
    }
    /// Which node a key belongs to, by rendezvous.
    [[nodiscard]] node_number home_of(const request& wanted);

private:
    struct hint {
        node_number node = 0;
        std::uint32_t seconds = 0;
        bool known = false;
    };

    /// A fetch from the origin, not at its end yet.
    struct fetch_under_way {
        request wanted;
        milliseconds head, end;
        node_number node;
        bool kept;  // it will be stored
        bool head_is_there;
        bool operator>(const fetch_under_way& other) const noexcept { return due() > other.due(); }
        [[nodiscard]] milliseconds due() const noexcept { return head_is_there ? end : head; }
    };

    void pass(milliseconds now);
    void end(const fetch_under_way& what);
    [[nodiscard]] bool tells_of_fetches() const noexcept { return plan_.under_way && exchange_; }
    [[nodiscard]] bool is_fetching(object_number object, node_number node) const;
    void stored(node_number node, object_number object, const filter::key_hash& key) override;
    void left(node_number node, object_number object, const filter::key_hash& key) override;

    [[nodiscard]] node_parts parts_of_one(double share);
    /// Whether a node that is asked for it has it, in whole or on its way.
    [[nodiscard]] bool gives(const request& wanted, node_number asked);
    [[nodiscard]] bool sibling_has(const request& wanted, node_number sibling);
    [[nodiscard]] bool other_site_has(const request& wanted, digest_number named);
    [[nodiscard]] bool members_have(const request& wanted, node_number gateway);
    [[nodiscard]] bool found_by_digests(const request& wanted, node_number at);
    [[nodiscard]] bool found_elsewhere(const request& wanted, node_number at);
    [[nodiscard]] bool found_by_hint(const request& wanted, node_number at);
    void route(const request& wanted, node_number at);
    void fetch(const request& wanted, node_number at);
    void count_sibling_hit(const request& wanted) noexcept;
    [[nodiscard]] bool others_hold(object_number object, node_number at) const;
    /// The room at a node where a key belongs.
    [[nodiscard]] cache_node& room(node_number node, const request& wanted);

    fleet_plan plan_;
    proxy::peer::fleet_secret secret_;
    std::vector<const shared_rule*> rules_;
    std::vector<std::unique_ptr<cache_node>> nodes_;
    std::vector<std::unique_ptr<cache_node>> hot_;  // homes: for copies
    std::optional<exchange> exchange_;
    std::unique_ptr<proxy::peer::parent_choice> homes_;
    std::vector<std::vector<node_number>> holders_;  // by object
    std::vector<node_number> home_;                  // by object, none: not known yet
    std::vector<hint> hints_;                        // by object; each is its home node's
    std::vector<digest_number> candidates_, candidates_there_;
    std::optional<std::uint32_t> start_;
    milliseconds now_{0};
    std::priority_queue<fetch_under_way, std::vector<fetch_under_way>, std::greater<>> under_way_;
    std::unordered_map<std::uint64_t, bool> fetching_;  // by object and node: is its head there?
    fleet_tally tally_;
};

}  // namespace reprise::fleet
