// The suite's own client and origin, without a proxy between them: what fails here says nothing of
// the proxy.

#include "tests/scenario/world.hpp"
#include "tests/support/fake_dns.hpp"
#include "tests/support/long_body.hpp"

TEST_SUITE("scenario/harness") {

    using namespace reprise::tests;

    namespace {

    std::string direct(const std::string& path, const std::string& fields = "") {
        return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
    }

    }  // namespace

    TEST_CASE("the client reads each framing, and tells whole from cut") {
        fake_origin origin;
        origin.on("/length", ok("", "hello"));
        origin.on("/chunked",
                  raw_head("200 OK", "Transfer-Encoding: chunked\r\n") + chunk("hel") +
                      chunk("lo") + "0\r\nX-Sum: 1\r\n\r\n");
        origin.on("/extended",
                  raw_head("200 OK", "Transfer-Encoding: chunked\r\n") +
                      "5;x=y\r\nhello\r\n0\r\n\r\n");
        origin.on("/close", [](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "") + "hello");
            connection.close();
        });
        client one{origin.port()};
        CHECK(one.ask(direct("/length")).body == "hello");
        const auto chunked = one.ask(direct("/chunked"));
        CHECK(chunked.body == "hello");
        CHECK(chunked.trailers.get("x-sum") == "1");
        CHECK(chunked.chunk_lines_are_canonical);
        const auto extended = one.ask(direct("/extended"));
        CHECK(extended.body == "hello");
        CHECK_FALSE(extended.chunk_lines_are_canonical);
        const auto closed = one.ask(direct("/close"));
        CHECK(closed.body == "hello");
        CHECK(closed.complete());

        origin.on("/cut", [](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Content-Length: 10\r\n") + "hello");
            connection.close();
        });
        origin.on("/reset", [](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "") + "hello");
            connection.reset();
        });
        client two{origin.port()};
        CHECK(two.ask(direct("/cut")).end == ending::cut_short);
        client three{origin.port()};
        CHECK(three.ask(direct("/reset")).end == ending::cut_short);
    }

    TEST_CASE("the client keeps 1xx, pipelined answers and what follows a 101 apart") {
        fake_origin origin;
        origin.on("/hints", raw_head("103 Early Hints", "Link: x\r\n") + ok("", "hello"));
        origin.on("/switch", raw_head("101 Switching Protocols", "Upgrade: x\r\n") + "raw bytes");
        client one{origin.port()};
        one.send(direct("/hints") + direct("/hints"));
        for (int i = 0; i < 2; ++i) {
            const auto answer = one.read();
            CHECK(answer.status == 200);
            CHECK(answer.interim.size() == 1);
        }
        CHECK(one.ask(direct("/switch")).status == 101);
        CHECK(one.read_raw(9) == "raw bytes");
    }

    TEST_CASE("the origin records requests, bodies and connections") {
        fake_origin origin;
        origin.on("/a", ok("", "hello"));
        client one{origin.port()};
        CHECK(one.ask("POST /a?q HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc").body ==
              "hello");
        CHECK(one.ask("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("de") +
                      "0\r\nX-T: 1\r\n\r\n")
                  .body == "hello");
        CHECK(one.ask(direct("/none")).status == 404);
        const auto got = origin.requests("/a");
        REQUIRE(got.size() == 2);
        CHECK(got[0].method == "POST");
        CHECK(got[0].target == "/a?q");
        CHECK(got[0].body == "abc");
        CHECK(got[1].body == "de");
        CHECK(got[1].trailers.get("X-T") == "1");
        CHECK(got[1].number == 1);
        CHECK(origin.connections() == 1);
        {
            client cut{origin.port()};
            cut.send("POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");
        }
        CHECK(eventually([&] { return origin.count("/a") == 3; }));
        CHECK_FALSE(origin.requests("/a")[2].body_complete);
        CHECK(eventually([&] { return origin.open_connections() <= 1; }));
    }

    TEST_CASE("a stopped origin refuses connections and ends those it has") {
        fake_origin origin;
        client one{origin.port()};
        CHECK(one.ask(direct("/none")).status == 404);
        origin.stop();
        CHECK(one.is_closed_by_proxy());
        CHECK_THROWS_AS(client{origin.port()}, std::runtime_error);
    }

    TEST_CASE("a long body's check sees what is lost, doubled or out of place") {
        const long_body body{3 * mib + 5};
        const auto read = [&](std::uint64_t skip_at) {
            long_body_check check{body};
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, 100'000);
                if (skip_at == 0 || at / 100'000 != skip_at) {
                    check.feed(piece);
                }
                at += piece.size();
            }
            return check.is_whole();
        };
        CHECK(read(0));
        CHECK_FALSE(read(1));
        CHECK_FALSE(read(20));
    }

    TEST_CASE("Cache-Status is read as RFC 9211 writes it") {
        response answer;
        answer.fields = parse_fields("Cache-Status: behind; hit\r\n"
                                     "Cache-Status: reprise; fwd=stale; fwd-status=304; stored; "
                                     "ttl=-5; detail=\"first-request\"\r\n");
        const auto status = cache_status_of(answer);
        CHECK(status.present);
        CHECK_FALSE(status.hit);
        CHECK(status.stored);
        CHECK(status.fwd == "stale");
        CHECK(status.fwd_status == "304");
        CHECK(status.ttl == "-5");
        CHECK(status.detail == "first-request");
        answer.fields = parse_fields("Cache-Status: other; hit\r\n");
        CHECK_FALSE(cache_status_of(answer).present);
        CHECK_FALSE(is_hit(answer));
    }

}  // TEST_SUITE
