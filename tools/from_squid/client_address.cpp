// forwarded_for and request_header_access: whether origins are told a client's address.

#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/rule_chains.hpp"

#include <optional>
#include <string_view>

namespace reprise::from_squid {

namespace {

constexpr const char* address_field = "forwarding.client_address";

// The field whose lines these are: names of fields are compared without case.
bool is_of(const statement& rule, std::string_view field) {
    return lower_case(word_at(rule, 1)) == field;
}

// Whether the field goes on whoever asks. The first rule of its name that fits decides in Squid, and
// where none does the opposite of the last; a rule for some requests alone is one for all here.
// None: there is no rule of that name.
std::optional<bool> goes_on(const statements& rules, std::string_view field) {
    std::optional<bool> out;
    for (const auto* each : rules) {
        const auto& action = word_at(*each, 2);
        if (!is_of(*each, field) || each->words.size() < 4) {
            continue;
        }
        if (action == "deny") {
            return false;
        }
        if (action == "allow" && is_for_all(*each, 2)) {
            return true;
        }
        out = false;
    }
    return out;
}

// Whether the field that Squid adds stays. Its own rules decide, without any those for all fields. Squid
// counts it among the known ones, which "Other" is not for; here that takes it away too, as the name says.
bool address_goes_on(const statements& rules) {
    if (!goes_on(rules, "forwarded").value_or(true)) {
        return false;
    }
    const auto own = goes_on(rules, "x-forwarded-for");
    return own ? *own
               : goes_on(rules, "all").value_or(true) && goes_on(rules, "other").value_or(true);
}

constexpr const char* passed_on =
    "fields are passed on as they came, but for those of one connection";

void take_rule(draft& into, const statement& rule, bool address_stays) {
    const bool of_address = is_of(rule, "x-forwarded-for") || is_of(rule, "forwarded");
    const bool of_many = is_of(rule, "all") || is_of(rule, "other");
    if (rule.words.size() < 4) {
        into.say(
            fate::left_out, rule, "without a condition Squid takes no notice of it", "forwarding");
        return;
    }
    if (word_at(rule, 2) == "allow") {
        if (of_address && !is_for_all(rule, 2) && !address_stays) {
            into.say(fate::approximated, rule, "this proxy adds none for anybody", address_field);
        }
        return;
    }
    if (of_address && address_stays) {
        into.say(fate::left_out,
                 rule,
                 "is never reached: a rule before it lets the field through",
                 address_field);
        return;
    }
    if ((of_address || of_many) && !address_stays) {
        into.say(fate::approximated,
                 rule,
                 "this proxy adds none; what a client sends of it is passed on",
                 address_field);
    }
    if (!of_address) {
        into.say(fate::laxer, rule, passed_on, "forwarding");
    }
}

// "off" but for what tells the address: on.
const char* setting_of(draft& into, const statement& from) {
    const auto& how = word_at(from, 1);
    if (how == "on") {
        return "x-forwarded-for";
    }
    if (how == "delete") {
        into.say(fate::approximated, from, "what a client sends of it is passed on", address_field);
    } else if (how == "truncate") {
        into.say(fate::approximated,
                 from,
                 "the client's address is not told, what came before stays",
                 address_field);
    } else if (how != "transparent") {
        into.say(fate::changed,
                 from,
                 "no field is sent, rather than one that says unknown",
                 address_field);
    }
    return "off";
}

}  // namespace

void convert_client_address(draft& into,
                            const statements& forwarded_for,
                            const statements& header_rules) {
    const char* setting = "x-forwarded-for";  // Squid's default
    for (const auto* each : forwarded_for) {
        setting = setting_of(into, *each);  // the last one holds
    }
    const bool stays = address_goes_on(header_rules);
    for (const auto* each : header_rules) {
        take_rule(into, *each, stays);
    }
    for (const auto& each : by_name(header_rules)) {
        const bool of_address = is_of(*each.front(), "x-forwarded-for") ||
                                is_of(*each.front(), "forwarded");
        if (!of_address) {
            auto lost = lines_with("deny", each, 2, into.acls);
            lost.lines.clear();  // said of above
            say_lost(into, lost, passed_on, "forwarding");
        }
    }
    into.settings["forwarding"]["client_address"] = stays ? setting : "off";
}

}  // namespace reprise::from_squid
