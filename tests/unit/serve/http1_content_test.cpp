#include "proxy/serve/http1_content.hpp"
#include "tests/unit/net/loop.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace reprise::proxy::serve::test::of_http1_content {
namespace {

http::body_framing counted(std::uint64_t bytes) {
    http::body_framing framing;
    framing.kind = http::body_kind::length;
    framing.length = bytes;
    return framing;
}

http::body_framing chunked() {
    http::body_framing framing;
    framing.kind = http::body_kind::chunked;
    return framing;
}

/// A client's content, which comes as it is said.
struct bench : net::test_loop {
    explicit bench(const http::body_framing& framing)
        : client{std::make_unique<net::client_stream>(net::byte_stream{std::move(pair.ours)},
                                                      timer)},
          content{*client, framing, {}} {}

    void says(const std::string& bytes) { asio::write(pair.theirs, asio::buffer(bytes)); }
    std::size_t fill(std::size_t most = 65'536) { return finish(content.fill(most, {})); }

    /// All that is here, as it is taken in pieces of at most so many bytes.
    void take_all(std::size_t most) {
        while (content.has_some() && !content.is_over() && error == nullptr) {
            const auto one = content.take(most);
            error = one.error;
            CHECK(one.taken <= most);
            taken += one.taken;
            data += one.data;
            for (const auto& line : one.trailers) {
                trailers.append(line.name).append(": ").append(line.value);
            }
        }
    }

    net::socket_pair pair = net::connected_pair(io);
    std::unique_ptr<net::client_stream> client;
    http1_content content;
    std::string data, trailers;
    std::size_t taken = 0;
    const char* error = nullptr;
};

}  // namespace

TEST_SUITE_BEGIN("serve/http1_content");

TEST_CASE("wherever it is cut, content is the same, and what is behind it is the next request's") {
    const std::string next = "GET / HTTP/1.1\r\n";
    for (const bool in_chunks : {false, true}) {
        const std::string coded = in_chunks
                                      ? "5;a=b\r\nhello\r\n06\r\n world\r\n0\r\nDigest: x\r\n\r\n"
                                      : "hello world";
        for (std::size_t cut = 1; cut < coded.size(); ++cut) {
            CAPTURE(in_chunks);
            CAPTURE(cut);
            bench at{in_chunks ? chunked() : counted(11)};
            CHECK(at.content.is_counted() != in_chunks);
            CHECK_FALSE(at.content.has_some());
            at.says(coded.substr(0, cut));
            CHECK(at.fill() == cut);
            at.take_all(3);
            CHECK_FALSE(at.content.is_over());
            at.says(coded.substr(cut) + next);
            CHECK(at.fill() == coded.size() - cut + next.size());
            at.take_all(3);
            CHECK(at.content.is_over());
            CHECK(at.error == nullptr);
            CHECK(at.data == "hello world");
            CHECK(at.trailers == (in_chunks ? "Digest: x" : ""));
            CHECK(at.taken == coded.size());
            CHECK(at.client->input().data() == next);
        }
    }
}

TEST_CASE("content of no bytes is over before anything of it comes") {
    bench at{counted(0)};
    CHECK(at.content.is_over());
}

TEST_CASE("chunks that are none are an error, of which nothing is taken") {
    bench at{chunked()};
    at.says("hello\r\n");
    (void)at.fill();
    at.take_all(65'536);
    REQUIRE(at.error != nullptr);
    CHECK(at.error == std::string{"a chunk size that is no hexadecimal number"});
    CHECK(at.taken == 0);
    CHECK_FALSE(at.content.is_over());
}

TEST_CASE("no more is read at once than is asked for") {
    bench at{counted(11)};
    at.says("hello world");
    CHECK(at.fill(4) == 4);
    CHECK(at.client->bytes_in() == 4);
}

TEST_CASE("a client that leaves brings nothing more") {
    bench at{counted(11)};
    at.pair.theirs.close();
    CHECK(at.fill() == 0);
    CHECK_FALSE(at.content.is_over());
}

TEST_CASE("a piece that is held is there when its client is not") {
    bench at{counted(11)};
    at.says("hello world");
    (void)at.fill();
    const auto one = at.content.take(5);
    at.content.hold();
    CHECK(at.client->input().empty());
    SUBCASE("and goes back, with what is behind it") {
        at.content.release();
        CHECK(one.data == "hello");
        CHECK(at.client->input().data() == " world");
    }
    SUBCASE("once that has left") {
        at.content.leave();
        at.client.reset();
        CHECK(one.data == "hello");
        CHECK_FALSE(at.content.has_some());
        CHECK_FALSE(at.content.is_over());
    }
}

TEST_CASE("a wait for more ends when it is given up, and when its client may go") {
    for (const bool leaves : {false, true}) {
        CAPTURE(leaves);
        bench at{counted(11)};
        asio::cancellation_signal given_up;
        std::optional<std::size_t> came;
        at.start(net::test_loop::put_into(at.content.fill(100, given_up.slot()), came));
        at.run_for(std::chrono::milliseconds{1});
        REQUIRE_FALSE(came);
        if (leaves) {
            given_up.emit(asio::cancellation_type::total);
            at.content.leave();
            at.client.reset();
        } else {
            given_up.emit(asio::cancellation_type::total);
        }
        at.run_until([&] { return came.has_value(); });
        CHECK(came == 0);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_http1_content
