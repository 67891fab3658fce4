#include "filter/plugins/trafficserver/rule_words.hpp"

#include "filter/plugins/trafficserver/words.hpp"

#include <stdexcept>

// Words may come in any order: what depends on several (policy and hits) is gathered and judged at
// the end. Those of the filter itself are read by the C library.

namespace reprise::trafficserver {

namespace {

std::chrono::seconds duration_in(std::string_view word, std::string_view value) {
    constexpr std::string_view right =
        "must be 1s to 24h: a number and s, m, h or d, as in save=5m";
    const auto unit = value.empty() ? ' ' : value.back();
    const std::int64_t scale = unit == 's'   ? 1
                               : unit == 'm' ? 60
                               : unit == 'h' ? 3600
                               : unit == 'd' ? 86400
                                             : 0;
    std::int64_t number = 0;
    if (scale == 0 || !read_number(value.substr(0, value.size() - 1), number) || number < 1 ||
        number > 86400 / scale) {
        refuse_word(word, right);
    }
    return std::chrono::seconds{number * scale};
}

void take_filter_word(rule_options& rule, std::string_view word) {
    const std::string text{word};
    reprise_error error = REPRISE_ERROR_INIT;
    if (text.find_first_of(" ,\t") != std::string::npos) {
        refuse_word(word, "one option a word");
    }
    if (reprise_admission_parse(&rule.filter, text.c_str(), &error) != REPRISE_OK) {
        throw std::invalid_argument{error.text};
    }
}

struct policy_words {
    bool is_given = false;
    bool is_second = false;
    bool is_nth = false;
    bool has_hits = false;
};

void take_policy(rule_options& rule,
                 policy_words& said,
                 std::string_view word,
                 std::string_view value) {
    said.is_given = true;
    said.is_second = value == "second-hit";
    said.is_nth = value == "nth-hit";
    if (value == "always") {
        rule.when = policy::always;
    } else if (value == "never") {
        rule.when = policy::never;
    } else if (said.is_second || said.is_nth) {
        rule.when = policy::hits;
    } else if (value == "tinylfu" || value == "auto") {
        refuse_word(word,
                    "needs to be told what leaves the cache, and Traffic Server does not tell; "
                    "second-hit, nth-hit, "
                    "always or never");
    } else {
        refuse_word(word, "must be second-hit, nth-hit (with hits=N), always or never");
    }
}

void check_policy(const rule_options& rule, const policy_words& said) {
    if (said.is_second && said.has_hits && rule.filter.hits != 2) {
        refuse_word("hits=" + std::to_string(rule.filter.hits),
                    "policy=second-hit is hits=2; policy=nth-hit takes others");
    }
    if (said.is_nth && !said.has_hits) {
        refuse_word("policy=nth-hit", "needs hits=N beside it, 2 to 16");
    }
    if (said.is_given && rule.when != policy::hits && said.has_hits) {
        refuse_word("hits=" + std::to_string(rule.filter.hits), "goes with policy=nth-hit alone");
    }
}

}  // namespace

reprise_admission_options rule_options::opened() const noexcept {
    auto options = filter;
    options.state = state.empty() ? nullptr : state.c_str();
    return options;
}

rule_options parse_rule(std::span<const char* const> words, std::string_view runtime) {
    rule_options rule;
    policy_words said;
    for (const std::string_view word : words) {
        const auto equals = word.find('=');
        const auto key = word.substr(0, equals);
        const auto value = equals == std::string_view::npos ? std::string_view{}
                                                            : word.substr(equals + 1);
        if (equals == std::string_view::npos) {
            refuse_word(word, "must be option=value, as in objects=10M");
        }
        // These are the rule's alone.
        if (key == "match") {
            if (value.empty() || value == "!") {
                refuse_word(
                    word,
                    "must be a URL in which * stands for any run of characters; !URL for all "
                    "but these");
            }
            rule.matches.emplace_back(value);
            continue;
        }
        if (key == "policy") {
            take_policy(rule, said, word, value);
            continue;
        }
        if (key == "refresh") {
            if (!read_number(value, rule.refresh) || rule.refresh > 1'000'000) {
                refuse_word(
                    word, "must be 0 to 1000000: one hit in so many tells the filter, with 0 none");
            }
            continue;
        }
        if (key == "internal") {
            if (value != "on" && value != "off") {
                refuse_word(word, "must be on or off");
            }
            rule.internal = value == "on";
            continue;
        }
        if (key == "name") {
            if (!is_name(value)) {
                refuse_word(word, "must be 1 to 40 of letters, digits, _ and -");
            }
            rule.name = value;
            continue;
        }
        // What follows is shared by rules of one name.
        rule.says_more_than_a_name = true;
        if (key == "state") {
            if (value.empty()) {
                refuse_word(word, "must be a path, absolute or below the runtime folder");
            }
            rule.state = value.front() == '/' ? std::string{value}
                                              : std::string{runtime} + "/" + std::string{value};
        } else if (key == "save") {
            rule.save = duration_in(word, value);
        } else if (key == "objects" || key == "age" || key == "rate" || key == "hits") {
            said.has_hits |= key == "hits";
            take_filter_word(rule, word);
        } else {
            refuse_word(word,
                        "no such option; there are policy, hits, objects, age, rate, state, save, "
                        "match, name, refresh "
                        "and internal");
        }
    }
    check_policy(rule, said);
    return rule;
}

bool same_filter(const rule_options& a, const rule_options& b) noexcept {
    return a.filter.objects == b.filter.objects && a.filter.age == b.filter.age &&
           a.filter.rate == b.filter.rate && a.filter.hits == b.filter.hits && a.state == b.state &&
           a.save == b.save;
}

bool matches_whole(std::string_view pattern, std::string_view text) noexcept {
    constexpr auto none = std::string_view::npos;
    std::size_t at = 0, in = 0;
    std::size_t star = none, from = 0;  // the last star, and what it stands for ends before `from`
    while (at < text.size()) {
        if (in < pattern.size() && pattern[in] == '*') {
            star = in++;
            from = at;
        } else if (in < pattern.size() && pattern[in] == text[at]) {
            ++in;
            ++at;
        } else if (star != none) {
            in = star + 1;
            at = ++from;
        } else {
            return false;
        }
    }
    while (in < pattern.size() && pattern[in] == '*') {
        ++in;
    }
    return in == pattern.size();
}

bool is_for(const rule_options& rule, std::string_view url) noexcept {
    bool any = false, wanted = false;
    for (const std::string_view pattern : rule.matches) {
        if (pattern.front() == '!') {
            if (matches_whole(pattern.substr(1), url)) {
                return false;
            }
        } else {
            any = true;
            wanted = wanted || matches_whole(pattern, url);
        }
    }
    return !any || wanted;
}

}  // namespace reprise::trafficserver
