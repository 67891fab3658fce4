#include "proxy/net/origin_pool.hpp"
#include "proxy/net/way_through.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <atomic>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace reprise;
using namespace std::chrono_literals;

namespace reprise::proxy::net::test::of_way_through {
namespace {

using asked = std::optional<attempt<passage>>;

way_ptr plain_way(std::string credentials = "") {
    return std::make_shared<const way_through>(way_through{.name = "p",
                                                           .host = "127.0.0.1",
                                                           .port = 1,
                                                           .credentials = std::move(credentials),
                                                           .via = "1.1 us"});
}

/// Our side asks on one end of a connection; the parent is the other end.
struct parent_bench : test_loop {
    socket_pair pair = connected_pair(io);
    asked result;

    void ask(way_ptr way = plain_way(), far_end to = {"a.test", 443}, steady_time until = late()) {
        byte_stream ours{std::move(pair.ours)};
        start(put_into(ask_to_connect(std::move(ours), std::move(way), std::move(to), timer, until),
                       result));
    }
    void say(const std::string& text) { REQUIRE_FALSE(finish(write_text(pair.theirs, text))); }
    attempt<passage>& answered() {
        run_until([&] { return result.has_value(); });
        REQUIRE(result.has_value());
        return *result;
    }
    /// What comes of an answer that ends the connection.
    attempt<passage>& answered_with(const std::string& text) {
        ask();
        say(text);
        pair.theirs.shutdown(tcp_socket::shutdown_send);
        return answered();
    }
};

}  // namespace

TEST_SUITE_BEGIN("net/way_through");

TEST_CASE("a parent is asked for host and port, with Via and its credentials") {
    parent_bench bench;
    bench.ask(plain_way("Basic dTpw"), {"::1", 8443, "1.0 before, 1.1 us"});
    const std::string wanted = "CONNECT [::1]:8443 HTTP/1.1\r\nHost: [::1]:8443\r\n"
                               "Via: 1.0 before, 1.1 us\r\nProxy-Authorization: Basic dTpw\r\n\r\n";
    CHECK(bench.finish(read_exactly(bench.pair.theirs, wanted.size())) == wanted);

    parent_bench without;
    without.ask();
    const std::string plain =
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nVia: 1.1 us\r\n\r\n";
    CHECK(without.finish(read_exactly(without.pair.theirs, plain.size())) == plain);
}

TEST_CASE("an answer may be cut anywhere, and what is behind it is kept") {
    const std::string head = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Connection established\r\n"
                             "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string all = head + "SSH-2.0-far\r\n";
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        CAPTURE(cut);
        parent_bench bench;
        bench.ask();
        bench.say(all.substr(0, cut));
        // What has come is read before the rest is sent.
        bench.run_for(1ms);
        bench.say(all.substr(cut));
        auto& got = bench.answered();
        REQUIRE(got.has_value());
        const std::string behind{got->behind.data()};
        CHECK(behind + bench.finish(read_exactly(got->stream, 13 - behind.size())) ==
              "SSH-2.0-far\r\n");
    }
}

TEST_CASE("an HTTP/1.0 parent's 200 is one too") {
    parent_bench bench;
    bench.ask();
    bench.say("HTTP/1.0 200 OK\r\n\r\n");
    REQUIRE(bench.answered().has_value());
    // The other way goes on.
    bench.finish(write_text(bench.result->value().stream, "hello"));
    const auto all = bench.finish(read_exactly(
        bench.pair.theirs,
        std::string{"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nVia: 1.1 us\r\n\r\nhello"}
            .size()));
    CHECK(all.ends_with("\r\n\r\nhello"));
}

TEST_CASE("a refusal names the parent and its status") {
    for (const unsigned status : {101u, 301u, 403u, 407u, 502u, 503u, 504u, 599u}) {
        CAPTURE(status);
        parent_bench bench;
        const auto& got = bench.answered_with("HTTP/1.1 " + std::to_string(status) +
                                              " No\r\n\r\nbody");
        REQUIRE(got.has_error());
        CHECK(got.error().code == failure_code::parent_refused);
        CHECK(got.error().detail.starts_with("p answered CONNECT with " + std::to_string(status)));
        CHECK((got.error().detail.find("credentials_file") != std::string::npos) ==
              (status == 407));
    }
}

