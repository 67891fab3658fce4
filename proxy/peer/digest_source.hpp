#pragma once
// What this instance tells of its contents: a counting filter that follows the store key by key,
// and the digests published of it.
//
// The store says what it holds; nothing here asks it. An event is a few words pushed to an inbox
// under a short lock, so no event loop ever waits for the filter. One thread, the keeper's, calls
// tick(): it takes the inbox, turns bits (filter/counting, filter/bit_changes), and publishes when
// enough has changed or enough time has passed.
//
// A key is listed while a tier holds it and it is fresh for `least_use` more; or a fetch under way
// will bring it to one (holder::under_way), which is news as any other: so N nodes that are asked for one
// new object within a second ask the first of them. What goes stale sends
// no event: a sweep over the key table (key_table.hpp) visits every key once in half of
// publish_after, and takes out what has run out. Publishing itself looks at no key.
//
// When more keys are listed than the filter was made for, or under a quarter of that, a second
// filter, some doublings larger or smaller, is filled from the table, shard by shard and tick by
// tick, while the first goes on being kept and published; then it takes the first one's place,
// under a new epoch. No event waits, and the store's index is not asked: the table knows what is
// needed. Where news is told it takes that place with its whole, from which alone a follower can go on.
//
// A larger filter and a whole are by far the most memory that is asked for. Where there is none the old
// filter goes on, news of it is told, which needs a few kilobytes, and it is asked for again a publish_gap later.
//
// With Squid's format a squid_source is kept beside it in the same steps.
//
// News (plan.news): each bit that turns is noted in a journal too, and a step of it is told to
// whoever waits for it (news_teller). That costs what changed; publishing costs all bits, and so is
// done at its pace only while a sibling asks that does not follow by news and for Squids, else now
// and then, for people; and when somebody asks from so far back that the journal does not know it.
//
// Until loaded() nothing is published: a digest without what is on disk would be a lie of omission
// that costs the fleet a fetch for each of those keys.

#include "config/options.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/peer/key_table.hpp"
#include "proxy/peer/news_teller.hpp"
#include "proxy/peer/publication.hpp"
#include "proxy/peer/secret.hpp"
#include "proxy/peer/source_inbox.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

struct source_filters;

struct source_plan {
    double false_positive_rate = 0.01;
    double publish_after_change = 0.01;
    std::chrono::seconds publish_after{30};
    bool squid = false;
    unsigned site_nodes = 1;            ///< so many times the bits; a power of two
    std::chrono::milliseconds news{0};  ///< 0: none
    /// What goes stale sooner is not worth a sibling's hearing of it.
    std::chrono::seconds least_use{10};
    /// Never more often, whatever changes, and with many bits less often (publish_gap).
    std::chrono::milliseconds publish_at_most = least_publish_gap;
    std::uint64_t least_capacity = 1024;  ///< keys
    std::size_t resize_step = 50'000;     ///< keys that a tick moves: some milliseconds
    unsigned squid_bits_per_entry = 8;    ///< 2.4 % of false hits; Squid's own 5 give 9 to 10 %
};
[[nodiscard]] source_plan plan_of(const config::digest_options& options,
                                  const config::peering_options& peering);

/// How its keeper hears of what is to be done, and others of what was.
struct source_signals {
    /// Called on any thread, maybe under the store's locks: something came after a while of nothing, or was
    /// wished for, or is urgent and the first that is so since the last tick. A tick before next_news()
    /// would find it.
    std::function<void()> stir = [] {};
    /// Called on the keeper's: there is something new on the shelf.
    std::function<void()> told = [] {};
    /// How many wait for news now. The keeper's.
    std::function<std::size_t()> readers = [] { return std::size_t{0}; };
};

/// The digest in Squid's form, as published.
struct squid_figures {
    std::uint64_t capacity = 0;
    unsigned bits_per_entry = 0;
    std::uint64_t mask_bytes = 0;
    std::optional<double> fill;  ///< none: none is published
};

