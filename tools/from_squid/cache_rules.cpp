// cache and no_cache: what is stored, and what is not.
// Squid's first matching line decides, and where none does, the opposite of the last. Ours are rules by URL and a
// policy for the rest; so "cache allow good" becomes a rule for these and the policy "never". A line with
// any other condition can't be said: what it would have stored is not stored, and what it would have kept from
// being stored is, and is told.

#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/url_patterns.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::from_squid {

namespace {

constexpr const char* rules_of_admission = "admission.rules";

// What a line is for.
struct storing_conditions {
    std::vector<std::string> unsaid;  // lists that are not of URLs
    std::vector<url_patterns> urls;
    std::vector<url_patterns> not_urls;
    bool all = true;     // no condition is left of it
    bool never = false;  // nothing fulfils it
};

// Whether a list, or its opposite, is for nothing that could be stored here: methods other than these two,
// the cache manager, and this machine, which nobody reaches.
bool is_of_nothing_stored(const acl& one, bool negated) {
    if (one.type == "method") {
        const auto has = [&](std::string_view name) {
            return std::find(one.values.begin(), one.values.end(), name) != one.values.end();
        };
        return negated ? has("GET") : !has("GET") && !has("HEAD");
    }
    return !negated &&
           (one.type == "to_self" || one.type == "manager" || is_of_unspoken_protocols(one));
}

class storing_rules {
public:
    explicit storing_rules(draft& into) : into_{into} {}

    void take(const statement& line) {
        const auto& action = word_at(line, 1);
        if (action != "allow" && action != "deny") {
            tell(fate::left_out, line, "neither allow nor deny");
        } else if (line.words.size() < 3) {
            tell(fate::left_out, line, "without a condition Squid takes no notice of it");
        } else if (over_) {
            tell(fate::left_out, line, "is never reached: a line before it decides for all");
        } else {
            last_denies_ = action == "deny";
            const auto of = read(line);
            if (of.never) {
                tell(fate::left_out, line, "is for nothing that is stored here");
            } else if (of.all) {
                over_ = true;
                stores_rest_ = !last_denies_;
            } else if (last_denies_) {
                deny(line, of);
            } else {
                allow(line, of);
            }
        }
    }

    void finish() {
        if (!over_) {
            stores_rest_ = last_denies_;  // without any line all is stored
        }
        if (rest_ && stores_rest_ != others_stored_) {
            write(*rest_line_, *rest_, stores_rest_);
        }
        const bool by_policy = rest_ ? others_stored_ : stores_rest_;
        auto& admission = into_.settings["admission"];
        admission["policy"] = by_policy ? "second-hit" : "never";
        const bool any = by_policy || stores_some_;
        if (any) {
            // Squid stores what is asked for once.
            admission["probation"] = "100%";
            say_when_stored(by_policy);
        }
        if (!written_.empty()) {
            admission["rules"] = written_;
        }
        for (auto& each : told_) {
            const bool moot = each.what == fate::laxer && !any;
            into_.say(moot ? fate::left_out : each.what,
                      *each.line,
                      std::move(each.why),
                      rules_of_admission);
        }
    }

private:
    struct remark {
        fate what;
        const statement* line;
        std::string why;
    };

    // Said at the end: where nothing is stored, nothing is that was not.
    void tell(fate what, const statement& line, std::string why) {
        told_.push_back({what, &line, std::move(why)});
    }

    void say_when_stored(bool by_policy) {
        into_.told.push_back(
            {fate::changed,
             {},
             "",
             by_policy
                 ? "memory takes what is asked for once, as Squid's does; the disk takes it at "
                   "its second request. \"policy\": \"always\" writes all of it to disk"
                 : "nothing is stored but by the rules; of that memory takes what is asked for "
                   "once, as Squid's does, and the disk takes it at its second request",
             "admission.policy"});
    }

    storing_conditions read(const statement& line) const {
        storing_conditions out;
        for (std::size_t i = 2; i < line.words.size(); ++i) {
            auto name = line.words[i].text;
            const bool negated = name.starts_with('!');
            name.erase(0, negated ? 1 : 0);
            if (lower_case(name) == "all") {
                out.never = out.never || negated;
                continue;
            }
            out.all = false;
            const auto* list = into_.acls.find(name);
            auto urls = list != nullptr ? patterns_of(*list) : std::nullopt;
            if (list != nullptr && is_of_nothing_stored(*list, negated)) {
                out.never = true;
            } else if (urls) {
                (negated ? out.not_urls : out.urls).push_back(std::move(*urls));
            } else if (list != nullptr && !list->unread.empty()) {
                out.unsaid.push_back(name + ": " + list->unread);
            } else {
                out.unsaid.push_back(name);
            }
        }
        return out;
    }

    void deny(const statement& line, const storing_conditions& of) {
        if (!of.urls.empty()) {
            // That it was for some of them alone is lost, and less is stored.
            const bool exact = of.unsaid.empty() && of.not_urls.empty() && of.urls.size() == 1 &&
                               !(rest_ && others_stored_);
            write(line, of.urls.front(), false, exact);
        } else if (of.unsaid.empty()) {
            leave_undecided(line, of, false);
        } else {
            tell(fate::laxer,
                 line,
                 "only URLs can be kept from being stored, not by this condition (" +
                     of.unsaid.front() + "): what it was for is stored");
        }
    }

