#pragma once
// What other settings would have done with this traffic (policy/what_if.hpp): told in /stats, and
// obeyed where admission.policy is "auto".
//
// The ghosts stand for all tiers together, a cache of memory's and the disk's bytes. What is in
// force is what the top of "admission" says; rules and listeners with policies of their own are
// left out of account.
//
// "auto" begins at second-hit, with probation as it is set or by default (100 %, at which strictness
// costs no hit). Once a minute it is asked whether something else was better beyond chance, by at least
// 0.3 % of what is missed: after some thousands of sampled requests, or as many as a difference needs
// (what_if.hpp). That is what "auto" is from then on. Under gdsf it decides the exponent of size too, of
// memory and disk. One of the two at a time; a way back costs more each time. Where probation is written
// in the settings, ghosts with less are told of, but never chosen: they could not be put in force. One
// client that floods is at most half of what is measured (what_if.hpp). What "auto" chose is forgotten at a
// restart.
//
// Frozen (admission.frozen) it measures and tells as before, and changes nothing.
//
// Threads   note: any. The others: one at a time, the ones that housekeep and reload.

#include "config/options.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/policy/what_if.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

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
              packed_wait wait = {},
              std::uint64_t client = 0) noexcept {
        ghosts_.note(key, body + beside_body, now, wait, client);
    }
    /// The same of an object that a store would charge with so much in all.
    void note_charged(const filter::key_hash& key, std::uint64_t bytes, steady_time now) noexcept {
        ghosts_.note(key, bytes, now);
    }
    /// Whether note() is for this key: most are not, and nobody need find out who asked.
    [[nodiscard]] bool samples(const filter::key_hash& key) const noexcept {
        return ghosts_.samples(key);
    }

    /// New settings (SIGHUP). `gate` has adopted them; the tiers are to be told exponent().
    void adopt(const config::options& options, const admission_gate& gate, steady_time now);

    /// What the tiers are to be told.
    struct tuning {
        double probation = 0;
        double exponent = 1;
    };
    /// Once a second. `gate` is told what "auto" is from now on; something when that changed.
    [[nodiscard]] std::optional<tuning> housekeep(admission_gate& gate, steady_time now);

    /// The exponent of size that is in force.
    [[nodiscard]] double exponent() const noexcept { return setup_.exponent; }

    /// Any thread.
    [[nodiscard]] what_if_report report(steady_time now) const;

    /// Head, index and rounding of an object, about.
    static constexpr std::uint64_t beside_body = 1'000;

private:
    /// What report() tells of "auto".
    struct belief {
        bool automatic = false, frozen = false;
        std::string what;
        std::string why = "to begin with";
        steady_time since{};
    };
    void believe(std::string why, steady_time now);

    what_if_setup setup_;
    double exponent_of_objective_, chosen_exponent_;
    bool automatic_, frozen_;
    what_if ghosts_;
    steady_time next_look_;
    mutable std::mutex guard_;  // of belief_
    belief belief_;
};

}  // namespace reprise::proxy::cache
