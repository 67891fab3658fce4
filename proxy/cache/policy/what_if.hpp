#pragma once
// What other settings would have done with the traffic of the last hour, measured while it passes.
//
// A sample of the keys, chosen by their hash, is played through ghost caches: the very classes of
// the memory tier (residents, policies, admission filter, sketch) without bodies, of a capacity
// scaled by the sample's share. A cache of C bytes under all keys and one of C x R under a share R
// of them have about the same hit ratio (SHARDS: Waldspurger, Park, Garthwaite, Ahmad, FAST 2015;
// for any policy, "Cache Modeling and Optimization using Miniature Simulations", ATC 2017).
//
//     admission   always, second-hit, nth-hit of 3, second-hit with probation 2, 10 and 100 %,
//                 tinylfu, tinylfu with probation 10 %, and what is in force if none of these; each
//                 with the policy in force
//     sizes       a quarter, half, twice and four times the capacity, all else as in force
//     policies    every other eviction policy, all else as in force
//     exponents   under gdsf, of size: every rung of a ladder, all else as in force
//
// Where there is a disk a ghost has one too (disk_ghost), below memory's share of the room: what
// leaves its memory goes there if it was admitted, or the disk is filling, and it is worth it; what is
// too large for memory goes there at once. Its exponent is the memory's, as "auto" sets them. That
// is `"write": "eviction"` and `"selective"`, the defaults of a disk; a ghost knows no other.
//
// When something else is put in force ghosts go on with what they hold, by the new rules, as the
// store does: so none begins cold beside others that are warm.
//
// The sample is all keys to begin with, so that thin traffic is measured too, and half of what it was
// when
//     - more keys are held than most_slots,
//     - requests of it come faster than most_pace, or
//     - the ghosts' filter or sketch, of which neither is for more than most_remembered keys, would
//       forget sooner than what is in force does, scaled by the sample.
// It does not grow again. What it loses is taken out by whoever keeps house (tend), for it takes
// milliseconds; what comes meanwhile is left out.
//
// One client's first client_notes sampled requests of a minute count (it may be the only client there
// is); what it asks for beyond them counts as long as it is at most as much as all others' together,
// and else is set aside and counted. So a client that floods is at most half of what is measured; one
// that stays below that number a minute is not bounded.
//
// The same sample goes through all, so differences between them are far more exact than the ratios
// themselves, which one very popular key, in the sample or not, may move by its share.
//
// What to change to (decide) goes by these differences and not by the clock: by paired_evidence, over
// as many requests as a difference needs, and at once to the best there is, of admission or of the
// exponent. From then on the other of the two is measured anew, for all of its ghosts have changed.
//
// So that it comes to rest however requests alternate, a change costs more each time: with n for how
// often what it leads to was left already, or for how many changes beyond four there were of that kind,
// the larger of both and 4 at most, it has to be better by 2^n times least_gain, seen over 2^n times
// least_evidence requests. All these counts fall by one where nothing has changed for 16 times as
// many requests as the dearest change asks for.
//
// An object that a store of a ghost's size would not take (what_if_setup::largest, scaled for the
// rows of other sizes), or larger than the ghost, is never stored in it. Requests are taken as they
// come, so what two ghosts say of a purge or a lifetime's end is neither's.
//
// Threads   any number. note() costs a comparison for a key that is not in the sample, else a try
//           for the one lock: it never waits. What finds it taken is left out and counted as
//           dropped. That thins all ghosts' sample alike, so it is told beside their figures.
// Memory    at most most_slots keys, 1,350 bytes each (an entry for each ghost), so 22 MB, beside
//           the policies' own (ghost lists, heaps: less than half of that again), 4 MB of filters
//           and sketch, 70 KB of minutes and 48 KB of evidence.
// Cost      2.4 to 3.9 us per sampled request under gdsf, which is the dearest, at most most_pace a
//           second: 0.4 % of a processor. Beyond 15,000 requests a second that is less than 2 % of what
//           a hit takes; below, it is more of each and the processor idle (bench_store what-if).

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/paired_evidence.hpp"
#include "proxy/cache/policy/residents.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::proxy::cache {

/// An admission policy with probation's share, as ghosts know it.
struct admission_variant {
    enum class kind : std::uint8_t { always, nth_hit, tinylfu };
    kind what = kind::nth_hit;
    unsigned hits = 2;     ///< nth_hit: stored at this request, up to 3 told apart
    double probation = 0;  ///< share of the capacity
    bool operator==(const admission_variant&) const = default;
};
/// "second-hit", "nth-hit 3", "second-hit with probation 2%".
[[nodiscard]] std::string to_string(const admission_variant& variant);

/// "made 2.0% of requests hits that were none", "spared 2.0% of all waiting more".
[[nodiscard]] std::string gained(config::caching_objective wanted, double gain);

