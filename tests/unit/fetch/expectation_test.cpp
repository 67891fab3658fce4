#include "proxy/fetch/expectation.hpp"
#include "tests/unit/base/clock_set_back.hpp"
#include "tests/unit/fetch/arrivals.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>

namespace reprise::proxy::fetch::test::of_expectation {

namespace {

using namespace std::chrono_literals;

config::options with_a_peer() {
    auto out = with_memory(1u << 20);
    config::peer_options other;
    other.name = "b";
    other.url = "http://127.0.0.1:9";
    out.peers.push_back(other);
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("fetch/expectation");

TEST_CASE("expected to be stored is what lasts, whether or not the clock was set back meanwhile") {
    for (const bool is_set_back : {false, true}) {
        CAPTURE(is_set_back);
        node at{with_a_peer()};
        REQUIRE(at.common.fetches.tells());
        const auto order = order_for("GET http://a.example/dir/x", "", at.settings);
        order->listed = true;
        expectation expects{at.w, *order};
        std::optional<clock_set_back> clock;
        if (is_set_back) {
            clock.emplace();
        }
        const auto see_three_fresh_for = [&](std::chrono::seconds time) {
            for (unsigned i = 0; i < cache::kept_lately::enough; ++i) {
                expects.learn(true, resident_now() + time);
            }
        };
        see_three_fresh_for(1min);
        CHECK(at.common.kept_lately.expects(order->url));
        see_three_fresh_for(5s);
        CHECK_FALSE(at.common.kept_lately.expects(order->url));
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_expectation
