#include "proxy/base/sanitized.hpp"
#include "proxy/serve/session.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_session {

// A node with stored responses, whose loop the test runs, and clients connected to it.
struct served {
    bench on;
    net::tcp_acceptor acceptor;

    served() : acceptor{listen(on.at.w.io)} {
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
        session::begin(on.at.w, std::move(one.ours), 0, from);
    }
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

TEST_SUITE_BEGIN("serve/session");

TEST_CASE("a front's connections are not those of the clients of its network") {
    auto options = fetch::test::with_memory(1u << 20);
    const auto at = [](const char* text) { return net::canonical(asio::ip::make_address(text)); };
    config::network front;
    front.address = at("2001:db8::10");
    front.prefix_bits = 128;
    options.access.fronts = {front};
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
