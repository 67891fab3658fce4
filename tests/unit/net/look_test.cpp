#include "proxy/net/asio.hpp"
#include "proxy/net/look.hpp"

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <deque>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// By this thread's last looks that brought any.
thread_local std::array<int, 64> brought{};
thread_local std::size_t looks = 0;

}  // namespace

// This program's own, in front of the system's.
extern "C" int epoll_wait(int poll, epoll_event* events, int most, int timeout) {
    const auto got = static_cast<int>(
        ::syscall(SYS_epoll_pwait, poll, events, most, timeout, nullptr, _NSIG / 8));
    if (got > 0) {
        brought[looks++ % brought.size()] = got;
    }
    return got;
}

namespace reprise::proxy::net::test::of_look {

TEST_SUITE_BEGIN("net/look");

TEST_CASE("a loop that finds a hundred sockets ready takes them on in several looks, each once") {
    using pair_end = asio::local::stream_protocol::socket;
    asio::io_context loop{1};
    std::deque<pair_end> ours, theirs;
    int served = 0;
    constexpr int sockets = 100;
    for (int i = 0; i < sockets; ++i) {
        asio::local::connect_pair(ours.emplace_back(loop), theirs.emplace_back(loop));
        ours.back().async_wait(pair_end::wait_read, [&](const error_code&) { ++served; });
        theirs.back().write_some(asio::buffer("x", 1));
    }
    brought.fill(0);
    looks = 0;
    loop.run();
    CHECK(served == sockets);
    REQUIRE(looks < brought.size());
    CHECK(looks >= (sockets + most_events_a_look - 1) / most_events_a_look);
    CHECK(*std::max_element(brought.begin(), brought.end()) <= most_events_a_look);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_look
