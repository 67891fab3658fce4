#include "tools/replay/admission_rule.hpp"

#include "config/options.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/advisor.hpp"
#include "tools/replay/number.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace reprise::replay {

namespace {

class always final : public admission_rule {
public:
    bool admits(const request&) override { return true; }
    void hit(const request&) override {}
};

class exact_second final : public admission_rule {
public:
    bool admits(const request& wanted) override {
        if (wanted.object >= seen_.size()) {
            seen_.resize(std::max<std::size_t>(wanted.object + 1, 2 * seen_.size()));
        }
        const bool before = seen_[wanted.object];
        seen_[wanted.object] = true;
        return before;
    }
    void hit(const request&) override {}  // what is stored was seen

private:
    std::vector<bool> seen_;
};

// The last n distinct keys, as a list linked through a table by object number.
class exact_window final : public admission_rule {
public:
    explicit exact_window(std::uint64_t keys) : keys_{keys} {}

    bool admits(const request& wanted) override {
        const bool before = wanted.object < links_.size() && links_[wanted.object].is_in;
        hit(wanted);
        return before;
    }

    void hit(const request& wanted) override {
        if (wanted.object >= links_.size()) {
            links_.resize(std::max<std::size_t>(wanted.object + 1, 2 * links_.size()));
        }
        if (links_[wanted.object].is_in) {
            if (newest_ == wanted.object) {
                return;
            }
            unlink(wanted.object);
        } else if (size_ == keys_) {
            if (keys_ == 0) {
                return;
            }
            unlink(oldest_);
        }
        links_[wanted.object] = {.newer = none, .older = newest_, .is_in = true};
        (newest_ != none ? links_[newest_].newer : oldest_) = wanted.object;
        newest_ = wanted.object;
        ++size_;
    }

private:
    static constexpr object_number none = ~object_number{0};
    struct link {
        object_number newer = none, older = none;
        bool is_in = false;
    };

    void unlink(object_number object) {
        auto& gone = links_[object];
        (gone.newer != none ? links_[gone.newer].older : newest_) = gone.older;
        (gone.older != none ? links_[gone.older].newer : oldest_) = gone.newer;
        gone.is_in = false;
        --size_;
    }

    std::uint64_t keys_;
    std::uint64_t size_ = 0;
    object_number newest_ = none, oldest_ = none;
    std::vector<link> links_;
};

// Longer than any trace: what binds in a replay is the number of keys.
constexpr auto filter_age = std::chrono::hours{24 * 365 * 20};

// The proxy's housekeeper comes every second. What it does here, it does for every model: not so
// often, and not at all where hardly anything was asked for meanwhile.
constexpr std::uint32_t seconds_between_housekeeping = 30;
constexpr unsigned requests_between_housekeeping = 256;
constexpr unsigned requests_between_looks = 16;  // where there is an advisor

// cache::admission_gate, told what the exchange tells it.
class gate_rule final : public admission_rule {
public:
    gate_rule(const admission_choice& choice, const remembering& filter)
        : by_{.choice = {.policy = policy_of(choice), .hits = choice.hits}} {
        options_.admission.choice = by_.choice;
        options_.memory.size = filter.memory_bytes;
        if (filter.disk_bytes != 0) {
            options_.disk.path = "(none)";
            options_.disk.size = filter.disk_bytes;
        }
        auto& remember = options_.admission.remember;
        remember.automatic = filter.automatic;
        if (filter.as_set) {
            remember.objects = filter.objects;
        } else if (!filter.automatic) {
            const auto settings = filter_within(filter.objects, filter_bytes_a_key);
            remember.objects = settings.objects;
            remember.age = filter_age;
            options_.admission.false_positive_rate = settings.false_positive_rate;
        }
    }

    gate_rule(const config::options& options, std::uint64_t unit)
        : by_{.choice = options.admission.choice},
          options_{options},
          unit_{unit},
          is_automatic_{true} {}

