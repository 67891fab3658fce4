#pragma once
// What other settings would have done with this traffic (policy/what_if.hpp): told in /stats, and
// obeyed where admission.policy is "auto".
//
// The ghosts stand for all tiers together, a cache of memory's and the disk's bytes. What is in
// force is what the top of "admission" says; rules and listeners with policies of their own are
// left out of account.
//
// "auto" begins at second-hit. Once a minute the advice of the last hour is looked at; what was
// advised five times in a row, by at least 1 % of the objective, is what "auto" is from then on.
// Then all is measured anew, so it changes at most every five minutes, and not back and forth over
// little. What "auto" chose is forgotten at a restart.
//
// Threads   note: any. The others: one at a time, the ones that housekeep and reload.

#include "config/options.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/policy/what_if.hpp"

#include <cstdint>

namespace reprise::proxy::cache {

class advisor {
public:
    /// @throws std::bad_alloc
    advisor(const config::options& options, steady_time now);

    /// A request, answered with a response that may be stored, of `body` bytes. Once per request,
    /// whether it was a hit or not. `wait`: what its fetch took, as far as is known. A comparison for
    /// most keys.
    void note(const filter::key_hash& key,
              std::uint64_t body,
              steady_time now,
              packed_wait wait = {}) noexcept {
        ghosts_.note(key, body + beside_body, now, wait);
    }

    /// New settings (SIGHUP). `gate` has adopted them.
    void adopt(const config::options& options, const admission_gate& gate, steady_time now);

    /// Once a second.
    void housekeep(admission_gate& gate, memory_tier& store, steady_time now);

    /// Any thread.
    [[nodiscard]] what_if_report report(steady_time now) const { return ghosts_.report(now); }

    /// Head, index and rounding of an object, about.
    static constexpr std::uint64_t beside_body = 1'000;

private:
    what_if_setup setup_;
    bool automatic_;
    what_if ghosts_;
    steady_time next_look_;
};

}  // namespace reprise::proxy::cache
