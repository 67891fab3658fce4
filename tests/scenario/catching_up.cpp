// A node that was stopped for a while wakes with what its clients have asked meanwhile, and knows of nothing that
// its siblings have stored since: it hears them first.

#include "tests/scenario/fleet.hpp"
#include "tests/support/wide_link.hpp"

#include <chrono>
#include <deque>
#include <thread>

using namespace reprise::tests;

namespace {

constexpr int objects = 30;

struct waking {
    /// All, if the origin is asked at once; nothing, if nothing else runs.
    std::size_t fetched_again = 0;
    std::int64_t waited = 0;  ///< clients, for the word of a sibling
};

/// The second of two nodes is stopped while its clients ask for what the first stores meanwhile. Each reaches the other by a
/// link so long (`delay` each way) that news takes its time.
waking stop_and_wake(std::chrono::milliseconds delay) {
    fleet f{2, seldom_settings()};
    f.serve_everything();
    wide_link to_first{{.to = f[0].port(), .delay = delay}};
    wide_link to_second{{.to = f[1].port(), .delay = delay}};
    f.tell(0, json::array({seldom_peer("n1", to_second.port())}));
    f.tell(1, json::array({seldom_peer("n0", to_first.port())}));
    REQUIRE(f.is_by_news(1, "n0"));
    const auto path = [](int i) { return "/new/" + std::to_string(i); };
    std::deque<client> clients;
    for (int i = 0; i < objects; ++i) {
        clients.emplace_back(f[1].port());
        CHECK(clients.back()
                  .ask("GET " + f.origin.url("/known") + " HTTP/1.1\r\nHost: x\r\n\r\n")
                  .status == 200);
    }

    f[1].signal(SIGSTOP);
    for (int i = 0; i < objects; ++i) {
        CHECK(f[0].get(f.origin.url(path(i))).status == 200);
        clients[static_cast<std::size_t>(i)].send("GET " + f.origin.url(path(i)) +
                                                  " HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{600});  // away, and a tick
    f[1].signal(SIGCONT);
    waking out;
    for (int i = 0; i < objects; ++i) {
        CHECK(clients[static_cast<std::size_t>(i)].read().body == "body of " + path(i));
        out.fetched_again += f.origin.count(path(i)) - 1;
    }
    out.waited = figure(f[1].stats(), "/peering/caught_up_first");
    return out;
}

/// A busy machine may keep whoever is waited for, or let the word come before the first client is heard. So
/// there are `most` turns, and one that goes well is enough: else all is fetched again in each.
template <class Turn>
bool goes_well_once(int most, Turn&& turn) {
    for (int i = 0; i < most; ++i) {
        if (turn()) {
            return true;
        }
    }
    return false;
}

}  // namespace

TEST_SUITE("scenario/catching_up") {
    TEST_CASE("what siblings stored while a node was stopped is asked of them and of no origin") {
        CHECK(goes_well_once(5, [] {
            const auto one = stop_and_wake(std::chrono::milliseconds{0});
            return one.waited > 0 && one.fetched_again < objects / 2;
        }));
    }
    // There and back is 40 ms, and a question that is open for 60 is taken for one without an answer: a busy machine may take
    // the rest once. Where 20 are taken for that three of four times come too late.
    TEST_CASE("also where their word takes some tens of milliseconds") {
        constexpr int times = 3;
        CHECK(goes_well_once(3, [] {
            std::size_t fetched_again = 0;
            for (int i = 0; i < times; ++i) {
                fetched_again += stop_and_wake(std::chrono::milliseconds{20}).fetched_again;
            }
            return fetched_again < times * objects / 2;
        }));
    }
}