    void count_by(proxy::cache::frequency_sketch& sketch) override {
        // Not owned: an empty owner beside the pointer.
        requests_ = {std::shared_ptr<void>{}, &sketch};
    }
    void asked(const request& wanted) override {
        if (!requests_) {
            at(wanted).count_request(wanted.key);
        }
        ++asked_;
        if (is_automatic_) {
            at(wanted);
            advisor_->note_charged(wanted.key, wanted.bytes * unit_, steady(wanted));
        }
    }
    std::optional<tuning> tune(const request& wanted) override {
        if (!is_automatic_ || since_ != 0) {
            return std::nullopt;
        }
        const auto next = advisor_->housekeep(*gate_, steady(wanted));
        if (!next) {
            return std::nullopt;
        }
        told_.push_back("at request " + std::to_string(asked_) + ": " +
                        advisor_->report(steady(wanted)).automatic);
        return tuning{next->probation, next->exponent};
    }
    std::vector<std::string> told() const override { return told_; }
    bool admits(const request& wanted) override {
        const auto ruling = at(wanted).note(wanted.key, by_, wanted.time());
        uses_to_admit_ = ruling.uses_to_admit;
        return ruling.admitted;
    }
    unsigned uses_to_admit() const noexcept override { return uses_to_admit_; }
    void hit(const request& wanted) override { at(wanted).hit(wanted.key, wanted.time()); }
    void evicted(const filter::key_hash& key, std::chrono::seconds unused) override {
        gate_->evicted(key);
        // As memory_tier smooths it.
        const auto age = static_cast<double>(unused.count());
        eviction_age_ = eviction_age_ ? *eviction_age_ + (age - *eviction_age_) / 64 : age;
    }
    void follow(age_source age) override { age_of_disk_ = std::move(age); }
    std::uint64_t memory() const noexcept override { return memory_; }

private:
    static config::admission_policy policy_of(const admission_choice& choice) noexcept {
        using enum config::admission_policy;
        return choice.what == admission_choice::kind::tinylfu ? tinylfu
               : choice.hits == 2                             ? second_hit
                                                              : nth_hit;
    }

    static proxy::steady_time steady(const request& wanted) noexcept {
        return proxy::steady_time{std::chrono::seconds{wanted.seconds}};
    }

    void weigh() { memory_ = gate_->memory() - (requests_ ? requests_->memory() : 0); }

    std::optional<std::chrono::seconds> age() const {
        if (age_of_disk_) {
            return age_of_disk_();
        }
        return eviction_age_
                   ? std::optional{std::chrono::seconds{static_cast<std::int64_t>(*eviction_age_)}}
                   : std::nullopt;
    }

    // Begins when the trace does.
    proxy::cache::admission_gate& at(const request& wanted) {
        if (!gate_) {
            gate_.emplace(options_, wanted.time(), &secret_, requests_);
            if (is_automatic_) {
                advisor_ = std::make_unique<proxy::cache::advisor>(options_, steady(wanted));
            }
            second_ = wanted.seconds;
            weigh();
        }
        if (++since_ >= (is_automatic_ ? requests_between_looks : requests_between_housekeeping) &&
            wanted.seconds - second_ >= seconds_between_housekeeping) {
            second_ = wanted.seconds;
            since_ = 0;
            gate_->housekeep(age(), wanted.time());
            // It changes its size, if at all, by that much.
            if (options_.admission.remember.automatic) {
                weigh();
            }
        }
        return *gate_;
    }

    proxy::cache::admission_choice_for by_;
    config::options options_;
    filter::hash_secret secret_ = filter::hash_secret::from_seed(filter::hash_seed{});
    std::shared_ptr<proxy::cache::frequency_sketch> requests_;
    std::optional<proxy::cache::admission_gate> gate_;
    std::uint64_t unit_ = 1;
    bool is_automatic_ = false;
    std::unique_ptr<proxy::cache::advisor> advisor_;  // of "auto" alone
    std::uint64_t asked_ = 0;
    std::vector<std::string> told_;
    std::uint32_t second_ = 0;
    unsigned since_ = 0;
    age_source age_of_disk_;
    unsigned uses_to_admit_ = 1;
    std::uint64_t memory_ = 0;
    std::optional<double> eviction_age_;  // seconds
};

}  // namespace

