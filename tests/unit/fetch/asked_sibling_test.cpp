#include "proxy/fetch/asked_sibling.hpp"
#include "tests/unit/fetch/arrivals.hpp"
#include "tests/unit/net/loop.hpp"

#include <boost/asio/co_spawn.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
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
std::optional<peer::asking_end> asked_at(node& at,
                                         std::uint16_t port,
                                         std::chrono::milliseconds timeout,
                                         peer::whereabouts where = {}) {
    sibling_question question;
    question.wire = "GET http://a.example/x HTTP/1.1\r\n\r\n";
    question.url = "http://a.example/x";
    question.settings = at.settings;
    question.rules = &at.settings->freshness;
    auto whom = std::make_shared<peer::known_peer>();
    whom->name = "b";
    whom->host = "127.0.0.1";
    whom->port = port;
    whom->where = std::move(where);
    whom->timeout = timeout;
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

// A connection to a sibling there that is kept.
void leave_idle(node& at, std::uint16_t port) {
    auto work = [](node& of, std::uint16_t to) -> awaitable<void> {
        const net::origin_address sibling{"127.0.0.1", to, true, false};
        const auto until = steady_now() + std::chrono::seconds{20};
        auto leased = co_await of.w.origins.acquire(sibling, false, until);
        if (leased) {
            leased->give_back();
        }
    };
    const auto before = at.w.origins.figures().idle.load();
    asio::co_spawn(
        at.w.io, work(at, port), [](const std::exception_ptr& thrown) { CHECK_FALSE(thrown); });
    const auto give_up = steady_now() + std::chrono::seconds{20};
    while (at.w.origins.figures().idle.load() == before && steady_now() < give_up) {
        at.w.io.restart();
        at.w.io.run_one_for(std::chrono::milliseconds{20});
    }
    REQUIRE(at.w.origins.figures().idle.load() == before + 1);
}

}  // namespace

TEST_SUITE_BEGIN("fetch/asked_sibling");

TEST_CASE("one that can't be reached has failed, and one that can't be asked was not asked") {
    node at{with_a_sibling()};
    const net::closed_port closed{at.w.io};
    constexpr std::chrono::seconds ample{10};
    CHECK(asked_at(at, closed.port, ample) == peer::asking_end::failed);
    at.w.origins.stop();  // as where the proxy ends; that it has no descriptor is told the same way
    CHECK(asked_at(at, closed.port, ample) == std::nullopt);
}

TEST_CASE("a connection to where a sibling's name leads no more is not used again") {
    node at{with_a_sibling()};
    auto listener = net::listen_on_loopback(at.w.io);
    const auto port = listener.local_endpoint().port();
    const auto dials = [&] { return at.w.origins.figures().dials.load(); };
    // It says nothing to either question.
    constexpr std::chrono::milliseconds soon{100};
    leave_idle(at, port);
    auto before = dials();
    (void)asked_at(at, port, soon, {.ends = {"127.0.0.1:" + std::to_string(port)}});
    CHECK(dials() == before);
    leave_idle(at, port);
    before = dials();
    (void)asked_at(at, port, soon, {.ends = {"192.0.2.1:" + std::to_string(port)}});
    CHECK(dials() == before + 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_asked_sibling
