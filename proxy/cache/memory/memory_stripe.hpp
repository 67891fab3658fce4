#pragma once
// One stripe of the memory tier: resources, their variants, and which of them leaves next.
//
// It knows nothing of the budget: it says what it holds and drops what it is told to, and the memory
// tier decides when. Internal to memory_tier.
//
// Threads   none: the memory tier holds `guard` while it calls anything here.

#include "proxy/cache/contents_listener.hpp"
#include "proxy/cache/lookup_result.hpp"
#include "proxy/cache/memory/entry_table.hpp"
#include "proxy/cache/memory/purges.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "proxy/cache/stored_response.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache {

/// What a stripe's shares are planned by: with objects of all sizes stripes hold about as many of
/// them, but not as many bytes.
struct stripe_outlook {
    std::uint64_t expected = 0;  ///< bytes promised to newcomers
    std::uint64_t excess = 0;    ///< bytes that must leave, of all stripes, those counted
    std::uint64_t own = 0;       ///< of them from this stripe at least
};

class memory_stripe {
public:
    using entry = memory_entry;
    using resource = entry_table::variants;

    /// What went, for the caller to destroy when the lock is gone.
    using released = std::vector<stored_ptr>;
    /// Adds it; without memory for that, it is destroyed here and now.
    static void let_go(released& gone, stored_ptr one) noexcept;

    /// `told` hears of what the stripe holds, and outlives it; or null.
    memory_stripe(std::unique_ptr<eviction_policy> policy,
                  std::uint64_t capacity,
                  double probation,
                  contents_listener* told = nullptr)
        : held{std::move(policy), capacity, probation},
          told_{told} {}

    /// The resource as the purges have left it, empty if nothing is: what was not yet held against
    /// the last of them is now. `purged` counts what they met.
    resource settled(const filter::key_hash& key,
                     std::string_view url,
                     const purge_list& purges,
                     std::uint64_t& purged,
                     released& gone);

    /// The same without a look at the purges.
    [[nodiscard]] resource resource_of(const filter::key_hash& key,
                                       std::string_view url) const noexcept;

    /// The newest variant that `request` selects (RFC 9111 4.1); null if none is.
    [[nodiscard]] static entry* selected(resource from, http::field_list request);

    /// The variant with the selecting values of `like`; null if none has.
    [[nodiscard]] static entry* variant_of(resource from, const stored_response& like);
    /// The variant that this response is; null if none is.
    [[nodiscard]] static entry* place_of(resource from, const stored_ptr& response);

    /// Takes a variant out. The last one takes its resource with it.
    stored_ptr remove(entry& one) noexcept;

    /// Another response in a variant's place, of another size perhaps.
    stored_ptr replace(entry& one, stored_ptr response);

    /// What becomes of a put.
    struct placing {
        bool fits = false;      ///< false: larger than `most`, and what it was to replace is gone
        bool in_place = false;  ///< of an older one with the same selecting values
    };
    /// Stores a variant; whatever it replaces or displaces goes to `gone`. `most` bounds its
    /// charge, `most_variants` the variants of its resource. A resource of another URL under the
    /// same hash gives way: the newer wins, as for any full slot. `checked` is memory_entry's.
    placing put(const filter::key_hash& key,
                std::string_view url,
                stored_ptr response,
                std::uint64_t checked,
                std::uint64_t most,
                std::size_t most_variants,
                standing as,
                unsigned uses_to_admit,
                std::uint32_t now,
                released& gone);

    /// A response that is being given to another tier (memory_tier::handing).
    struct handed {
        filter::key_hash key;
        const stored_response* what;  ///< whoever gives it on keeps it
        bool outrun = false;
    };
    /// There is memory for one more of them, which is added without any.
    [[nodiscard]] bool can_hand_on() noexcept;
    /// What is handed on of the variant of `newcomer` is the more recent of the two.
    [[nodiscard]] bool is_behind_handed(const filter::key_hash& key,
                                        const stored_response& newcomer) const;
    /// `newer` has taken the place of what is handed on of its variant, unless it is a part of that.
    void outrun(const filter::key_hash& key, const stored_response& newer);
    /// The same of this very response, which was dropped or freshened.
    void outrun(const stored_response* one) noexcept;

    /// As the policy says it (eviction_policy::takes).
    [[nodiscard]] bool takes(const filter::key_hash& newcomer,
                             std::uint64_t bytes,
                             const stripe_outlook& at) noexcept {
        plan_for(at);
        return held.takes(newcomer, bytes);
    }

    /// One that had to leave for room.
    struct evicted {
        memory_entry_ptr one;  ///< null: nothing was there to leave
        bool was_admitted = false;
    };
    [[nodiscard]] evicted evict(bool probation_first, const stripe_outlook& at);

    /// Plans for the bytes this stripe will hold once everything fits. Planning for more would let
    /// the newcomer in at no cost. For other stripes' excess at most a sixteenth is taken off, or
    /// the policy would drop its ghosts and everything new.
    void plan_for(const stripe_outlook& at) noexcept {
        const auto soon = held.bytes() + at.expected;
        const auto leaves = std::max(at.own, std::min(at.excess, soon / 16));
        held.set_capacity(soon - std::min(soon, leaves));
        held.expect(at.expected);
    }

    std::mutex guard;
    residents held;
    entry_table entries;
    std::vector<handed> handed_on;  ///< few, and for some microseconds
    std::size_t waiting = 0;        ///< entries on probation
    std::uint64_t overhead = 0;     ///< of `held`, as last accounted for

private:
    // Takes it out of its resource; its place in `held` is the caller's business.
    memory_entry_ptr detach(entry& one) noexcept;
    void tell(const filter::key_hash& key) const noexcept;

    contents_listener* told_;
};

}  // namespace reprise::proxy::cache
