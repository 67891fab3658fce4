// Parts of one object, and of which representation they are: what is joined, and what never is.

#include "tests/scenario/ranged_object.hpp"

#include <ctime>
#include <string>
#include <utility>

TEST_SUITE_BEGIN("scenario/part_representations");

namespace reprise::tests {

TEST_CASE("a Last-Modified well before its Date joins parts, one of the same second does not") {
    world w;
    const auto changed = http_date(std::chrono::hours{-24});
    ranged_object{.etag = "",
                  .fields = "Cache-Control: max-age=60\r\nLast-Modified: " + changed + "\r\n"}
        .put_on(w.origin, "/old");
    (void)w.get("/old", range("0-4"));
    w.origin.on("/old", [&changed](origin_request& request, origin_connection& to) {
        CHECK(request.get("If-Range") == changed);
        to.send(answer("206 Partial Content",
                       "Cache-Control: max-age=60\r\nLast-Modified: " + changed + "\r\n" +
                           content_range({5, 5}, 26),
                       letters.substr(5, 5)));
    });
    CHECK(w.get("/old", range("0-9")).body == letters.substr(0, 10));

    const auto now = http_date();
    w.origin.on("/new", [&now](origin_request& request, origin_connection& to) {
        const std::uint64_t count = request.get("Range") == "bytes=0-4" ? 5 : 10;
        to.send("HTTP/1.1 206 Partial Content\r\nDate: " + now + "\r\nLast-Modified: " + now +
                "\r\nCache-Control: max-age=60\r\n" + content_range({0, count}, 26) +
                "Content-Length: " + std::to_string(count) + "\r\n\r\n" + letters.substr(0, count));
    });
    (void)w.get("/new", range("0-4"));
    CHECK(w.get("/new", range("0-9")).body == letters.substr(0, 10));
    CHECK(w.origin.requests("/new").at(1).get("Range") == "bytes=0-9");
}

TEST_CASE("a validation makes no weak Last-Modified of a part a strong one") {
    world w;
    const auto changed = std::time(nullptr) - 600;
    const auto dated = [&](const std::string& status, std::time_t date, const std::string& rest) {
        return "HTTP/1.1 " + status +
               "\r\nCache-Control: max-age=6000\r\nDate: " + http_date_of(date) +
               "\r\nLast-Modified: " + http_date_of(changed) + "\r\n" + rest;
    };
    const auto part_of = [&](const std::string& body, std::uint64_t count, std::time_t date) {
        return dated("206 Partial Content",
                     date,
                     content_range({0, count}, 26) + "Content-Length: " + std::to_string(count) +
                         "\r\n\r\n" + body.substr(0, count));
    };
    w.origin.on("/a", part_of(letters, 5, changed));
    (void)w.get("/a", range("0-4"));
    // It has changed since, within that second, and the origin can't tell.
    const std::string other(26, 'X');
    w.origin.on("/a", [&](origin_request& request, origin_connection& to) {
        CHECK_FALSE(request.has("If-Range"));
        to.send(request.has("If-Modified-Since") ? dated("304 Not Modified", changed + 3, "\r\n")
                                                 : part_of(other, 10, changed + 4));
    });
    CHECK(w.get("/a", range("0-4") + "Cache-Control: no-cache\r\n").status == 206);
    CHECK(w.get("/a", range("0-9")).body == other.substr(0, 10));
}

TEST_CASE("a digest of a part's content is no other content's") {
    world w;
    const auto with_digest = [](const std::string& digest) {
        return "Cache-Control: max-age=60\r\nContent-Digest: sha-256=:" + digest + ":\r\n";
    };
    ranged_object{.fields = with_digest("YQ==")}.put_on(w.origin, "/a");
    CHECK(w.get("/a", range("0-4")).status == 206);
    CHECK_FALSE(w.get("/a", range("1-3")).has("Content-Digest"));
    CHECK_FALSE(w.get("/a").has("Content-Digest"));
    CHECK(is_hit(w.get("/a")));

    ranged_object{.fields = with_digest("Yg==")}.put_on(w.origin, "/whole");
    CHECK(w.get("/whole").has("Content-Digest"));
    CHECK(is_hit(w.get("/whole")));
    CHECK(w.get("/whole").has("Content-Digest"));
    for (const auto* some : {"0-4", "0-4,20-25"}) {
        CAPTURE(some);
        const auto part = w.get("/whole", range(some));
        CHECK(part.status == 206);
        CHECK_FALSE(part.has("Content-Digest"));
    }
}

TEST_CASE("parts without a strong validator answer alone and are never joined") {
    world w;
    for (const std::string etag : {"", "W/\"v1\""}) {
        CAPTURE(etag);
        const auto path = etag.empty() ? "/none" : "/weak";
        ranged_object{.etag = etag}.put_on(w.origin, path);
        (void)w.get(path, range("0-4"));
        CHECK(is_hit(w.get(path, range("1-3"))));
        const auto more = w.get(path, range("0-9"));
        CHECK(more.body == letters.substr(0, 10));
        CHECK(w.origin.requests(path).at(1).get("Range") == "bytes=0-9");
        const auto whole = w.get(path);
        CHECK(whole.status == 200);
        CHECK(whole.body == letters);
        // No part could be joined to what is held: so none is asked for, and the whole takes its place.
        REQUIRE(w.origin.count(path) == 3);
        CHECK_FALSE(w.origin.requests(path).back().has("Range"));
        CHECK(hit_body(w.get(path)) == letters);
    }
}

TEST_CASE("an object that changed before anything went out is served as it is now") {
    world_with w{"6-9"};
    const ranged_object changed{.body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", .etag = "\"v2\""};
    changed.put_on(w.origin, "/a");
    const auto answer = w.get("/a", range("3-7"));
    CHECK(answer.status == 200);
    CHECK(answer.body == changed.body);
    CHECK(hit_body(w.get("/a", range("6-9"))) == "GHIJ");
}

TEST_CASE("a gap of another representation is not spliced in, whatever the origin thinks") {
    world_with w{"6-9"};
    // An origin that ignores If-Range.
    w.origin.on("/a", [](origin_request& request, origin_connection& to) {
        const auto part = range_of(request, 26).value_or(byte_span{0, 26});
        const std::string body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        to.send(answer("206 Partial Content",
                       "Cache-Control: max-age=60\r\nETag: \"v2\"\r\n" + content_range(part, 26),
                       body.substr(part.first, part.count)));
    });
    const auto answer = w.get("/a", range("3-7"));
    CHECK(answer.status == 206);
    CHECK(answer.body == "DEFGH");
    CHECK(answer.get("ETag") == "\"v2\"");
    CHECK(w.origin.requests("/a").back().get("Range") == "bytes=3-7");
    CHECK_FALSE(is_hit(w.get("/a", range("8-9"))));
}

namespace {

/// What an origin says instead of the gap, and what the part and the client have of that.
struct misfit {
    std::string name;
    origin_handler says;  ///< to a request with If-Range; empty: it is not there at all
    unsigned status;      ///< the client's, of a GET; 0: what the origin's object says
    bool part_stays;
};

std::vector<misfit> misfits() {
    const auto saying = [](std::string line, std::string fields = "") {
        return [line, fields](origin_request&, origin_connection& to) {
            to.send(answer(line, fields, "the origin's own words"));
        };
    };
    const auto part = [](byte_span of, std::string etag) {
        return [of, etag](origin_request&, origin_connection& to) {
            to.send(answer("206 Partial Content",
                           "Cache-Control: max-age=60\r\nETag: " + etag + "\r\n" +
                               content_range(of, 26),
                           letters.substr(of.first, of.count)));
        };
    };
    return {
        {"404", saying("404 Not Found"), 404, false},
        {"410", saying("410 Gone"), 410, false},
        {"416", saying("416 Range Not Satisfiable", "Content-Range: bytes */3\r\n"), 0, false},
        {"500", saying("500 Internal Server Error"), 500, true},
        {"a 503 that says how long it is fresh",
         saying("503 Service Unavailable", "Cache-Control: max-age=60\r\n"),
         503,
         true},
        {"429", saying("429 Too Many Requests", "Retry-After: 5\r\n"), 429, true},
        {"403", saying("403 Forbidden"), 403, true},
        {"no origin", {}, 502, true},
        {"another range", part({7, 2}, "\"v1\""), 0, true},
        {"another etag", part({5, 21}, "\"v2\""), 0, false},
        {"no etag", part({5, 21}, "W/\"v1\""), 0, false},
    };
}

}  // namespace

}  // namespace reprise::tests

TEST_SUITE_END();
