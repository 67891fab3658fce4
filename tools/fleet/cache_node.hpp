#pragma once
// One proxy of a fleet: a tier of objects with its policy and its admission, asked by clients and
// by siblings.
//
// As replay's one_tier, but that its steps are apart: between the miss and the answer lies the
// search at siblings, and what comes in and leaves is told, for digests to follow. Entries are in a
// map of its own, not in a pool by object number: that takes 8 bytes for each object of the trace
// and each node, 4 GB with a thousand nodes.

#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/request.hpp"

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace reprise::fleet {

using replay::object_number;
using replay::request;

using node_number = std::uint32_t;

/// Is told what a node holds.
class contents_watch {
public:
    virtual void stored(node_number node, object_number object, const filter::key_hash& key) = 0;
    virtual void left(node_number node, object_number object, const filter::key_hash& key) = 0;

protected:
    ~contents_watch() = default;
};

struct node_parts {
    std::unique_ptr<proxy::cache::eviction_policy> policy;
    std::unique_ptr<replay::admission_rule> admission;
    std::unique_ptr<proxy::cache::frequency_sketch> requests{};  ///< for policies that count by one
    std::uint64_t capacity = 0;                                  ///< bytes
};

/// Threads  none.
class cache_node {
public:
    /// @pre `watch` outlives it
    cache_node(node_number number, node_parts parts, contents_watch& watch);
    cache_node(const cache_node&) = delete;
    cache_node& operator=(const cache_node&) = delete;

    /// A client's request, or one that another node hands on as its parent. True: a hit.
    [[nodiscard]] bool ask(const request& wanted);
    /// A sibling's, with only-if-cached. True: it was here, and was used. A request for what is not
    /// here leaves no trace.
    [[nodiscard]] bool lend(const request& wanted);

    enum class keep : std::uint8_t {
        if_admitted,
        always,  ///< the sight counts, and it is stored whatever admission says
        never,   ///< the sight counts
    };
    /// What ask() missed has come. `seen_elsewhere`: another node saw it lately, so that this is no
    /// first sight. True: it was stored.
    bool take(const request& wanted, keep how, bool seen_elsewhere) {
        return admits(wanted, how, seen_elsewhere) && store(wanted);
    }
    /// The two halves of take(): whether it is to be stored, which is a sight of it, and the storing.
    [[nodiscard]] bool admits(const request& wanted, keep how, bool seen_elsewhere);
    bool store(const request& wanted);

    [[nodiscard]] bool holds(object_number object) const { return entries_.contains(object); }
    [[nodiscard]] std::size_t count() const noexcept { return entries_.size(); }

private:
    struct entry : proxy::cache::evictable {
        object_number object = 0;
        std::uint32_t last_used = 0;  // seconds
    };

    void use(entry& kept, const request& wanted);
    void evict(const request& now);

    node_number number_;
    contents_watch& watch_;
    std::unique_ptr<proxy::cache::frequency_sketch> requests_;
    std::unique_ptr<replay::admission_rule> admission_;
    std::uint64_t capacity_;
    proxy::cache::residents residents_;
    std::unordered_map<object_number, entry> entries_;
};

}  // namespace reprise::fleet
