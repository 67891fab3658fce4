#include "proxy/net/client_stream.hpp"
#include "tests/unit/net/loop.hpp"

#include <string>
#include <vector>

namespace reprise::proxy::net::test::of_client_stream_test {
namespace {

using namespace std::chrono_literals;

/// A client that reads whatever has come whenever it is told to, so that the kernel always takes more.
struct quick_client : test_loop {
    client_rates rates{1u << 30};
    counter waits;
    socket_pair pair = connected_pair(io);
    client_stream stream{byte_stream{std::move(pair.theirs)}, timer};
    std::string got;

    void read_some() {
        pair.ours.non_blocking(true);
        std::string block(256u << 10, '\0');
        error_code error;
        while (!error) {
            const auto count = pair.ours.read_some(asio::buffer(block), error);
            got.append(block, 0, count);
        }
    }
    /// All that was sent, which may be on its way for a moment.
    void read_all() {
        const auto give_up = late();
        while (got.size() < stream.bytes_out() && steady_now() < give_up) {
            read_some();
        }
    }
};

}  // namespace

TEST_SUITE("net/client_stream") {

    TEST_CASE("a client as quick as we are gets so much at once, and the rest turn by turn") {
        quick_client client;
        SUBCASE("without a limit") {}
        SUBCASE("with a limit far beyond that") {
            client.stream.limit_to(
                client.rates.bucket_of({canonical(asio::ip::make_address("192.0.2.1")), {}},
                                       steady_now()),
                client.waits);
        }
        auto& stream = client.stream;
        const auto text = pattern(3 * client_stream::most_at_once);
        std::vector<asio::const_buffer> parts;
        for (std::size_t at = 0; at < text.size(); at += 64u << 10) {
            parts.emplace_back(text.data() + at, 64u << 10);
        }
        for (int i = 0; i < 10'000 && stream.bytes_out() < client_stream::most_at_once; ++i) {
            REQUIRE(!stream.send_now(parts));
            client.read_all();
        }
        REQUIRE(client.got.size() >= client_stream::most_at_once);
        // Nothing waits in the kernel, and yet:
        const auto before = stream.bytes_out();
        CHECK(!stream.send_now(parts));
        CHECK(stream.bytes_out() == before);
        CHECK(before < 2 * client_stream::most_at_once);

        // Whoever waits for the rest has it all.
        std::optional<ended> how;
        client.start([](client_stream& to,
                        std::vector<asio::const_buffer>& what,
                        std::optional<ended>& into) -> awaitable<void> {
            into = co_await to.send(what, 1, 10min);
        }(stream, parts, how));
        client.run_until([&] {
            client.read_some();
            return how.has_value() && client.got.size() == text.size();
        });
        CHECK(how == ended::keep);
        CHECK(client.got == text);

        // The next reply begins anew.
        stream.reply_is_whole();
        std::vector<asio::const_buffer> next{{text.data(), 1000}};
        CHECK(stream.send_now(next));
        CHECK(stream.bytes_out() == text.size() + 1000);
    }
}

}  // namespace reprise::proxy::net::test::of_client_stream_test
