#pragma once
// What changed in a filter lately, step by step, so that whoever knows the filter of a moment ago
// can be told what happened since, and not all of it.
//
// A step is the places that turned since the one before and the names of the keys that came. It is
// closed as the next generation; those of several steps merged are what led from any of them to the
// newest: what came and left in between cancels. Steps are forgotten, oldest first, when all of them
// hold more than `most` places and names: whoever comes from before that is told the whole.

#include "filter/news_wire.hpp"
#include "proxy/peer/news_pace.hpp"
#include "proxy/peer/secret.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace reprise::proxy::peer {

/// Memory    8 bytes for each place and name, at most 16 * most; some 100 for each step.
/// Threads   one.
class change_journal {
public:
    explicit change_journal(std::size_t most) : most_{most} {}

    /// A bit turned, which `is_on` now. O(1). Where there is no memory, or a step holds more than
    /// `most`, the step's places are let go of, and close() begins anew.
    void turned(std::uint64_t place, bool is_on) noexcept;
    /// A key came. Its places, as far as they were off, have turned: the last `its` that did.
    /// Where there were any, and it is urgent, so is the step, unless that is let go of later.
    void came(url_name name, std::size_t its, urgency what = urgency::ordinary) noexcept;
    /// Places that turned since the last step, counted each time; 0 where they were let go of.
    [[nodiscard]] std::size_t turns() const noexcept { return places_.size(); }

    /// Something turned since the last step.
    [[nodiscard]] bool is_open() const noexcept { return !places_.empty() || lost_; }
    /// How urgent it is to tell what turned since the last step.
    [[nodiscard]] urgency of_step() const noexcept { return of_step_; }
    /// Ends the step as generation `counter`. False where nothing differs in the end: then there is
    /// no step. O(step log step) where its names do not say all. @pre counter > newest()
    /// @throws std::bad_alloc, and then the step goes on
    bool close(std::uint64_t counter);
    /// Forgets all steps, and what is under way: the filter as it is is generation `counter`; with
    /// `sum`, of whose places that is the sum.
    void begin(std::uint64_t counter) noexcept;
    void begin(std::uint64_t counter, std::uint64_t sum) noexcept {
        sum_ = sum;
        begin(counter);
    }
    /// And from then on it holds `most`.
    void begin(std::uint64_t counter, std::uint64_t sum, std::size_t most) noexcept {
        most_ = most;
        begin(counter, sum);
    }

    /// The last step's counter, and the least that since() takes.
    [[nodiscard]] std::uint64_t newest() const noexcept { return newest_; }
    [[nodiscard]] std::uint64_t oldest() const noexcept {
        return steps_.empty() ? newest_ : steps_.front().base;
    }
    /// place_sum of the filter as of the last step.
    [[nodiscard]] std::uint64_t sum() const noexcept { return closed_sum_; }

    struct merged {
        filter::net_changes changes;
        std::uint64_t base_sum = 0;
    };
    /// What led from generation `counter` to the newest. O(places log places); O(places) where that is
    /// one step.
    /// @pre a generation between oldest() and newest() @throws std::bad_alloc
    [[nodiscard]] merged since(std::uint64_t counter) const;
    /// Whether `counter` is one from which since() can tell.
    [[nodiscard]] bool knows(std::uint64_t counter) const noexcept;

    [[nodiscard]] std::uint64_t bytes() const noexcept;
    [[nodiscard]] std::size_t steps() const noexcept { return steps_.size(); }

private:
    struct step {
        std::uint64_t base = 0;  // the generation that it begins from
        std::uint64_t base_sum = 0;
        filter::net_changes changes;
    };
    static std::size_t size_of(const step& one) noexcept {
        return one.changes.places.size() + one.changes.names.size();
    }
    void begin_step() noexcept;
    void lose_step() noexcept;  ///< and the memory that it took

    std::size_t most_;
    std::deque<step> steps_;
    std::size_t held_ = 0;  // places and names of all steps
    std::uint64_t newest_ = 0;
    std::uint64_t sum_ = 0, closed_sum_ = 0;
    // The step under way.
    std::vector<std::uint64_t> places_;
    std::vector<url_name> names_;
    std::size_t named_ = 0;  // of the places, those that a name of these was said to have turned
    bool any_off_ = false;
    urgency of_step_ = urgency::ordinary;
    bool lost_ = false;
};

}  // namespace reprise::proxy::peer
