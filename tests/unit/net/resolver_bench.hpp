#pragma once
// A loop, a name server that does as it is told, and what a resolver says of its names.

#include "proxy/net/resolver.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::net {

using namespace std::chrono_literals;

using answer = attempt<resolved>;

/// A loop, a name server, and a resolver that asks it.
struct with_dns : test_loop {
    fake_dns server;
    config::dns_options options = asking(server);

    answer ask(resolver& names, const std::string& host) {
        return finish(names.resolve(host, late()));
    }
};

inline std::vector<std::string> answer_texts(const answer& found) {
    std::vector<std::string> all;
    REQUIRE(found.has_value());
    for (const auto& each : (*found)->addresses) {
        all.push_back(each.to_string());
    }
    std::sort(all.begin(), all.end());
    return all;
}
using list = std::vector<std::string>;

inline awaitable<void> resolve_into(resolver& names,
                                    std::string host,
                                    steady_time until,
                                    std::optional<answer>& result,
                                    share_holder asker = {}) {
    auto found = co_await names.resolve(std::move(host), until, asker);
    result.emplace(std::move(found));
}

/// A family is late by so much: longer than this thread is away between two answers, and shorter than it is until
/// c-ares asks again, with this for dns.timeout.
inline constexpr auto late_by = 2'500ms;
inline constexpr auto unhurried = 20s;

/// Until what was asked for before with a shorter delay has been heard: answers come in the order in
/// which they are due.
inline void hear_what_is_late(with_dns& test, resolver& names) {
    test.server.set("last.test", dns_type::a, {0, {"192.0.2.99"}, 60, false, late_by + 100ms});
    test.server.set("last.test", dns_type::aaaa, {});
    REQUIRE(answer_texts(test.ask(names, "last.test")) == list{"192.0.2.99"});
}

}  // namespace reprise::proxy::net
