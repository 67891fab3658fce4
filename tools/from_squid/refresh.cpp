// refresh_pattern: lifetimes by URL.
// Two of its options have stored and shared what its origin kept from that (ignore-private, ignore-no-store): a
// rule with one of these for more URLs than Squid's, or for such as a line before it kept from it and
// that can't be said, is told of.

#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/url_patterns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::from_squid {

namespace {

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

// What the options of one refresh_pattern come to.
struct options {
    std::vector<std::string> overrides;
    bool ignore_reload = false;
    [[nodiscard]] bool has(std::string_view override) const {
        return std::find(overrides.begin(), overrides.end(), override) != overrides.end();
    }
};

// By which is stored, and shared, what its origin kept from that.
constexpr std::array<std::string_view, 2> storing_overrides{"private", "no-store"};

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
            if (!patterns) {
                note_lost(chosen);
            }
            return;
        }
        add(from, *patterns, {*min, *part, *max}, chosen);
    }

    void finish() {
        auto& freshness = into_.settings["freshness"];
        if (!general_.is_null()) {
            freshness.update(general_);  // beside what other directives have put there
        }
        if (!rules_.empty()) {
            freshness["rules"] = rules_;
        }
        if (freshness.empty()) {
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
        if (of.min > most_minutes || of.max > most_minutes) {
            into_.say(fate::approximated, from, "366 days are the most", where);
        }
        const bool everything = patterns.all.size() == 1 && patterns.all.front() == "*";
        if (everything && of.min == 0 && chosen.overrides.empty() && !chosen.ignore_reload) {
            general_ = ordered_json::object();
            put_heuristic(general_, of);
            over_ = true;
            return;
        }
        std::string no_url, unsaid;
        bool wrote = false, full = false, covered = false;
        for (auto pattern : patterns.all) {
            switch (list_.take(pattern)) {
            case pattern_list::fit::no_url: no_url = pattern; continue;
            case pattern_list::fit::unsaid: unsaid = pattern; continue;
            case pattern_list::fit::full: full = true; continue;
            case pattern_list::fit::covered: covered = true; continue;
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
        if (!no_url.empty()) {
            into_.say(fate::left_out, from, "no URL is like " + no_url, where);
        }
        if (!unsaid.empty()) {
            into_.say(fate::left_out, from, "there is no rule for URLs like " + unsaid, where);
        }
        if (full) {
            into_.say(fate::left_out, from, "there are as many rules as there may be", where);
        }
        if (covered && !wrote) {
            into_.say(fate::left_out,
                      from,
                      "is never reached: patterns before it match all that it does",
                      where);
        }
        if (wrote) {
            say_of_written(from, patterns, chosen);
        }
        if (!unsaid.empty() || full || patterns.by_case) {
            note_lost(chosen);
        }
    }

    void say_of_written(const statement& from,
                        const url_patterns& patterns,
                        const options& chosen) {
        const bool stores = std::any_of(storing_overrides.begin(),
                                        storing_overrides.end(),
                                        [&](std::string_view each) { return chosen.has(each); });
        if (patterns.wider) {
            into_.say(stores ? fate::laxer : fate::approximated,
                      from,
                      std::string{"* takes the place of what varies, and matches more"} +
                          (stores
                               ? ": of that too is stored and shared what its origin kept from it"
                               : ""),
                      where);
        }
        if (patterns.by_case) {
            into_.say(fate::approximated,
                      from,
                      "letters of a path match as they are written, or all in lower case",
                      where);
        }
        if (takes_what_was_kept(chosen)) {
            into_.say(fate::laxer,
                      from,
                      "is for URLs of a pattern before it too, which can't be said, or not all of "
                      "it: what their origin kept from being stored and shared was kept from it",
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

    // URLs of a line that has no rule here, or too few, are those of a later one, with its options.
    void note_lost(const options& chosen) {
        for (std::size_t i = 0; i < storing_overrides.size(); ++i) {
            was_obeyed_[i] = was_obeyed_[i] || !chosen.has(storing_overrides[i]);
        }
    }

    [[nodiscard]] bool takes_what_was_kept(const options& chosen) const {
        for (std::size_t i = 0; i < storing_overrides.size(); ++i) {
            if (was_obeyed_[i] && chosen.has(storing_overrides[i])) {
                return true;
            }
        }
        return false;
    }

    static constexpr const char* where = "freshness.rules";
    draft& into_;
    pattern_list list_;
    ordered_json general_;
    ordered_json rules_ = ordered_json::array();
    bool over_ = false;
    // By lines that are lost here, whole or in part: each of storing_overrides.
    std::array<bool, storing_overrides.size()> was_obeyed_{};
};

}  // namespace

void convert_refresh(draft& into, const statements& patterns) {
    refresh_rules rules{into};
    for (const auto* each : patterns) {
        rules.take(*each);
    }
    rules.finish();
}

}  // namespace reprise::from_squid