    void allow(const statement& line, const storing_conditions& of) {
        const bool one_list = of.unsaid.empty() && of.urls.size() + of.not_urls.size() == 1;
        // Within some URLs alone, more than was meant would be stored.
        if (one_list && !of.urls.empty() && !(rest_ && !others_stored_)) {
            write(line, of.urls.front(), true);
        } else if (of.unsaid.empty() && of.urls.empty() && !rest_) {
            leave_undecided(line, of, true);
        } else {
            tell(fate::left_out,
                 line,
                 "only the URLs of one list can be stored by a line, not what this one says" +
                     (of.unsaid.empty() ? "" : " (" + of.unsaid.front() + ')') +
                     ": nothing is stored for it");
        }
    }

    // "deny !a !b", or "allow !a !b": all but the URLs of both is decided, and the lines that follow are for
    // these.
    void leave_undecided(const statement& line, const storing_conditions& of, bool stores_others) {
        if (rest_) {
            tell(fate::approximated,
                 line,
                 "what several such lines leave over can't be said: none of it is stored");
            over_ = true;
            stores_rest_ = false;
            return;
        }
        rest_line_ = &line;
        others_stored_ = stores_others;
        rest_.emplace();
        for (const auto& each : of.not_urls) {
            rest_->all.insert(rest_->all.end(), each.all.begin(), each.all.end());
            rest_->except.insert(rest_->except.end(), each.except.begin(), each.except.end());
            rest_->wider = rest_->wider || each.wider;
            rest_->by_case = rest_->by_case || each.by_case;
        }
    }

    // Rules by which these URLs are stored, or never are.
    void write(const statement& line, const url_patterns& urls, bool stores, bool exact = true) {
        const char* const policy = stores ? "second-hit" : "never";
        std::string no_url, unsaid;
        bool wrote = false, full = false, covered = false;
        const auto add = [&](std::string pattern, const char* does) {
            switch (list_.take(pattern)) {
            case pattern_list::fit::no_url: no_url = pattern; return;
            case pattern_list::fit::unsaid: unsaid = pattern; return;
            case pattern_list::fit::full: full = true; return;
            case pattern_list::fit::covered: covered = true; return;
            case pattern_list::fit::good: break;
            }
            written_.push_back({{"url", pattern}, {"policy", does}});
            wrote = true;
        };
        if (stores) {
            for (const auto& each : urls.except) {
                add(each, "never");
            }
        }
        for (const auto& each : urls.all) {
            add(each, policy);
        }
        stores_some_ = stores_some_ || (stores && wrote);
        // What is lost of a line by which something is stored, is not stored.
        const auto lost = stores ? fate::left_out : fate::laxer;
        if (!no_url.empty()) {
            tell(fate::left_out, line, "no URL is like " + no_url);
        }
        if (!unsaid.empty()) {
            tell(lost, line, "there is no rule for URLs like " + unsaid);
        }
        if (full) {
            tell(lost, line, "there are as many rules as there may be");
        }
        if (covered && !wrote) {
            tell(fate::left_out, line, "is never reached: rules before it match all that it does");
        }
        if (wrote) {
            const bool more_stored = stores ? urls.wider : urls.by_case;
            const bool same = exact && !urls.wider && !urls.by_case &&
                              !(stores && !urls.except.empty());
            tell(more_stored ? fate::laxer
                 : same      ? fate::changed
                             : fate::approximated,
                 line,
                 described(urls, stores, exact));
        }
    }

    static std::string described(const url_patterns& urls, bool stores, bool exact) {
        std::string out = stores ? "is rules of admission: what it is for is stored"
                                 : "is a rule of admission: what it is for is never stored";
        if (!exact) {
            out += ", whatever else the line wants";
        }
        if (urls.wider) {
            out += "; * takes the place of what varies, and matches more";
        }
        if (urls.by_case) {
            out += "; letters of a path are as they are written, or all in lower case";
        }
        if (stores && !urls.except.empty()) {
            out += "; not where such a host stands in the path of a URL as well";
        }
        return out;
    }

    draft& into_;
    pattern_list list_;
    ordered_json written_ = ordered_json::array();
    std::vector<remark> told_;
    // All URLs, or those of a list alone, which a line has left over.
    std::optional<url_patterns> rest_;
    const statement* rest_line_ = nullptr;
    bool others_stored_ = true;  // those that it was for
    bool last_denies_ = true;    // none at all: what is stored is all
    bool over_ = false;
    bool stores_rest_ = true;
    bool stores_some_ = false;  // a rule does
};

}  // namespace

void convert_cache_rules(draft& into, const statements& rules) {
    storing_rules read{into};
    for (const auto* each : rules) {
        read.take(*each);
    }
    read.finish();
}

}  // namespace reprise::from_squid
