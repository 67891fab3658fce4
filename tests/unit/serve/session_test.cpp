#include "proxy/base/sanitized.hpp"
#include "proxy/serve/session.hpp"
#include "tests/support/proxy_headers.hpp"
#include "tests/support/tls_peer.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/tls_bench.hpp"
#include "tests/unit/serve/exchanges.hpp"
#include "tests/unit/serve/hello_waits.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::serve::test::of_session {

// A node with stored responses, whose loop the test runs, and clients connected to it.
struct served {
    bench on;
    net::tcp_acceptor acceptor;

    explicit served(const config::options& options = fetch::test::with_memory(1u << 20))
        : on{options},
          acceptor{listen(on.at.w.io)} {
        on.store(of_five, "hello");
        on.store(of_five, "other", "", "http://a.example/y");
    }
    ~served() {
        on.at.w.abort();
        on.settle();
        CHECK(on.at.w.connections.alone());
    }
    static net::tcp_acceptor listen(asio::io_context& io) {
        auto made = net::listen_on_loopback(io);
        net::prepare_listener(made.native_handle());
        return made;
    }

    struct client {
        tcp_socket theirs;
        tcp_socket ours;
        std::string got{};

        void sends(std::string_view bytes) { asio::write(theirs, asio::buffer(bytes)); }
        /// What it has been sent by now.
        const std::string& hears() {
            error_code error;
            for (char room[4096]; !error;) {
                const auto count = theirs.read_some(asio::buffer(room), error);
                got.append(room, count);
            }
            ended = error == asio::error::eof;
            return got;
        }
        bool ended = false;
    };
    client connects() {
        auto theirs = tcp_socket{on.at.w.io};
        theirs.connect(acceptor.local_endpoint());
        auto ours = acceptor.accept();
        net::prepare_socket(theirs);
        net::prepare_socket(ours);
        return {.theirs = std::move(theirs), .ours = std::move(ours)};
    }
    void accepts(client& one) {
        const auto from = one.ours.remote_endpoint();
        session::begin(on.at.w, std::move(one.ours), 0, from, open_connection{on.at.w});
    }
    template <class Condition>
    bool goes_on_until(Condition met) {
        return run_until(on.at.w.io, std::move(met));
    }
    template <class Side>
    void client_does(Side side) {
        run_beside(on.at.w.io, std::move(side));
    }
    [[nodiscard]] std::uint64_t open() const { return on.at.w.counts.client_open.read(); }
    [[nodiscard]] std::uint64_t hits() const { return on.counted(outcome::hit); }
};

std::size_t answers_in(std::string_view text) {
    std::size_t count = 0;
    for (auto at = text.find("HTTP/1.1 200"); at != std::string_view::npos;
         at = text.find("HTTP/1.1 200", at + 1)) {
        ++count;
    }
    return count;
}

// So many as are read at once, asking for /x and /y in turn.
constexpr unsigned many = 300;
std::string pipelined(unsigned count = many) {
    std::string out;
    for (unsigned i = 0; i < count; ++i) {
        out += i % 2 == 0 ? get() : head_of("GET http://a.example/y");
    }
    return out;
}

net::address_bytes at(const std::string& text) {
    return net::canonical(asio::ip::make_address(text));
}

/// One that speaks for many: 2001:db8::10.
config::options with_a_front() {
    auto options = fetch::test::with_memory(1u << 20);
    options.access.fronts = {config::network{at("2001:db8::10"), 128}};
    return options;
}

TEST_SUITE_BEGIN("serve/session");

TEST_CASE("a front's connections are not those of the clients of its network") {
    auto options = with_a_front();
    options.limits.connections_per_client = 1;
    bench on{options};
    const auto enters = [&](const char* from) { return connection_slot{on.at.w, at(from)}; };
    const auto one = enters("2001:db8::10");
    const auto another = enters("2001:db8::10");
    CHECK((one && another));
    const auto client = enters("2001:db8::20");
    CHECK(client);
    CHECK_FALSE(enters("2001:db8::21"));  // who has one of the network's addresses has them all
}

