#include "proxy/cache/advisor.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/plan.hpp"

#include <chrono>
#include <cstdio>
#include <utility>

namespace reprise::proxy::cache {

namespace {

constexpr std::chrono::minutes between_looks{1};

admission_variant variant_of(const config::admission_choice& choice, double probation) noexcept {
    admission_variant variant;
    variant.probation = probation;
    switch (choice.policy) {
    case config::admission_policy::always:
        // Nothing is refused, so nothing waits: whatever probation is, this is the ghost without it.
        variant.what = admission_variant::kind::always;
        variant.probation = 0;
        break;
    case config::admission_policy::tinylfu: variant.what = admission_variant::kind::tinylfu; break;
    case config::admission_policy::nth_hit: variant.hits = choice.hits; break;
    case config::admission_policy::never:
        // As good as: no ghost counts further than to the third request.
        variant.hits = 255;
        variant.probation = 0;
        break;
    case config::admission_policy::second_hit:
    case config::admission_policy::automatic: break;
    }
    return variant;
}

config::admission_choice choice_of(const admission_variant& variant) noexcept {
    switch (variant.what) {
    case admission_variant::kind::always: return {config::admission_policy::always, 2};
    case admission_variant::kind::tinylfu: return {config::admission_policy::tinylfu, 2};
    case admission_variant::kind::nth_hit: break;
    }
    return variant.hits == 2
               ? config::admission_choice{config::admission_policy::second_hit, 2}
               : config::admission_choice{config::admission_policy::nth_hit, variant.hits};
}

what_if_setup setup_of(const config::options& options) {
    what_if_setup setup;
    setup.capacity = capacity_of(options);
    setup.largest = largest_body(options) + advisor::beside_body;
    setup.largest_in_memory = options.memory.largest() + advisor::beside_body;
    setup.counts = keys_counted(options);
    setup.policy = options.memory.policy;
    setup.exponent = first_exponent(options);
    setup.memory_share = setup.capacity == 0 ? 1
                                             : static_cast<double>(options.memory.size) /
                                                   static_cast<double>(setup.capacity);
    setup.admission = variant_of(options.admission.choice, options.admission.probation);
    const auto remembered = filter_settings(options);
    setup.remembers = remembered.objects;
    setup.remembers_for = remembered.age;
    setup.wanted = options.caching.objective;
    return setup;
}

bool is_automatic(const config::options& options) noexcept {
    return options.admission.choice.policy == config::admission_policy::automatic;
}

}  // namespace

advisor::advisor(const config::options& options, steady_time now)
    : setup_{setup_of(options)},
      exponent_of_objective_{exponent_of(options.caching.objective)},
      chosen_exponent_{setup_.exponent},
      automatic_{is_automatic(options)},
      frozen_{options.admission.frozen},
      ghosts_{setup_, now},
      next_look_{now + between_looks} {
    believe("to begin with", now);
}

void advisor::believe(std::string why, steady_time now) {
    auto what = to_string(setup_.admission);
    if (setup_.policy == eviction_kind::gdsf) {
        char exponent[32];
        std::snprintf(exponent, sizeof exponent, "%g", setup_.exponent);
        what.append(", exponent of size ").append(exponent);
    }
    const std::lock_guard lock{guard_};
    belief_ = {automatic_, frozen_, std::move(what), std::move(why), now};
}

what_if_report advisor::report(steady_time now) const {
    auto out = ghosts_.report(now);
    const std::lock_guard lock{guard_};
    if (!belief_.automatic) {
        out.automatic = "not in use: admission.policy is not \"auto\"";
        return out;
    }
    const auto minutes = std::chrono::floor<std::chrono::minutes>(now - belief_.since).count();
    out.automatic = (belief_.frozen ? "frozen at " : "") + belief_.what + ", for " +
                    std::to_string(minutes) + " min: " + belief_.why;
    return out;
}

void advisor::adopt(const config::options& options, const admission_gate& gate, steady_time now) {
    auto next = setup_of(options);
    // What was built at the start stays.
    next.policy = setup_.policy;
    next.wanted = setup_.wanted;
    next.remembers = setup_.remembers;
    next.remembers_for = setup_.remembers_for;
    const bool same = automatic_ == is_automatic(options) && frozen_ == options.admission.frozen;
    automatic_ = is_automatic(options);
    frozen_ = options.admission.frozen;
    next.exponent = automatic_ ? chosen_exponent_ : exponent_of_objective_;
    if (automatic_) {
        next.admission = variant_of(gate.obeyed(), gate.probation());
    }
    if (next != setup_) {
        setup_ = next;
        ghosts_.set(setup_, now);
        believe("since a reload", now);
    } else if (!same) {
        const std::lock_guard lock{guard_};
        belief_.automatic = automatic_;
        belief_.frozen = frozen_;
    }
}

std::optional<advisor::tuning> advisor::housekeep(admission_gate& gate, steady_time now) {
    ghosts_.tend();
    if (now < next_look_) {
        return std::nullopt;
    }
    next_look_ = now + between_looks;
    // It follows the store, where it is set to.
    const auto remembered = gate.settings();
    if (remembered.objects != setup_.remembers || remembered.age != setup_.remembers_for) {
        setup_.remembers = remembered.objects;
        setup_.remembers_for = remembered.age;
        ghosts_.remember(remembered.objects, remembered.age);
    }
    if (!automatic_ || frozen_) {
        return std::nullopt;
    }
    const auto advice = ghosts_.decide(now, gate.least_probation());
    if (!advice) {
        return std::nullopt;
    }
    if (advice->exponent == setup_.exponent) {
        gate.obey(choice_of(advice->admission), advice->admission.probation);
    }
    chosen_exponent_ = setup_.exponent = advice->exponent;
    setup_.admission = variant_of(gate.obeyed(), gate.probation());
    ghosts_.set(setup_, now);
    believe("it would have " + gained(setup_.wanted, advice->gain), now);
    log::info("admission.policy auto: from now on ", belief_.what, " (", belief_.why, ")");
    return tuning{gate.probation(), setup_.exponent};
}

}  // namespace reprise::proxy::cache
