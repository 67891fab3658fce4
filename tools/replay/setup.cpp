#include "tools/replay/setup.hpp"

#include "config/quantity.hpp"
#include "proxy/cache/plan.hpp"
#include "tools/replay/arc.hpp"
#include "tools/replay/lhd.hpp"
#include "tools/replay/made_of.hpp"
#include "tools/replay/number.hpp"
#include "tools/replay/one_tier.hpp"
#include "tools/replay/two_tiers.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

namespace reprise::replay {

namespace {

constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 63) - 1;

// What a number may be followed by: the units of settings, the binary ones by their first letter
// too, and nothing for bytes.
std::optional<double> bytes_of_unit(std::string_view unit) {
    if (unit.empty()) {
        return 1;
    }
    std::string one = "1" + std::string{unit};
    if (unit.size() == 1 && unit != "B") {
        one += "iB";
    }
    const auto parsed = config::parse_size(one);
    if (const auto* bytes = config::value_of(parsed)) {
        return static_cast<double>(*bytes);
    }
    return std::nullopt;
}

std::string_view name_of(yardstick one) noexcept {
    return one == yardstick::arc ? "arc" : "lhd";
}

std::string short_number(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::optional<policy_choice> policy_choice_of(std::string_view text) {
    using proxy::cache::eviction_kind;
    for (const auto one : {yardstick::arc, yardstick::lhd}) {
        if (text == name_of(one)) {
            return policy_choice{.kind = std::nullopt, .beside = one};
        }
    }
    if (text.starts_with("gdsf:")) {
        const auto exponent = number_in<double>(text.substr(5));
        if (!exponent || *exponent < 0 || *exponent > 1) {
            return std::nullopt;
        }
        return policy_choice{.kind = eviction_kind::gdsf, .exponent = *exponent};
    }
    if (const auto kind = ::reprise::config::eviction_kind_of(text)) {
        return policy_choice{.kind = kind};
    }
    return std::nullopt;
}

std::string to_string(const policy_choice& choice) {
    if (!choice.kind) {
        return std::string{name_of(choice.beside)};
    }
    std::string out{::reprise::config::to_string(*choice.kind)};
    if (choice.exponent) {
        out.append(":").append(short_number(*choice.exponent));
    }
    return out;
}

std::string_view to_string(objective wanted) noexcept {
    switch (wanted) {
    case objective::requests: return "requests";
    case objective::bytes: return "bytes";
    case objective::seconds: return "seconds";
    }
    return "?";
}

config::caching_objective setting_of(objective wanted) noexcept {
    switch (wanted) {
    case objective::requests: return config::caching_objective::requests;
    case objective::bytes: return config::caching_objective::bytes;
    case objective::seconds: return config::caching_objective::seconds;
    }
    return {};
}

double exponent_of(objective wanted) noexcept {
    return proxy::cache::exponent_of(setting_of(wanted));
}

bool goes_by_wait(objective wanted) noexcept {
    return proxy::cache::goes_by_wait(setting_of(wanted));
}

std::unique_ptr<proxy::cache::eviction_policy> make_policy(
    const setup& wanted,
    std::uint64_t capacity_bytes,
    const proxy::cache::frequency_sketch* frequencies) {
    if (!wanted.policy.kind) {
        switch (wanted.policy.beside) {
        case yardstick::arc: return std::make_unique<arc_policy>(capacity_bytes);
        case yardstick::lhd: return std::make_unique<lhd_policy>(capacity_bytes);
        }
    }
    const auto usual = proxy::cache::first_exponent(options_of(wanted, capacity_bytes));
    return proxy::cache::make_policy(*wanted.policy.kind,
                                     capacity_bytes,
                                     {.exponent = wanted.policy.exponent.value_or(usual),
                                      .by_wait = goes_by_wait(wanted.wanted),
                                      .frequencies = frequencies});
}

std::uint64_t cache_size::resolved(std::uint64_t unique_bytes) const noexcept {
    return of_unique == 0
               ? bytes
               : static_cast<std::uint64_t>(of_unique * static_cast<double>(unique_bytes));
}

std::optional<double> share_of(std::string_view text) {
    if (!text.ends_with('%')) {
        return std::nullopt;
    }
    const auto percent = number_in<double>(text.substr(0, text.size() - 1));
    if (!percent || !(*percent >= 0) || *percent > 100) {
        return std::nullopt;
    }
    return *percent / 100;
}

std::optional<cache_size> cache_size_of(std::string_view text) {
    if (text.ends_with('%')) {
        const auto percent = number_in<double>(text.substr(0, text.size() - 1));
        if (!percent || !(*percent > 0) || *percent > 1000) {
            return std::nullopt;
        }
        return cache_size{.of_unique = *percent / 100};
    }
    const auto parsed = config::parse_size(text);
    if (const auto* bytes = config::value_of(parsed)) {
        return *bytes >= 1 && *bytes <= most_bytes ? std::optional{cache_size{.bytes = *bytes}}
                                                   : std::nullopt;
    }
    // What settings do not take: fractions, and no unit.
    const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
    auto unit = text.substr(digits);
    if (unit.starts_with(' ') && unit.size() > 1) {
        unit.remove_prefix(1);
    }
    const auto factor = unit.starts_with(' ') ? std::nullopt : bytes_of_unit(unit);
    const auto number = number_in<double>(text.substr(0, digits));
    if (!number || !factor || !(*number * *factor >= 1) ||
        *number * *factor >= static_cast<double>(most_bytes)) {
        return std::nullopt;
    }
    return cache_size{.bytes = static_cast<std::uint64_t>(*number * *factor)};
}

std::string bytes_text(double bytes) {
    constexpr std::array names{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t scale = 0;
    while (bytes >= 1024 && scale + 1 < names.size()) {
        bytes /= 1024;
        ++scale;
    }
    char text[48];
    std::snprintf(text, sizeof text, bytes < 10 && scale != 0 ? "%.2f" : "%.0f", bytes);
    return std::string{text} + names[scale];
}

std::string to_string(const cache_size& size) {
    return size.of_unique == 0 ? bytes_text(static_cast<double>(size.bytes))
                               : short_number(size.of_unique * 100) + "%";
}

std::uint64_t keys_remembered(const setup& wanted, const trace_scale& scale) {
    if (!wanted.disk) {
        return scale.objects;
    }
    const auto options = options_of(wanted, wanted.size.resolved(scale.unique_bytes) * scale.unit);
    constexpr double generations = 2;
    const auto most = static_cast<double>(proxy::cache::remembering_bytes(options)) /
                      (generations * filter_bytes_a_key);
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(most), 1, scale.objects);
}

std::unique_ptr<model> make_model(const setup& wanted, const trace_scale& scale) {
    auto made = parts_of(wanted, scale);
    auto admission = wanted.admission.what == admission_choice::kind::automatic
                         ? make_automatic(
                               options_of(wanted,
                                          wanted.size.resolved(scale.unique_bytes) * scale.unit),
                               scale.unit)
                         : make_rule(wanted.admission, scale.objects, made.filter);
    if (wanted.disk) {
        return std::make_unique<two_tiers>(
            wanted, std::move(admission), std::move(made), scale.unit);
    }
    auto capacity = made.memory_bytes / scale.unit;
    if (wanted.scaled && wanted.counts_overhead &&
        wanted.admission.what == admission_choice::kind::nth_hit) {
        const auto settings = filter_within(scale.objects, filter_bytes_a_key);
        const auto bytes = 2 * (wanted.admission.hits - 1) * 64 *
                           filter::admission_blocks(settings);
        capacity -= std::min(capacity, bytes / scale.unit);
    }
    auto policy = make_policy(wanted, capacity, made.requests.get());
    return std::make_unique<one_tier>(
        std::move(policy),
        std::move(admission),
        capacity,
        wanted.probation,
        one_tier_parts{.requests = std::move(made.requests),
                       .requests_grow = made.requests_grow,
                       .largest = made.largest_in_memory / scale.unit});
}

}  // namespace reprise::replay