struct source_figures {
    bool loaded = false;
    std::uint64_t known = 0;      ///< keys held by a tier, or soon
    std::uint64_t listed = 0;     ///< of those, in the filter
    std::uint64_t under_way = 0;  ///< of those, for a fetch under way that will be stored
    std::uint64_t capacity = 0;   ///< keys that the filter is made for
    std::uint64_t bits = 0, bits_on = 0, stuck = 0;
    unsigned probes = 0;
    std::uint64_t changed = 0;  ///< bits that differ from those published
    std::uint64_t generations = 0, resizes = 0;
    /// Events that there was no memory for: listed, or not, till stale. With one that takes back a
    /// holder::under_way all of these go, since that has no end of its own.
    std::uint64_t lost = 0;
    bool resizing = false;
    std::uint64_t bytes = 0;  ///< memory: table, filter, published forms, journal
    teller_figures news;
    std::optional<wall_time> published_at;
    squid_figures squid;
};

struct squid_form {
    wire_bytes wire;      ///< control block and mask; null: not served, not loaded, or saturated
    wall_time changed{};  ///< when it came to be these bytes: no two forms have one second
};

/// Memory    a known key: 26 bytes in the table, 9.5 of counters and 4.8 of bits at 1 %; published
///           forms as publication says; of news a quarter of the bits at most, and as much for what
///           has not been told yet. Squid's format: 26 bytes in the table, 4 of counters.
/// Threads   held, gone, outdated: any, under the store's own locks if need be, a push under a
///           short lock. loaded, figures, digests: any. tick and settle: one thread, not an event
///           loop: publishing takes O(bits) time.
/// Order     events of one key and one tier take effect in the order of the calls.
/// Errs      a stuck counter leaves a bit on until the next resize (figures().stuck).
class digest_source {
public:
    /// `random` gives 64 random bits, for epochs. @pre `secret` outlives it
    digest_source(const source_plan& plan,
                  const fleet_secret& secret,
                  std::function<std::uint64_t()> random,
                  source_signals signals = {});
    ~digest_source();
    digest_source(const digest_source&) = delete;
    digest_source& operator=(const digest_source&) = delete;

    /// The tier holds a copy of `url`, the newest of which is fresh until `until` (both times are resident
    /// time, base/clock.hpp: a clock that is set back lists nothing for longer than it is served): its first copy
    /// came, or one was refreshed or replaced. Replaces what was said of this tier before, even a
    /// later time; if two tiers hold it the later time counts. O(url), no allocation but the
    /// inbox's. An accelerator's key ("//host/...", "https://host/...") is no URL that a sibling
    /// can ask for: nothing happens.
    /// Whoever says holder::under_way takes it back by gone(), and there is one at a time of a key;
    /// what a sibling would not hear of in time, or is not worth it, is not noted (no news, stale
    /// within least_use).
    void held(holder by,
              const filter::key_hash& key,
              std::string_view url,
              wall_time until,
              wall_time now);
    /// The same for a caller that has the name already, and no Squid to serve.
    void held(
        holder by, const filter::key_hash& key, url_name name, wall_time until, wall_time now);

    /// The tier's last copy of a key left. Only the part of the key that the disk's index knows
    /// need be right. Not held: nothing happens.
    void gone(holder by, const filter::key_hash& key);

    /// All copies are stale from now on: a soft purge.
    void outdated(const filter::key_hash& key);

    /// All that the store had at the start was said.
    void loaded() noexcept { loaded_.store(true, std::memory_order_release); }

    /// Takes the inbox, a share of the sweep, of the resize; publishes when it is time; tells news. To be
    /// called every 100 ms or so; `steady` paces, by `resident` time it is judged what is fresh, `now` (wall time) dates.
    /// @throws std::bad_alloc, or what `random` throws: nothing is lost; the next call goes on where this one ended.
    /// Where it was for a larger filter or a whole, all else was done.
    void tick(steady_time steady, wall_time resident, wall_time now);
    /// Where no clock is ever set back, as in most tests.
    void tick(steady_time steady, wall_time now) { tick(steady, now, now); }

