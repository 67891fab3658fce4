#include "config/quantity.hpp"
#include "tools/from_squid/draft.hpp"
#include "tools/from_squid/rule_chains.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Squid's pools are buckets for all clients together, for each of their networks, for each client
// and for each user; which of them a request is in, lists say: the first pool, by number, that allows it. Ours
// is one rate for each client. So of all pools that anybody is in and that bound one client, the largest
// rate goes on, for all: whoever had less has more now, and is told of; whoever had no such bound has one.
// What bounded several together does not go on.

namespace reprise::from_squid {

namespace {

constexpr const char* client_rate = "limits.client_rate";

struct delay_pool {
    const statement* parameters = nullptr;
    statements access;
    std::string kind;  ///< its class; empty: it has none, and nobody is in it
};

// As numbers, where they are.
struct by_number {
    bool operator()(const std::string& a, const std::string& b) const noexcept {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
};

// "restore/max", of which the first is the rate. None: it bounds nothing.
std::optional<std::uint64_t> rate_of(const std::string& text) {
    std::uint64_t out = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, out);
    const bool is_whole = read.ptr == end || *read.ptr == '/';
    if (read.ec != std::errc{} || !is_whole) {
        return std::nullopt;
    }
    return std::max(out, std::uint64_t{1});  // 0 lets nothing through, and is no bound here
}

// The rate of one client, or of one user, whichever is less.
std::optional<std::uint64_t> individual_rate(const delay_pool& of) {
    const auto at = [&](std::size_t index) { return rate_of(word_at(*of.parameters, index)); };
    if (of.kind == "2") {
        return at(3);
    }
    if (of.kind == "3") {
        return at(4);
    }
    if (of.kind == "4") {
        const auto client = at(4);
        const auto user = at(5);
        return client && user ? std::min(client, user) : client ? client : user;
    }
    return std::nullopt;
}

bool bounds_several(const delay_pool& of) {
    const std::size_t count = of.kind == "2" ? 1 : of.kind == "3" || of.kind == "4" ? 2 : 9;
    for (std::size_t i = 2; i < of.parameters->words.size() && i < 2 + count; ++i) {
        if (rate_of(word_at(*of.parameters, i))) {
            return true;
        }
    }
    return false;
}

// The first line by which some are not in it.
const statement* first_bound_of(const delay_pool& of) {
    for (const auto* each : of.access) {
        if (word_at(*each, 2) != "allow" || !is_for_all(*each, 2)) {
            return each;
        }
    }
    return nullptr;
}

// Those that anybody is in, in order; of the others it is said.
std::vector<delay_pool> pools_in_use(draft& into, const delay_lines& lines) {
    std::map<std::string, delay_pool, by_number> pools;
    for (const auto* each : lines.classes) {
        pools[word_at(*each, 1)].kind = word_at(*each, 2);
    }
    for (const auto* each : lines.parameters) {
        pools[word_at(*each, 1)].parameters = each;
    }
    for (const auto* each : lines.access) {
        pools[word_at(*each, 1)].access.push_back(each);
    }
    std::vector<delay_pool> out;
    bool taken = false;  // all requests are in a pool before
    for (auto& [number, one] : pools) {
        if (one.parameters == nullptr) {
            continue;
        }
        if (taken) {
            into.say(fate::left_out,
                     *one.parameters,
                     "nobody is in it: a pool before it has every request",
                     client_rate);
        } else if (lines_with("allow", one.access, 2, into.acls).none()) {
            into.say(fate::left_out,
                     *one.parameters,
                     "nobody is in it: no delay_access allows it",
                     client_rate);
        } else {
            taken = !one.kind.empty() && word_at(*one.access.front(), 2) == "allow" &&
                    is_for_all(*one.access.front(), 2);
            out.push_back(std::move(one));
        }
    }
    return out;
}

void say_of_rate(draft& into,
                 const delay_pool& of,
                 std::optional<std::uint64_t> rate,
                 std::uint64_t most) {
    if (!rate) {
        into.say(fate::approximated,
                 *of.parameters,
                 "sets one client no bound, and here all have that of another pool",
                 client_rate);
        return;
    }
    if (*rate < most) {
        into.say(
            fate::laxer,
            *of.parameters,
            "one rate is for all, and of all pools the largest: each client of this one had less",
            client_rate);
    } else {
        into.say(fate::approximated,
                 *of.parameters,
                 "the rate of each client, for hits and tunnels too; of all pools the largest; "
                 "an eighth of a second's worth comes at once, 64KiB at least",
                 client_rate);
    }
    if (const auto* bound = first_bound_of(of)) {
        into.say(fate::approximated,
                 *bound,
                 "the rate is that of all clients, not of those of some lists alone",
                 client_rate);
    }
}

}  // namespace

void convert_delay_pools(draft& into, const delay_lines& lines) {
    const auto pools = pools_in_use(into, lines);
    std::uint64_t most = 0;
    for (const auto& one : pools) {
        most = std::max(most, individual_rate(one).value_or(0));
    }
    for (const auto& one : pools) {
        if (bounds_several(one)) {
            into.say(fate::laxer,
                     *one.parameters,
                     "no bound is for several clients together; limits.client_rate is for each",
                     client_rate);
        }
        if (most > 0) {
            say_of_rate(into, one, individual_rate(one), most);
        }
    }
    if (most > 0) {
        into.settings["limits"]["client_rate"] = config::size_to_string(
            std::min(most, std::uint64_t{1} << 40));
    } else if (lines.classes.empty() && lines.parameters.empty() && lines.access.empty()) {
        for (const auto* each : lines.pools) {
            if (word_at(*each, 1) != "0") {
                into.say(fate::laxer, *each, "no rate of one client is in it", client_rate);
            }
        }
    }
}

}  // namespace reprise::from_squid
