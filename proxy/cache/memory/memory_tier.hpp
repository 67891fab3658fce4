#pragma once
// The memory tier: stored responses by primary key, within a byte budget.
//
// A primary key (method GET + URL) has one resource, a resource one stored response per variant.
// Resources live in stripes, each behind its own short lock; what is found is immutable and shared,
// so nobody holds a lock while it sends. Each stripe (memory_stripe.hpp) has an eviction policy of
// its own over what was admitted, and a line of what waits on probation (policy/residents.hpp). The
// budget is one for all stripes, and so is probation's share of it: what leaves, leaves the stripe
// that holds most objects, so that all hold about as many, as under one policy for all, whatever
// their sizes.
//
// Threads   any number.
// Cost      find: one lock, one hash look-up, one string comparison; no allocation. put: a look at
//           each stripe's count for everything that must leave.
// Budget    every allocation of a response is counted (stored_response::footprint) with its share
//           of the index, and what policies take beside (ghosts, sketches); the sum of these and
//           what fetches have reserved exceeds the capacity only while a put is under way or the
//           capacity is being lowered, and by what a policy takes for an entry that a look-up has
//           admitted until the next put.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/contents_listener.hpp"
#include "proxy/cache/lookup_result.hpp"
#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/memory/reservation.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "proxy/cache/recency.hpp"
#include "proxy/cache/stored_response.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

struct memory_plan {
    std::uint64_t capacity = 0;  ///< bytes
    eviction_kind policy = eviction_kind::sieve;
    double exponent = 1;   ///< of size, with gdsf (policy_tuning)
    bool by_wait = false;  ///< with gdsf and lfu-da: hits are worth what fetches took (the same)
    /// What gdsf and lfu_da count requests by; noted by the caller, before find. Null: they count
    /// for themselves what is in.
    std::shared_ptr<const frequency_sketch> requests{};
    double probation = 0;  ///< share of the capacity for first requests, 0 to 1 (residents.hpp)
    /// 0: one for every 16 MiB of capacity, from 1 to 64. Fewer make a policy's choices better
    /// (README.md has figures), more let more threads in.
    std::size_t stripes = 0;
    /// Hears of what is held; outlives the tier. Null: nobody does.
    contents_listener* told = nullptr;
};

struct memory_figures {
    std::uint64_t objects = 0;   ///< stored responses, variants counted singly
    std::uint64_t bytes = 0;     ///< charged now, reservations not included
    std::uint64_t reserved = 0;  ///< bytes promised to fetches that will store
    std::uint64_t capacity = 0;
    std::uint64_t overhead = 0;  ///< bytes that policies take beside what is charged
    std::uint64_t probation_objects = 0, probation_bytes = 0;  ///< of objects and bytes
    std::uint64_t inserted = 0, replaced = 0, freshened = 0, evicted = 0, evicted_bytes = 0,
                  invalidated = 0, refused = 0, purged = 0;
    std::uint64_t promoted = 0, promoted_bytes = 0;  ///< admitted out of probation; their bodies'
    /// How long what was admitted stays at present after its last use: about the mean of the last
    /// 64 evicted, or the time since the last of them where that is longer. None before anything was,
    /// or when nobody calls tick().
    std::optional<std::chrono::seconds> eviction_age;
};

/// What becomes of a put.
enum class placement : std::uint8_t {
    stored,
    refused,    ///< what is there is as it was
    too_large,  ///< for the whole capacity; what it was to replace is gone
};

/// What had to leave for room.
struct evicted_response {
    const filter::key_hash& key;
    std::string_view url;
    const stored_ptr& response;
    bool was_found = false;     ///< served from the store since it came in
    bool was_admitted = false;  ///< false: it waited on probation, in vain
    /// When nothing had ended it yet: whoever keeps it elsewhere says so.
    invalidation_mark asked;
    mutable bool was_given_on = false;  ///< whoever has given it to another tier says so
};
using eviction_listener = std::function<void(const evicted_response&)>;

struct stripe_outlook;
class memory_stripe;

class memory_tier {
public:
    explicit memory_tier(const memory_plan& plan);
    explicit memory_tier(std::uint64_t capacity_bytes)
        : memory_tier{memory_plan{.capacity = capacity_bytes}} {}
    ~memory_tier();
    memory_tier(const memory_tier&) = delete;
    memory_tier& operator=(const memory_tier&) = delete;

    /// The newest variant that `request` selects (RFC 9111 4.1), marked as used; the policy hears
    /// of a miss otherwise. Once per request. One on probation is admitted when this is the last
    /// use that it needs: lookup_result::just_admitted says so.
    [[nodiscard]] lookup_result find(const filter::key_hash& key,
                                     std::string_view url,
                                     http::field_list request) const;

