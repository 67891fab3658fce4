#pragma once
// The fleet's second request: what the admission filter saw lately (admission_filter's
// recent_digest), published as a digest, and what siblings published of theirs.
//
// Both sides key by the fleet's secret, so the admission filter of a node that shares must be asked
// with key_of(name_of(url)), not with its store's own key. A generation's bits only come until the
// next counts alone, and a delta then turns nearly all of them: it is sent whole when that is
// shorter. A filter of another size is another epoch, and begins empty.

#include "filter/digest.hpp"
#include "filter/digest_set.hpp"
#include "proxy/peer/publication.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace reprise::proxy::peer {

/// Threads   tick: one, not an event loop. seen: any.
class seen_source {
public:
    /// A copy of what is to be shared, stamped so; null while there is nothing.
    using snapshot = std::function<std::unique_ptr<filter::digest>(const filter::digest_stamp&)>;

    seen_source(filter::seed_id seed,
                std::chrono::seconds publish_after,
                snapshot take,
                std::function<std::uint64_t()> random)
        : seed_{seed},
          publish_after_{publish_after},
          take_{std::move(take)},
          random_{std::move(random)},
          epoch_{random_()} {}

    /// Publishes when publish_after has passed and a bit has changed.
    void tick(steady_time steady, wall_time now);

    [[nodiscard]] const publication& digests() const noexcept { return digests_; }

private:
    filter::seed_id seed_;
    std::chrono::seconds publish_after_;
    snapshot take_;
    std::function<std::uint64_t()> random_;
    std::uint64_t epoch_, counter_ = 0;
    filter::digest_shape shape_{};
    std::uint64_t checksum_ = 0;
    steady_time last_{};
    bool any_ = false;
    publication digests_;
};

/// What siblings saw lately, by their slots. Any thread; each keeps a `reader`, which looks at one
/// word unless something changed.
class seen_elsewhere {
public:
    /// Null takes the sibling's away. @pre sibling < 64
    void put(unsigned sibling, std::shared_ptr<const filter::digest> seen);

    class reader {
    public:
        /// @pre the table outlives it
        explicit reader(const seen_elsewhere& of) : of_{of} {}
        /// Whether any sibling's says so. The waits for memory of all of them overlap.
        [[nodiscard]] bool may_contain(filter::key_hash key);

    private:
        const seen_elsewhere& of_;
        std::uint64_t version_ = 0;
        std::shared_ptr<const filter::digest_set> held_;
    };

private:
    friend class reader;
    mutable std::mutex guard_;
    std::array<std::shared_ptr<const filter::digest>, 64> by_slot_{};
    std::shared_ptr<const filter::digest_set> set_;  // of those that are there
    std::atomic<std::uint64_t> version_{0};
};

}  // namespace reprise::proxy::peer
