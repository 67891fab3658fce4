#pragma once
// What is resident in a tier: the admitted, in the order of an eviction policy, and those on
// probation, in the order of their arrival.
//
// Strict admission costs a second fetch of everything that is asked for twice. Probation gives most
// of it back: the body of a first request waits in a small share of the room, first in, first out.
// Asked for again while it waits, it is admitted without a fetch; if not, it leaves without ever
// having taken the room of what was admitted, and without having been written to disk.
//
// An entry that is admitted out of that line meets its policy as it would have without any: as a
// miss (eviction_policy::missed) and then as new. With the same keys admitted, the policy's own
// choices are thus the same with probation and without.
//
// With all of the capacity for probation there is no line: what waits is in the policy's order
// beside what was admitted, and admission decides only what is written to disk. Where that ends, what
// was in the policy's order stays in it, and takes nothing of the line's share.
//
// A stripe of the memory tier and tools/replay run this class.
//
// Threads   none: the owner locks.
// Memory    what the policy takes; entries are their owner's, linked and not copied.
// Cost      the policy's; O(1) for those on probation. No call allocates but what the policy's do.
// Errors    std::bad_alloc from the constructor, the setters, trim and enter (which then has not
//           taken the entry in); nothing else throws.

#include "proxy/cache/policy/eviction.hpp"

#include <cstdint>
#include <memory>

namespace reprise::proxy::cache {

enum class standing : std::uint8_t {
    admitted,
    probation,  ///< waits for another use; room is taken from its own share first
};

class residents {
public:
    /// `probation` is the share of `capacity` (bytes) for those that wait, 0 to 1. With 0 an entry
    /// may enter on probation all the same; it is then the first to leave.
    residents(eviction_kind kind, std::uint64_t capacity, double probation);
    /// The same under a policy that is not among the kinds. @pre policy is not null
    residents(std::unique_ptr<eviction_policy> policy, std::uint64_t capacity, double probation);

    residents(const residents&) = delete;
    residents& operator=(const residents&) = delete;

    /// Plans anew; evicts nothing. The policy is told what probation leaves of the capacity.
    void set_capacity(std::uint64_t bytes);
    void set_probation(double share);
    /// eviction_policy::trim
    void trim(std::uint64_t keys) { policy_->trim(keys); }
    /// eviction_policy::set_exponent
    void set_exponent(double exponent) noexcept { policy_->set_exponent(exponent); }

    /// Somebody asked for a key that is not in. Once per request, before enter() if that follows.
    void missed(const filter::key_hash& key) noexcept { policy_->missed(key); }

    /// `entry` comes in; its key, charge and wait are set, and change no more while it is in. On
    /// probation, it is admitted at its `uses_to_admit`-th use from now (1 to evictable::most_to_go):
    /// a rule that stores at the n-th request, met at the m-th, gives n - m.
    void enter(evictable& entry, standing as, unsigned uses_to_admit = 1);

    /// Enters on probation and takes no memory: in the line, whether there is one for others or not, so
    /// that it is among the first to leave. For what enter() had no memory for.
    void line_up(evictable& entry) noexcept;

    /// A hit. True: this use has just admitted an entry that was on probation. Without memory for
    /// the policy's own it stays on probation until its next use.
    bool use(evictable& entry) noexcept {
        if (entry.to_go == 0) [[likely]] {
            policy_->used(entry);
            return false;
        }
        return use_on_probation(entry);
    }

    /// It leaves for another reason than eviction.
    void leave(evictable& entry) noexcept;

    /// Bytes promised to newcomers, beside what is in (eviction_policy::expect).
    void expect(std::uint64_t bytes) noexcept { policy_->expect(bytes); }

    /// The entry that is to leave now, out of all lists: the oldest on probation when they take
    /// more than their share, else the policy's choice. Null when nothing is in.
    [[nodiscard]] evictable* evict() noexcept { return evict(in_line_ > probation_share_bytes_); }
    /// The same for an owner of several, which knows whether all together take more than their
    /// share. What is left of a line that is no more (set_probation with all of the capacity) goes
    /// before anything else.
    [[nodiscard]] evictable* evict(bool probation_first) noexcept;

    [[nodiscard]] static standing standing_of(const evictable& entry) noexcept {
        return entry.to_go == 0 ? standing::admitted : standing::probation;
    }

    [[nodiscard]] std::uint64_t admitted_bytes() const noexcept { return admitted_; }
    [[nodiscard]] std::uint64_t probation_bytes() const noexcept { return on_probation_; }
    /// The part of these that waits in the line: what is held against its share.
    [[nodiscard]] std::uint64_t line_bytes() const noexcept { return in_line_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return admitted_ + on_probation_; }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Bytes of memory beside the entries.
    [[nodiscard]] std::uint64_t overhead() const noexcept { return policy_->overhead(); }

    /// As the policy says it (eviction_policy::takes).
    [[nodiscard]] bool takes(const filter::key_hash& newcomer, std::uint64_t charge) noexcept {
        return policy_->takes(newcomer, charge);
    }

    /// As the policy says it (eviction_policy::preference).
    [[nodiscard]] double preference(const filter::key_hash& newcomer,
                                    std::uint64_t charge) const noexcept {
        return policy_->preference(newcomer, charge);
    }

private:
    bool use_on_probation(evictable& entry) noexcept;
    [[nodiscard]] bool has_line() const noexcept { return share_ < 1; }
    [[nodiscard]] std::uint64_t& bytes_of(const evictable& entry) noexcept {
        return entry.to_go == 0 ? admitted_ : on_probation_;
    }
    void link(evictable& entry) noexcept;
    void unlink(evictable& entry) noexcept;
    void plan();

    std::unique_ptr<eviction_policy> policy_;
    std::uint64_t capacity_;
    double share_;
    std::uint64_t probation_share_bytes_ = 0;
    std::uint64_t admitted_ = 0, on_probation_ = 0, in_line_ = 0;
    std::size_t count_ = 0;
    // Those on probation, linked as evictables are: `newer` towards the youngest.
    evictable* youngest_ = nullptr;
    evictable* oldest_ = nullptr;
};

}  // namespace reprise::proxy::cache
