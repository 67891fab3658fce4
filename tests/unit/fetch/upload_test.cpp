#include "proxy/fetch/upload.hpp"
#include "proxy/serve/http1_content.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/pool_bench.hpp"

#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::net::test::of_upload {

using fetch::upload;

namespace {

std::shared_ptr<upload> upload_of(client_stream& client,
                                  const http::body_framing& framing,
                                  deadlines& timer) {
    auto content = std::make_unique<serve::http1_content>(client, framing, http::chunked_limits{});
    return std::make_shared<upload>(std::move(content), reprise::config::options{}, false, timer);
}

/// A client with a body on its way to an origin, both at the far ends of sockets.
struct upload_bench : test_loop {
    socket_pair from = connected_pair(io);
    socket_pair to = connected_pair(io);
    std::unique_ptr<client_stream> client = std::make_unique<client_stream>(
        byte_stream{std::move(from.ours)}, timer);
    byte_stream origin{std::move(to.ours)};
    std::shared_ptr<upload> body;
    bool ended = false;

    void begin(const http::body_framing& framing) {
        body = upload_of(*client, framing, timer);
        asio::co_spawn(io, upload::run(body, origin), [this](std::exception_ptr) { ended = true; });
    }
    void says(const std::string& bytes) { asio::write(from.theirs, asio::buffer(bytes)); }
};

http::body_framing of_length(std::uint64_t bytes) {
    http::body_framing framing;
    framing.kind = http::body_kind::length;
    framing.length = bytes;
    return framing;
}

/// As much as goes through it while nobody reads at the far end.
void fill(test_loop& loop, tcp_socket& client) {
    const std::string text(1u << 20, 'b');
    error_code full;
    client.non_blocking(true);
    for (unsigned in_vain = 0; in_vain < 50;) {
        in_vain = client.write_some(asio::buffer(text), full) == 0 ? in_vain + 1 : 0;
        loop.run_for(std::chrono::milliseconds{1});
    }
}

http::body_framing in_chunks() {
    http::body_framing framing;
    framing.kind = http::body_kind::chunked;
    return framing;
}

}  // namespace

TEST_SUITE_BEGIN("fetch/upload");