    /// tick, with a whole sweep and the whole of a resize that is under way, and publishes
    /// whatever changed if loaded(): for tests, and before a stop.
    void settle(steady_time steady, wall_time resident, wall_time now);
    void settle(steady_time steady, wall_time now) { settle(steady, now, now); }

    [[nodiscard]] const publication& digests() const noexcept { return digests_; }
    /// Null: plan.news is 0. Its look() and wishes are any thread's.
    [[nodiscard]] news_shelf* news() noexcept { return teller_ ? &teller_->shelf() : nullptr; }
    /// From when on a tick would tell what came, if that is urgent. The keeper's.
    [[nodiscard]] steady_time next_news() const noexcept {
        return teller_ ? teller_->next(urgency::urgent) : steady_time{};
    }
    /// When a tick will have something to tell; max: nothing that it knows of.
    [[nodiscard]] steady_time due_at() const noexcept;
    [[nodiscard]] squid_form squid_digest() const;

    [[nodiscard]] source_figures figures() const;

private:
    [[nodiscard]] std::uint32_t packed(wall_time until, wall_time now) const noexcept;
    [[nodiscard]] bool is_worth_noting(const source_event& event) const noexcept;
    void push(const source_event& event) noexcept;
    void take_inbox(wall_time now);
    void apply(const source_event& event, wall_time now);
    void take_back_all(wall_time now);
    void enter(const filter::key_hash& key, key_facts& facts, urgency what);
    void leave(std::size_t shard, key_facts& facts);
    void sweep(std::size_t shards, wall_time now);
    void resize(std::size_t keys, steady_time steady, wall_time now);
    void fill_next(std::size_t keys);
    void take_next(steady_time steady, wall_time now);
    [[nodiscard]] bool must_resize() const;
    [[nodiscard]] bool must_publish(bool all_said, steady_time steady) const;
    void publish(steady_time steady, wall_time now);
    void publish_as(const filter::digest_generation& generation,
                    source_filters& of,
                    steady_time steady,
                    wall_time now);
    void begin_news(steady_time steady) noexcept;
    bool end_step(steady_time steady);
    void tell(steady_time steady, bool at_once);
    void await_more() noexcept;
    struct at_end {  // of a tick, however it ends
        digest_source& of;
        ~at_end() { of.await_more(); }
    };
    void note_figures();

    const source_plan plan_;
    const fleet_secret& secret_;
    const std::function<std::uint64_t()> random_;
    const source_signals signals_;
    std::optional<news_teller> teller_;
    std::atomic<bool> loaded_{false};

    source_inbox inbox_;

    // The keeper's own.
    std::vector<source_event> in_hand_;
    std::size_t handled_ = 0;         // of in_hand_
    bool trusts_no_promise_ = false;  // that one of in_hand_ has ended may be lost
    key_table table_;
    std::unique_ptr<source_filters> now_;
    std::unique_ptr<source_filters> next_;  // being filled: shards below filled_ are in it
    std::size_t filled_ = 0;
    std::size_t swept_ = 0;  // the shard to be swept next
    steady_time last_sweep_{}, last_publish_{};
    steady_time resize_not_before_{}, publish_not_before_{};  // there was no memory for it
    std::uint64_t listed_ = 0, under_way_ = 0;
    std::uint64_t counter_ = 0, epoch_ = 0;
    std::uint64_t generations_ = 0, resizes_ = 0;

    publication digests_;
    mutable std::mutex outside_;  // guards what is below: read by any
    squid_form squid_;
    wall_time last_squid_{};  // the latest `changed` of any form, whole seconds
    source_figures figures_;
};

}  // namespace reprise::proxy::peer
