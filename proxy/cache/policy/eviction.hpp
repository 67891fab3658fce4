#pragma once
// Which stored object leaves when there is no more room: one interface, several policies.
//
// A policy orders the entries of one owner (a stripe of the memory tier, the replay tool's tier)
// and owns none of them: an entry is a base of whatever its owner keeps, linked intrusively, so
// that a hit allocates nothing. Sizes are what the owner charges, in bytes; a policy plans its own
// shares (a window, a small queue, ghosts) in bytes from the capacity it was told, but the owner
// alone decides when something must go.
//
// The order of calls, for one request:
//
//     hit     used(entry)
//     miss    missed(key); if it is to be kept, inserted(entry), then evict() until all fits
//
// So the newcomer is in when evict() is asked, and a policy that would rather not have it names it
// as the one to leave: it then leaves without having been of use.
//
// The proxy and tools/replay run these very classes.
//
// Threads   none: the owner locks.
// Cost      inserted, used, removed and evict are O(1) amortised, or O(log n) where a policy says
//           so; a single evict passes over most_passed entries in use at the most.
// Memory    per entry what `evictable` has; beside it what overhead() says.
// Errors    std::bad_alloc from the constructor, set_capacity, trim and inserted (which then has
//           not taken the entry in); nothing else throws.

#include "config/eviction.hpp"
#include "filter/key_hash.hpp"
#include "proxy/cache/policy/packed_wait.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace reprise::proxy::cache {

/// A number of bytes in five: up to a tebibyte, and what is more counts as that.
class packed_bytes {
public:
    static constexpr std::uint64_t most = (std::uint64_t{1} << 40) - 1;

    packed_bytes() = default;
    packed_bytes(std::uint64_t bytes) noexcept {
        bytes = std::min(bytes, most);
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            bytes_[i] = static_cast<std::uint8_t>(bytes >> (8 * i));
        }
    }
    operator std::uint64_t() const noexcept {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < bytes_.size(); ++i) {
            bytes |= std::uint64_t{bytes_[i]} << (8 * i);
        }
        return bytes;
    }

private:
    std::array<std::uint8_t, 5> bytes_{};
};

/// What a policy keeps of an entry. The owner sets key, charge and wait before inserted(), and
/// changes none of them while the entry is in. There is one for every stored object: a word here is
/// a word for each of them.
struct evictable {
    struct neighbours {
        evictable* newer;
        evictable* older;
    };
    struct rank {
        double worth;
        std::uint32_t place;  ///< in a heap
    };

    filter::key_hash key{};

    // The policy's own, set by inserted(): policies either link entries or rank them by a number.
    // What waits in probation's line is linked by residents.
    union {
        neighbours next_to{};
        rank by;
    };

    std::uint16_t queue : 3 = 0;  ///< which of the policy's lists it is in

    // residents' own.
    std::uint16_t in_line : 1 = 0;  ///< it waits in probation's line, and is in no policy's list
    std::uint16_t to_go : 5 = 0;    ///< uses still needed of one on probation; 0: it is admitted
    static constexpr unsigned most_to_go = 31;

    std::uint16_t wait_code : packed_wait::bits = 0;  ///< what its fetch took: wait()
    std::uint8_t uses = 0;  ///< since it came in or was last looked at, saturating
    packed_bytes charge;

    [[nodiscard]] packed_wait wait() const noexcept { return packed_wait::of_code(wait_code); }
    void set_wait(packed_wait took) noexcept { wait_code = took.code() & packed_wait::most_code; }
};
static_assert(sizeof(evictable) == 40);

/// How many entries in use one evict() passes over at the most, for its owner has a lock meanwhile:
/// then it takes the next though that is in use as well. The next call goes on there.
inline constexpr unsigned most_passed = 4096;

class eviction_policy {
public:
    eviction_policy() = default;
    eviction_policy(const eviction_policy&) = delete;
    eviction_policy& operator=(const eviction_policy&) = delete;
    virtual ~eviction_policy() = default;  ///< entries that are still in are left as they are

    /// The bytes to plan for. May be called again at any time; evicts nothing.
    virtual void set_capacity(std::uint64_t bytes) = 0;

    /// Gives back what it takes beside for more than `keys` entries, or for more than are in, whichever
    /// is less. It may grow again as others come. O(overhead()).
    virtual void trim(std::uint64_t keys) { (void)keys; }

    /// From now on `bytes` beside what is in are promised to newcomers: an owner that makes room
    /// before they come in asks evict() as if they were. A policy that would judge them by what
    /// else is new does so by these bytes.
    virtual void expect(std::uint64_t bytes) noexcept { (void)bytes; }

    /// Somebody asked for a key that is not in: for policies that count what is absent too. Called
    /// once per request that missed, before inserted() if that follows.
    virtual void missed(const filter::key_hash& key) noexcept { (void)key; }

    /// `entry` has come in. It is in no list of any policy.
    virtual void inserted(evictable& entry) = 0;
    /// A hit. @pre entry is in
    virtual void used(evictable& entry) noexcept = 0;
    /// It leaves for another reason than eviction (replaced, invalidated): no ghost of it stays.
    /// @pre entry is in
    virtual void removed(evictable& entry) noexcept = 0;
    /// The entry that is to leave now, taken out of the lists, its ghost kept where the policy has
    /// ghosts. Null when nothing is in.
    [[nodiscard]] virtual evictable* evict() noexcept = 0;
    /// False: `newcomer` would be among the first to leave if it came in now, where there is no
    /// room; it has then been turned away, and what it was compared with has won. For owners that
    /// make room before something comes in: nothing is to leave for what does not stay.
    [[nodiscard]] virtual bool takes(const filter::key_hash& newcomer,
                                     std::uint64_t charge) noexcept {
        (void)newcomer;
        (void)charge;
        return true;
    }
    /// How many times more useful the policy thinks `newcomer` than what would leave for it: above
    /// 1 it should come in. 1 where the policy has no opinion.
    [[nodiscard]] virtual double preference(const filter::key_hash& newcomer,
                                            std::uint64_t charge) const noexcept {
        (void)newcomer;
        (void)charge;
        return 1;
    }
    /// From now on size counts by this exponent (policy_tuning::exponent), for those that have one.
    /// What is in keeps its rank until it is next used.
    virtual void set_exponent(double exponent) noexcept { (void)exponent; }
    /// Bytes of memory beside the entries.
    [[nodiscard]] virtual std::uint64_t overhead() const noexcept { return 0; }
};

using config::eviction_kind;

class frequency_sketch;

/// What some policies can be told beside their capacity.
struct policy_tuning {
    double exponent = 1;  ///< gdsf: of size, 0 (for bytes) to 1 (for requests)
    /// gdsf and lfu_da: a request is worth what the object's fetch took (evictable::wait). The
    /// others know nothing of it.
    bool by_wait = false;
    /// gdsf and lfu_da: counts requests for them. The owner notes every request, before it tells
    /// the policy, and keeps the sketch alive.
    const frequency_sketch* frequencies = nullptr;
};

[[nodiscard]] std::unique_ptr<eviction_policy> make_policy(eviction_kind kind,
                                                           std::uint64_t capacity_bytes,
                                                           const policy_tuning& tuning = {});

}  // namespace reprise::proxy::cache
