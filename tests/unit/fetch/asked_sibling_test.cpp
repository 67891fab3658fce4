#include "proxy/fetch/asked_sibling.hpp"
#include "tests/unit/fetch/arrivals.hpp"
#include "tests/unit/net/loop.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace reprise::proxy::fetch::test::of_asked_sibling {

namespace {

config::options with_a_sibling() {
    auto out = with_memory(1u << 20);
    config::peer_options other;
    other.name = "b";
    other.url = "http://127.0.0.1:9";
    out.peers.push_back(std::move(other));
    return out;
}

// What came of asking it; none within: it was not asked.
std::optional<peer::asking_end> asked_at(node& at, std::uint16_t port) {
    sibling_question question;
    question.wire = "GET http://a.example/x HTTP/1.1\r\n\r\n";
    question.url = "http://a.example/x";
    question.settings = at.settings;
    question.rules = &at.settings->freshness;
    auto whom = std::make_shared<peer::known_peer>();
    whom->name = "b";
    whom->host = "127.0.0.1";
    whom->port = port;
    const auto one = std::make_shared<asked_sibling>(
        at.w, std::make_shared<const sibling_question>(std::move(question)), std::move(whom), 0);
    bool is_over = false;
    one->begin([&](asked_sibling&) { is_over = true; });
    const auto give_up = steady_now() + std::chrono::seconds{20};
    while (!is_over && steady_now() < give_up) {
        at.w.io.restart();
        at.w.io.run_one_for(std::chrono::milliseconds{20});
    }
    REQUIRE(is_over);
    return one->end();
}

}  // namespace

TEST_SUITE_BEGIN("fetch/asked_sibling");

TEST_CASE("one that can't be reached has failed, and one that can't be asked was not asked") {
    node at{with_a_sibling()};
    const net::closed_port closed{at.w.io};
    CHECK(asked_at(at, closed.port) == peer::asking_end::failed);
    at.w.origins.stop();  // as where the proxy ends; that it has no descriptor is told the same way
    CHECK(asked_at(at, closed.port) == std::nullopt);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_asked_sibling
