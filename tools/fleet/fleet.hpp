#pragma once
// N proxies over one trace: who answers each request, and what finding that out cost.
//
// Life of a request at its node: look up; on a miss find a node that may have it, ask it with
// only-if-cached, go on to the next when it has not; at last the origin. What has come is stored or
// not as admission says. Nothing takes time: an answer is there before the next request.

#include "proxy/peer/parents.hpp"
#include "tools/fleet/cache_node.hpp"
#include "tools/fleet/exchange.hpp"
#include "tools/fleet/wire_cost.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise::fleet {

/// How a node that misses finds out who has the object.
enum class finding : std::uint8_t {
    alone,    ///< it does not
    digests,  ///< by digests
    hints,    ///< by digests, and where they name nobody by asking the key's home node, which
              ///< remembers who stored it last: a query and a reply
    oracle,   ///< it knows what all hold at this moment, which is what ICP finds out by asking all
    routed,   ///< it asks the key's home node as a parent, which fetches and stores what it lacks
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
    wire_cost wire;
};

struct fleet_tally {
    std::uint64_t requests = 0, bytes = 0;
    std::uint64_t local_hits = 0, local_hit_bytes = 0;
    std::uint64_t sibling_hits = 0, sibling_hit_bytes = 0;
    std::uint64_t questions = 0;   ///< to siblings, with only-if-cached
    std::uint64_t false_hits = 0;  ///< of these, that found nothing
    std::uint64_t missed = 0;      ///< fetched from the origin while another node held it
    std::uint64_t hint_queries = 0;
    std::uint64_t handed_on = 0;      ///< routed: misses that took the way over another node
    std::uint64_t written = 0;        ///< objects stored
    std::uint64_t from_the_seen = 0;  ///< of these, at a first sight here that was none elsewhere
    exchange_figures exchange;
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

    /// The next request of the trace, sent to `at`.
    void ask(const request& wanted, node_number at);

    [[nodiscard]] fleet_tally figures() const;
    [[nodiscard]] bool holds(node_number node, object_number object) const {
        return nodes_[node]->holds(object);
    }
    /// Which node a key belongs to, by rendezvous.
    [[nodiscard]] node_number home_of(const request& wanted);

private:
    struct hint {
        node_number node = 0;
        std::uint32_t seconds = 0;
        bool known = false;
    };

    void stored(node_number node, object_number object, const filter::key_hash& key) override;
    void left(node_number node, object_number object, const filter::key_hash& key) override;

    [[nodiscard]] node_parts parts_of_one();
    [[nodiscard]] bool sibling_has(const request& wanted, node_number sibling);
    [[nodiscard]] bool found_elsewhere(const request& wanted, node_number at);
    [[nodiscard]] bool found_by_hint(const request& wanted, node_number at);
    void route(const request& wanted, node_number at);
    void fetch(const request& wanted, node_number at);
    void count_sibling_hit(const request& wanted) noexcept;
    [[nodiscard]] bool others_hold(object_number object, node_number at) const;

    fleet_plan plan_;
    proxy::peer::fleet_secret secret_;
    std::vector<const shared_rule*> rules_;
    std::vector<std::unique_ptr<cache_node>> nodes_;
    std::optional<exchange> exchange_;
    std::unique_ptr<proxy::peer::parent_choice> homes_;
    std::vector<std::vector<node_number>> holders_;  // by object
    std::vector<node_number> home_;                  // by object, none: not known yet
    std::vector<hint> hints_;                        // by object; each is its home node's
    std::vector<node_number> candidates_;
    std::optional<std::uint32_t> start_;
    std::uint32_t second_ = 0;
    fleet_tally tally_;
};

}  // namespace reprise::fleet