std::optional<admission_choice> admission_choice_of(std::string_view text) {
    using kind = admission_choice::kind;
    const auto colon = std::min(text.find(':'), text.size());
    const auto name = text.substr(0, colon);
    const auto rest = text.substr(std::min(colon + 1, text.size()));
    if (name == "always" && rest.empty()) {
        return admission_choice{};
    }
    if (name == "tinylfu" && rest.empty()) {
        return admission_choice{.what = kind::tinylfu};
    }
    if (name == "auto" && rest.empty()) {
        return admission_choice{.what = kind::automatic};
    }
    if (name == "second-hit" && rest.empty()) {
        return admission_choice{.what = kind::nth_hit};
    }
    if (name == "exact-second" && rest.empty()) {
        return admission_choice{.what = kind::exact_second};
    }
    if (name == "nth-hit") {
        const auto hits = number_in<unsigned>(rest);
        if (hits && *hits >= 2 && *hits <= filter::admission_filter::max_layers + 1) {
            return admission_choice{.what = kind::nth_hit, .hits = *hits};
        }
    }
    if (name == "window") {
        if (rest.ends_with('%')) {
            const auto percent = number_in<double>(rest.substr(0, rest.size() - 1));
            if (percent && *percent > 0) {
                return admission_choice{.what = kind::exact_window, .of_objects = *percent / 100};
            }
        } else if (const auto keys = number_in<std::uint64_t>(rest)) {
            return admission_choice{.what = kind::exact_window, .keys = *keys};
        }
    }
    return std::nullopt;
}

std::string to_string(const admission_choice& choice) {
    using kind = admission_choice::kind;
    switch (choice.what) {
    case kind::always: return "always";
    case kind::nth_hit:
        return choice.hits == 2 ? "second-hit" : "nth-hit:" + std::to_string(choice.hits);
    case kind::tinylfu: return "tinylfu";
    case kind::automatic: return "auto";
    case kind::exact_second: return "exact-second";
    case kind::exact_window: break;
    }
    if (choice.of_objects == 0) {
        return "window:" + std::to_string(choice.keys);
    }
    char percent[32];
    const auto end = std::to_chars(percent, percent + sizeof percent, choice.of_objects * 100).ptr;
    return "window:" + std::string(percent, end) + "%";
}

filter::admission_settings filter_within(std::uint64_t objects, double bytes_a_key_at_most) {
    filter::admission_settings settings;
    settings.objects = std::max<std::uint64_t>(1, objects);
    const auto most = bytes_a_key_at_most * static_cast<double>(settings.objects);
    // From the least rate upwards, in steps that change a few blocks each.
    settings.false_positive_rate = 1e-5;
    while (settings.false_positive_rate < 0.5 &&
           static_cast<double>(filter::admission_blocks(settings)) * 64 > most) {
        settings.false_positive_rate *= 1.02;
    }
    return settings;
}

std::unique_ptr<admission_rule> make_rule(const admission_choice& choice,
                                          std::uint64_t objects,
                                          const remembering& filter) {
    using kind = admission_choice::kind;
    switch (choice.what) {
    case kind::always: return std::make_unique<always>();
    case kind::exact_second: return std::make_unique<exact_second>();
    case kind::exact_window:
        return std::make_unique<exact_window>(
            choice.of_objects == 0
                ? choice.keys
                : static_cast<std::uint64_t>(choice.of_objects * static_cast<double>(objects)));
    case kind::nth_hit:
    case kind::tinylfu:
    case kind::automatic: break;  // which make_automatic is for
    }
    return std::make_unique<gate_rule>(choice, filter);
}

std::unique_ptr<admission_rule> make_automatic(const config::options& options, std::uint64_t unit) {
    return std::make_unique<gate_rule>(options, unit);
}

}  // namespace reprise::replay