TEST_CASE("a parent that finds a loop is told apart from one that refuses") {
    parent_bench bench;
    const auto& got = bench.answered_with("HTTP/1.1 508 Loop Detected\r\n\r\n");
    REQUIRE(got.has_error());
    CHECK(got.error().code == failure_code::loop_detected);
    CHECK(got.error().detail == "p answered CONNECT with 508");
}

TEST_CASE("a 407 to credentials tells nothing of them") {
    parent_bench bench;
    bench.ask(plain_way("Basic dTpw"));
    bench.say("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const auto& got = bench.answered();
    REQUIRE(got.has_error());
    CHECK(got.error().detail ==
          "p answered CONNECT with 407: it does not take what is in its credentials_file");
}

TEST_CASE("what is no answer is the parent's failure") {
    std::string interim;
    for (unsigned i = 0; i <= most_connect_interim; ++i) {
        interim += "HTTP/1.1 103 Early Hints\r\n\r\n";
    }
    const std::vector<std::string> none{
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\nA: b\r\n",
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\n\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        std::string("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", 25),
        "HTTP/1.1 200 OK\r\nA: " + std::string(most_connect_head, 'x') + "\r\n\r\n",
        interim + "HTTP/1.1 200 OK\r\n\r\n",
        std::string(100'000, 'x'),
    };
    for (std::size_t i = 0; i < none.size(); ++i) {
        CAPTURE(i);
        parent_bench bench;
        bench.ask();
        bench.start([](tcp_socket& far, std::string text) -> awaitable<void> {
            static_cast<void>(co_await write_text(far, std::move(text)));
            error_code ignored;
            far.shutdown(tcp_socket::shutdown_send, ignored);
        }(bench.pair.theirs, none[i]));
        const auto& got = bench.answered();
        REQUIRE(got.has_error());
        CHECK(got.error().code == failure_code::no_parent);
        CHECK(got.error().detail.starts_with("p: in answer to CONNECT: "));
    }
}

TEST_CASE("silence ends at its time, whatever was said before it") {
    for (const std::string said : {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
        CAPTURE(said);
        parent_bench bench;
        bench.ask(plain_way(), {"a.test", 443}, steady_now() + 30ms);
        bench.say(said);
        const auto& got = bench.answered();
        REQUIRE(got.has_error());
        CHECK(got.error().code == failure_code::connect_timeout);
    }
}

TEST_CASE("what fails before a parent is reached names it, and what is ours stays as it is") {
    const auto told = parent_not_reached("p", {failure_code::connect_refused, "127.0.0.1:1"});
    CHECK(told.code == failure_code::no_parent);
    CHECK(told.detail == "p: connect_refused: 127.0.0.1:1");
    const auto bad = parent_not_reached("p", {failure_code::tls_certificate, "self-signed"});
    CHECK(bad.code == failure_code::parent_certificate);
    CHECK(bad.detail == "p: tls_certificate: self-signed");
    CHECK(is_of_certificate(bad.code));
    CHECK(parent_not_reached("p", {failure_code::out_of_memory, ""}).code ==
          failure_code::out_of_memory);
    CHECK(parent_not_reached("p", {failure_code::parent_refused, ""}).code ==
          failure_code::parent_refused);
}

namespace {

using leased = std::optional<attempt<origin_lease>>;

/// A pool, and a parent that is straight code on a thread, one connection at a time.
struct pool_bench_through : test_loop {
    tcp_acceptor listening = listen_on_loopback(io);
    fake_dns server;
    resolver names{timer, asking(server)};
    origin_pool pool{timer, names, make_guard({}), {}};
    std::vector<tcp_socket> accepted;
    leased result;

    pool_bench_through() {
        pool.set_trust(trust_of_the_test());
        accept();
    }
    void accept() {
        listening.async_accept([this](const error_code& error, tcp_socket socket) {
            if (!error) {
                accepted.push_back(std::move(socket));
                accept();
            }
        });
    }
    way_ptr way(bool tls = false, std::string host = "127.0.0.1") {
        return std::make_shared<const way_through>(
            way_through{.name = "p",
                        .host = std::move(host),
                        .port = listening.local_endpoint().port(),
                        .tls = tls,
                        .credentials = "Basic dTpw",
                        .via = "1.1 us"});
    }
    static awaitable<void> take(origin_pool& from, origin_address to, leased& into) {
        auto got = co_await from.acquire(to, false, late());
        into.emplace(std::move(got));
    }
    /// `while_dialled` happens before there is a connection. @pre then the parent is p.test
    int begin(const origin_address& to, const std::function<void()>& while_dialled = {}) {
        const auto had = accepted.size();
        const auto dials = pool.figures().dials.load();
        server.set_v4("p.test", "127.0.0.1");
        start(take(pool, to, result));
        if (while_dialled) {
            run_until([&] { return pool.figures().dials > dials; });  // its name is looked up
            REQUIRE(accepted.size() == had);
            while_dialled();
        }
        run_until([&] { return accepted.size() > had; });
        REQUIRE(accepted.size() == had + 1);
        return accepted.back().release();
    }
    void await_result(std::thread& far) {
        run_until([&] { return result.has_value(); });
        join_running(far);  // its handshake ends with bytes of ours
        REQUIRE(result.has_value());
    }
};

// Asio left it non-blocking.
void let_block(int socket) {
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
}

std::string read_head_from(int socket) {
    let_block(socket);
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n") && ::recv(socket, &byte, 1, 0) == 1) {
        head += byte;
    }
    return head;
}

void send_to(int socket, std::string_view text) {
    CHECK(::send(socket, text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<::ssize_t>(text.size()));
}

const tests::made_certificate& of_the_parent() {
    static const auto made = known_authority().issue("DNS:p.test,IP:127.0.0.1");
    return made;
}

/// A parent behind TLS, from its handshake to the end of what it carries to and from `far`. What it
/// was asked; `asked` is called before it answers.
std::string carry_by_tls(
    int socket, int far, const std::function<void()>& asked = [] {}) {
    std::string head;
    auto outer = tests::tls_peer::server(socket, of_the_parent());
    if (!outer.shake_hands()) {
        return head;
    }
    while (!head.ends_with("\r\n\r\n")) {
        const auto more = outer.read(1);
        if (more.empty()) {
            return head;
        }
        head += more;
    }
    asked();
    outer.send("HTTP/1.1 200 OK\r\n\r\n");
    // Carries until either side ends.
    outer.read_for(5ms);
    for (bool open = true; open;) {
        std::string from_us;
        const auto read = outer.read_some(from_us);
        if (!from_us.empty()) {
            send_to(far, from_us);
        }
        open = read == tests::tls_end::data || read == tests::tls_end::timed_out;
        char block[16384];
        const auto got = ::recv(far, block, sizeof block, MSG_DONTWAIT);
        if (got > 0) {
            outer.send({block, static_cast<std::size_t>(got)});
        } else if (got == 0) {
            open = false;
        }
    }
    ::close(far);
    return head;
}

}  // namespace

TEST_CASE("an https origin is reached through a parent, and the connection is kept") {
    pool_bench_through bench;
    const origin_address to{"a.test", 443, false, true, bench.way()};
    const int socket = bench.begin(to);
    std::string head, heard;
    std::optional<tests::tls_peer> origin;
    std::thread far{[&] {
        head = read_head_from(socket);
        send_to(socket, "HTTP/1.1 200 OK\r\n\r\n");
        origin.emplace(tests::tls_peer::server(socket, known_authority().issue("DNS:a.test")));
        static_cast<void>(origin->shake_hands());
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_value());
    CHECK(head.starts_with("CONNECT a.test:443 HTTP/1.1\r\n"));
    CHECK(head.find("\r\nProxy-Authorization: Basic dTpw\r\n") != std::string::npos);
    CHECK(origin->asked_for() == "a.test");
    CHECK(bench.server.asked("a.test", dns_type::a) == 0);

    auto lease = std::move(**bench.result);
    CHECK(lease.endpoint() ==
          "127.0.0.1:" + std::to_string(bench.listening.local_endpoint().port()));
    REQUIRE_FALSE(bench.finish(write_text(lease.socket(), "question")));
    std::thread speaks{[&] {
        heard = origin->read(8);
        origin->send("answer");
    }};
    CHECK(bench.finish(read_exactly(lease.socket(), 6)) == "answer");
    speaks.join();
    CHECK(heard == "question");
    lease.give_back();
    // Not for those that go straight, or by another parent.
    CHECK_FALSE(bench.pool.try_acquire({"a.test", 443, false, true}));
    CHECK_FALSE(bench.pool.try_acquire({"a.test", 443, false, true, bench.way()}));
    auto again = bench.pool.try_acquire(to);
    REQUIRE(again);
    CHECK(again.reused());
    again.give_back();
    // Whatever the guard says of the parent's address; an origin that it refuses is another thing.
    bench.pool.set_guard(make_guard({}));
    again = bench.pool.try_acquire(to);
    CHECK(again);
}

TEST_CASE("a connection through a parent is kept under those who judged its origin") {
    pool_bench_through bench;
    const origin_address to{"a.test", 443, false, true, bench.way()};
    const int socket = bench.begin(to);
    std::optional<tests::tls_peer> origin;
    bench.pool.set_trust(trust_of_the_test());
    std::thread far{[&] {
        static_cast<void>(read_head_from(socket));
        send_to(socket, "HTTP/1.1 200 OK\r\n\r\n");
        origin.emplace(tests::tls_peer::server(socket, known_authority().issue("DNS:a.test")));
        static_cast<void>(origin->shake_hands());
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_value());
    (*bench.result)->give_back();
    CHECK(bench.pool.try_acquire(to));
    bench.pool.set_trust(trust_of_the_test());
    CHECK_FALSE(bench.pool.try_acquire(to));
}

TEST_CASE("a certificate that is not the origin's is the origin's failure") {
    pool_bench_through bench;
    const int socket = bench.begin({"a.test", 443, false, true, bench.way()});
    std::thread far{[&] {
        static_cast<void>(read_head_from(socket));
        send_to(socket, "HTTP/1.1 200 OK\r\n\r\n");
        auto origin = tests::tls_peer::server(socket, known_authority().issue("DNS:b.test"));
        static_cast<void>(origin.shake_hands());
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_error());
    CHECK(bench.result->error().code == failure_code::tls_certificate);
    CHECK(bench.pool.figures().failures == 1);
    CHECK(bench.pool.figures().open == 0);
}

TEST_CASE("an origin that speaks before the handshake speaks no TLS") {
    pool_bench_through bench;
    const int socket = bench.begin({"a.test", 443, false, true, bench.way()});
    std::thread far{[&] {
        static_cast<void>(read_head_from(socket));
        send_to(socket, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n");
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_error());
    CHECK(bench.result->error().code == failure_code::tls_failed);
    ::close(socket);
}

TEST_CASE("a parent that refuses, and one that is not there, are told apart") {
    pool_bench_through bench;
    const int socket = bench.begin({"a.test", 443, false, true, bench.way()});
    std::thread far{[&] {
        static_cast<void>(read_head_from(socket));
        send_to(socket, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_error());
    CHECK(bench.result->error().code == failure_code::parent_refused);
    ::close(socket);

    const closed_port nobody{bench.io};
    auto elsewhere = *bench.way();
    elsewhere.port = nobody.port;
    const origin_address to{
        "a.test", 443, false, true, std::make_shared<const way_through>(elsewhere)};
    const auto got = bench.finish(bench.pool.acquire(to, false, late()));
    REQUIRE(got.has_error());
    CHECK(got.error().code == failure_code::no_parent);
    CHECK(got.error().detail.starts_with("p: connect_refused: "));
}

TEST_CASE("a parent's bad certificate is the parent's failure, and no origin's") {
    pool_bench_through bench;
    const int socket = bench.begin({"a.test", 443, false, true, bench.way(true)});
    std::thread far{[&] {
        auto parent = tests::tls_peer::server(socket, known_authority().issue("DNS:a.test"));
        static_cast<void>(parent.shake_hands());
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_error());
    CHECK(bench.result->error().code == failure_code::parent_certificate);
    CHECK(bench.result->error().detail ==
          "p: tls_certificate: the certificate of 127.0.0.1: IP address mismatch");
    CHECK(bench.pool.figures().failures == 1);
    CHECK(bench.pool.figures().open == 0);
}

TEST_CASE("TLS goes inside the parent's TLS, and ends with it") {
    pool_bench_through bench;
    const origin_address to{"a.test", 443, false, true, bench.way(true)};
    const int socket = bench.begin(to);
    std::string head;
    std::optional<tests::tls_peer> origin;
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    std::atomic<bool> outer_is_over{false};
    std::thread parent{[&] {
        head = carry_by_tls(socket, ends[0]);
        outer_is_over = true;
    }};
    std::thread far{[&] {
        origin.emplace(tests::tls_peer::server(ends[1], known_authority().issue("DNS:a.test")));
        static_cast<void>(origin->shake_hands());
    }};
    bench.await_result(far);
    REQUIRE(bench.result->has_value());
    auto lease = std::move(**bench.result);
    CHECK(lease.endpoint() ==
          "127.0.0.1:" + std::to_string(bench.listening.local_endpoint().port()));

    const auto up = pattern(300'000), down = pattern(200'000);
    std::string heard;
    std::thread speaks{[&] {
        heard = origin->read(up.size());
        origin->send(down);
    }};
    REQUIRE_FALSE(bench.finish(write_text(lease.socket(), up)));
    CHECK(bench.finish(read_exactly(lease.socket(), down.size())) == down);
    speaks.join();
    CHECK(heard == up);

    // Our closing ends the connection to the parent too.
    lease.close();
    bench.run_until([&] { return outer_is_over.load(); });
    CHECK(outer_is_over.load());
    parent.join();
    CHECK(head.starts_with("CONNECT a.test:443 HTTP/1.1\r\n"));
    CHECK(bench.pool.figures().open == 0);
}

TEST_CASE("a connection inside a parent's TLS is kept where one trust judged both ends alone") {
    for (const bool changes : {false, true}) {
        CAPTURE(changes);
        pool_bench_through bench;
        const origin_address to{"a.test", 443, false, true, bench.way(true)};
        const int socket = bench.begin(to);
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        std::atomic<bool> asked{false};
        tests::gate answers;
        std::thread parent{[&] {
            static_cast<void>(carry_by_tls(socket, ends[0], [&] {
                asked = true;
                (void)answers.wait();
            }));
        }};
        std::optional<tests::tls_peer> origin;
        std::thread far{[&] {
            origin.emplace(tests::tls_peer::server(ends[1], known_authority().issue("DNS:a.test")));
            static_cast<void>(origin->shake_hands());
        }};
        bench.run_until([&] { return asked.load(); });
        if (changes) {
            bench.pool.set_trust(trust_of_the_test());
        }
        answers.open();
        bench.await_result(far);
        REQUIRE(bench.result->has_value());
        (*bench.result)->give_back();
        auto again = bench.pool.try_acquire(to);
        CHECK(bool{again} != changes);
        again.close();
        bench.join_running(parent);
    }
}

TEST_CASE(
    "those who are believed at a parent's handshake judge it, not those at the dial's beginning") {
    const auto list = known_authority().revoke(of_the_parent().certificate);
    for (const bool is_revoked : {true, false}) {
        CAPTURE(is_revoked);
        pool_bench_through bench;
        const origin_address to{"a.test", 443, false, true, bench.way(true, "p.test")};
        const int socket = bench.begin(
            to, [&] { bench.pool.set_trust(is_revoked ? heeding(list) : trust_of_the_test()); });
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        std::string head;
        std::thread parent{[&] { head = carry_by_tls(socket, ends[0]); }};
        std::thread far{[&] {
            auto origin = tests::tls_peer::server(ends[1], known_authority().issue("DNS:a.test"));
            static_cast<void>(origin.shake_hands());
        }};
        bench.run_until([&] { return bench.result.has_value(); });
        REQUIRE(bench.result);
        CHECK(bench.result->has_error() == is_revoked);
        if (bench.result->has_value()) {
            // It is kept under those who believed both ends.
            (*bench.result)->give_back();
            auto again = bench.pool.try_acquire(to);
            CHECK(again);
            again.close();
        } else {
            CHECK(bench.result->error().code == failure_code::parent_certificate);
            CHECK(bench.result->error().detail ==
                  "p: tls_certificate: the certificate of p.test: certificate revoked");
            ::close(ends[0]);
        }
        bench.join_running(parent);
        bench.join_running(far);
        CHECK(head.empty() == is_revoked);  // nor was it told anything
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_way_through