/// What is in force.
struct what_if_setup {
    std::uint64_t capacity = 0;                 ///< bytes, of all tiers together
    std::uint64_t largest = ~std::uint64_t{0};  ///< a larger object, as charged, is in no tier
    std::uint64_t largest_in_memory = ~std::uint64_t{0};  ///< likewise, of memory alone
    eviction_kind policy = eviction_kind::sieve;
    double exponent = 1;                  ///< gdsf's
    admission_variant admission{};        ///< its probation is a share of memory
    double memory_share = 1;              ///< memory's of the capacity: less than all with a disk
    std::uint64_t remembers = 1'000'000;  ///< objects, as the filter does
    std::chrono::seconds remembers_for = std::chrono::hours{50};
    std::uint64_t counts = 1u << 14;  ///< keys, as the sketch of requests does
    /// What hits are weighed by; for seconds gdsf's entries are, too.
    config::caching_objective wanted = config::caching_objective::requests;
    bool operator==(const what_if_setup&) const = default;
};

struct what_if_row {
    enum class group : std::uint8_t { admission, size, policy, exponent };
    group of = group::admission;
    std::string name;       ///< "second-hit", "x2", "s3-fifo", "0.15"
    bool in_force = false;  ///< of the first group exactly one is
    double hit_ratio = 0, byte_hit_ratio = 0;
    double wait_hit_ratio = 0;  ///< of the waiting that there would be without a cache, hits spare
    std::uint64_t written_bytes = 0;  ///< to the ghost's disk, else admitted; scaled to all keys
};

/// What would have done better: admission, or the exponent, is other than in force.
struct what_if_advice {
    admission_variant admission{};
    double exponent = 1;
    double gain = 0;  ///< in the objective's hit ratio, absolute: 0.02 is two hits in a hundred
    double of_misses = 0;  ///< the same, of what the one in force misses; decide()'s alone
};

struct what_if_report {
    std::chrono::seconds span{0};    ///< covered, at most an hour
    std::uint64_t requests = 0;      ///< sampled
    std::uint64_t dropped = 0;       ///< beside these: of the sample, but another thread was at it
    std::uint64_t set_aside = 0;     ///< likewise: one client's, beyond what one may have
    double sample = 0;               ///< the share of keys in it
    std::uint64_t keys = 0;          ///< held in ghosts now
    std::uint64_t memory_bytes = 0;  ///< of the ghosts, what the policies take included
    double lost_to_admission = 0;    ///< of requests: misses here that storing everything would
                                     ///< have made hits
    double won_by_admission = 0;     ///< and the reverse
    std::vector<what_if_row> rows;   ///< empty while nothing was sampled
    std::optional<what_if_advice> advice;  ///< of admission
    std::optional<double> exponent;        ///< in force; none but with gdsf
    std::string automatic;  ///< what "auto" believes and why (advisor.hpp); empty: not asked
    std::string text;       ///< the advice, or why there is none, in a sentence
};

class what_if {
public:
    static constexpr std::size_t most_slots = 16'384;
    static constexpr std::uint64_t most_pace = 1'000;  ///< sampled requests a second
    static constexpr std::uint64_t most_remembered = 1u << 17;
    static constexpr std::chrono::minutes covered{60};
    /// Exponents of size that are tried, and that "auto" may come to.
    static constexpr std::array ladder{0.0, 0.05, 0.15, 0.3, 0.5, 0.7, 1.0};
    static constexpr std::uint32_t client_notes = 1'000;

    /// `sample` is the share of keys to begin with, in (0, 1].
    /// @throws std::bad_alloc
    what_if(const what_if_setup& setup, steady_time now, double sample = 1);
    ~what_if();
    what_if(const what_if&) = delete;
    what_if& operator=(const what_if&) = delete;

    /// One request, answered with an object of `size` bytes (as the store charges it) that may be
    /// stored; its fetch took `wait`, as far as is known. Once per request, hits too. Waits for
    /// nobody: without memory, or while another thread is at the ghosts, the request is left out.
    /// `client`: a number of its own for whoever asked; 0: one who speaks for many, unbounded.
    void note(const filter::key_hash& key,
              std::uint64_t size,
              steady_time now,
              packed_wait wait = {},
              std::uint64_t client = 0) noexcept {
        if (samples(key)) [[unlikely]] {
            note_sampled(key, size, now, wait, client);
        }
    }

    /// Whether note() would take this key: a comparison.
    [[nodiscard]] bool samples(const filter::key_hash& key) const noexcept {
        return (key.high >> 32) < threshold_.load(std::memory_order_relaxed);
    }

    /// Halves the sample where that is due; until then what comes is left out, and counted as dropped.
    /// Once a second, say. Up to ten milliseconds with the lock: not on an event loop.
    void tend();

    /// Something else is in force from now on. Ghosts go on with what they hold, but for those of
    /// another policy; the hour that is told of begins anew.
    void set(const what_if_setup& setup, steady_time now);

    /// What the filter in force remembers from now on; the ghosts' follows it by itself.
    void remember(std::uint64_t objects, std::chrono::seconds age);

