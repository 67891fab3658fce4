#pragma once
// What is known of the nodes of the fleet: of each the record that counts (FLEET.md). This node's own
// stands apart: nobody else makes it.
//
// Memory    255 records beside its own.
// Threads   any; a lock for as long as 256 records take to be copied.
// Errs      towards old: an age is at most what it says. Whoever lies can invent nodes, and figures of
//           nodes, for as long as the lies go on (TRUST.md).

#include "proxy/base/clock.hpp"
#include "proxy/peer/fleet_wire.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

/// A node as it is shown.
struct fleet_row {
    std::string name;
    bool is_own = false;
    bool alive = false;
    std::chrono::milliseconds age{0};
    node_figures figures;
};

class fleet_table {
public:
    static constexpr std::chrono::seconds alive_for{30};
    /// What ages of one record may differ by, for all the exchanges that it went through.
    static constexpr std::chrono::seconds most_error{15};
    static constexpr std::chrono::minutes kept_for{5};

    /// @pre is_node_name(own)
    fleet_table(std::string own, std::uint64_t epoch) : own_{std::move(own)}, epoch_{epoch} {}

    /// What this node says of itself from now on: its next record.
    void note_own(const node_figures& figures, steady_time now);

    /// A sibling's set, of which the answer came `took` after the question. The record that counts
    /// of a name stays; those that are too old, and those of this node's own name, are passed over.
    void take(std::span<const node_record> told, steady_time::duration took, steady_time now);

    /// All that is not too old, as it is passed on; without a record of its own while there is none.
    [[nodiscard]] std::vector<std::byte> told(steady_time now) const;

    /// The same, for people: in order of names.
    [[nodiscard]] std::vector<fleet_row> rows(steady_time now) const;

    [[nodiscard]] const std::string& own() const noexcept { return own_; }

private:
    struct held {
        std::uint64_t epoch = 0, sequence = 0;
        steady_time made;  ///< then, or later
        node_figures figures;
    };
    [[nodiscard]] static bool counts_more(const held& one, const held& other) noexcept;
    void drop_old(steady_time now);
    void put(const std::string& name, const held& next);
    template <class Each>
    void for_each(steady_time now, Each each) const;

    const std::string own_;
    const std::uint64_t epoch_;
    mutable std::mutex guard_;
    held mine_;  // sequence 0: nothing was said yet
    std::map<std::string, held> others_;
};

}  // namespace reprise::proxy::peer
