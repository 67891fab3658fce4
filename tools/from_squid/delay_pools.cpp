#include "config/quantity.hpp"
#include "tools/from_squid/draft.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

// Squid's pools are buckets for all clients together, for each of their networks, for each client
// and for each user; which of them a request is in, lists say. Ours is one rate for each client. So
// of all pools the largest rate for one client goes on: nobody gets less than Squid let him have. What
// bounded several together does not.

namespace reprise::from_squid {

namespace {

constexpr const char* path = "limits.client_rate";

struct pool {
    const statement* parameters = nullptr;
    const statement* denies = nullptr;  ///< the first line by which some are not in it
    std::string kind;                   ///< its class
};

// "restore/max", of which the first is the rate. None: it bounds nothing.
std::optional<std::uint64_t> rate_of(const std::string& text) {
    std::uint64_t out = 0;
    const auto* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, out);
    const bool is_whole = read.ptr == end || *read.ptr == '/';
    return read.ec == std::errc{} && is_whole && out > 0 ? std::optional{out} : std::nullopt;
}

// The rate of one client, or of one user, whichever is less.
std::optional<std::uint64_t> individual_rate(const pool& of) {
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

bool bounds_several(const pool& of) {
    const std::size_t count = of.kind == "2" ? 1 : of.kind == "3" || of.kind == "4" ? 2 : 9;
    for (std::size_t i = 2; i < of.parameters->words.size() && i < 2 + count; ++i) {
        if (rate_of(word_at(*of.parameters, i))) {
            return true;
        }
    }
    return false;
}

}  // namespace

void convert_delay_pools(draft& into, const delay_lines& lines) {
    std::map<std::string, pool> pools;
    for (const auto* each : lines.classes) {
        pools[word_at(*each, 1)].kind = word_at(*each, 2);
    }
    for (const auto* each : lines.parameters) {
        pools[word_at(*each, 1)].parameters = each;
    }
    for (const auto* each : lines.access) {
        auto& of = pools[word_at(*each, 1)];
        const bool all = word_at(*each, 2) == "allow" && word_at(*each, 3) == "all" &&
                         each->words.size() == 4;
        if (of.denies == nullptr && !all) {
            of.denies = each;
        }
    }
    std::uint64_t most = 0;
    for (const auto& [number, one] : pools) {
        if (one.parameters == nullptr) {
            continue;
        }
        const auto rate = individual_rate(one);
        most = std::max(most, rate.value_or(0));
        if (bounds_several(one)) {
            into.say(fate::laxer,
                     *one.parameters,
                     "no bound is for several clients together; limits.client_rate is for each",
                     path);
        }
        if (rate) {
            into.say(fate::approximated,
                     *one.parameters,
                     "the rate of each client, for hits and tunnels too; of all pools the largest; "
                     "an eighth of a second's worth comes at once, 64KiB at least",
                     path);
            if (one.denies != nullptr) {
                into.say(fate::approximated,
                         *one.denies,
                         "the rate is that of all clients, not of those of some lists alone",
                         path);
            }
        }
    }
    if (most > 0) {
        into.settings["limits"]["client_rate"] = config::size_to_string(
            std::min(most, std::uint64_t{1} << 40));
    } else if (pools.empty()) {
        for (const auto* each : lines.pools) {
            if (word_at(*each, 1) != "0") {
                into.say(fate::laxer, *each, "no rate of one client is in it", path);
            }
        }
    }
}

}  // namespace reprise::from_squid
