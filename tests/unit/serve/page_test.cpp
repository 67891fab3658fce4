#include "proxy/peer/peer_book.hpp"
#include "proxy/serve/peer_page.hpp"
#include "tests/unit/base/clock_set_back.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <chrono>
#include <string>

// What this program says to its operators' scripts and its peers: PURGE, digests; and CONNECT, as
// far as nobody is dialled.

namespace reprise::proxy::serve::test::of_page {

namespace {

struct desk : bench {
    using bench::bench;
    heard ask(const std::string& request) {
        sink.sent.clear();
        sink.is_whole();
        asking one{*this, request};
        last = one.how;
        return said();
    }
    std::optional<ended> last;
};

reprise::config::options with_purgers() {
    auto out = fetch::test::with_memory(1u << 20);
    out.access.purge_clients = reprise::config::private_networks();
    return out;
}

reprise::config::options with_a_peer() {
    auto out = fetch::test::with_memory(1u << 20);
    reprise::config::peer_options other;
    other.name = "b";
    other.url = "http://127.0.0.1:9";
    out.peers.push_back(other);
    return out;
}

}  // namespace

TEST_SUITE_BEGIN("serve/page");

TEST_CASE("PURGE is not for everybody") {
    desk at;
    at.store(of_five, "hello");
    CHECK(at.ask(head_of("PURGE " + url)).status == 403);
    CHECK(at.ask(get()).body == "hello");
    CHECK(at.counted(outcome::refused) == 1);
}

TEST_CASE("a soft PURGE ends lifetimes when it comes, though the clock was set back before") {
    const clock_set_back since;
    desk at{with_purgers()};
    auto& store = at.at.common.store;
    const auto key_of = [&](const std::string& target) {
        return filter::hash_of(target, at.at.common.admission.secret());
    };
    const std::string other = "http://a.example/below/y";
    for (const auto& target : {url, other}) {
        auto made = cache::test::response({.content = "hello"});
        made->freshness.response_time = resident_now() - std::chrono::minutes{10};
        made->freshness.lifetime = std::chrono::hours{1};
        made->reusable_until = http::fresh_until(made->freshness);
        REQUIRE(store.put(key_of(target), target, made, store.mark(key_of(target))));
    }
    CHECK(at.ask(head_of("PURGE " + url, "Purge: soft\r\n")).status == 200);
    CHECK(at.ask(head_of("PURGE http://a.example/below/", "Purge: soft, prefix\r\n")).status ==
          200);
    for (const auto& target : {url, other}) {
        CAPTURE(target);
        const auto ended = store.find(key_of(target), target, {}).response;
        REQUIRE(ended);
        CHECK(ended->purged_softly());
        CHECK(ended->freshness().lifetime >= std::chrono::minutes{10});
        CHECK(http::remaining(ended->freshness(), resident_now()) <= http::seconds{0});
    }
}

TEST_CASE("PURGE takes what is stored, and says whether there was anything") {
    desk at{with_purgers()};
    at.store(of_five, "hello");
    const auto said = at.ask(head_of("PURGE " + url));
    CHECK(said.status == 200);
    CHECK(said["Content-Type"] == "application/json");
    CHECK(said.body.find("\"variants\": 1") != std::string::npos);
    CHECK(at.last == ended::keep);
    CHECK(at.counted(outcome::local) == 1);
    CHECK(at.ask(head_of("PURGE " + url)).status == 404);
    CHECK(at.ask(get("Cache-Control: only-if-cached\r\n")).status == 504);
}

TEST_CASE("a soft PURGE leaves what is stored to be validated") {
    desk at{with_purgers()};
    at.store(of_five + "ETag: \"1\"\r\n", "hello");
    CHECK(at.ask(head_of("PURGE " + url, "Purge: soft\r\n")).status == 200);
    const asking one{at, get()};
    CHECK(at.orders.next()->validating() != nullptr);
}

TEST_CASE("a PURGE that can't be understood purges nothing") {
    desk at{with_purgers()};
    at.store(of_five, "hello");
    CHECK(at.ask(head_of("PURGE " + url, "Purge: softly\r\n")).status == 400);
    CHECK(at.ask(get()).body == "hello");
}

TEST_CASE("a stranger learns nothing of a digest, and a peer whether there is one yet") {
    desk at{with_a_peer()};
    const auto ask = [&] { return at.ask(head_of("GET /.well-known/reprise/digest")); };
    CHECK(ask().status == 403);
    CHECK(at.last == ended::keep);
    auto book = std::make_shared<peer::peer_book>();
    book->addresses.push_back({at.who.ip(), false});
    at.at.w.peers->book = book;
    CHECK(ask().status == 503);
    CHECK(at.counted(outcome::local) == 2);
}

TEST_CASE("a peer that takes its page slowly is broken off within a minute, at whatever pace") {
    desk at{with_a_peer()};
    auto book = std::make_shared<peer::peer_book>();
    book->addresses.push_back({at.who.ip(), false});
    at.at.w.peers->book = book;
    const auto figures = head_of("GET /.well-known/reprise/figures");
    const auto begun = steady_now();
    at.sink.takes(1);
    asking one{at, figures};
    for (int seconds = 1; seconds < 60; ++seconds) {
        at.sink.takes(1);
        at.at.w.timer.tick(begun + std::chrono::seconds{seconds});
        at.settle();
    }
    CHECK_FALSE(one.how);
    CHECK(at.sink.sent.size() == 60);
    at.at.w.timer.tick(steady_now() + std::chrono::seconds{60});
    at.settle();
    CHECK(one.how == ended::gone);
    CHECK(at.sink.broken_off);
    one.close();
    CHECK(at.counted(outcome::client_gone) == 1);
}

TEST_CASE("a digest is asked for in origin-form, of a forward listener that has peers") {
    const auto is_theirs = [](const reprise::config::options& options, const std::string& line) {
        bench on{options};
        const exchange_state x{on.lend(head_of(line)), steady_now()};
        return is_for_peers(x);
    };
    const std::string path = "/.well-known/reprise/digest";
    CHECK(is_theirs(with_a_peer(), "GET " + path));
    CHECK(!is_theirs(with_a_peer(), "GET http://a.example" + path));
    CHECK(!is_theirs(with_a_peer(), "GET /x"));
    CHECK(!is_theirs({}, "GET " + path));
    auto accelerator = with_a_peer();
    accelerator.listeners.front().mode = reprise::config::listener_mode::accelerator;
    accelerator.listeners.front().upstream = "http://up.example:80";
    CHECK(!is_theirs(accelerator, "GET " + path));
}

TEST_CASE("a question for a digest with a body ends the connection; one that is none is refused") {
    desk at{with_a_peer()};
    const auto line = "GET /.well-known/reprise/digest";
    CHECK(at.ask(head_of(line, "Content-Length: 5\r\n"))["Connection"] == "close");
    CHECK(at.last == ended::close);
    const auto wrong = at.ask(head_of(line, "Content-Length: 5\r\nContent-Length: 6\r\n"));
    CHECK(wrong.status == 400);
    CHECK(at.last == ended::close);
}

TEST_CASE("no tunnel leads to this machine, nor to a port that is not allowed") {
    desk at;
    const auto connect = [&](const std::string& to) {
        return at.ask("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n").status;
    };
    CHECK(connect("127.0.0.1:443") == 403);
    CHECK(at.last == ended::close);
    CHECK(connect("a.example:25") == 403);
    CHECK(at.counted(outcome::refused) == 2);
    CHECK(at.counted(outcome::tunnel) == 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_page
