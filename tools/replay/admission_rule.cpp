#include "tools/replay/admission_rule.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace reprise::replay {

namespace {

constexpr double bytes_a_key = 2;  // of the filter, a generation

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

// The proxy's, asked as cache::admission_gate asks it.
class real_filter final : public admission_rule {
public:
    real_filter(const filter::admission_settings& settings, unsigned hits)
        : settings_{settings},
          hits_{hits} {}

    bool admits(const request& wanted) override {
        return at(wanted).note(wanted.key, wanted.time()) + 1 >= hits_;
    }
    void hit(const request& wanted) override { at(wanted).refresh(wanted.key, wanted.time()); }
    std::uint64_t memory() const noexcept override { return filter_bytes(settings_); }

private:
    filter::admission_filter& at(const request& wanted) {
        if (!filter_) {
            filter_.emplace(settings_, wanted.time());  // begins when the trace does
        }
        return *filter_;
    }

    filter::admission_settings settings_;
    unsigned hits_;
    std::optional<filter::admission_filter> filter_;
};

template <class T>
std::optional<T> number(std::string_view text) noexcept {
    T value{};
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || at != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

}  // namespace

std::optional<admission_choice> admission_choice_of(std::string_view text) {
    using kind = admission_choice::kind;
    const auto colon = std::min(text.find(':'), text.size());
    const auto name = text.substr(0, colon);
    const auto rest = text.substr(std::min(colon + 1, text.size()));
    if (name == "always" && rest.empty()) {
        return admission_choice{};
    }
    if (name == "second-hit" && rest.empty()) {
        return admission_choice{.what = kind::nth_hit};
    }
    if (name == "exact-second" && rest.empty()) {
        return admission_choice{.what = kind::exact_second};
    }
    if (name == "nth-hit") {
        const auto hits = number<unsigned>(rest);
        if (hits && *hits >= 2 && *hits <= filter::admission_filter::max_layers + 1) {
            return admission_choice{.what = kind::nth_hit, .hits = *hits};
        }
    }
    if (name == "window") {
        if (rest.ends_with('%')) {
            const auto percent = number<double>(rest.substr(0, rest.size() - 1));
            if (percent && *percent > 0) {
                return admission_choice{.what = kind::exact_window, .of_objects = *percent / 100};
            }
        } else if (const auto keys = number<std::uint64_t>(rest)) {
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

filter::admission_settings filter_within(std::uint64_t objects,
                                         double bytes_a_key_at_most,
                                         unsigned layers) {
    filter::admission_settings settings;
    settings.objects = std::max<std::uint64_t>(1, objects);
    settings.layers = layers;
    const auto most = bytes_a_key_at_most * static_cast<double>(settings.objects);
    // From the least rate upwards, in steps that change a few blocks each.
    settings.false_positive_rate = 1e-5;
    while (settings.false_positive_rate < 0.5 &&
           static_cast<double>(filter::admission_blocks(settings)) * 64 > most) {
        settings.false_positive_rate *= 1.02;
    }
    return settings;
}

std::uint64_t filter_bytes(const filter::admission_settings& settings) noexcept {
    return 2 * settings.layers * filter::admission_blocks(settings) * 64;
}

std::unique_ptr<admission_rule> make_rule(const admission_choice& choice,
                                          std::uint64_t objects,
                                          std::chrono::seconds filter_age) {
    using kind = admission_choice::kind;
    const auto keys = choice.of_objects == 0
                          ? choice.keys
                          : static_cast<std::uint64_t>(choice.of_objects *
                                                       static_cast<double>(objects));
    switch (choice.what) {
    case kind::always: return std::make_unique<always>();
    case kind::exact_second: return std::make_unique<exact_second>();
    case kind::exact_window: return std::make_unique<exact_window>(keys);
    case kind::nth_hit: break;
    }
    auto settings = filter_within(keys != 0 ? keys : objects, bytes_a_key, choice.hits - 1);
    settings.age = filter_age;
    return std::make_unique<real_filter>(settings, choice.hits);
}

}  // namespace reprise::replay
