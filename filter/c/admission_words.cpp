// See admission_words.hpp.

#include "filter/c/admission_words.hpp"

#include "filter/c/face.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::filter::c {

namespace {

constexpr std::uint64_t most_objects = 10'000'000'000;
constexpr std::int64_t longest_age = 1'000'000'000;  // some 31 years
constexpr double least_rate = 1e-9;
constexpr double most_rate = 0.5;
constexpr unsigned least_hits = 2;
constexpr unsigned most_hits = 16;

/// How much a unit is, 0 for one that is none.
using unit = std::uint64_t (*)(char);

std::uint64_t thousands(char letter) {
    switch (letter) {
    case 'k': return 1'000;
    case 'M': return 1'000'000;
    case 'G': return 1'000'000'000;
    default: return 0;
    }
}

std::uint64_t seconds(char letter) {
    switch (letter) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3'600;
    case 'd': return 86'400;
    default: return 0;
    }
}

/// A whole number and at most one letter.
std::optional<std::uint64_t> number_of(std::string_view text, unit unit_of) {
    std::uint64_t number = 0;
    const auto* const end = text.data() + text.size();
    const auto [after, failed] = std::from_chars(text.data(), end, number);
    if (failed != std::errc{} || after + 1 < end) {
        return std::nullopt;
    }
    const auto factor = after == end ? 1 : unit_of(*after);
    if (factor == 0 || number > UINT64_MAX / 2 / factor) {
        return std::nullopt;
    }
    return number * factor;
}

std::optional<double> share_of(std::string_view text) {
    double share = 0;
    const auto* const end = text.data() + text.size();
    const auto [after, failed] = std::from_chars(text.data(), end, share);
    return failed == std::errc{} && after == end ? std::optional{share} : std::nullopt;
}

constexpr int shown = 60;  // bytes of a word that is wrong

int length_shown(std::string_view word) {
    return word.size() < shown ? static_cast<int>(word.size()) : shown;
}

/// What would be right, or null where the word was taken.
const char* take_word(reprise_admission_options& options, std::string_view word) {
    const auto equals = word.find('=');
    const auto name = word.substr(0, equals);
    const auto value = equals == word.npos ? std::string_view{} : word.substr(equals + 1);
    if (name == "objects") {
        const auto number = number_of(value, thousands);
        options.objects = number.value_or(0);
        return number ? nullptr : "a number of keys such as objects=10M";
    }
    if (name == "age") {
        const auto number = number_of(value, seconds);
        options.age = static_cast<std::int64_t>(number.value_or(0));
        return number ? nullptr : "a time such as age=50h";
    }
    if (name == "rate") {
        const auto share = share_of(value);
        options.rate = share.value_or(0);
        return share ? nullptr : "a share such as rate=0.001";
    }
    if (name == "hits") {
        const auto number = number_of(value, thousands);
        options.hits = static_cast<std::uint32_t>(std::min<std::uint64_t>(number.value_or(0), 99));
        return number ? nullptr : "a number of requests such as hits=2";
    }
    return "one of objects=, age=, rate= and hits=";
}

}  // namespace

int parse_words(reprise_admission_options& options, const char* text, reprise_error* error) {
    constexpr std::string_view between{" \t\r\n,"};
    std::string_view rest{text};
    auto read = options;
    while (true) {
        rest.remove_prefix(std::min(rest.find_first_not_of(between), rest.size()));
        if (rest.empty()) {
            break;
        }
        const auto word = rest.substr(0, rest.find_first_of(between));
        rest.remove_prefix(word.size());
        if (const auto* right = take_word(read, word)) {
            return fail(error,
                        REPRISE_BAD_OPTION,
                        0,
                        "'%.*s' is not understood: right would be %s",
                        length_shown(word),
                        word.data(),
                        right);
        }
        if (const auto code = judge(read, error); code != REPRISE_OK) {
            return code;
        }
    }
    options = read;
    return REPRISE_OK;
}

int judge(const reprise_admission_options& options, reprise_error* error) noexcept {
    if (options.objects < 1 || options.objects > most_objects) {
        return fail(error,
                    REPRISE_BAD_OPTION,
                    0,
                    "objects is %llu: it must be 1 to 10,000,000,000",
                    static_cast<unsigned long long>(options.objects));
    }
    if (options.age < 1 || options.age > longest_age) {
        return fail(error,
                    REPRISE_BAD_OPTION,
                    0,
                    "age is %lld seconds: it must be 1 to 1,000,000,000",
                    static_cast<long long>(options.age));
    }
    if (!(options.rate >= least_rate && options.rate <= most_rate)) {  // nor no number at all
        return fail(error,
                    REPRISE_BAD_OPTION,
                    0,
                    "rate is %g: it must be 0.000000001 to 0.5",
                    options.rate);
    }
    if (options.hits < least_hits || options.hits > most_hits) {
        return fail(error,
                    REPRISE_BAD_OPTION,
                    0,
                    "hits is %u: it must be 2 (the second request stores) to 16",
                    options.hits);
    }
    if (options.reserved != 0) {
        return fail(error, REPRISE_BAD_OPTION, 0, "reserved is %u: it must be 0", options.reserved);
    }
    if ((options.memory_take == nullptr) != (options.memory_give == nullptr)) {
        return fail(error,
                    REPRISE_BAD_OPTION,
                    0,
                    "memory_take and memory_give: there must be both or none");
    }
    return REPRISE_OK;
}

}  // namespace reprise::filter::c
