#include "proxy/serve/http1_connection.hpp"
#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <new>
#include <optional>

namespace reprise::proxy::serve::test::of_http1_connection {
namespace {

using shortage = std::optional<net::memory_ends>;

/// Waits for the wakeup while so many allocations are left. False: there was no memory for it.
awaitable<bool> wait_for_wakeup(http1_connection& one, unsigned still, shortage& lack) {
    try {
        auto waiting = one.wait(steady_time::max());
        lack.emplace(still);
        static_cast<void>(co_await std::move(waiting));
        co_return true;
    } catch (const std::bad_alloc&) {
        lack.reset();
    }
    co_return false;
}

}  // namespace

TEST_SUITE_BEGIN("serve/http1_connection");

TEST_CASE("a wait that there is no memory for leaves the worker's watch to the next one") {
    constexpr unsigned enough = 1'000;
    for (unsigned still = 0; still < 8; ++still) {
        CAPTURE(still);
        bench on;
        http1_connection one{on.at.w, net::byte_stream{tcp_socket{on.at.w.io}}};
        shortage lack;
        std::optional<bool> first, second;
        on.start(wait_for_wakeup(one, still, lack), first);
        lack.reset();
        CHECK(on.at.w.watched == (first ? 0 : 1));
        if (still == 0) {
            REQUIRE(first);
            CHECK_FALSE(*first);
        }
        one.wakeup.notify();
        on.settle();
        REQUIRE(first);
        CHECK(on.at.w.watched == 0);

        static_cast<void>(one.wakeup.take());
        on.at.w.watch.clear();  // as if its time had come
        on.start(wait_for_wakeup(one, enough, lack), second);
        lack.reset();
        CHECK_FALSE(second);
        CHECK(on.at.w.watched == 1);
        CHECK(on.at.w.watch.armed());
        one.wakeup.notify();
        on.settle();
        CHECK(second);
        CHECK(on.at.w.watched == 0);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_http1_connection
