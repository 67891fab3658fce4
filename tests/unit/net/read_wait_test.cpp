#include "proxy/net/byte_stream.hpp"
#include "proxy/net/read_wait.hpp"
#include "tests/unit/net/loop.hpp"

#include <memory>
#include <vector>

namespace reprise::proxy::net::test::of_read_wait_test {

// Notes what it is told, and reads nothing.
struct noting final : read_wait::waiter {
    std::vector<error_code> told;
    int loops_gone = 0;
    void on_readable(error_code over) override { told.push_back(over); }
    void on_loop_gone() noexcept override { ++loops_gone; }
};

// A connection whose accepted side waits: what the listener has asked for is inherited.
struct waiting_pair {
    test_loop loop;
    tcp_socket theirs{loop.io};
    byte_stream ours;
    noting noted;
    read_wait wait{loop.io, noted};

    waiting_pair() : ours{connect()} {}

    tcp_socket connect() {
        auto acceptor = listen_on_loopback(loop.io);
        prepare_listener(acceptor.native_handle());
        theirs.connect(acceptor.local_endpoint());
        prepare_socket(theirs);
        auto accepted = acceptor.accept();
        accepted.non_blocking(true);
        return accepted;
    }
    std::string read_now() {
        std::string room(64, '\0');
        error_code error;
        room.resize(ours.try_read(asio::buffer(room), error));
        return error ? error.message() : room;
    }
    void send(const std::string& text) { asio::write(theirs, asio::buffer(text)); }
    // Until the bytes are in our socket, without a turn of the loop.
    void arrive() {
        while (ours.look() == stream_look::nothing) {
        }
    }
    std::size_t told_after(std::size_t count) {
        loop.run_until([&] { return noted.told.size() >= count; });
        return noted.told.size();
    }
    void expect_none() {
        loop.run_for(std::chrono::milliseconds{20});
        CHECK(noted.told.empty());
    }
};

TEST_SUITE_BEGIN("net/read_wait");

TEST_CASE("who has just read all is told of what comes then, each time") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    for (std::size_t round = 1; round <= 5; ++round) {
        pair.ours.wait_readable(pair.wait, true);
        pair.send("question " + std::to_string(round));
        REQUIRE(pair.told_after(round) == round);
        CHECK(!pair.noted.told.back());
        CHECK(pair.read_now() == "question " + std::to_string(round));
    }
}

TEST_CASE("nothing is told while nothing comes") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.ours.wait_readable(pair.wait, true);
    pair.expect_none();
    pair.send("x");
    CHECK(pair.told_after(1) == 1);
}

TEST_CASE("what came since an earlier turn is told at once") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.send("early");
    pair.arrive();
    pair.loop.run_for(std::chrono::milliseconds{20});  // its event is reported to nobody
    pair.ours.wait_readable(pair.wait, false);
    CHECK(pair.told_after(1) == 1);
    CHECK(pair.read_now() == "early");
}

TEST_CASE("an end that came with the bytes is told, though reading them took all") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.send("last");
    pair.theirs.shutdown(tcp_socket::shutdown_send);
    pair.arrive();
    pair.loop.run_for(std::chrono::milliseconds{20});  // one event told of both
    CHECK(pair.read_now() == "last");
    pair.ours.wait_readable(pair.wait, true);
    CHECK(pair.told_after(1) == 1);
    CHECK(pair.read_now() == error_code{asio::error::eof}.message());
}

TEST_CASE("bytes that found no room are told") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.send(pattern(100));
    pair.arrive();
    pair.loop.run_for(std::chrono::milliseconds{20});
    CHECK(pair.read_now().size() == 64);
    pair.ours.wait_readable(pair.wait, true);
    CHECK(pair.told_after(1) == 1);
    CHECK(pair.read_now().size() == 36);
}

TEST_CASE("whoever reads by Asio after a wait finds what is there") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.ours.wait_readable(pair.wait, true);
    pair.send(pattern(100));
    REQUIRE(pair.told_after(1) == 1);
    CHECK(pair.read_now().size() == 64);
    CHECK(pair.loop.finish(read_exactly(pair.ours, 36)) == pattern(100).substr(64));
    pair.ours.wait_readable(pair.wait, true);  // Asio's reading tells nothing of what is left
    pair.loop.run_for(std::chrono::milliseconds{20});
    pair.send("x");
    CHECK(pair.told_after(2) == 2);
}

TEST_CASE("a reset ends a wait") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    pair.ours.wait_readable(pair.wait, true);
    pair.theirs.set_option(asio::socket_base::linger{true, 0});
    pair.theirs.close();
    CHECK(pair.told_after(1) == 1);
    CHECK(pair.read_now() == error_code{asio::error::connection_reset}.message());
}

TEST_CASE("cancelling and closing end a wait, and it can be begun again in between") {
    waiting_pair pair;
    CHECK(pair.read_now().empty());
    error_code ignored;
    pair.ours.wait_readable(pair.wait, true);
    pair.ours.cancel(ignored);
    CHECK(pair.told_after(1) == 1);
    CHECK(pair.noted.told.back() == asio::error::operation_aborted);
    pair.ours.wait_readable(pair.wait, false);
    pair.ours.close(ignored);
    CHECK(pair.told_after(2) == 2);
    CHECK(pair.noted.told.back() == asio::error::operation_aborted);
}

TEST_CASE("a loop that goes tells whoever still waits, who may go then") {
    struct owner final : read_wait::waiter {
        owner(asio::io_context& io, tcp_socket of, int& told)
            : stream{std::move(of)},
              wait{io, *this},
              gone{told} {}
        byte_stream stream;
        read_wait wait;
        int& gone;
        void on_readable(error_code) override { FAIL("told of bytes"); }
        void on_loop_gone() noexcept override {
            ++gone;
            delete this;
        }
    };
    int gone = 0;
    {
        asio::io_context io{1};
        auto pair = connected_pair(io);
        auto* const one = new owner{io, std::move(pair.ours), gone};
        one->stream.wait_readable(one->wait, false);
        io.poll();
        CHECK(gone == 0);
    }
    CHECK(gone == 1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_read_wait_test