TEST_CASE("what was read when it is stopped is counted: the next request begins where it begins") {
    struct one {
        http::body_framing framing;
        std::string body;
    };
    for (const auto& [framing, text] : {one{of_length(5'000), std::string(5'000, 'b')},
                                        one{in_chunks(), "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n"}}) {
        upload_bench bench;
        bench.says(text + "GET /next");
        bench.begin(framing);
        // The body is there: it is read at once, and only who reads it does not know of it yet.
        (void)bench.io.poll_one();
        bench.body->stop();
        bench.run_until([&] { return bench.ended; });
        REQUIRE(bench.body->state() == upload::phase::stopped);
        CHECK(bench.finish(upload::drain(bench.body, 100'000)) == ended::keep);
        std::string next{bench.client->input().data()};
        std::array<char, 100> rest;
        error_code none;
        next.append(rest.data(), bench.client->socket().try_read(asio::buffer(rest), none));
        CHECK(next == "GET /next");
    }
}

TEST_CASE("a client whose last chunk came owes nothing more, though the origin does not take it") {
    upload_bench bench;
    bench.says("5\r\nhello\r\n");
    bench.begin(in_chunks());
    bench.run_until([&] { return bench.body->passed_on() > 0; });
    bench.to.theirs.set_option(asio::socket_base::linger{true, 0});
    bench.to.theirs.close();
    bench.says("0\r\n\r\n");
    bench.run_until([&] { return bench.ended; });
    REQUIRE(bench.body->state() == upload::phase::origin_failed);
    // And no byte of it is waited for.
    const auto begun = steady_now();
    CHECK(bench.finish(upload::drain(bench.body, 100'000)) == ended::keep);
    CHECK(steady_now() - begun < reprise::config::options{}.timeouts.client_body);
}

TEST_CASE("a piece that an origin does not take outlives its client") {
    for (const bool counted : {true, false}) {
        upload_bench bench;
        std::string text;
        for (std::size_t i = 0; i < (16u << 20); ++i) {
            text += static_cast<char>('a' + i % 26);
        }
        bench.begin(counted ? of_length(text.size()) : in_chunks());
        std::string head = counted ? "" : "1000000\r\n";
        std::size_t said = 0;
        error_code full;
        bench.from.theirs.non_blocking(true);
        for (unsigned in_vain = 0; in_vain < 50;) {
            const auto sending = head.empty() ? std::string_view{text}.substr(said)
                                              : std::string_view{head};
            const auto some = bench.from.theirs.write_some(asio::buffer(sending), full);
            said += head.empty() ? some : 0;
            head.erase(0, some);
            in_vain = some == 0 ? in_vain + 1 : 0;
            bench.run_for(std::chrono::milliseconds{1});
        }
        REQUIRE(bench.body->state() == upload::phase::running);
        bench.body->abandon();
        bench.client.reset();
        const std::string other(1u << 20, '!');  // where its buffer was
        std::string heard;
        while (!bench.ended) {
            std::array<char, 65536> block;
            bench.to.theirs.non_blocking(true);
            error_code none;
            heard.append(block.data(), bench.to.theirs.read_some(asio::buffer(block), none));
            bench.run_for(std::chrono::milliseconds{1});
        }
        CHECK(bench.body->state() == upload::phase::stopped);
        if (counted) {
            CHECK(heard == std::string_view{text}.substr(0, heard.size()));
        }
        CHECK(heard.find('!') == std::string::npos);
    }
}

// What a reading knew of the client's socket has gone with that, and something else may lie in its place.
TEST_CASE("one that was abandoned may be stopped, and its client's time pass, when that has gone") {
    upload_bench bench;
    bench.begin(of_length(64u << 20));
    fill(bench, bench.from.theirs);
    REQUIRE(bench.body->state() == upload::phase::running);
    bench.body->abandon();
    bench.client.reset();
    const std::vector<char> in_its_place(sizeof(client_stream), '!');
    bench.body->stop();
    bench.timer.stop();
    bench.origin.reset();
    bench.run_until([&] { return bench.ended; });
    CHECK(bench.ended);
    CHECK(bench.body->state() == upload::phase::stopped);
}

TEST_CASE("one whose producer has gone keeps the connection that it writes to until it ends") {
    pool_bench at;
    auto from = connected_pair(at.io);
    client_stream client{byte_stream{std::move(from.ours)}, at.timer};
    auto origin = at.lease();
    const auto body = upload_of(client, of_length(64u << 20), at.timer);
    bool is_over = false;
    auto on_end = [&](std::exception_ptr) { is_over = true; };
    asio::co_spawn(at.io, upload::run(body, origin.socket()), on_end);
    SUBCASE("where its client says nothing") {
        asio::write(from.theirs, asio::buffer("hello", 5));
        at.run_until([&] { return body->passed_on() > 0; });
    }
    SUBCASE("where its origin takes nothing") {
        fill(at, from.theirs);
    }
    REQUIRE(body->state() == upload::phase::running);
    body->outlive(std::move(origin));
    CHECK(at.open() == 1);
    at.run_until([&] { return is_over; });
    CHECK(is_over);
    CHECK(at.open() == 0);
}

namespace {

/// A stream of a protocol that frames its content itself, as HTTP/2 does: frames that lie where no HTTP/1.1's bytes do. An
/// empty one is its end.
struct framed_stream final : fetch::content_source {
    explicit framed_stream(bool is_counted_as) : counted{is_counted_as} {}

    bool is_counted() const noexcept override { return counted; }
    bool is_over() const noexcept override { return ended; }
    bool has_some() const noexcept override { return !here.empty(); }
    piece take(std::size_t most) override {
        piece one;
        if (wrong != nullptr) {
            one.error = wrong;
            return one;
        }
        ended = here.front().empty();
        taken = here.front().substr(0, most);
        here.front().erase(0, most);
        if (here.front().empty()) {
            here.pop_front();
        }
        one.data = taken;
        one.taken = taken.size() + frame_head;
        if (ended) {
            one.trailers = behind;
        }
        return one;
    }
    awaitable<std::size_t> fill(std::size_t /*most*/,
                                asio::cancellation_slot /*given_up*/) override {
        if (to_come.empty()) {
            co_return 0;
        }
        here.push_back(std::move(to_come.front()));
        to_come.pop_front();
        co_return here.back().size() + frame_head;
    }
    void hold() noexcept override { ++held; }
    void release() noexcept override { --held; }
    void leave() noexcept override {}

    static constexpr std::size_t frame_head = 9;
    const bool counted;
    std::deque<std::string> here, to_come;
    std::string taken;
    std::vector<http::field> behind;
    const char* wrong = nullptr;
    bool ended = false;
    int held = 0;
};

/// All that an origin gets of it.
struct framed_upload : test_loop {
    explicit framed_upload(std::unique_ptr<framed_stream> content)
        : stream{*content},
          body{std::make_shared<upload>(
              std::move(content), reprise::config::options{}, false, timer)} {}

    std::string sent() {
        start(upload::run(body, origin));
        run_until([&] { return body->state() > upload::phase::running; });
        origin.reset();
        std::string heard;
        error_code end;
        std::array<char, 65536> block;
        while (!end) {
            heard.append(block.data(), to.theirs.read_some(asio::buffer(block), end));
        }
        return heard;
    }

    socket_pair to = connected_pair(io);
    byte_stream origin{std::move(to.ours)};
    framed_stream& stream;
    const std::shared_ptr<upload> body;
};

}  // namespace

TEST_CASE("content of any protocol goes to an origin as it said its length, or in chunks") {
    for (const bool counted : {true, false}) {
        auto content = std::make_unique<framed_stream>(counted);
        content->here = {"hel"};
        content->to_come = {"lo", std::string(100'000, 'b'), ""};
        content->behind = {{http::field_id::unknown, "Digest", "x"}};
        framed_upload on{std::move(content)};
        const auto heard = on.sent();
        CHECK(on.body->state() == upload::phase::done);
        CHECK(on.stream.held == 0);
        if (counted) {
            CHECK(heard == "hello" + std::string(100'000, 'b'));
        } else {
            CHECK(heard == "3\r\nhel\r\n2\r\nlo\r\n10000\r\n" + std::string(65'536, 'b') +
                               "\r\n86a0\r\n" + std::string(34'464, 'b') +
                               "\r\n0\r\nDigest: x\r\n\r\n");
        }
    }
}

TEST_CASE("content that ends without its end is no whole body") {
    auto content = std::make_unique<framed_stream>(false);
    content->to_come = {"hel"};
    framed_upload on{std::move(content)};
    CHECK(on.sent() == "3\r\nhel\r\n");
    CHECK(on.body->state() == upload::phase::client_failed);
}

TEST_CASE("content whose framing is wrong ends its upload by saying how") {
    auto content = std::make_unique<framed_stream>(false);
    content->here = {"hel"};
    content->wrong = "a frame of no size";
    framed_upload on{std::move(content)};
    CHECK(on.sent().empty());
    CHECK(on.body->state() == upload::phase::bad_framing);
    CHECK(on.body->why().detail == "a frame of no size");
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_upload
