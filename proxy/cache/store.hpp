#pragma once
// The memory tier: stored responses by primary key, within a byte budget.
//
// A primary key (method GET + URL) has one resource, a resource one stored response a variant.
// Resources live in stripes, each behind its own short lock; what is found is immutable and shared,
// so nobody holds a lock while it sends. Eviction is SIEVE (Zhang et al., NSDI 2024): one queue a
// stripe in order of arrival, a mark set by hits, a hand that passes over the marked; a hit writes
// one bit and moves nothing. The budget is one for all stripes.
//
// Threads   any number.
// Cost      find: one lock, one hash look-up, one string comparison; no allocation.
// Budget    every allocation of a response is counted (stored_response::footprint) with its share
// of the index; the sum
//           of what is stored and what fetches have reserved exceeds the capacity only while a put
//           is under way.

#include "filter/key_hash.hpp"
#include "proxy/cache/found.hpp"
#include "proxy/cache/invalidations.hpp"
#include "proxy/cache/purges.hpp"
#include "proxy/cache/stored_response.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

struct store_figures {
    std::uint64_t objects = 0;   ///< stored responses, variants counted singly
    std::uint64_t bytes = 0;     ///< charged now, reservations not included
    std::uint64_t reserved = 0;  ///< bytes promised to fetches that will store
    std::uint64_t capacity = 0;
    std::uint64_t inserted = 0, replaced = 0, freshened = 0, evicted = 0, evicted_bytes = 0,
                  invalidated = 0, refused = 0, purged = 0;
};

class response_store;

/// Bytes promised to a fetch that is being stored, counted in the budget while the body arrives;
/// given back when destroyed.
class reservation {
public:
    reservation() = default;
    reservation(reservation&& other) noexcept
        : store_{std::exchange(other.store_, nullptr)},
          bytes_{std::exchange(other.bytes_, 0)} {}
    reservation& operator=(reservation&& other) noexcept;
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() { reset(); }

    /// Raises the promise to `bytes` in all. False, and nothing changes, when the store has no room
    /// for it.
    [[nodiscard]] bool grow_to(std::uint64_t bytes);
    void reset() noexcept;

private:
    friend class response_store;
    explicit reservation(response_store* store) noexcept : store_{store} {}
    response_store* store_ = nullptr;
    std::uint64_t bytes_ = 0;
};

class response_store {
public:
    explicit response_store(std::uint64_t capacity_bytes);
    ~response_store();
    response_store(const response_store&) = delete;
    response_store& operator=(const response_store&) = delete;

    /// The newest variant that `request` selects (RFC 9111 4.1), marked as used.
    [[nodiscard]] found find(const filter::key_hash& key,
                             std::string_view url,
                             http::field_list request) const;

    /// As find, but marks nothing: for those who only look.
    [[nodiscard]] found peek(const filter::key_hash& key,
                             std::string_view url,
                             http::field_list request) const;

    /// Stores a response under its key, in place of the variant with the same selecting values;
    /// evicts until it fits. False when it is larger than the whole capacity, or when the key was
    /// invalidated or purged after `asked`, the mark taken before the origin was asked (of long
    /// fetches in a storm of invalidations: when it may have been).
    bool put(const filter::key_hash& key,
             std::string_view url,
             stored_ptr response,
             invalidation_mark asked);

    /// The same of a response asked for just now.
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

    /// The same of a validation asked for just now.
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

    /// As put, but only while variant_of(response) is still `expected` (null: none). False, and
    /// nothing changes, when it is another: look again, and combine anew.
    bool put_over(const filter::key_hash& key,
                  std::string_view url,
                  const stored_ptr& expected,
                  stored_ptr response,
                  invalidation_mark asked);

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

    /// At most a quarter of the capacity is ever promised, so that a flood of fetches cannot empty
    /// the store.
    [[nodiscard]] reservation reserve() noexcept { return reservation{this}; }

    /// Takes effect at once; a smaller one evicts.
    void set_capacity(std::uint64_t bytes);

    [[nodiscard]] store_figures figures() const noexcept;

    /// Variants of one resource; the least recently stored goes first.
    static constexpr std::size_t most_variants = 32;

private:
    friend class reservation;
    struct stripe;
    static constexpr std::size_t stripe_count = 64;

    [[nodiscard]] stripe& stripe_of(const filter::key_hash& key) const noexcept;
    bool put_if(const filter::key_hash& key,
                std::string_view url,
                const stored_ptr* expected,
                stored_ptr response,
                invalidation_mark asked);
    void make_room();
    bool evict_one();

    std::unique_ptr<stripe[]> stripes_;
    std::atomic<std::uint64_t> capacity_;
    purge_list purges_;
    invalidations invalidated_keys_;
    // Mutable, as what the stripes hold is: a look-up drops what was purged.
    mutable std::atomic<std::uint64_t> used_{0}, objects_{0}, purged_{0};
    std::atomic<std::uint64_t> reserved_{0};
    std::atomic<std::uint64_t> inserted_{0}, replaced_{0}, freshened_{0}, evicted_{0},
        evicted_bytes_{0}, invalidated_{0}, refused_{0};
    std::atomic<std::size_t> next_stripe_{0};
};

}  // namespace reprise::proxy::cache
