#include "tools/from_squid/rule_chains.hpp"

#include <algorithm>

namespace reprise::from_squid {

namespace {

// The list that a word of a line asks for, without its "!".
const acl* list_of(const word& named, const acl_table& acls) {
    return acls.find(named.text.substr(named.text.starts_with('!') ? 1 : 0));
}

// Whether one of the line's lists, and not its opposite, is so.
template <class Is>
bool any_list(const statement& line, std::size_t at, const acl_table& acls, Is is) {
    for (std::size_t i = at + 1; i < line.words.size(); ++i) {
        const auto* found = list_of(line.words[i], acls);
        if (found != nullptr && !line.words[i].text.starts_with('!') && is(*found)) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool is_for_all(const statement& line, std::size_t at) {
    return line.words.size() == at + 2 && lower_case(line.words[at + 1].text) == "all";
}

bool is_of_other_protocols(const statement& line, std::size_t at, const acl_table& acls) {
    return any_list(line, at, acls, is_of_unspoken_protocols);
}

bool is_of_connect(const statement& line, std::size_t at, const acl_table& acls) {
    return any_list(line, at, acls, [](const acl& one) {
        return one.type == "method" && one.values.size() == 1 && one.values.front() == "CONNECT";
    });
}

verdict_lines lines_with(std::string_view action,
                         const statements& chain,
                         std::size_t at,
                         const acl_table& acls) {
    verdict_lines out;
    const statement* last = nullptr;
    for (const auto* each : chain) {
        const auto& does = word_at(*each, at);
        if ((does != "allow" && does != "deny") || each->words.size() < at + 2) {
            continue;
        }
        last = each;
        if (does == action && !is_of_other_protocols(*each, at, acls)) {
            out.lines.push_back(each);
        }
        if (is_for_all(*each, at)) {
            return out;
        }
    }
    if (last != nullptr && word_at(*last, at) != action) {
        out.opposite = last;
    }
    return out;
}

void say_lost(draft& into,
              const verdict_lines& lost,
              const std::string& why,
              const std::string& setting) {
    for (const auto* each : lost.lines) {
        into.say(fate::laxer, *each, why, setting);
    }
    if (lost.opposite != nullptr) {
        into.say(fate::laxer,
                 *lost.opposite,
                 "the last line, and Squid does the opposite for whatever it does not match: " +
                     why,
                 setting);
    }
}

std::vector<statements> by_name(const statements& lines) {
    std::vector<statements> out;
    for (const auto* each : lines) {
        const auto found = std::find_if(out.begin(), out.end(), [&](const statements& one) {
            return lower_case(word_at(*one.front(), 1)) == lower_case(word_at(*each, 1));
        });
        if (found == out.end()) {
            out.push_back({each});
        } else {
            found->push_back(each);
        }
    }
    return out;
}

}  // namespace reprise::from_squid