TEST_CASE("all have so many connections together, fronts too, and one that ends makes room") {
    auto options = with_a_front();
    options.access.clients = {config::network{{}, 0}};
    options.limits.client_connections = 2;
    bench on{options};
    const auto enters = [&](const char* from) { return connection_slot{on.at.w, at(from)}; };
    auto one = enters("192.0.2.1");
    const auto another = enters("198.51.100.1");
    CHECK((one && another));
    CHECK_FALSE(enters("203.0.113.1"));
    CHECK_FALSE(enters("2001:db8::10"));
    one = {};
    for (const char* from : {"203.0.113.1", "2001:db8::10"}) {
        CAPTURE(from);
        for (int round = 0; round < 10; ++round) {
            CAPTURE(round);
            const auto next = enters(from);
            CHECK(next);
            CHECK_FALSE(enters("192.0.2.1"));
        }
    }
}

TEST_CASE(
    "those who are not served take no more than a sixteenth of the places from those who are") {
    auto options = fetch::test::with_memory(1u << 20);
    options.access.clients = {config::network{at("192.0.2.0"), 120}};
    options.limits.client_connections = 48;
    bench on{options};
    std::vector<connection_slot> strangers, served;
    for (int i = 1; i <= 48; ++i) {
        if (connection_slot one{on.at.w, at("203.0.113." + std::to_string(i))}) {
            strangers.push_back(std::move(one));
        }
    }
    CHECK(strangers.size() == 3);
    const auto& over_limit = on.at.w.counts.client_over_limit;
    CHECK(over_limit.read() == 0);  // whoever scans us meets no limit that an operator could raise
    for (int i = 1; i <= 48; ++i) {
        if (connection_slot one{on.at.w, at("192.0.2." + std::to_string(i))}) {
            served.push_back(std::move(one));
        }
    }
    CHECK(served.size() == 45);
    CHECK(over_limit.read() == 3);
    strangers.pop_back();
    CHECK(connection_slot{on.at.w, at("192.0.2.99")});
    CHECK(connection_slot{on.at.w, at("203.0.113.99")});
}

TEST_CASE("a client who finds no place is told so, and counted with those who may not ask") {
    auto options = fetch::test::with_memory(1u << 20);
    options.limits.connections_per_client = 1;
    served by{options};
    auto first = by.connects(), second = by.connects();
    by.accepts(first);
    second.sends(get());
    by.accepts(second);
    by.on.settle();
    CHECK(second.hears().starts_with("HTTP/1.1 503 "));
    CHECK(by.on.counted(outcome::refused) == 1);
    CHECK(by.on.counted(outcome::client_error) == 0);
    CHECK(by.on.at.w.counts.client_refused.read() == 1);
    CHECK(by.on.at.w.counts.client_over_limit.read() == 1);
    first.sends(get());
    by.on.settle();
    CHECK(answers_in(first.hears()) == 1);
}

TEST_CASE("a connection is open while its front is yet to say whose it is") {
    auto options = fetch::test::with_memory(1u << 20);
    options.listeners.front().proxy_protocol = true;
    config::network front;
    front.address = net::canonical(asio::ip::address_v4::loopback());
    options.access.trusted_fronts = {front};
    served by{options};
    auto one = by.connects();
    const auto from = one.ours.remote_endpoint();
    serve_client(by.on.at.w, {std::move(one.ours), from}, 0);
    by.on.settle();
    CHECK(by.open() == 1);
    one.sends(tests::proxy_header(0x20, 0, "") + get());
    by.on.settle();
    CHECK(answers_in(one.hears()) == 1);
    CHECK(by.open() == 1);
    one.theirs.close();
    by.on.settle();
    CHECK(by.open() == 0);
}