    [[nodiscard]] what_if_report report(steady_time now) const;

    /// For "policy": "auto", once a minute: what to change to, for it was better by least_gain of the
    /// misses, beyond chance. One of admission and exponent at a time; the caller puts it in force
    /// (set), or has reasons not to. `least_probation`: ghosts with less are left out, since the caller
    /// could not put them in force. "always" is not, for nothing waits there.
    [[nodiscard]] std::optional<what_if_advice> decide(steady_time now, double least_probation = 0);
    static constexpr double least_gain = 0.003;
    static constexpr std::uint64_t least_evidence = 2'048;  ///< sampled requests
    /// The advice of report(), for people: of the last hour, by so much of all requests.
    static constexpr double least_advice = 0.01;
    /// Fewer sampled requests than this say nothing there.
    static constexpr std::uint64_t least_requests = 2'000;

private:
    struct ghost;
    struct slot;
    struct minute;

    void note_sampled(const filter::key_hash& key,
                      std::uint64_t size,
                      steady_time now,
                      packed_wait wait,
                      std::uint64_t client) noexcept;
    [[nodiscard]] bool may_count(std::uint64_t client, steady_time now) noexcept;
    void play(const filter::key_hash& key, std::uint64_t size, steady_time now, packed_wait wait);
    bool ask(std::size_t which, slot& at, unsigned seen, unsigned asked, double& written);
    void missed(std::size_t which, slot& at, unsigned seen, unsigned asked, double& written);
    [[nodiscard]] double to_disk(std::size_t which, evictable& entry);
    [[nodiscard]] double make_room(std::size_t which, const slot* current);
    void let_go(std::size_t which, slot& home, const slot* current) noexcept;
    void begin_to_halve() noexcept;
    void halve();
    unsigned sights_before(const filter::key_hash& key, steady_time now);
    void size_filter(steady_time now);
    void size_sketch();
    [[nodiscard]] bool forgot_too_soon(steady_time now) noexcept;
    void plan(ghost& one) const;
    void keep_pace(steady_time now, std::uint64_t units);
    void leave(std::size_t way, what_if_row::group of) noexcept;
    [[nodiscard]] unsigned dearth_of(std::size_t way) const noexcept;
    void forgive() noexcept;
    [[nodiscard]] std::optional<what_if_advice> best_of(what_if_row::group of,
                                                        const what_if_report& told,
                                                        double least_probation) const;
    [[nodiscard]] std::size_t rung_in_force() const noexcept;
    void begin_ghosts(const what_if_setup* before);
    minute& minute_of(steady_time now);
    [[nodiscard]] double sample() const noexcept;
    [[nodiscard]] std::uint64_t scaled(double bytes) const noexcept;
    [[nodiscard]] what_if_report made_report(steady_time now) const;
    void advise(what_if_report& out) const;

    mutable std::mutex guard_;
    std::atomic<std::uint64_t> threshold_;  // keys whose upper half is below it are in the sample
    what_if_setup setup_;
    std::unique_ptr<filter::admission_filter> filter_;
    std::unique_ptr<filter::admission_filter>
        former_;                    // asked until filter_ has filled a generation
    std::uint32_t generation_ = 0;  // of filter_
    steady_time generation_began_;
    std::uint64_t agings_ = 0;  // of the sketch
    std::unique_ptr<frequency_sketch> requests_;
    wait_mean waits_;
    std::vector<std::unique_ptr<ghost>> ghosts_;
    std::size_t in_force_ = 0, always_ = 0;
    using slot_table = std::unordered_map<filter::key_hash, std::unique_ptr<slot>>;
    slot& slot_for(const filter::key_hash& key);
    slot_table::iterator forget(slot_table::iterator gone) noexcept;
    slot_table slots_;
    bool is_to_halve_ = false;
    // Nodes of keys that left lately are given to the next ones, so that most requests allocate
    // nothing.
    std::vector<slot_table::node_type> spare_;
    std::vector<minute> minutes_;            // a ring
    std::atomic<std::uint64_t> dropped_{0};  // and not yet in a minute
    steady_time begun_;
    paired_evidence evidence_;
    // How often each was left, by its place among the ghosts, and how often anything was, of admission
    // and of the exponent.
    std::array<std::uint8_t, 2> steps_{};
    static constexpr unsigned dearest = 4;
    std::array<std::uint8_t, paired_evidence::ways> left_{};
    std::uint64_t settled_at_ =
        0;  // requests, when something changed last or a way back became cheaper
    // What each client had counted of this minute; those who fall on one place share it.
    std::array<std::uint32_t, 256> of_clients_{};
    std::uint64_t counted_ = 0;
    std::int64_t counted_in_ = -1;
    // How fast requests come, in sixteenths of one.
    std::uint64_t pace_ = 0;
    std::int64_t pace_of_ = -1;
};

}  // namespace reprise::proxy::cache
