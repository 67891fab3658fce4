#pragma once
// A node's part in the fleet's figures (FLEET.md): it asks its siblings for theirs, tells what it
// knows to whoever asks, and sums it up.

#include "filter/union_estimate.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/fleet_fetch.hpp"
#include "proxy/peer/fleet_table.hpp"
#include "proxy/peer/peer_report.hpp"
#include "proxy/peer/resource.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace reprise::proxy::peer {

/// Distinct keys of this node's digest (null: there is none yet) and of those held of siblings. Of
/// these only such count as are of one rate with its own and of a size that folds to it, whichever is
/// the larger: so no sibling's size leaves out another. O(bits of all).
[[nodiscard]] filter::union_estimate::sum distinct_keys(
    const std::shared_ptr<const filter::digest>& own,
    const std::vector<digest_fetcher::figures_of_one>& siblings);

/// Threads   begin, follow, stop: the home loop's. The others: any.
class fleet_exchange {
public:
    /// `own`: this node's name; `epoch`: a random number, of this start.
    fleet_exchange(const std::string& own, std::uint64_t epoch) : table_{own, epoch} {}

    /// Siblings are asked from now on. @pre as fleet_fetcher's
    void begin(const follow_context& context);
    void follow(const std::vector<followed>& siblings);
    void stop();

    /// What is told of this node from now on. One at a time.
    void note_own(const node_figures& figures, steady_time now) { table_.note_own(figures, now); }

    /// The set as it goes to a sibling. Made anew at most every `told_for`, by which its ages are
    /// larger than they are: whoever asks without end costs no more.
    [[nodiscard]] wire_bytes told(steady_time now);
    static constexpr std::chrono::milliseconds told_for{250};
    /// The answer to a question for it.
    void count(const resource_answer& answer) noexcept;

    /// Distinct keys are counted again only now and then: one part in twenty of a thread's time at most.
    [[nodiscard]] fleet_report report(
        const std::shared_ptr<const filter::digest>& own,
        const std::vector<digest_fetcher::figures_of_one>& siblings) const;

private:
    fleet_table table_;
    std::unique_ptr<fleet_fetcher> fetcher_;
    std::atomic<std::uint64_t> told_{0}, refused_{0}, told_bytes_{0};

    std::mutex told_guard_;  // guards wire_, tell_again_at_
    wire_bytes wire_;
    steady_time tell_again_at_{};

    mutable std::mutex distinct_guard_;  // guards distinct_, count_again_at_
    mutable filter::union_estimate::sum distinct_;
    mutable steady_time count_again_at_{};
};

}  // namespace reprise::proxy::peer
