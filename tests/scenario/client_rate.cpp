// limits.client_rate: what one client receives, over all its connections and from wherever it comes.
//
// How long it takes at least follows from the bucket: an eighth of a second's worth comes at once,
// and the rest at the rate. That it takes no longer is tools/bench_rate's.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/fleet.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/long_body.hpp"
#include "tests/support/tls_client.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <sys/stat.h>
#include <thread>

TEST_SUITE("scenario/client_rate") {

    using namespace reprise::tests;

    namespace {

    using std::chrono::milliseconds;
    using std::chrono::steady_clock;

    constexpr auto waits = "/clients/rate_waits";
    constexpr auto known = "/clients/rate_known";
    constexpr std::string_view cacheable = "Cache-Control: max-age=600\r\n";

    json limited_to(const std::string& rate, json settings = storing_settings()) {
        settings["limits"]["client_rate"] = rate;
        return settings;
    }

    /// The shortest time in which a client can have had so much.
    milliseconds least_time(std::size_t bytes, std::size_t a_second = mib) {
        const auto at_once = std::max(64 * kib, a_second / 8);
        return milliseconds{bytes <= at_once ? 0 : (bytes - at_once) * 1000 / a_second};
    }

    template <class Work>
    milliseconds time_of(const Work& work) {
        const auto before = steady_clock::now();
        work();
        return std::chrono::duration_cast<milliseconds>(steady_clock::now() - before);
    }

    const auto half = patterned(512 * kib);

    }  // namespace

    TEST_CASE("nobody is limited where nothing says so") {
        world w;
        w.origin.on("/a", ok(cacheable, half));
        CHECK(w.get("/a").body == half);
        CHECK(is_hit(w.get("/a")));
        CHECK(figure(w.proxy.stats(), waits) == 0);
        CHECK(figure(w.proxy.stats(), known) == 0);
    }

    TEST_CASE(
        "a fetched body and a stored one are limited, and no deadline is the client's fault") {
        auto settings = limited_to("256KiB");
        settings["limits"]["body_rate"] = "1GiB";
        settings["timeouts"]["client_body"] = "50ms";
        world w{settings};
        // The kernel takes all of it from whoever does not read just now: it is the limit alone that is waited for.
        const auto body = patterned(160 * kib);
        const auto least = least_time(body.size(), 256 * kib);
        w.origin.on("/a", ok(cacheable, body));
        response got;
        CHECK(time_of([&] { got = w.get("/a"); }) >= least);
        CHECK(got.body == body);
        const auto before = figure(w.proxy.stats(), waits);
        CHECK(before > 0);
        CHECK(time_of([&] { got = w.get("/a"); }) >= least);
        CHECK(hit_body(got) == body);
        CHECK(figure(w.proxy.stats(), waits) > before);
        const auto metrics = w.proxy.admin("/metrics").body;
        CHECK(metrics.find("\nreprise_client_rate_waits_total ") != std::string::npos);
        CHECK(metrics.find("\nreprise_client_rate_known ") != std::string::npos);
    }

    TEST_CASE("a body that is on disk alone is limited") {
        const temp_dir files;
        auto settings = limited_to("1MiB");
        settings["disk"] = disk_of_all_admitted(files.file("store"), "64MiB");
        settings["memory"] = {{"size", "8MiB"}, {"max_object", "64KiB"}};
        world w{settings};
        REQUIRE(eventually([&] { return w.proxy.stats()["disk"]["state"] == "ready"; }));
        w.origin.on("/a", ok(cacheable, half));
        CHECK(w.get("/a").body == half);
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), "/disk/objects") == 1; }));
        response got;
        CHECK(time_of([&] { got = w.get("/a"); }) >= least_time(half.size()));
        CHECK(hit_body(got) == half);
    }

    TEST_CASE("over TLS what is inside counts") {
        const temp_dir files;
        const test_authority authority;
        const auto made = authority.issue("IP:127.0.0.1");
        auto settings = limited_to("1MiB");
        settings["listeners"] = json::array({tls_listener(files, made)});
        world w{settings};
        w.origin.on("/a", ok(cacheable, half));
        tls_peer::wishes wanted;
        wanted.trusted = authority.certificate();
        tls_client one{w.proxy.port(), wanted};
        response got;
        CHECK(time_of([&] { got = one.ask(w.request("/a")); }) >= least_time(half.size()));
        CHECK(got.body == half);
        CHECK(time_of([&] { got = one.ask(w.request("/a")); }) >= least_time(half.size()));
        CHECK(hit_body(got) == half);
    }

    TEST_CASE("a tunnel is limited towards the client, and not from it") {
        acceptor server;
        auto settings = limited_to("1MiB", basic_settings());
        settings["access"]["connect_ports"] = json::array({server.port()});
        const proxy_process proxy{settings};
        const auto to = "127.0.0.1:" + std::to_string(server.port());
        auto one = proxy.connect("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n");
        auto far = server.accept(patience);
        REQUIRE(one.read_head("CONNECT").status == 200);
        std::thread up{[&] { one.send(half); }};
        CHECK(far.read_at_least(half.size()) == half);
        up.join();
        CHECK(figure(proxy.stats(), waits) == 0);

        std::string got;
        // From before the first byte is on its way.
        const auto took = time_of([&] {
            std::thread down{[&] { far.send(half, 3 * patience); }};
            got = one.read_raw(half.size());
            down.join();
        });
        CHECK(took >= least_time(half.size()));
        CHECK(got == half);
        CHECK(figure(proxy.stats(), waits) > 0);
        far.close();
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("and so is what an upgrade made of a connection") {
        world w{limited_to("1MiB")};
        w.origin.on("/ws", [](origin_request&, origin_connection& connection) {
            connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                            "Connection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n");
            connection.send(half, 3 * patience);
            (void)connection.is_closed_by_proxy();
        });
        auto one = w.proxy.connect(
            w.request("/ws",
                      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
                      "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
        std::string got;
        CHECK(time_of([&] {
                  REQUIRE(one.read_head().status == 101);
                  got = one.read_raw(half.size());
              }) >= least_time(half.size()));
        CHECK(got == half);
    }

    TEST_CASE("a client's connections share its rate") {
        world w{limited_to("1MiB")};
        w.origin.on("/a", ok(cacheable, half));
        CHECK(w.get("/a").body == half);
        const auto took = time_of([&] {
            std::vector<std::thread> threads;
            for (int i = 0; i < 3; ++i) {
                threads.emplace_back([&] { CHECK(hit_body(w.get("/a")) == half); });
            }
            for (auto& each : threads) {
                each.join();
            }
        });
        CHECK(took >= least_time(3 * half.size()));
    }

    TEST_CASE("another address is another client") {
        world w{limited_to("16KiB")};
        w.origin.on("/a", ok(cacheable, std::string(60 * kib, 'x')));
        client one{w.proxy.port(), "127.0.0.1"};
        client other{w.proxy.port(), "127.0.0.2"};
        CHECK(one.ask(w.request("/a")).complete());  // what comes at once
        CHECK(other.ask(w.request("/a")).complete());
        CHECK(figure(w.proxy.stats(), waits) == 0);
        CHECK(figure(w.proxy.stats(), known) == 2);
    }

    TEST_CASE("whoever has said a name is a client by that, from whatever address") {
        const temp_dir files;
        auto settings = limited_to("1MiB");
        settings["access"]["tokens_file"] = files.write(
            "tokens", "ann:0123456789abcdef\nbob:fedcba9876543210\n");
        world w{settings};
        w.origin.on("/a", ok(cacheable, half));
        const auto as = [](const char* token) {
            return "Proxy-Authorization: Bearer " + std::string{token} + "\r\n";
        };
        const auto ann = as("0123456789abcdef");
        client one{w.proxy.port(), "127.0.0.1"};
        client two{w.proxy.port(), "127.0.0.2"};
        CHECK(one.ask(w.request("/a")).status == 407);
        CHECK(figure(w.proxy.stats(), known) == 0);
        const auto took = time_of([&] {
            std::thread first{[&] { CHECK(one.ask(w.request("/a", ann)).body == half); }};
            CHECK(two.ask(w.request("/a", ann)).body == half);
            first.join();
        });
        CHECK(took >= least_time(2 * half.size()));
        CHECK(figure(w.proxy.stats(), known) == 1);
        CHECK(one.ask(w.request("/a", as("fedcba9876543210"))).body == half);
        CHECK(figure(w.proxy.stats(), known) == 2);
    }

    TEST_CASE("behind a trusted front its clients are limited, and not the front") {
        auto settings = limited_to("1KiB");  // what one request takes is not back for a minute
        settings["access"]["trusted_fronts"] = {"127.0.0.1"};
        world w{settings};
        w.origin.on("/a", ok(cacheable, std::string(60 * kib, 'x')));
        client front{w.proxy.port()};
        CHECK(front.ask(w.request("/a")).complete());  // its own question
        CHECK(front.ask(w.request("/a")).complete());
        CHECK(figure(w.proxy.stats(), known) == 0);
        CHECK(front.ask(w.request("/a", "X-Forwarded-For: 10.1.2.3\r\n")).complete());
        CHECK(front.ask(w.request("/a", "X-Forwarded-For: 10.1.2.4\r\n")).complete());
        CHECK(figure(w.proxy.stats(), waits) == 0);
        front.send(w.request("/a", "X-Forwarded-For: 10.1.2.3\r\n"));
        CHECK(eventually([&] { return figure(w.proxy.stats(), waits) > 0; }));
        settings["limits"].erase("client_rate");
        w.proxy.reload(settings);
        CHECK(front.read().complete());
    }

    TEST_CASE("peers are not limited") {
        auto settings = limited_to("1KiB");
        settings["peers"] = json::array({peer_at("nobody", 1)});
        world w{settings};
        w.origin.on("/a", ok(cacheable, half));
        CHECK(w.get("/a").body == half);
        CHECK(figure(w.proxy.stats(), waits) == 0);
    }

    TEST_CASE(
        "who shares a fetch with one who is limited has all of it first; a reload ends the limit") {
        const long_body body{4 * mib};
        auto settings = limited_to("32KiB", basic_settings());  // two minutes
        settings["access"]["fronts"] = {"127.0.0.2"};           // no one client
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            go.wait();
            connection.send(raw_head("200 OK",
                                     std::string{cacheable} + "ETag: \"v1\"\r\nContent-Length: " +
                                         std::to_string(body.size()) + "\r\n"));
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, mib);
                if (!connection.send(piece, 6 * patience)) {
                    return;
                }
                at += piece.size();
            }
        });
        client slow{w.proxy.port()};
        client quick{w.proxy.port(), "127.0.0.2"};
        w.share_a_fetch(slow, quick, "/a");
        go.open();
        long_body_check whole{body};
        std::atomic<bool> slow_is_over{false};
        std::thread reads{[&] {
            long_body_check check{body};
            const auto got = slow.read("GET", [&](std::string_view bytes) { check.feed(bytes); });
            slow_is_over = true;
            CHECK(got.complete());
            CHECK(check.is_whole());
        }};
        const auto got = quick.read("GET", [&](std::string_view bytes) { whole.feed(bytes); });
        CHECK(got.complete());
        CHECK(whole.is_whole());
        CHECK(!slow_is_over);
        settings["limits"].erase("client_rate");
        w.proxy.reload(settings);
        reads.join();
        CHECK(figure(w.proxy.stats(), "/clients/rate_waits") > 0);
    }

    TEST_CASE("a reload sets a limit for what is asked from then on") {
        auto settings = storing_settings();
        world w{settings};
        w.origin.on("/a", ok(cacheable, half));
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/a")).body == half);
        w.proxy.reload(limited_to("1MiB", settings));
        response got;
        CHECK(time_of([&] { got = one.ask(w.request("/a")); }) >= least_time(half.size()));
        CHECK(hit_body(got) == half);
    }

    TEST_CASE("small answers one after the other are limited too, and in order") {
        world w{limited_to("1MiB")};
        const auto body = patterned(16 * kib);
        w.origin.on("/a", ok(cacheable, body));
        CHECK(w.get("/a").body == body);
        constexpr int count = 32;
        std::string all;
        for (int i = 0; i < count; ++i) {
            all += w.request("/a");
        }
        auto one = w.proxy.connect();
        const auto took = time_of([&] {
            std::thread sends{[&] { one.send(all); }};
            for (int i = 0; i < count; ++i) {
                CHECK(hit_body(one.read()) == body);
            }
            sends.join();
        });
        CHECK(took >= least_time(count * body.size()));
    }

    TEST_CASE("a client that leaves while it waits for its turn is gone, and the program ends") {
        world w{limited_to("1KiB")};
        w.origin.on("/a", ok(cacheable, half));
        {
            client one{w.proxy.port()};
            one.send(w.request("/a"));
            REQUIRE(eventually([&] { return figure(w.proxy.stats(), waits) > 0; }));
            one.connection().reset();
        }
        client two{w.proxy.port()};
        two.send(w.request("/a"));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), waits) > 1; }));
        CHECK(w.proxy.stop() == 0);
    }
}
