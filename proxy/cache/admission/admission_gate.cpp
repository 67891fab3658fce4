#include "proxy/cache/admission/admission_gate.hpp"

#include "config/url.hpp"
#include "filter/admission_state.hpp"
#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/cache/admission/admission_file.hpp"
#include "proxy/cache/plan.hpp"

#include <algorithm>
#include <functional>
#include <openssl/rand.h>
#include <stdexcept>
#include <utility>

// Which policy rules for a URL, what it rules, and the filter's way into and out of its file. A
// policy that is "auto" is looked up at each ruling, so obey() needs no lock.

namespace reprise::proxy::cache {

namespace {

constinit log::seldom no_memory;  // tried again once a second

std::chrono::sys_seconds seconds_of(wall_time now) noexcept {
    return std::chrono::floor<std::chrono::seconds>(now);
}

filter::hash_seed random_seed() {
    filter::hash_seed seed{};
    if (RAND_bytes(reinterpret_cast<unsigned char*>(seed.data()), static_cast<int>(seed.size())) !=
        1) {
        throw std::runtime_error{"no random numbers: the system's generator failed"};
    }
    return seed;
}

bool any_choice(const config::options& options,
                const std::function<bool(const config::admission_choice&)>& is) {
    const auto& admission = options.admission;
    return is(admission.choice) ||
           std::any_of(admission.rules.begin(),
                       admission.rules.end(),
                       [&](const auto& rule) { return is(rule.choice); }) ||
           std::any_of(options.listeners.begin(), options.listeners.end(), [&](const auto& one) {
               return one.admission && is(*one.admission);
           });
}

bool is_automatic(const config::admission_choice& choice) noexcept {
    return choice.policy == config::admission_policy::automatic;
}

std::uint32_t packed(const config::admission_choice& choice) noexcept {
    return static_cast<std::uint32_t>(choice.policy) << 8 | (choice.hits & 0xff);
}

}  // namespace

bool url_matches(std::string_view pattern, std::string_view url) noexcept {
    // An accelerator's key: "//host/path", or with "https:" in front, a space, its upstream. Rules
    // are about what clients ask for.
    const auto asked = url.substr(0, url.find(' '));
    return config::matches_pattern(pattern, asked.starts_with("//") ? "http:" : "", asked);
}

admission_choice_for choice_for(const config::admission_options& options,
                                const std::optional<config::admission_choice>& of_listener,
                                std::string_view url) {
    if (of_listener) {
        return {*of_listener, ~std::size_t{0}};
    }
    for (std::size_t i = 0; i < options.rules.size(); ++i) {
        if (url_matches(options.rules[i].url, url)) {
            return {options.rules[i].choice, i};
        }
    }
    return {options.choice, ~std::size_t{0}};
}

bool counts_requests(const config::options& options) {
    return any_choice(options, [](const config::admission_choice& choice) {
        return choice.policy == config::admission_policy::tinylfu || is_automatic(choice);
    });
}

filter::admission_settings filter_settings(const config::options& options) {
    filter::admission_settings settings;
    settings.false_positive_rate = options.admission.false_positive_rate;
    unsigned hits = 2;
    (void)any_choice(options, [&hits](const config::admission_choice& choice) {
        using enum config::admission_policy;
        // "auto" may come to be the third request.
        hits = std::max(hits,
                        choice.policy == nth_hit ? choice.hits
                        : is_automatic(choice)   ? 3
                                                 : 2);
        return false;
    });
    settings.layers = std::clamp(hits - 1, 1u, filter::admission_filter::max_layers);
    if (!options.admission.remember.automatic) {
        settings.objects = options.admission.remember.objects;
        settings.age = options.admission.remember.age;
        return settings;
    }
    // While one filter takes the place of another both may err (resizable_admission.hpp).
    settings.false_positive_rate *= 2.0 / 3;
    return begin_remembering(settings, bounds_within(remembering_bytes(options), settings));
}

admission_gate::beginning admission_gate::begin(const config::options& options,
                                                wall_time now,
                                                const filter::hash_secret* fixed,
                                                const std::vector<std::byte>* inherited) {
    const auto settings = filter_settings(options);
    const auto& file = options.admission.state;
    const auto path = inherited != nullptr ? std::string{"what the program before remembers"}
                                           : file;
    const auto fresh = [&] {
        return beginning{std::make_unique<filter::admission_filter>(settings, seconds_of(now)),
                         fixed != nullptr ? *fixed : filter::hash_secret::from_seed(random_seed())};
    };
    if (path.empty()) {
        return fresh();
    }
    // A filter that follows the store may have been of any size when it was saved: it goes on as
    // it was.
    std::vector<filter::admission_settings> possible{settings};
    if (options.admission.remember.automatic) {
        const auto bounds = bounds_within(remembering_bytes(options), settings);
        for (auto objects = admission_bounds::least_objects; objects <= bounds.most_objects;
             objects *= 2) {
            possible.push_back(settings);
            possible.back().objects = objects;
        }
    }
    // A file longer than any state of these settings is refused by decode as such, so a little
    // more is enough.
    std::uint64_t most = 0;
    for (const auto& one : possible) {
        most = std::max(most, filter::encoded_size(one) + 1);
    }
    const auto bytes = inherited != nullptr ? std::optional{*inherited} : read_state(file, most);
    if (!bytes) {
        return fresh();
    }
    const auto same_size = std::find_if(possible.begin(), possible.end(), [&](const auto& one) {
        return filter::encoded_size(one) == bytes->size();
    });
    auto state = filter::decode(
        *bytes, same_size == possible.end() ? settings : *same_size, seconds_of(now));
    if (state.has_value() && fixed != nullptr && !std::ranges::equal(state->seed, fixed->seed())) {
        log::warn("admission.state: ",
                  path,
                  " refused: made under another secret than the store in disk.path; the filter "
                  "starts empty");
        return fresh();
    }
    if (state.has_value()) {
        log::info("admission.state: ", path, " loaded");
        return {std::move(state->filter), filter::hash_secret::from_seed(state->seed)};
    }
    log::warn("admission.state: ",
              path,
              " refused: ",
              state.error().message(),
              "; the filter starts empty");
    if (inherited == nullptr && state.error() == filter::admission_errc::unknown_version) {
        put_aside(file);
    }
    return fresh();
}

admission_gate::admission_gate(const config::options& options,
                               wall_time now,
                               const filter::hash_secret* fixed,
                               std::shared_ptr<frequency_sketch> requests,
                               const std::vector<std::byte>* inherited)
    : admission_gate{options, begin(options, now, fixed, inherited), std::move(requests)} {}

admission_gate::admission_gate(const config::options& options,
                               beginning from,
                               std::shared_ptr<frequency_sketch> requests)
    : sights_{std::move(from.filter)},
      secret_{from.secret},
      layers_{settings().layers},
      follows_{options.admission.remember.automatic},
      bounds_{bounds_within(remembering_bytes(options), settings())},
      requests_{std::move(requests)},
      obeyed_{packed({config::admission_policy::second_hit, 2})},
      asked_probation_{options.admission.probation},
      probation_{options.admission.probation},
      is_floor_{static_cast<bool>(options.admission.has_probation)},
      automatic_{any_choice(options, is_automatic)} {
    if (!requests_ && counts_requests(options)) {
        requests_ = sketch_for(options);
    }
}

// A filter made for fewer layers than `hits` asks for (a reload raised it) can't count that far:
// what it can count is then enough.
admission_ruling admission_gate::rule_on(const filter::key_hash& key,
                                         unsigned seen,
                                         const admission_choice_for& by) const noexcept {
    const auto choice = is_automatic(by.choice) ? obeyed() : by.choice;
    admission_ruling ruling;
    ruling.policy = choice.policy;
    ruling.rule = by.rule;
    ruling.seen_before = seen;
    switch (choice.policy) {
    case config::admission_policy::always: ruling.admitted = true; break;
    case config::admission_policy::never: return ruling;
    case config::admission_policy::automatic:  // obeyed() is none
    case config::admission_policy::second_hit: ruling.admitted = seen >= 1; break;
    case config::admission_policy::nth_hit:
        ruling.admitted = seen + 1 >= choice.hits || seen >= layers_;
        ruling.uses_to_admit = ruling.admitted ? 1 : choice.hits - seen - 1;
        break;
    case config::admission_policy::tinylfu:
        // Without a sketch (a reload chose the policy): the second request, as near as can be.
        ruling.admitted = requests_ ? bar_.load(relaxed).admits(requests_->estimate(key),
                                                                requests_->agings())
                                    : seen >= 1;
        break;
    }
    ruling.may_wait = !ruling.admitted && probation() > 0;
    return ruling;
}

template <class Change>
void admission_gate::change_bar(const Change& change) noexcept {
    static_assert(std::atomic<tinylfu_bar>::is_always_lock_free);
    auto before = bar_.load(relaxed);
    auto after = before;
    do {
        after = before;
        change(after);
    } while (!bar_.compare_exchange_weak(before, after, relaxed));
}

admission_ruling admission_gate::note(const filter::key_hash& key,
                                      const admission_choice_for& by,
                                      wall_time now) noexcept {
    const auto ruling = rule_on(key, sights_.note(key, seconds_of(now)), by);
    if (requests_ && ruling.policy == config::admission_policy::tinylfu && !ruling.admitted) {
        change_bar([&](tinylfu_bar& bar) { bar.note_refused(requests_->agings()); });
    }
    return ruling;
}

admission_ruling admission_gate::peek(const filter::key_hash& key,
                                      const admission_choice_for& by,
                                      std::size_t pending) const noexcept {
    const auto more = static_cast<unsigned>(
        std::min<std::size_t>(pending, filter::admission_filter::max_layers));
    return rule_on(key, sights_.peek(key) + more, by);
}

void admission_gate::hit(const filter::key_hash& key, wall_time now) noexcept {
    sights_.refresh(key, seconds_of(now));
}

void admission_gate::evicted(const filter::key_hash& key) noexcept {
    if (requests_) {
        const auto asked = requests_->estimate(key);
        change_bar([&](tinylfu_bar& bar) { bar.note_left(asked, requests_->agings()); });
    }
}

void admission_gate::adopt(const config::options& options) noexcept {
    bounds_ = bounds_within(remembering_bytes(options), settings());
    asked_probation_.store(options.admission.probation, relaxed);
    is_floor_.store(static_cast<bool>(options.admission.has_probation), relaxed);
    automatic_.store(any_choice(options, is_automatic), relaxed);
    obey(obeyed(), obeyed_probation_.load(relaxed));
}

void admission_gate::obey(const config::admission_choice& choice, double probation) noexcept {
    obeyed_.store(packed(choice), relaxed);
    obeyed_probation_.store(probation, relaxed);
    const bool follows = automatic_.load(relaxed) && probation >= 0;
    probation_.store(
        follows ? std::max(least_probation(), probation) : asked_probation_.load(relaxed), relaxed);
}

config::admission_choice admission_gate::obeyed() const noexcept {
    const auto word = obeyed_.load(relaxed);
    return {static_cast<config::admission_policy>(word >> 8), word & 0xff};
}

void admission_gate::housekeep(std::optional<std::chrono::seconds> eviction_age, wall_time now) {
    sights_.tidy();
    if (!follows_ || sights_.changing()) {
        return;
    }
    const auto next = follow(settings(),
                             sights_.current()->figures(seconds_of(now)),
                             seconds_of(now),
                             eviction_age,
                             bounds_);
    if (next == settings()) {
        return;
    }
    try {
        sights_.change_to(next, seconds_of(now));
        log::info("admission.remember: ", next.objects, " objects, ", next.age.count(), " s");
    } catch (const std::bad_alloc&) {
        if (const auto more = no_memory.due()) {
            log::warn("admission.remember: no memory for ", next.objects, " objects", *more);
        }
    }
}

boost::system::error_code admission_gate::save(const std::string& path) const {
    return write_state(path, *sights_.current(), secret_.seed());
}

std::vector<std::byte> admission_gate::encoded() const {
    return filter::encode(*sights_.current(), secret_.seed());
}

std::size_t admission_gate::memory() const {
    return sights_.memory() + (requests_ ? requests_->memory() : 0);
}

filter::admission_figures admission_gate::figures(wall_time now) const {
    auto made = sights_.figures(seconds_of(now));
    made.swaps = sights_.turns();
    made.memory = memory();
    return made;
}

}  // namespace reprise::proxy::cache
