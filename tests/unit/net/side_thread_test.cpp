#include "proxy/net/side_thread.hpp"

#include <doctest/doctest.h>

#include <future>

namespace reprise::proxy::net::test::of_side_thread {

TEST_SUITE("net/side_thread") {
    TEST_CASE("it is idle when all that it was given is done") {
        side_thread one{"test"};
        CHECK(one.is_idle());
        std::promise<void> go;
        int done = 0;
        one.post([on = go.get_future().share(), &done] {
            on.wait();
            ++done;
        });
        one.post([&done] { ++done; });
        CHECK_FALSE(one.is_idle());
        go.set_value();
        one.finish();
        CHECK(one.is_idle());
        CHECK(done == 2);
    }
}

}  // namespace reprise::proxy::net::test::of_side_thread