    /// As find, but marks nothing: for those who only look.
    [[nodiscard]] lookup_result peek(const filter::key_hash& key,
                                     std::string_view url,
                                     http::field_list request) const;

    /// That a response is being given to another tier, which is done behind the stripe's lock.
    /// Meanwhile memory may take what outdates it, and whoever put that saw nothing there to outdate:
    /// so whoever gives it on asks at the end. A newcomer that it outdates is refused meanwhile.
    class handing {
    public:
        handing() = default;
        ~handing() { (void)end(); }
        handing(const handing&) = delete;
        handing& operator=(const handing&) = delete;

        /// False: what was put was refused, and is not to be given on; or end() was called.
        [[nodiscard]] bool is_begun() const noexcept { return home_ != nullptr; }
        /// The other tier has it, or took it not. True: what outdates it came meanwhile, or it was
        /// dropped: it is to go from there. A short lock, where it was begun.
        [[nodiscard]] bool end() noexcept;

    private:
        friend class memory_tier;
        memory_stripe* home_ = nullptr;
        const stored_response* what_ = nullptr;
    };

    /// Stores a response under its key, in place of the variant with the same selecting values;
    /// evicts until it fits. False when it is larger than the whole capacity, or when the key was
    /// invalidated or purged after `asked`, the mark taken before the origin was asked (or may have
    /// been, for all that is known: invalidations::since). On probation (residents::enter says what
    /// that is), it replaces what was admitted as admitted. `to` is begun, before anybody else can
    /// see the response, where it was stored or is too large; the caller keeps it until that ends.
    bool put(const filter::key_hash& key,
             std::string_view url,
             stored_ptr response,
             invalidation_mark asked,
             standing as = standing::admitted,
             unsigned uses_to_admit = 1,
             handing* to = nullptr);

    /// The same for a response asked for just now.
    bool put(const filter::key_hash& key, std::string_view url, stored_ptr response) {
        return put(key, url, std::move(response), mark(key));
    }

    /// Now, in the history of `key`.
    [[nodiscard]] invalidation_mark mark(const filter::key_hash& key) const;

    /// Puts `updated` where `current` is; nothing happens when `current` has left meanwhile, or
    /// either was purged after `asked`.
    bool freshen(const filter::key_hash& key,
                 std::string_view url,
                 const stored_ptr& current,
                 stored_ptr updated,
                 invalidation_mark asked);

    /// The same for a validation asked for just now.
    bool freshen(const filter::key_hash& key,
                 std::string_view url,
                 const stored_ptr& current,
                 stored_ptr updated) {
        return freshen(key, url, current, std::move(updated), mark(key));
    }

    /// The variant with the same selecting values as `like`, fresh or not; null if there is none.
    /// Marks nothing.
    [[nodiscard]] stored_ptr variant_of(const filter::key_hash& key,
                                        std::string_view url,
                                        const stored_response& like) const;

    /// One of the variants that `by` puts an end to (recency.hpp); null: there is none. Marks nothing,
    /// drops nothing.
    [[nodiscard]] stored_ptr ended_by(const filter::key_hash& key,
                                      std::string_view url,
                                      const newcomer& by) const;

    /// Both, and why not: put where `expected` is null, and else put_over.
    placement put_if(const filter::key_hash& key,
                     std::string_view url,
                     const stored_ptr* expected,
                     stored_ptr response,
                     invalidation_mark asked,
                     standing as,
                     unsigned uses_to_admit,
                     handing* to);

    /// As put, but only while variant_of(response) is still `expected` (null: none). False, and
    /// nothing changes, when it is another: look again, and combine anew.
    bool put_over(const filter::key_hash& key,
                  std::string_view url,
                  const stored_ptr& expected,
                  stored_ptr response,
                  invalidation_mark asked,
                  standing as = standing::admitted,
                  unsigned uses_to_admit = 1,
                  handing* to = nullptr);

    /// Begins `to` if exactly this response is still there.
    void hand_on(const filter::key_hash& key,
                 std::string_view url,
                 const stored_ptr& response,
                 handing& to);

    /// Drops exactly this response, if it is still there: what is known to be outdated. Unlike
    /// invalidate it says nothing of what is on its way.
    bool drop(const filter::key_hash& key, std::string_view url, const stored_ptr& outdated);

    /// Drops every variant of a URL (RFC 9111 4.4), and what is on its way since before. Returns
    /// how many variants there were.
    std::size_t invalidate(const filter::key_hash& key, std::string_view url);

    /// As invalidate, but the variants stay, stale from `now` on (a soft purge).
    std::size_t expire(const filter::key_hash& key, std::string_view url, wall_time now);

    /// Every variant of a URL, least recently stored first, as a request would find it; marks
    /// nothing, drops nothing.
    [[nodiscard]] std::vector<stored_ptr> variants(const filter::key_hash& key,
                                                   std::string_view url) const;

