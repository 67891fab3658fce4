#include "proxy/net/io.hpp"
#include "proxy/net/pace.hpp"
#include "tests/unit/net/byte_stream_bench.hpp"
#include "tests/unit/net/loop.hpp"

#include <chrono>
#include <string>
#include <sys/socket.h>
#include <thread>

using namespace reprise::proxy;
using namespace reprise::proxy::net;

namespace {
awaitable<error_code> send_pieces(byte_stream& socket,
                                  const std::string& first,
                                  const std::string& second) {
    const std::array pieces{asio::const_buffer{asio::buffer(first)},
                            asio::const_buffer{asio::buffer(second)}};
    co_return co_await write_all(socket, pieces);
}

/// The kernel takes nothing more, and what it holds is none of the session's, which owes nothing.
void fill_kernel(byte_stream& of) {
    const std::string block(64 << 10, 'x');
    for (int quiet = 0; quiet < 20; ++quiet) {
        while (::send(of.native_handle(), block.data(), block.size(), MSG_NOSIGNAL) > 0) {
            quiet = 0;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}
}  // namespace

TEST_SUITE_BEGIN("net/io");

TEST_CASE("a small write is with the kernel before the loop has turned") {
    test_loop loop;
    auto pair = connected_pair(loop.io);
    byte_stream ours{std::move(pair.ours)};
    error_code error;
    CHECK(ours.try_write(asio::buffer("hello", 5), error) == 5);
    CHECK(!error);
    CHECK(loop.finish(read_exactly(pair.theirs, 5)) == "hello");
}

TEST_CASE("a write larger than the kernel takes at once arrives whole") {
    test_loop loop;
    auto pair = connected_pair(loop.io);
    byte_stream ours{std::move(pair.ours)};
    const std::string first(7, 'a');
    const std::string second(12 << 20, 'b');
    std::optional<error_code> result;
    asio::co_spawn(loop.io,
                   send_pieces(ours, first, second),
                   [&](std::exception_ptr, error_code error) { result = error; });
    CHECK(loop.finish(read_exactly(pair.theirs, first.size() + second.size())) == first + second);
    loop.run_until([&] { return result.has_value(); });
    CHECK(!*result);
}

TEST_CASE("reading now tells nothing there from the end") {
    test_loop loop;
    auto pair = connected_pair(loop.io);
    byte_stream ours{std::move(pair.ours)};
    char block[16];
    error_code error;
    CHECK(ours.try_read(asio::buffer(block), error) == 0);
    CHECK(!error);
    pair.theirs.close();
    loop.run_until([&] {
        static_cast<void>(ours.try_read(asio::buffer(block), error));
        return error.failed();
    });
    CHECK(error == asio::error::eof);
}

TEST_CASE("writing to a connection that is gone is an error, not a signal") {
    test_loop loop;
    auto pair = connected_pair(loop.io);
    byte_stream ours{std::move(pair.ours)};
    pair.theirs.close();
    error_code error;
    loop.run_until([&] {
        static_cast<void>(ours.try_write(asio::buffer("x", 1), error));
        return error.failed();
    });
    CHECK(error.failed());
}

TEST_CASE("to say the end nobody waits whose time is over, though nothing ends that wait") {
    stream_bench bench{true};
    fill_kernel(*bench.stream);
    error_code error;
    REQUIRE_FALSE(bench.stream->try_end(error));
    REQUIRE_FALSE(error);  // there is no room for it
    pace_guard owed{bench.timer, [] { return std::uint64_t{0}; }, [] {}};
    owed.begin(1, std::chrono::milliseconds{10});
    bench.run_until([&] { return owed.expired(); });
    REQUIRE(owed.expired());
    CHECK_FALSE(bench.finish(end_sending(*bench.stream, owed)));
    bench.stream->reset();
}

TEST_SUITE_END();
