// refresh_pattern and cache: rules by URL.

#include "config/url.hpp"
#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/regex_globs.hpp"

#include <algorithm>
#include <charconv>

namespace reprise::from_squid {

namespace {

constexpr std::size_t most_rules = 1'000;
constexpr std::uint64_t most_minutes = 366 * 24 * 60;

std::optional<std::uint64_t> whole(std::string_view text) {
    std::uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

bool speaks_of_other_protocol(std::string_view regex) {
    return regex.starts_with("^ftp:") || regex.starts_with("^gopher:") ||
           regex.starts_with("^wais:") || regex.starts_with("^urn:");
}

// What an expression matches, as patterns.
struct url_patterns {
    std::vector<std::string> all;
    bool wider = false;    // they match more
    bool by_case = false;  // they match less: of a path no letters but as written, or in lower case
};

// Whether a letter of it can be one of a path's.
bool has_letter_of_path(std::string_view pattern) {
    const auto scheme = pattern.find("://");
    const auto first = scheme == std::string_view::npos
                           ? std::size_t{0}
                           : std::min(pattern.find_first_of("/?*", scheme + 3), pattern.size());
    pattern.remove_prefix(first);
    return std::any_of(pattern.begin(), pattern.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
}

// Patterns match in the case that is written, and in URLs schemes and hosts are in lower case. So where
// case does not matter (-i), one with capitals has a second one beside it, without any: hosts are found
// by that, and most paths.
std::optional<url_patterns> patterns_of(std::string_view regex, bool no_case) {
    auto globs = globs_of(regex);
    if (!globs) {
        return std::nullopt;
    }
    url_patterns out{std::move(globs->patterns), globs->wider, false};
    if (!no_case) {
        return out;
    }
    for (std::size_t i = 0, written = out.all.size(); i < written; ++i) {
        auto lower = lower_case(out.all[i]);
        if (std::find(out.all.begin(), out.all.end(), lower) == out.all.end()) {
            out.all.push_back(std::move(lower));
        }
    }
    out.by_case = std::any_of(out.all.begin(), out.all.end(), has_letter_of_path);
    return out;
}

// The patterns of a list of rules so far, so that none is added that can never be reached.
class pattern_list {
public:
    enum class fit { good, covered, refused, full };

    /// `pattern` becomes as the settings would have it.
    fit take(std::string& pattern) {
        const auto parsed = config::parse_url_pattern(pattern);
        const auto* good = std::get_if<0>(&parsed);
        if (good == nullptr) {
            return fit::refused;
        }
        pattern = *good;
        const bool covered = std::any_of(taken_.begin(), taken_.end(), [&](const auto& before) {
            return config::matches_pattern(before, pattern);
        });
        if (covered) {
            return fit::covered;
        }
        if (taken_.size() >= most_rules) {
            return fit::full;
        }
        taken_.push_back(pattern);
        return fit::good;
    }

private:
    std::vector<std::string> taken_;
};

// What the options of one refresh_pattern come to.
struct options {
    std::vector<std::string> overrides;
    bool ignore_reload = false;
};

options read_options(draft& into, const statement& from, std::size_t first, bool raises) {
    options out;
    for (std::size_t i = first; i < from.words.size(); ++i) {
        const auto& option = from.words[i].text;
        if (option == "override-expire") {
            if (raises) {
                out.overrides.insert(out.overrides.end(), {"expires", "max-age", "s-maxage"});
            } else {
                into.say(fate::changed,
                         from,
                         "override-expire says nothing without a minimum",
                         "freshness.rules");
            }
        } else if (option == "override-lastmod" || option == "reload-into-ims") {
            // at_least holds beside Last-Modified in any case, and what is stored is validated.
        } else if (option == "ignore-reload") {
            out.ignore_reload = true;
        } else if (option == "ignore-no-store") {
            out.overrides.emplace_back("no-store");
        } else if (option == "ignore-private") {
            out.overrides.emplace_back("private");
        } else if (option == "ignore-must-revalidate") {
            out.overrides.emplace_back("must-revalidate");
        } else if (option == "ignore-auth") {
            into.say(
                fate::left_out,
                from,
                "ignore-auth: what a request with Authorization brought is never shared but as "
                "its origin says",
                "freshness.rules");
        } else {
            into.say(fate::left_out, from, option + " has no counterpart", "freshness.rules");
        }
    }
    return out;
}

class refresh_rules {
public:
    explicit refresh_rules(draft& into) : into_{into} {}

    void take(const statement& from) {
        std::size_t at = 1;
        const bool no_case = word_at(from, at) == "-i";
        at += no_case || word_at(from, at) == "+i" ? 1 : 0;
        const auto& regex = word_at(from, at);
        auto percent = word_at(from, at + 2);
        percent.erase(percent.size() - (percent.ends_with('%') ? 1 : 0));
        const auto min = whole(word_at(from, at + 1));
        const auto part = whole(percent);
        const auto max = whole(word_at(from, at + 3));
        if (regex.empty() || !min || !part || !max) {
            into_.say(fate::left_out, from, "not a refresh_pattern: regex min percent max", where);
            return;
        }
        if (speaks_of_other_protocol(regex)) {
            into_.say(fate::left_out, from, "that protocol is not spoken here", where);
            return;
        }
        if (over_) {
            into_.say(
                fate::left_out, from, "is never reached: a pattern before it matches all", where);
            return;
        }
        const auto chosen = read_options(into_, from, at + 4, *min > 0);
        const auto patterns = patterns_of(regex, no_case);
        if (!patterns || patterns->all.empty()) {
            into_.say(fate::left_out, from, "the expression can't be said with *", where);
            return;
        }
        add(from, *patterns, {*min, *part, *max}, chosen);
    }

    void finish() {
        auto& freshness = into_.settings["freshness"];
        if (!general_.is_null()) {
            freshness = general_;
        }
        if (!rules_.empty()) {
            freshness["rules"] = rules_;
        }
        if (freshness.is_null()) {
            into_.settings.erase("freshness");
        }
    }

private:
    struct figures {
        std::uint64_t min, part, max;
    };

    static void put_heuristic(ordered_json& into, const figures& of) {
        into["heuristic_fraction"] = static_cast<double>(std::min<std::uint64_t>(of.part, 100)) /
                                     100;
        into["heuristic_most"] = minutes_text(std::min(of.max, most_minutes));
    }

    void add(const statement& from,
             const url_patterns& patterns,
             const figures& of,
             const options& chosen) {
        if (of.part > 100) {
            into_.say(fate::approximated, from, "100% is the most", where);
        }
        if (of.min > 0 && !has_word(from, "override-lastmod")) {
            into_.say(fate::approximated,
                      from,
                      "the minimum holds for what has a Last-Modified too, and for no error",
                      where);
        }
        const bool everything = patterns.all.size() == 1 && patterns.all.front() == "*";
        if (everything && of.min == 0 && chosen.overrides.empty() && !chosen.ignore_reload) {
            general_ = ordered_json::object();
            put_heuristic(general_, of);
            over_ = true;
            return;
        }
        std::string refused;
        bool wrote = false, full = false;
        for (auto pattern : patterns.all) {
            switch (list_.take(pattern)) {
            case pattern_list::fit::refused: refused = pattern; continue;
            case pattern_list::fit::full: full = true; continue;
            case pattern_list::fit::covered: continue;
            case pattern_list::fit::good: break;
            }
            ordered_json rule{{"url", pattern}};
            if (of.min > 0) {
                rule["at_least"] = minutes_text(std::min(of.min, most_minutes));
            }
            put_heuristic(rule, of);
            if (!chosen.overrides.empty()) {
                rule["override"] = chosen.overrides;
            }
            if (chosen.ignore_reload) {
                rule["reload"] = "ignore";
            }
            rules_.push_back(std::move(rule));
            wrote = true;
        }
        over_ = everything;
        if (!refused.empty()) {
            into_.say(fate::left_out, from, "no URL is like " + refused, where);
        }
        if (full) {
            into_.say(fate::left_out, from, "there are as many rules as there may be", where);
        }
        if (wrote && patterns.wider) {
            into_.say(fate::approximated,
                      from,
                      "* takes the place of what varies, and matches more",
                      where);
        }
        if (wrote && patterns.by_case) {
            into_.say(fate::approximated,
                      from,
                      "letters of a path match as they are written, or all in lower case",
                      where);
        }
        if (!chosen.overrides.empty()) {
            into_.say(
                fate::approximated,
                from,
                "not for requests with Authorization or Cookie, nor what comes with Set-Cookie",
                where);
        }
    }

    static constexpr const char* where = "freshness.rules";
    draft& into_;
    pattern_list list_;
    ordered_json general_;
    ordered_json rules_ = ordered_json::array();
    bool over_ = false;
};

// The URL patterns of an acl that says which URLs are meant; none: it says something else.
std::optional<url_patterns> patterns_of(const acl& from) {
    url_patterns out;
    const auto add = [&out](std::string pattern) { out.all.push_back(std::move(pattern)); };
    for (const auto& each : from.values) {
        if (from.type == "dstdomain") {
            const bool below = each.starts_with('.');
            const auto host = each.substr(below ? 1 : 0);
            add("http*://" + host + "/*");
            add("http*://" + host + ":*");
            if (below) {
                add("http*://*." + host + "/*");
                add("http*://*." + host + ":*");
            }
        } else if (from.type == "url_regex" || from.type == "urlpath_regex") {
            const auto found = patterns_of(each, from.no_case);
            if (!found) {
                return std::nullopt;
            }
            out.wider = out.wider || found->wider;
            out.by_case = out.by_case || found->by_case;
            for (const auto& pattern : found->all) {
                // A path's expression begins at its slash.
                const bool of_path = from.type == "urlpath_regex" && !pattern.starts_with('*');
                add(of_path ? "*://*" + pattern : pattern);
            }
        } else {
            return std::nullopt;
        }
    }
    return out;
}

}  // namespace

void convert_refresh(draft& into, const statements& patterns) {
    refresh_rules rules{into};
    for (const auto* each : patterns) {
        rules.take(*each);
    }
    rules.finish();
}

void convert_cache_rules(draft& into, const statements& rules) {
    constexpr const char* where = "admission.rules";
    pattern_list list;
    ordered_json written = ordered_json::array();
    for (const auto* rule : rules) {
        const bool denies = word_at(*rule, 1) == "deny";
        const auto& name = word_at(*rule, 2);
        if (!denies && name == "all") {
            break;
        }
        if (denies && name == "all" && rule->words.size() == 3) {
            into.settings["admission"]["policy"] = "never";
            into.settings["admission"].erase("probation");
            break;
        }
        const auto* list_of_urls = into.acls.find(name);
        if (list_of_urls != nullptr && !list_of_urls->unread.empty()) {
            into.say(fate::left_out, *rule, name + ": " + list_of_urls->unread, where);
            continue;
        }
        const auto patterns = denies && rule->words.size() == 3 && list_of_urls != nullptr
                                  ? patterns_of(*list_of_urls)
                                  : std::nullopt;
        if (!patterns) {
            into.say(fate::left_out,
                     *rule,
                     "only URLs can be kept from being stored, not by this condition",
                     where);
            continue;
        }
        std::string refused;
        bool wrote = false, full = false;
        for (auto pattern : patterns->all) {
            switch (list.take(pattern)) {
            case pattern_list::fit::refused: refused = pattern; continue;
            case pattern_list::fit::full: full = true; continue;
            case pattern_list::fit::covered: continue;
            case pattern_list::fit::good: break;
            }
            written.push_back({{"url", pattern}, {"policy", "never"}});
            wrote = true;
        }
        if (!refused.empty()) {
            into.say(fate::left_out, *rule, "no URL is like " + refused, where);
        }
        if (full) {
            into.say(fate::left_out, *rule, "there are as many rules as there may be", where);
        }
        if (wrote) {
            const bool exact = !patterns->wider && !patterns->by_case;
            into.say(exact ? fate::changed : fate::approximated,
                     *rule,
                     std::string{"is a rule of admission: what it is for is never stored"} +
                         (patterns->by_case
                              ? ", where letters of a path are as they are written, or "
                                "all in lower case"
                              : ""),
                     where);
        }
    }
    if (!written.empty()) {
        into.settings["admission"]["rules"] = written;
    }
}

}  // namespace reprise::from_squid
