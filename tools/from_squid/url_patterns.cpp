#include "tools/from_squid/url_patterns.hpp"

#include "config/url.hpp"
#include "tools/from_squid/regex_globs.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace reprise::from_squid {

namespace {

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

// Of a host and, where it begins with a dot, of those below it. A * stands for slashes too, so that the
// host may stand in the path of another's URL.
void add_host(url_patterns& into, const std::string& written) {
    const bool below = written.starts_with('.');
    const auto host = written.substr(below ? 1 : 0);
    for (const auto* end : {"/*", ":*"}) {
        into.all.push_back("http*://" + host + end);
        into.except.push_back("http*://*/*" + host + end);
    }
    if (below) {
        into.all.push_back("http*://*." + host + "/*");
        into.all.push_back("http*://*." + host + ":*");
    }
}

// A pattern over paths as one over URLs. Of a URL the first slash behind "://" is where its path begins; what
// has none and is an end, as "*.zip", is a path's in any case.
void add_of_path(url_patterns& into, const std::string& pattern) {
    if (!pattern.starts_with('*')) {
        into.all.push_back("*://*" + pattern);
        into.wider = true;  // bound to the beginning of the path, which a slash further on is not
        return;
    }
    const auto rest = pattern.substr(1);
    if (rest.find('*') == std::string::npos) {
        into.all.push_back(pattern);
    } else {
        into.all.push_back((rest.starts_with('/') ? "*://*" : "*://*/*") + rest);
    }
}

}  // namespace

// Patterns match in the case that is written, and in URLs schemes and hosts are in lower case. So where
// case does not matter (-i), one with capitals has a second one beside it, without any: hosts are found
// by that, and most paths.
std::optional<url_patterns> patterns_of(std::string_view regex, bool no_case) {
    auto globs = globs_of(regex);
    if (!globs) {
        return std::nullopt;
    }
    url_patterns out{std::move(globs->patterns), globs->wider, false, {}};
    if (out.all.size() == 1 && out.all.front() == "*") {
        out.wider = false;  // a URL has a character, and so has what . takes
    }
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

std::optional<url_patterns> patterns_of(const acl& from) {
    const bool of_hosts = from.type == "dstdomain", path_alone = from.type == "urlpath_regex";
    const bool of_urls = of_hosts || path_alone || from.type == "url_regex";
    if (!of_urls || !from.unread.empty()) {
        return std::nullopt;
    }
    url_patterns out;
    for (const auto& each : from.values) {
        if (of_hosts) {
            add_host(out, each);
            continue;
        }
        const auto found = patterns_of(each, from.no_case);
        if (!found) {
            return std::nullopt;
        }
        out.wider = out.wider || found->wider;
        out.by_case = out.by_case || found->by_case;
        for (const auto& pattern : found->all) {
            if (path_alone) {
                add_of_path(out, pattern);
            } else {
                out.all.push_back(pattern);
            }
        }
    }
    return out;
}

pattern_list::fit pattern_list::take(std::string& pattern) {
    auto parsed = config::parse_url_pattern(pattern);
    const bool begins_anywhere = pattern.starts_with('*');
    if (std::holds_alternative<config::refusal>(parsed) && begins_anywhere) {
        // "*.example.org" is taken for hosts there. Of a URL, which has a slash behind its host, it can be
        // the end of a path alone.
        parsed = config::parse_url_pattern("*/" + pattern);
    }
    const auto* good = config::value_of(parsed);
    if (good == nullptr) {
        return begins_anywhere ? fit::unsaid : fit::no_url;
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

}  // namespace reprise::from_squid