TEST_CASE("an opened tunnel of whose bytes a client takes none is open when its session is over") {
    auto options = of_hello_wait::opening(443);
    options.limits.connections_per_client = 1;
    served by{options};
    auto& w = by.on.at.w;
    auto one = by.connects();
    const auto from = one.ours.remote_endpoint();
    const auto has_room = [&] {
        return static_cast<bool>(connection_slot{w, net::canonical(from.address())});
    };
    const int outer = one.ours.native_handle();
    auto client = tests::tls_peer::client(
        one.theirs.release(), {.trusted = net::known_authority().certificate(), .host = "a.test"});
    std::optional<attempt<net::byte_stream>> secured;
    auto shaking = net::accept_tls(std::move(one.ours),
                                   net::identity_for(net::known_authority().issue("DNS:a.test")),
                                   w.timer,
                                   net::late());
    asio::co_spawn(w.io,
                   net::test_loop::put_into(std::move(shaking), secured),
                   [](const std::exception_ptr& thrown) { CHECK(!thrown); });
    bool shook = false;
    by.client_does([&] { shook = client.shake_hands(); });
    REQUIRE(shook);
    REQUIRE(by.goes_on_until([&] { return secured.has_value(); }));
    REQUIRE(secured->has_value());
    session::begin(w, std::move(**secured), 0, from, open_connection{w});
    std::string said;
    by.client_does([&] {
        if (client.send(head_of("CONNECT a.test:443"))) {
            said = client.read(1);
        }
    });
    REQUIRE(said.starts_with("HTTP/1.1 200 "));
    REQUIRE(client.send(of_hello_wait::hello_of("a.test")));
    // The kernel takes nothing more towards the client, which reads nothing more.
    const std::string block(64u << 10, 'x');
    for (int quiet = 0; quiet < 10; ++quiet) {
        while (::send(outer, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
            quiet = 0;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    REQUIRE(by.goes_on_until([&] { return by.on.at.common.shaking_hands.size() == 1; }));
    w.timer.tick(steady_now() + std::chrono::seconds{5});  // the handshake's time is over
    REQUIRE(by.goes_on_until([&] { return w.connections.alone(); }));
    CHECK(by.open() == 1);
    CHECK_FALSE(has_room());
    client.reset();
    CHECK(by.goes_on_until([&] { return by.open() == 0; }));
    CHECK(has_room());
}

TEST_CASE("a client that pipelines keeps nobody waiting who is accepted with it") {
    served by;
    auto greedy = by.connects(), modest = by.connects();
    greedy.sends(pipelined());
    modest.sends(get());
    by.accepts(greedy);
    CHECK(by.hits() < 10);
    by.accepts(modest);
    CHECK(answers_in(modest.hears()) == 1);
    by.on.settle();
    CHECK(by.hits() == many + 1);
}

TEST_CASE("a client that pipelines keeps nobody waiting who asks after it") {
    served by;
    auto greedy = by.connects(), modest = by.connects();
    by.accepts(greedy);
    by.accepts(modest);
    by.on.settle();
    greedy.sends(pipelined());
    modest.sends(get());
    by.on.at.w.io.restart();
    while (answers_in(modest.hears()) == 0 && by.on.at.w.io.poll_one() > 0) {
    }
    CHECK(by.hits() < 20);
    by.on.settle();
    CHECK(by.hits() == many + 1);
}

TEST_CASE("what is pipelined is answered whole and in its order, over however many turns") {
    served by;
    auto one = by.connects();
    const auto all = pipelined();
    const auto cut = all.size() - 20;  // in the middle of the last head
    one.sends(all.substr(0, cut));
    by.accepts(one);
    by.on.settle();
    CHECK(by.hits() == many - 1);
    one.sends(all.substr(cut));
    by.on.settle();
    REQUIRE(answers_in(one.hears()) == many);
    std::size_t at = 0;
    for (unsigned i = 0; i < many; ++i) {
        CAPTURE(i);
        at = one.got.find("\r\n\r\n", at);
        REQUIRE(at != std::string::npos);
        CHECK(one.got.substr(at + 4, 5) == (i % 2 == 0 ? "hello" : "other"));
        at += 4;
    }
    CHECK(!one.ended);
    one.sends(get());  // it waits for more
    by.on.settle();
    CHECK(answers_in(one.hears()) == many + 1);
}

TEST_CASE("an answer that waits holds up what is pipelined behind it, and that goes on in turns") {
    served by;
    auto one = by.connects();
    one.sends(head_of("GET http://a.example/absent") + pipelined());
    by.accepts(one);
    by.on.settle();
    CHECK(by.hits() == 0);
    auto from = by.on.origin();
    from.head(of_five);
    from.body("later");
    from.end();
    by.on.settle();
    CHECK(by.hits() == many);
    CHECK(answers_in(one.hears()) == many + 1);
    CHECK(one.got.find("later") < one.got.find("hello"));
}

TEST_CASE("nothing is answered behind a request that was its client's last") {
    served by;
    auto one = by.connects();
    one.sends(pipelined(100) + get("Connection: close\r\n") + pipelined(100));
    by.accepts(one);
    by.on.settle();
    CHECK(by.hits() == 101);
    CHECK(answers_in(one.hears()) == 101);
    CHECK(one.ended);
}

TEST_CASE("a drain lets who pipelines have one answer more, which is the connection's last") {
    served by;
    auto one = by.connects();
    one.sends(pipelined());
    by.accepts(one);
    const auto before = by.hits();
    by.on.at.common.draining = true;
    by.on.at.w.drain();
    by.on.settle();
    CHECK(by.hits() == before + 1);
    CHECK(answers_in(one.hears()) == before + 1);
    CHECK(one.got.find("Connection: close") != std::string::npos);
    CHECK(one.ended);
}

TEST_CASE("a connection that is closed while it waits for its turn answers nothing more") {
    served by;
    auto one = by.connects();
    one.sends(pipelined());
    by.accepts(one);
    const auto before = by.hits();
    by.on.at.w.abort();
    by.on.settle();
    CHECK(by.hits() == before);
    CHECK(by.on.at.w.connections.alone());
}

TEST_CASE(
    "a connection has the memory of one that has ended, whatever the heap was asked for since") {
    served by;
    const auto in_list = [&] { return by.on.at.w.connections.next; };
    auto first = by.connects();
    by.accepts(first);
    const auto* const place = in_list();
    first.theirs.close();
    by.on.settle();
    REQUIRE(by.on.at.w.connections.alone());
    std::vector<std::unique_ptr<char[]>> takers;  // of whatever a session's size the heap has free
    for (std::size_t size = 256; size < 1'024; size += 16) {
        takers.push_back(std::make_unique<char[]>(size));
    }
    auto second = by.connects();
    by.accepts(second);
    CHECK((in_list() == place) == !heap_is_watched);
}

TEST_CASE("each connection is told of a drain, and leaves the list at its end alone") {
    served by;
    auto idle = by.connects(), busy = by.connects(), last = by.connects();
    for (auto* one : {&idle, &busy, &last}) {
        by.accepts(*one);
    }
    busy.sends(head_of("GET http://a.example/absent"));
    by.on.settle();
    by.on.at.common.draining = true;
    by.on.at.w.drain();
    by.on.settle();
    (void)idle.hears();
    (void)last.hears();
    CHECK(idle.ended);
    CHECK(last.ended);
    CHECK(!by.on.at.w.connections.alone());
    auto from = by.on.origin();
    from.head(of_five);
    from.body("later");
    from.end();
    by.on.settle();
    CHECK(answers_in(busy.hears()) == 1);
    CHECK(busy.ended);
    CHECK(by.on.at.w.connections.alone());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_session
