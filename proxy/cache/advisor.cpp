#include "proxy/cache/advisor.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/plan.hpp"

#include <chrono>

namespace reprise::proxy::cache {

namespace {

constexpr std::chrono::minutes between_looks{1};

admission_variant variant_of(const config::admission_choice& choice, double probation) noexcept {
    admission_variant variant;
    variant.probation = probation;
    switch (choice.policy) {
    case config::admission_policy::always: variant.what = admission_variant::kind::always; break;
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
    setup.policy = options.memory.policy;
    setup.exponent = exponent_of(options.caching.objective);
    setup.admission = variant_of(options.admission.choice, options.admission.probation);
    const auto remembered = filter_settings(options);
    setup.remembers = remembered.objects;
    setup.remembers_for = remembered.age;
    setup.by_bytes = options.caching.objective == config::caching_objective::bytes;
    setup.by_wait = goes_by_wait(options.caching.objective);
    return setup;
}

bool is_automatic(const config::options& options) noexcept {
    return options.admission.choice.policy == config::admission_policy::automatic;
}

}  // namespace

advisor::advisor(const config::options& options, steady_time now)
    : setup_{setup_of(options)},
      automatic_{is_automatic(options)},
      ghosts_{setup_, now},
      next_look_{now + between_looks} {}

void advisor::adopt(const config::options& options, const admission_gate& gate, steady_time now) {
    auto next = setup_of(options);
    // What was built at the start stays.
    next.policy = setup_.policy;
    next.exponent = setup_.exponent;
    next.by_bytes = setup_.by_bytes;
    next.by_wait = setup_.by_wait;
    next.remembers = setup_.remembers;
    next.remembers_for = setup_.remembers_for;
    automatic_ = is_automatic(options);
    if (automatic_) {
        next.admission = variant_of(gate.obeyed(), gate.probation());
    }
    if (next == setup_) {
        return;
    }
    setup_ = next;
    ghosts_.set(setup_, now);
}

void advisor::housekeep(admission_gate& gate, memory_tier& store, steady_time now) {
    if (now < next_look_) {
        return;
    }
    next_look_ = now + between_looks;
    const auto advice = ghosts_.decide(now);
    if (!advice || !automatic_) {
        return;
    }
    gate.obey(choice_of(advice->admission), advice->admission.probation);
    store.set_probation(gate.probation());
    setup_.admission = variant_of(gate.obeyed(), gate.probation());
    ghosts_.set(setup_, now);
    log::info("admission.policy auto: from now on ", to_string(setup_.admission));
}

}  // namespace reprise::proxy::cache
