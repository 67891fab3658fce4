#pragma once
// The fleet's second request: what the admission filter saw lately (admission_filter's
// recent_digest), published as a digest, and what siblings published of theirs.
//
// Both sides key by the fleet's secret, so the admission filter of a node that shares must be asked
// with key_of(name_of(url)), not with its store's own key. A generation's bits only come until the
// next counts alone, and a delta then turns nearly all of them: it is sent whole when that is
// shorter. A filter of another size is another epoch, and begins empty.
//
// News: whoever notes a first sight says its name here too, and the bits of what was said, kept
// beside the filter, turn by these; they and the names go into a journal, as a digest's do
// (digest_source). Every publish_after the filter's own are looked at, since whole generations of
// them are forgotten at once, and what differs is news like any other, or more than a journal holds.
// So what is forgotten is told so much later, and what is seen at once.

#include "filter/digest.hpp"
#include "filter/digest_set.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/peer/slot_set.hpp"
#include "proxy/peer/told_bits.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

/// Memory    the filter's bits once more, and an eighth of them for the journal.
/// Threads   tick, next_news: one, not an event loop. noted, and what news() has: any.
class seen_source {
public:
    /// A copy of what is to be shared, stamped so; null while there is nothing.
    using snapshot = std::function<std::unique_ptr<filter::digest>(const filter::digest_stamp&)>;

    seen_source(filter::seed_id seed,
                std::chrono::seconds publish_after,
                snapshot take,
                std::function<std::uint64_t()> random,
                news_plan news = {});

    /// A key was seen: it is in the filter already. A short lock, and no memory after a while; what is
    /// beyond 65,536 in a tick is told when the filter is looked at.
    void noted(url_name name) noexcept;

    /// Publishes when publish_after has passed and a bit has changed; tells news, `rides` as told_bits has
    /// it. @throws std::bad_alloc; the next call goes on
    void tick(steady_time steady, wall_time now, bool rides = false);

    /// As told_bits has them.
    [[nodiscard]] news_shelf* news() noexcept { return told_.news(); }
    [[nodiscard]] steady_time next_news() const noexcept { return told_.next_news(); }
    [[nodiscard]] steady_time due_at() const noexcept { return told_.due_at(); }
    [[nodiscard]] const publication& digests() const noexcept { return told_.digests(); }

private:
    static constexpr std::size_t most_noted = 1 << 16;

    void take_noted();
    void look_at_filter();

    std::chrono::seconds publish_after_;
    snapshot take_;
    filter::seed_id seed_;
    filter::key_by_name key_of_;
    std::function<void()> stir_;
    std::mutex inbox_guard_;
    std::vector<url_name> inbox_;
    // The keeper's.
    std::vector<url_name> in_hand_;
    told_bits told_;
    std::optional<steady_time> looked_;
};

/// What siblings saw lately, by their slots. Any thread; each keeps a `reader`, which looks at one
/// word unless something changed.
class seen_elsewhere {
public:
    /// As many bytes as the digests of what siblings hold may take (sibling_table).
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

    /// @param most  bytes that all together may take
    explicit seen_elsewhere(std::uint64_t most = most_bytes) : most_{most} {}

    /// Null takes the sibling's away. False: it would take more than is left beside the others', and
    /// none of this sibling's is there. @pre sibling < most_slots
    /// @throws std::bad_alloc, and then nothing has changed
    [[nodiscard]] bool put(unsigned sibling, std::shared_ptr<const filter::digest> seen);
    void remove(unsigned sibling) { (void)put(sibling, nullptr); }

    class reader {
    public:
        /// @pre the table outlives it
        explicit reader(const seen_elsewhere& of) : of_{of} {}
        /// Whether any sibling's says so. The waits for memory of all of them overlap.
        [[nodiscard]] bool may_contain(filter::key_hash key);
        /// How often one did. Any thread.
        [[nodiscard]] std::uint64_t told() const noexcept { return told_.read(); }

    private:
        const seen_elsewhere& of_;
        std::uint64_t version_ = 0;
        std::shared_ptr<const filter::digest_set> held_;
        counter told_;
    };

private:
    friend class reader;
    const std::uint64_t most_;
    mutable std::mutex guard_;
    std::array<std::shared_ptr<const filter::digest>, most_slots> by_slot_{};
    std::shared_ptr<const filter::digest_set> set_;  // of those that are there
    std::atomic<std::uint64_t> version_{0};
};

}  // namespace reprise::proxy::peer