    /// The purges by prefix and tag. What they meet is as good as gone, though it is dropped when
    /// it is next looked up.
    [[nodiscard]] purge_list& purges() noexcept { return purges_; }
    [[nodiscard]] const purge_list& purges() const noexcept { return purges_; }

    /// What was invalidated lately. Other tiers hold what they are given against the same.
    [[nodiscard]] const invalidations& invalidated() const noexcept { return invalidated_keys_; }

    /// False: a response of `bytes` under a key that has none would leave as soon as it came in,
    /// for the policy thinks more of what is here. Ask once per response, before room is reserved
    /// for it.
    [[nodiscard]] bool takes(const filter::key_hash& key,
                             std::string_view url,
                             std::uint64_t bytes);

    /// At most a quarter of the capacity is ever promised, so that a flood of fetches cannot empty
    /// the store.
    [[nodiscard]] reservation reserve() noexcept { return reservation{this}; }

    /// Takes effect at once. A smaller one evicts, on this thread: while it does, whoever puts or
    /// reserves something evicts for that alone, twice over, or one put on an event loop would have
    /// to evict for all. What policies take beside shrinks with it, so that it pushes out nothing
    /// that fits without.
    void set_capacity(std::uint64_t bytes);
    /// All leave, in the order in which they would for room; `told` hears of each, and those that
    /// on_eviction names do not. @throws what `told` throws
    void empty_into(const eviction_listener& told);
    /// What waits beyond a smaller share leaves as room is needed.
    void set_probation(double share);
    /// gdsf's, for what is used from now on (eviction_policy::set_exponent). A short lock for each
    /// stripe.
    void set_exponent(double exponent);

    /// `told` too hears of all that leaves for room, outside locks, on the thread whose put needed
    /// the room; of what leaves while there is no memory to say so, it may not. A std::bad_alloc of
    /// its own ends there: what has left has left. Before any other thread is there.
    void on_eviction(eviction_listener told) { evicted_to_.push_back(std::move(told)); }
    /// `told` hears, after those that on_eviction names, of what these have given to another tier and
    /// was outdated or dropped meanwhile: it is to go from there. The same. One.
    void on_outrun(eviction_listener told) { outrun_to_ = std::move(told); }

    /// The time, about once a second: what eviction_age is measured by.
    void tick(steady_time now) noexcept;

    [[nodiscard]] memory_figures figures() const noexcept;
    /// Bytes that nothing is charged for and nobody has reserved.
    [[nodiscard]] std::uint64_t room() const noexcept;

    /// Variants of one resource; the least recently stored goes first.
    static constexpr std::size_t most_variants = 32;

private:
    friend class reservation;
    class locked_stripe;
    struct stripes;

    static void begin(handing& to,
                      memory_stripe& home,
                      const filter::key_hash& key,
                      const stored_response* what);
    [[nodiscard]] bool is_over() const noexcept;
    [[nodiscard]] std::uint64_t taken() const noexcept;
    [[nodiscard]] stripe_outlook outlook(std::uint64_t more) const noexcept;
    void make_room(std::uint64_t needed);
    std::uint64_t evict_one(std::span<const eviction_listener> told);
    void trim_policies(double share);
    void note_eviction_age(std::uint32_t last_used) noexcept;
    [[nodiscard]] double eviction_age_at(std::uint32_t now) const noexcept;

    // What a hit reads, away from what others write.
    std::unique_ptr<stripes> stripes_;
    std::atomic<std::uint32_t> tick_{0};  // seconds; 0: nobody told the time
    std::atomic<std::uint64_t> capacity_;
    std::atomic<unsigned> lowering_{0};  // threads in set_capacity
    std::atomic<double> probation_;
    purge_list purges_;
    invalidations invalidated_keys_;
    std::vector<eviction_listener> evicted_to_;
    eviction_listener outrun_to_;
    // Mutable, as what the stripes hold is: a look-up drops what was purged, and admits.
    alignas(64) mutable std::atomic<std::uint64_t> used_{0}, objects_{0}, purged_{0},
        waiting_bytes_{0}, line_bytes_{0}, waiting_{0}, promoted_{0},
        promoted_bytes_{0}, overhead_{0};
    std::atomic<std::uint64_t> reserved_{0};
    std::atomic<std::uint64_t> inserted_{0}, replaced_{0}, freshened_{0}, evicted_{0},
        evicted_bytes_{0}, invalidated_{0}, refused_{0};
    std::atomic<double> eviction_age_{-1};      // mean, seconds; negative: unknown
    std::atomic<std::uint32_t> evicted_at_{0};  // by tick_, what was admitted last
};

}  // namespace reprise::proxy::cache
