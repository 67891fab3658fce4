#pragma once
// What came to pass over the last hour and the last day, for the dashboard's curves.
// The counters only grow, so two readings have between them what happened: two rings of readings, one
// every ten seconds and one every five minutes, and no file. A restart forgets them; an upgrade hands them
// on, as /history has them (server/UPGRADE.md).

#include "proxy/base/clock.hpp"
#include "proxy/base/counters.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

/// Counts of which the course is of interest; each only grows.
struct tally {
    std::uint64_t requests = 0;  ///< answered_requests
    std::uint64_t hits = 0;
    std::uint64_t by_siblings = 0, bytes_by_siblings = 0;  ///< answered by a sibling's store
    std::uint64_t by_sharing = 0, bytes_by_sharing = 0;    ///< by another request's fetch
    std::uint64_t body_bytes = 0;                          ///< to clients, of answered requests
    std::uint64_t body_bytes_from_store = 0;
    std::uint64_t kept_out = 0, kept_out_bytes = 0;  ///< by admission
    std::uint64_t hits_lost = 0;                     ///< to admission
    // Requests that failed at their origin: nobody answered, its name did not resolve (a name that
    // there is none of is its asker's matter), its certificate or its TLS, what it sent or did not.
    std::uint64_t unreached = 0, unresolved = 0, untrusted = 0, ill_answered = 0;
    std::uint64_t lines_dropped = 0;  ///< of both logs

    [[nodiscard]] std::uint64_t origin_failures() const noexcept {
        return unreached + unresolved + untrusted + ill_answered;
    }
    /// What no origin was asked for, whoever had it: the store, a sibling, another's fetch.
    [[nodiscard]] std::uint64_t spared() const noexcept { return hits + by_siblings + by_sharing; }
    [[nodiscard]] std::uint64_t bytes_spared() const noexcept {
        return body_bytes_from_store + bytes_by_siblings + bytes_by_sharing;
    }
    bool operator==(const tally&) const = default;
};
/// Each count for itself, modulo 2^64.
[[nodiscard]] tally operator-(const tally& later, const tally& earlier) noexcept;
[[nodiscard]] tally tally_of(const totals& counts, std::uint64_t lines_dropped) noexcept;

/// Threads  one (that of the admin server's handlers, which ticks it and reads it).
/// Memory   fixed, 90 KiB.
class history {
public:
    static constexpr std::chrono::seconds fine_step{10}, coarse_step{300};
    static constexpr std::chrono::hours fine_span{1}, coarse_span{24};

    /// Everything is counted from `start`, when the counters were zero.
    explicit history(steady_time start);

    /// Goes on from what history_json said at `told_at` of the process that this one takes over from, whose
    /// counts ended there. False, and nothing is changed: that is no such text, or not of before now.
    /// What a count was called that this release does not know is passed over; one that the other did
    /// not know is none. @pre tick was not called
    bool adopt(std::string_view text, steady_time told_at);
    /// It goes on from what another process had.
    [[nodiscard]] bool has_adopted() const noexcept { return adopted_; }

    /// Takes a reading where the last one is old enough; call it about once a second.
    void tick(steady_time now, const tally& counted);

    struct sample {
        steady_time until;
        std::chrono::nanoseconds span;  ///< as much as it was: longer than a step after a pause
        tally happened;
    };
    /// The oldest first; the last, shorter than a step, ends now.
    [[nodiscard]] std::vector<sample> last_hour(steady_time now, const tally& counted) const;
    [[nodiscard]] std::vector<sample> last_day(steady_time now, const tally& counted) const;

    /// In the last `span`, a day at most, or since the start where that is less long ago; up to
    /// one step more: a coarse one, where `span` is more than an hour.
    [[nodiscard]] tally within(std::chrono::seconds span,
                               steady_time now,
                               const tally& counted) const;
    /// For how long that is in truth.
    [[nodiscard]] std::chrono::nanoseconds covered(std::chrono::seconds span,
                                                   steady_time now) const;

private:
    struct reading {
        steady_time at;
        tally counted;
    };
    /// One reading more than there are samples.
    struct ring {
        ring(std::chrono::seconds every, std::chrono::seconds covers, steady_time start);
        void tick(steady_time now, const tally& counted);
        [[nodiscard]] std::vector<sample> samples(steady_time now, const tally& counted) const;
        [[nodiscard]] const reading& back(std::size_t steps) const noexcept;
        void fill(const std::vector<reading>& with);

        std::chrono::seconds step;
        std::vector<reading> readings;
        std::size_t newest = 0, kept = 1;
    };
    [[nodiscard]] const reading& beginning(std::chrono::seconds span, steady_time now) const;

    ring fine_, coarse_;
    bool adopted_ = false;
};

/// /history, as JSON: for the hour and the day a list of each count, by its name, with the seconds that lie
/// between each sample's end and now, and those that it took.
[[nodiscard]] std::string history_json(const history& from, steady_time now, const tally& counted);

}  // namespace reprise::proxy::admin
