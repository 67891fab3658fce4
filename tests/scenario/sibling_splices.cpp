// A sibling that breaks off in the middle of a body: what goes on behind it, and what must not.

#include "tests/scenario/liar.hpp"

TEST_SUITE("scenario/sibling_splices") {

    using namespace reprise::tests;

    namespace {

    constexpr auto fresh = "Cache-Control: max-age=600\r\n";

    /// A sibling's 200, of which `sent` is all that comes.
    origin_handler breaking_off(std::size_t length,
                                std::string sent,
                                std::string_view fields = "") {
        std::string head = raw_head("200 OK",
                                    std::string{fresh} + "Age: 5\r\nContent-Length: " +
                                        std::to_string(length) + "\r\n" + std::string{fields});
        return [bytes = std::move(head) + std::move(sent)](auto&, auto& connection) {
            connection.send(bytes);
            connection.close();
        };
    }

    /// The second of two nodes asks for /a, which the first holds in the eyes of both; a liar that
    /// does `deed` stands for the first, and the origin has `then` now.
    struct broken_off : fleet {
        liar as;

        broken_off(origin_handler deed, origin_handler then)
            : fleet{2},
              as{*this, 0, std::move(deed)} {
            origin.on("/a", ok(fresh, "what it was"));
            store_and_meet_liar(*this, as);
            origin.on("/a", std::move(then));
        }

        response ask() { return (*this)[1].get(origin.url("/a")); }
    };

    }  // namespace

    TEST_CASE("another source brings no byte more or less than the length that was promised") {
        for (const std::size_t promised : {std::size_t{1000}, 600 * kib}) {
            const auto body = patterned(2 * promised);
            const auto half = body.substr(0, promised / 2);
            for (const auto actual : {promised + promised / 2, promised - promised / 4}) {
                const auto whole = body.substr(0, actual);
                const std::vector<std::pair<std::string, std::string>> framings{
                    {"chunked",
                     raw_head("200 OK", std::string{fresh} + "Transfer-Encoding: chunked\r\n") +
                         chunk(whole) + chunk("")},
                    {"until the end", raw_head("200 OK", fresh) + whole}};
                for (const auto& [framing, bytes] : framings) {
                    CAPTURE(promised);
                    CAPTURE(actual);
                    CAPTURE(framing);
                    broken_off f{breaking_off(promised, half), [&](auto&, auto& connection) {
                                     connection.send(bytes);
                                     connection.close();
                                 }};
                    client asking{f[1].port()};
                    asking.send(absolute_request("GET", f.origin.url("/a")));
                    const auto head = asking.read_head();
                    CHECK(head.get("Content-Length") == std::to_string(promised));
                    const auto rest = asking.read_to_end();
                    CHECK(rest.end != read_end::timed_out);
                    CHECK(head.body.size() + rest.bytes.size() < promised);
                    // Nor is it kept.
                    f.as.as.stop();
                    const auto again = f.ask();
                    CHECK_FALSE(is_hit(again));
                    CHECK((again.body == whole));
                }
            }
        }
    }

    TEST_CASE("another source of the same length goes on, however it frames it") {
        const auto body = patterned(100 * kib);
        broken_off f{
            breaking_off(body.size(), body.substr(0, 70 * kib)), [&](auto&, auto& connection) {
                connection.send(
                    raw_head("200 OK", std::string{fresh} + "Transfer-Encoding: chunked\r\n") +
                    chunk(body) + chunk(""));
            }};
        const auto got = f.ask();
        CHECK(got.complete());
        CHECK((got.body == body));
        CHECK((hit_body(f.ask()) == body));
    }

    TEST_CASE("a sibling that sends no byte of the body behind its head has not answered") {
        const std::string body(1000, 'p');
        broken_off f{breaking_off(body.size(),
                                  "",
                                  "Content-Encoding: br\r\nContent-Type: application/json\r\n"
                                  "X-From: sibling\r\n"),
                     [&](auto&, auto& connection) {
                         connection.send(
                             ok(std::string{fresh} + "Content-Type: text/plain\r\n", body));
                     }};
        for (const bool hit : {false, true}) {
            const auto got = f.ask();
            CHECK(got.complete());
            CHECK(is_hit(got) == hit);
            CHECK(got.body == body);
            CHECK(got.get("Content-Type") == "text/plain");
            CHECK_FALSE(got.has("Content-Encoding"));
            CHECK_FALSE(got.has("X-From"));
        }
        CHECK(f.asked(1, "liar", "failed") == 1);
    }

    TEST_CASE("what another source says of the body otherwise is not put behind what was sent") {
        const auto body = patterned(4 * kib);
        const auto half = body.substr(0, 2 * kib);
        const std::vector<std::pair<std::string, std::string>> pairs{
            {"Content-Encoding: br\r\n", ""},
            {"", "Content-Encoding: gzip\r\n"},
            {"Content-Type: application/json\r\n", "Content-Type: text/plain\r\n"},
            {"Content-Language: de\r\n", "Content-Language: en\r\n"},
            {"Content-Location: /a/1\r\n", "Content-Location: /a/2\r\n"},
            {"ETag: W/\"1\"\r\n", "ETag: W/\"2\"\r\n"},
            {"Last-Modified: " + http_date(std::chrono::seconds{-200}) + "\r\n",
             "Last-Modified: " + http_date(std::chrono::seconds{-100}) + "\r\n"}};
        for (const auto& [then, now] : pairs) {
            CAPTURE(then);
            CAPTURE(now);
            broken_off f{breaking_off(body.size(), half, then), [&](auto&, auto& connection) {
                             connection.send(ok(std::string{fresh} + now, body));
                         }};
            CHECK_FALSE(f.ask().complete());
            f.as.as.stop();
            const auto again = f.ask();
            CHECK_FALSE(is_hit(again));
            CHECK((again.body == body));
        }
    }
}
