// Pairs of directives that are one setting here. Which of them stands last is no matter: of names it is the one
// by which loops are found, of bounds the stricter.

#include "config/quantity.hpp"
#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::from_squid {

namespace {

// Of each directive the last line is Squid's.
const statement* last_of(const statements& lines) {
    return lines.empty() ? nullptr : lines.back();
}

// What both directives of a pair come to: the less of what is written, or is Squid's default.
template <class Value>
struct pair_bound {
    Value least;
    bool differs = false;
};

// @param read  the value of a line, none: it is none
template <class Value, class Read>
std::optional<pair_bound<Value>> stricter_of(const statement* one,
                                             const statement* other,
                                             Value by_default,
                                             Read read) {
    const auto first = one != nullptr ? read(*one) : std::nullopt;
    const auto second = other != nullptr ? read(*other) : std::nullopt;
    if (!first && !second) {
        return std::nullopt;
    }
    const Value a = first.value_or(by_default), b = second.value_or(by_default);
    return pair_bound<Value>{std::min(a, b), a != b};
}

void say_of_both(draft& into,
                 const statement* one,
                 const statement* other,
                 const std::string& why,
                 const std::string& setting) {
    for (const auto* each : {one, other}) {
        if (each != nullptr) {
            into.say(fate::approximated, *each, why, setting);
        }
    }
}

void say_bound(draft& into,
               const statement* one,
               const statement* other,
               const std::string& fitting,
               bool is_most,
               const std::string& setting) {
    say_of_both(into, one, other, fitting + " is the " + (is_most ? "most" : "least"), setting);
}

}  // namespace

void convert_pseudonym(draft& into, const statements& unique, const statements& visible) {
    constexpr const char* pseudonym = "forwarding.pseudonym";
    const auto* const own = last_of(unique);
    const auto* const seen = last_of(visible);
    const auto* const taken = own != nullptr ? own : seen;
    if (taken == nullptr) {
        return;
    }
    into.settings["forwarding"]["pseudonym"] = word_at(*taken, 1);
    into.say(fate::changed,
             *taken,
             "is the name in Via and Cache-Status: no two proxies may share it",
             pseudonym);
    if (own != nullptr && seen != nullptr) {
        into.say(fate::left_out,
                 *seen,
                 "error pages name nobody, and loops are found by unique_hostname, here and there",
                 pseudonym);
    }
}

void convert_client_head(draft& into, const statements& head, const statements& start) {
    using std::chrono::milliseconds;
    constexpr const char* client_head = "timeouts.client_head";
    const auto* const whole_head = last_of(head);
    const auto* const first_byte = last_of(start);
    const auto read = [&](const statement& line) -> std::optional<milliseconds> {
        const auto parsed = config::parse_duration(duration_at(line, 1).value_or(""));
        const auto* time = config::value_of(parsed);
        if (time == nullptr) {
            into.say(fate::left_out, line, "not a time", client_head);
            return std::nullopt;
        }
        return *time;
    };
    const auto both = stricter_of<milliseconds>(
        whole_head, first_byte, std::chrono::minutes{5}, read);
    if (!both) {
        return;
    }
    constexpr milliseconds least{10}, most{std::chrono::hours{24}};
    const auto fitting = std::clamp(both->least, least, most);
    into.settings["timeouts"]["client_head"] = config::duration_to_string(fitting);
    if (both->differs) {
        say_of_both(
            into,
            whole_head,
            first_byte,
            "one setting is for a head and for the first byte of a connection: the shorter of "
            "request_timeout and request_start_timeout, each 5 minutes where it is not "
            "written",
            client_head);
    }
    if (fitting != both->least) {
        say_bound(into,
                  whole_head,
                  first_byte,
                  config::duration_to_string(fitting),
                  fitting == most,
                  client_head);
    }
}

void convert_head_size(draft& into, const statements& requests, const statements& replies) {
    constexpr const char* head_size = "limits.head_size";
    constexpr std::uint64_t least = 1024, most = std::uint64_t{1} << 20;
    const auto* const of_requests = last_of(requests);
    const auto* const of_replies = last_of(replies);
    const auto read = [&](const statement& line) {
        auto bytes = bytes_at(line, 1);
        if (!bytes) {
            into.say(fate::left_out, line, "not a size", head_size);
        }
        return bytes;
    };
    const auto both = stricter_of<std::uint64_t>(
        of_requests, of_replies, std::uint64_t{64} << 10, read);
    if (!both) {
        return;
    }
    const auto fitting = std::clamp(both->least, least, most);
    into.settings["limits"]["head_size"] = config::size_to_string(fitting);
    if (both->differs) {
        say_of_both(into,
                    of_requests,
                    of_replies,
                    "one setting is for heads of requests and of responses: the smaller of "
                    "request_header_max_size and reply_header_max_size, each 64 KB where it is not "
                    "written",
                    head_size);
    }
    if (fitting != both->least) {
        say_bound(into,
                  of_requests,
                  of_replies,
                  config::size_to_string(fitting),
                  fitting == most,
                  head_size);
    }
}

}  // namespace reprise::from_squid
