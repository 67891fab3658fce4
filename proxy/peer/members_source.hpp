#pragma once
// What a gateway tells other sites: the union of its siblings' digests, as they hold them now.
//
// It follows what this instance follows: each of its siblings' digests when it comes whole, each bit
// that news turns (digest_fetch tells it, beside sibling_table). Its own contents are not in it (those are
// the gateway's own digest), nor what another site's gateway tells: so what a reader is told here is one
// hop from the gateway, and no farther (members of members are nobody's).
//
// Squids are no members, since their digests have another hash, nor are siblings whose digests say
// nothing of the others' (another rate), or are many times smaller than two others
// (filter/digest_union): their log line says so, once. One that was left out is a member as soon as it
// fits what the others have become.

#include "filter/digest.hpp"
#include "filter/digest_union.hpp"
#include "filter/seed_id.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/peer/told_bits.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

struct members_figures {
    std::uint64_t members = 0;   ///< whose digests are in it
    std::uint64_t left_out = 0;  ///< whose are not: of another rate, or far smaller than two others
    std::uint64_t bits = 0, bits_on = 0;
    double false_positive_rate = 0;
    std::uint64_t bytes = 0;
};

/// Memory    digest_union's, and told_bits'.
/// Threads   put, flip, remove: one, which may take a while (a side thread). tick, next_news: another
///           one, the keeper's. They wait for each other by a lock while a digest is merged.
///           figures, and what news() and digests() have: any.
class members_source {
public:
    members_source(filter::seed_id seed,
                   std::chrono::seconds publish_after,
                   std::function<std::uint64_t()> random,
                   news_plan news);

    /// The digest of the sibling in this slot, in place of the one it had. False: it is left out.
    /// @throws std::bad_alloc, and then it is no member
    bool put(unsigned slot, const filter::digest& its);
    /// Bits of it have turned. As put() where what it had is not known, or it was left out and is not
    /// any more.
    bool flip(unsigned slot, const filter::digest& its, std::span<const std::uint64_t> places);
    /// It is no member any more.
    void remove(unsigned slot);

    /// Publishes, tells news. @throws std::bad_alloc; the next call goes on
    void tick(steady_time steady, wall_time now);

    /// As told_bits has them.
    [[nodiscard]] news_shelf* news() noexcept { return told_.news(); }
    [[nodiscard]] steady_time next_news() const noexcept { return told_.next_news(); }
    [[nodiscard]] steady_time due_at() const noexcept { return told_.due_at(); }
    [[nodiscard]] const publication& digests() const noexcept { return told_.digests(); }

    [[nodiscard]] members_figures figures() const;

private:
    void take_over();

    const std::chrono::seconds publish_after_;
    const std::function<void()> stir_;
    mutable std::mutex guard_;
    filter::digest_union union_;       // guarded, as what is below
    std::vector<unsigned> strangers_;  // whose digests the union does not hold
    std::atomic<std::uint64_t> told_bytes_{0};
    // The keeper's.
    told_bits told_;
    std::optional<steady_time> published_;
};

}  // namespace reprise::proxy::peer
