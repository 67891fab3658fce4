#pragma once
// Whose a URL is, where each has a home (peering.homes): one node of the fleet, which fetches it and
// has it on disk. All others ask it for what they lack, and keep copies in memory alone.
//
// The home is the first of the nodes that live by rendezvous hashing (parents.hpp) over their
// pseudonyms and the URL's key under the fleet's secret: so all nodes that know of the same others
// agree, whatever each calls them, and one that comes or goes moves 1/N of the URLs. Nodes that
// disagree for a moment cost a fetch more and nothing else: what is asked with home_field is never
// handed on a second time.
//
// A node lives as long as its digest is had, and what is asked of it answers: one that fails is
// passed by for a second, then two, up to a minute, and then asked by one request alone, until that has
// its word (parents.hpp). This instance always lives.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/peer/parents.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Names the home that is asked, in a request that a sibling hands on, and in its Connection.
inline constexpr std::string_view home_field = "Reprise-Home";

/// A sibling that lives.
struct live_node {
    unsigned slot = 0;   ///< of the sibling table
    std::string name;    ///< its pseudonym
    bool https = false;  ///< it is asked over TLS
    bool operator==(const live_node&) const = default;
};

/// And which instance it is: each has an epoch of its own for its digest, from its start on.
struct heard_node {
    live_node node;
    std::uint64_t epoch = 0;
};

/// Which nodes the siblings are that live. One may be reached in two ways (a DNS name with A and AAAA records); and two
/// may have one pseudonym, by mistake or by a lie.
///
/// Threads   one.
class who_is_who {
public:
    /// Of several ways to one instance the first. O(nodes^2), of 256 at most.
    [[nodiscard]] static std::vector<live_node> instances_of(std::span<const heard_node> heard);

    /// Names that are to be warned of: several instances have had each for `for_long`, and nobody was warned of it since. Not
    /// sooner, as an instance that has just begun may be known by one way and not yet by another; and once in `between` at
    /// most, whatever siblings call themselves.
    [[nodiscard]] std::vector<std::string> namesakes_among(std::span<const heard_node> heard,
                                                           steady_time now);
    static constexpr std::chrono::seconds for_long{10}, between{60};

private:
    struct doubled {
        steady_time since{};
        bool is_told = false;
    };
    std::map<std::string, doubled> doubled_;  // those that are now
    steady_time not_before_{};
};

/// Threads   any number once made; relaxed atomics for which are down.
class homes {
public:
    /// Nodes of the same pseudonym as another, or as `own`, are left out: nobody could tell them
    /// apart (peering warns of them: who_is_who).
    homes(std::string_view own, std::span<const live_node> others);

    struct home {
        std::size_t at;  ///< for failed() and succeeded()
        unsigned slot;
        std::string_view name;  ///< as long as this lives
    };
    /// The sibling that a URL of this key (key_of) belongs to; none: this instance has it itself,
    /// since it is its own, or one of https (`secure`) whose home is not reached over TLS. O(nodes),
    /// no allocation.
    [[nodiscard]] std::optional<home> of(const filter::key_hash& key,
                                         bool secure,
                                         steady_time now) const noexcept;

    /// The same for whoever goes on to ask it. One that has failed is asked by one caller alone when
    /// its time is up, with `held` meanwhile, for `patience` at the most; others are led past it.
    [[nodiscard]] std::optional<home> to_ask(const filter::key_hash& key,
                                             bool secure,
                                             steady_time now,
                                             std::chrono::milliseconds patience,
                                             trial& held) const noexcept;

    /// As note_parent_failed and note_parent_works, and logged so.
    void failed(std::size_t at, steady_time begun, const failure& why) const;
    void succeeded(std::size_t at) const;

    /// What is known of a node is what `before` knows now of the same one in the same slot. Before others
    /// see this.
    void go_on_as(const homes& before) noexcept;

    /// The siblings that it is made of.
    [[nodiscard]] std::span<const live_node> others() const noexcept { return others_; }

private:
    std::vector<live_node> others_;
    std::unique_ptr<parent_choice> choice_;  // of others_, and behind them this instance
};

}  // namespace reprise::proxy::peer
