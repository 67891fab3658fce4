#pragma once
// The fleet's second request: the younger generation of the admission filter, published as a
// digest, and what siblings published of theirs.
//
// Both sides key by the fleet's secret, so the admission filter of a node that shares must be asked
// with key_of(name_of(url)), not with its store's own key. A generation's bits only come until it
// grows old; then the next begins empty, and a delta turns nearly all of them: it is sent whole
// when that is shorter.

#include "filter/digest.hpp"
#include "proxy/peer/publication.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace reprise::proxy::peer {

/// Threads   tick: one, not an event loop. seen: any.
class seen_source {
public:
    /// A copy of the young generation's bits, stamped so; null while there is nothing to share.
    using snapshot = std::function<std::unique_ptr<filter::digest>(const filter::digest_stamp&)>;

    seen_source(filter::seed_id seed,
                std::chrono::seconds publish_after,
                snapshot take,
                std::uint64_t epoch)
        : seed_{seed},
          publish_after_{publish_after},
          take_{std::move(take)},
          epoch_{epoch} {}

    /// Publishes when publish_after has passed and a bit has changed.
    void tick(steady_time steady, wall_time now);

    [[nodiscard]] const publication& digests() const noexcept { return digests_; }

private:
    filter::seed_id seed_;
    std::chrono::seconds publish_after_;
    snapshot take_;
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
    using all = std::array<std::shared_ptr<const filter::digest>, 64>;

public:
    /// Null takes the sibling's away. @pre sibling < 64
    void put(unsigned sibling, std::shared_ptr<const filter::digest> seen);

    class reader {
    public:
        /// @pre the table outlives it
        explicit reader(const seen_elsewhere& of) : of_{of} {}
        /// Whether any sibling's says so. `probes` reads for each sibling that has one.
        [[nodiscard]] bool may_contain(filter::key_hash key);

    private:
        const seen_elsewhere& of_;
        std::uint64_t version_ = 0;
        std::shared_ptr<const std::vector<std::shared_ptr<const filter::digest>>> held_;
    };

private:
    friend class reader;
    mutable std::mutex guard_;
    all by_slot_{};
    std::shared_ptr<const std::vector<std::shared_ptr<const filter::digest>>> list_;
    std::atomic<std::uint64_t> version_{0};
};

}  // namespace reprise::proxy::peer
