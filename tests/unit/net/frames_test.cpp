#include "proxy/net/asio.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <doctest/doctest.h>

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

namespace reprise::proxy::net::test::of_frames {

namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool keeps = false;
#else
constexpr bool keeps = true;
#endif

awaitable<void> waits(const char*& place) {
    const char here = 0;
    place = &here;
    co_await asio::post(asio::use_awaitable_t<executor>{});
    CHECK(here == 0);
}

}  // namespace

TEST_SUITE_BEGIN("net/frames");

TEST_CASE("a frame's memory is there for the next one of about its size, and for no larger one") {
    void* const one = take_frame(600);
    give_frame_back(one, 600);
    void* const larger = take_frame(700);
    CHECK(larger != one);
    void* const same = take_frame(577);
    CHECK((same == one) == keeps);
    give_frame_back(larger, 700);
    give_frame_back(same, 577);
}

TEST_CASE("a frame may have any size") {
    for (const std::size_t size : {1u, 63u, 64u, 65u, 1'023u, 1'024u, 1'025u, 100'000u}) {
        CAPTURE(size);
        auto* const frame = static_cast<char*>(take_frame(size));
        frame[0] = frame[size - 1] = 'a';
        give_frame_back(frame, size);
    }
}

TEST_CASE("coroutines have their frames here") {
    asio::io_context io;
    const char* place = nullptr;
    asio::co_spawn(io, waits(place), [](const std::exception_ptr& broken) { CHECK(!broken); });
    io.run();
    REQUIRE(place != nullptr);
    // What the coroutine had is among what is free now.
    bool found = false;
    std::vector<std::pair<char*, std::size_t>> taken;
    for (std::size_t size = 64; size <= 1'024; size += 64) {
        for (std::size_t i = 0; i < 100; ++i) {
            auto* const frame = static_cast<char*>(take_frame(size));
            found = found || (frame <= place && place < frame + size);
            taken.emplace_back(frame, size);
        }
    }
    for (const auto& [frame, size] : taken) {
        give_frame_back(frame, size);
    }
    CHECK(found == keeps);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_frames
