// Parts of one object: what is stored of them, what they answer, and how what is missing is
// fetched. The origin holds one object whose bytes tell their place, so that a byte in the wrong
// place shows.

#include "tests/scenario/ranged_object.hpp"

#include <string>
#include <utility>

TEST_SUITE_BEGIN("scenario/parts");

namespace reprise::tests {

TEST_CASE("a part answers the range that brought it, and every range within") {
    world w;
    ranged_object{}.put_on(w.origin, "/a");
    const auto first = w.get("/a", range("4-9"));
    CHECK(first.status == 206);
    CHECK(cache_status_of(first).stored);
    for (const std::string asked : {"4-9", "5-6", "9-9"}) {
        CAPTURE(asked);
        const auto part = w.get("/a", range(asked));
        CHECK(part.status == 206);
        CHECK(is_hit(part));
        CHECK(part.get("Content-Range") == "bytes " + asked + "/26");
        CHECK(part.get("Content-Type") == "text/plain");
        CHECK(part.get("ETag") == "\"v1\"");
        const auto dash = asked.find('-');
        const auto at = std::stoul(asked);
        const auto size = std::stoul(asked.substr(dash + 1)) - at + 1;
        CHECK(part.body == letters.substr(at, size));
        CHECK(part.get("Content-Length") == std::to_string(size));
    }
    CHECK(w.origin.count("/a") == 1);
}

TEST_CASE("ranges that count from the end are answered where the end is known") {
    world_with w{"-6"};
    CHECK(hit_body(w.get("/a", range("-2"))) == "yz");
    CHECK(hit_body(w.get("/a", range("22-"))) == "wxyz");
    const auto beyond = w.get("/a", range("26-"));
    CHECK(beyond.status == 416);
    CHECK(beyond.get("Content-Range") == "bytes */26");
    CHECK(w.origin.count("/a") == 1);
}

TEST_CASE("of an object of unknown length only ranges with both ends are answered") {
    world w;
    w.origin.on("/a",
                answer("206 Partial Content",
                       "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
                       "Content-Range: bytes 20-25/*\r\n",
                       letters.substr(20)));
    (void)w.get("/a", range("20-25"));
    const auto part = w.get("/a", range("21-22"));
    CHECK(is_hit(part));
    CHECK(part.body == "vw");
    CHECK(part.get("Content-Range") == "bytes 21-22/*");
    CHECK_FALSE(is_hit(w.get("/a", range("-2"))));
    CHECK_FALSE(is_hit(w.get("/a", range("24-"))));
}

TEST_CASE("of a range that is held at its beginning the rest is fetched, and stored") {
    world_with w{"2-5"};
    const auto part = w.get("/a", range("4-9"));
    CHECK(part.status == 206);
    CHECK(part.body == "efghij");
    CHECK(part.get("Content-Range") == "bytes 4-9/26");
    CHECK(part.get("Content-Length") == "6");
    CHECK(cache_status_of(part).fwd == "partial");
    const auto asked = w.origin.requests("/a").at(1);
    CHECK(asked.get("Range") == "bytes=6-9");
    CHECK(asked.get("If-Range") == "\"v1\"");
    CHECK(hit_body(w.get("/a", range("2-9"))) == "cdefghij");
}

TEST_CASE("of a range that is held at its end the beginning is fetched") {
    world_with w{"6-9"};
    const auto part = w.get("/a", range("3-7"));
    CHECK(part.status == 206);
    CHECK(part.body == "defgh");
    CHECK(w.origin.requests("/a").at(1).get("Range") == "bytes=3-5");
    CHECK(is_hit(w.get("/a", range("3-9"))));
}

TEST_CASE("of several gaps everything from the first to the last missing byte is fetched") {
    world_with w{"0-3", "8-9", "14-17"};
    const auto part = w.get("/a", range("2-15"));
    CHECK(part.body == letters.substr(2, 14));
    CHECK(w.origin.requests("/a").back().get("Range") == "bytes=4-13");
    CHECK(is_hit(w.get("/a", range("0-17"))));
}

TEST_CASE("nothing goes out before the origin has said that what is held still holds") {
    world w;
    auto& go = w.origin.make_gate();
    w.origin.on("/a", [&go](origin_request& request, origin_connection& to) {
        if (request.has("If-Range")) {
            go.wait();
            to.send(answer("404 Not Found", "Cache-Control: no-store\r\n", "gone"));
            return;
        }
        ranged_object{}.answer_to(request, to);
    });
    (void)w.get("/a", range("0-5"));
    auto one = w.proxy.connect(w.request("/a", range("0-9")));
    REQUIRE(eventually([&] { return w.origin.count("/a") == 2; }));
    go.open();
    const auto gone = one.read();
    CHECK(gone.status == 404);
    CHECK(gone.body == "gone");
}

TEST_CASE("parts that miss nothing are the whole object") {
    world_with w{"0-9", "20-25", "10-19"};
    const auto whole = w.get("/a");
    CHECK(is_hit(whole));
    CHECK(whole.status == 200);
    CHECK(whole.body == letters);
    CHECK(whole.get("Content-Length") == "26");
    CHECK_FALSE(whole.has("Content-Range"));
    CHECK(w.origin.count("/a") == 3);
}

TEST_CASE("a whole is completed from its beginning, and then stored") {
    world_with w{"0-4"};
    const auto whole = w.get("/a");
    CHECK(whole.status == 200);
    CHECK(whole.body == letters);
    CHECK(whole.get("Content-Length") == "26");
    CHECK_FALSE(whole.has("Content-Range"));
    CHECK(w.origin.requests("/a").at(1).get("Range") == "bytes=5-");
    CHECK(w.origin.requests("/a").at(1).get("If-Range") == "\"v1\"");
    CHECK(is_hit(w.get("/a")));
}

TEST_CASE("a whole of which the beginning is not held is fetched whole") {
    world_with w{"5-9"};
    const auto whole = w.get("/a");
    CHECK(whole.status == 200);
    CHECK(whole.body == letters);
    CHECK_FALSE(w.origin.requests("/a").at(1).has("Range"));
    CHECK(is_hit(w.get("/a")));
}

TEST_CASE("an origin that answers otherwise than with the gap is passed on whole") {
    for (const auto& one : misfits()) {
        for (const bool ranged : {false, true}) {
            CAPTURE(one.name);
            CAPTURE(ranged);
            world w;
            ranged_object{}.put_on(w.origin, "/a");
            REQUIRE(w.get("/a", range("0-4")).status == 206);
            w.origin.on("/a", [&one](origin_request& request, origin_connection& to) {
                if (!request.has("If-Range")) {
                    ranged_object{}.answer_to(request, to);
                } else if (one.says) {
                    one.says(request, to);
                } else {
                    to.close();
                }
            });
            const auto got = w.get("/a", ranged ? range("2-9") : "");
            CHECK(got.complete());
            if (one.status == 0) {
                CHECK(got.status == (ranged ? 206U : 200U));
                CHECK(got.body == (ranged ? letters.substr(2, 8) : letters));
            } else {
                CHECK(got.status == one.status);
                CHECK((one.status == 502 || got.body == "the origin's own words"));
            }
            // A range of the part's, unless the whole has come.
            const bool held = one.part_stays || (one.status == 0 && !ranged);
            CHECK(w.get("/a", range("0-1") + "Cache-Control: only-if-cached\r\n").status ==
                  (held ? 206U : 504U));

            ranged_object{}.put_on(w.origin, "/a");
            const auto whole = w.get("/a");
            CHECK(whole.status == 200);
            CHECK(whole.complete());
            CHECK(whole.body == letters);
        }
    }
}

TEST_CASE("what an origin says of a gap's range is no answer to whoever asks for the whole") {
    world w;
    ranged_object{}.put_on(w.origin, "/a");
    REQUIRE(w.get("/a", range("0-4")).status == 206);
    w.origin.on("/a", [](origin_request& request, origin_connection& to) {
        to.send(request.has("If-Range")
                    ? answer("416 Range Not Satisfiable",
                             "Cache-Control: max-age=60\r\nContent-Range: bytes */3\r\n",
                             "no")
                    : ok("Cache-Control: no-store\r\n", "new"));
    });
    for (int i = 0; i < 2; ++i) {
        const auto got = w.get("/a");
        CHECK(got.status == 200);
        CHECK(got.body == "new");
    }
}

TEST_CASE("an object that changed while parts of it were held is had as it is now") {
    world w;
    for (const bool whole : {false, true}) {
        const std::string path = whole ? "/whole" : "/part";
        CAPTURE(path);
        ranged_object{}.put_on(w.origin, path);
        (void)w.get(path, range("0-4"));
        const ranged_object changed{.body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", .etag = "\"v2\""};
        changed.put_on(w.origin, path);
        const auto now = w.get(path, whole ? "" : range("0-9"));
        CHECK(now.complete());
        CHECK(now.status == 200);
        CHECK(now.body == changed.body);
        CHECK(w.get(path, range("0-4")).body == "ABCDE");
    }
}

TEST_CASE("a gap that is cut short breaks the connection, and what was held stays") {
    world_with w{"0-4"};
    w.origin.on("/a", [](origin_request&, origin_connection& to) {
        to.send(raw_head("206 Partial Content",
                         "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n" +
                             content_range({5, 5}, 26) + "Content-Length: 5\r\n") +
                "fg");
        to.close();
    });
    auto one = w.proxy.connect();
    CHECK(one.ask(w.request("/a", range("0-9"))).end == ending::cut_short);
    CHECK(w.get("/a", range("0-4")).body == "abcde");
    ranged_object{}.put_on(w.origin, "/a");
    CHECK(w.get("/a", range("0-9")).body == "abcdefghij");
}

TEST_CASE("an origin that is down fails a gap that nothing went out for") {
    world_with w{"6-9"};
    w.origin.stop();
    CHECK(w.get("/a", range("3-7")).status == 502);
    CHECK(w.get("/a", range("6-7")).body == "gh");
}

TEST_CASE("stale parts stand in for an origin that is down as far as they reach, and no further") {
    world w;
    ranged_object{.fields = "Cache-Control: max-age=0\r\n"}.put_on(w.origin, "/a");
    REQUIRE(w.get("/a", range("0-4")).status == 206);
    w.origin.stop();
    auto one = w.proxy.connect();
    for (const auto& fields : {range("0-9"), std::string{}}) {
        CAPTURE(fields);
        const auto failed = one.ask(w.request("/a", fields));
        CHECK(failed.status == 502);
        CHECK(failed.complete());
        const auto held = one.ask(w.request("/a", range("1-3")));
        CHECK(held.status == 206);
        CHECK(held.body == "bcd");
        CHECK(held.get("Content-Range") == "bytes 1-3/26");
        CHECK(cache_status_of(held).detail == "origin-failed");
    }
}

TEST_CASE("what is held in part goes out as no more than that, though it may be sent stale") {
    const std::string stale = "Cache-Control: max-age=0";
    for (const bool by_client : {true, false}) {
        CAPTURE(by_client);
        const std::string wish = by_client ? "Cache-Control: max-stale\r\n" : "";
        const std::string leave = by_client ? "" : ", stale-while-revalidate=600";
        world w;
        for (const std::string path : {"/a", "/b"}) {
            ranged_object{.fields = stale + leave + "\r\n"}.put_on(w.origin, path);
            REQUIRE(w.get(path, range("0-4")).status == 206);
        }
        const auto part = w.get("/a", range("0-9") + wish);
        CHECK(part.status == 206);
        CHECK(part.body == letters.substr(0, 10));
        CHECK(w.origin.requests("/a").back().get("Range") == "bytes=5-9");
        const auto whole = w.get("/a", wish);
        CHECK(whole.status == 200);
        CHECK(whole.body == letters);
        CHECK(w.origin.requests("/a").back().get("Range") == "bytes=10-");

        w.origin.stop();
        auto one = w.proxy.connect();
        for (const auto& fields : {range("0-9"), std::string{}}) {
            CAPTURE(fields);
            const auto failed = one.ask(w.request("/b", fields + wish));
            CHECK(failed.status == 502);
            CHECK(failed.complete());
            const auto held = one.ask(w.request("/b", range("1-3") + wish));
            CHECK(held.status == 206);
            CHECK(hit_body(held) == "bcd");
        }
    }
}

TEST_CASE("a part of another representation takes the place of the parts of the old one") {
    world_with w{"0-4"};
    ranged_object{.body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", .etag = "\"v2\""}.put_on(w.origin, "/a");
    CHECK(w.get("/a", range("10-14")).body == "KLMNO");
    CHECK(w.get("/a", range("0-4")).body == "ABCDE");
    CHECK(is_hit(w.get("/a", range("0-4"))));
}

TEST_CASE("several ranges of what is not held whole pass through, and their answer is not stored") {
    world w;
    const std::string parts = "--x\r\nContent-Range: bytes 0-0/26\r\n\r\na\r\n--x--\r\n";
    ranged_object{.body = letters + std::string(1000, '.')}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-999"));
    w.origin.on("/a",
                answer("206 Partial Content",
                       "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
                       "Content-Type: multipart/byteranges; boundary=x\r\n",
                       parts));
    const auto both = w.get("/a", range("0-0,300-301,700-701"));
    CHECK(both.body == parts);
    CHECK(w.origin.requests("/a").back().get("Range") == "bytes=0-0,300-301,700-701");
    CHECK(w.get("/a", range("0-4")).body == "abcde");
    CHECK(is_hit(w.get("/a", range("0-4"))));
}

TEST_CASE("a 200 to a range is stored whole") {
    world w;
    w.origin.on("/a", ok("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n", letters));
    const auto first = w.get("/a", range("0-4"));
    CHECK(first.status == 200);
    CHECK(first.body == letters);
    CHECK(is_hit(w.get("/a")));
    CHECK(w.get("/a", range("0-4")).body == "abcde");
}

TEST_CASE("a 206 whose Content-Range is not right is not stored") {
    world w;
    for (const std::string wrong : {"",
                                    "Content-Range: bytes 4-9\r\n",
                                    "Content-Range: bytes 4-8/26\r\n",
                                    "Content-Range: bytes 4-10/26\r\n",
                                    "Content-Range: bytes 9-4/26\r\n",
                                    "Content-Range: bytes 4-9/8\r\n",
                                    "Content-Range: octets 4-9/26\r\n",
                                    "Content-Range: bytes 4-9/26\r\nContent-Range: bytes "
                                    "4-9/26\r\n"}) {
        CAPTURE(wrong);
        w.origin.on("/a",
                    answer("206 Partial Content",
                           "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n" + wrong,
                           letters.substr(4, 6)));
        CHECK_FALSE(cache_status_of(w.get("/a", range("4-9"))).stored);
        CHECK_FALSE(is_hit(w.get("/a", range("4-9"))));
    }
}

TEST_CASE("a 206 that brings less than it says answers as far as it reaches, and is never joined") {
    world w;
    const auto short_part = [](const std::string& fields) {
        return answer("206 Partial Content",
                      "Cache-Control: max-age=60\r\nContent-Range: bytes 4-9/10\r\n" + fields,
                      letters.substr(4, 5));
    };
    w.origin.on("/a", short_part(""));
    (void)w.get("/a", range("4-"));
    const auto part = w.get("/a", range("6-8"));
    CHECK(is_hit(part));
    CHECK(part.body == "ghi");
    CHECK(part.get("Content-Range") == "bytes 6-8/10");
    CHECK_FALSE(is_hit(w.get("/a", range("6-"))));
    CHECK_FALSE(is_hit(w.get("/a", range("-1"))));

    w.origin.on("/joinable", short_part("ETag: \"v1\"\r\n"));
    (void)w.get("/joinable", range("4-"));
    CHECK_FALSE(is_hit(w.get("/joinable", range("6-8"))));
}

TEST_CASE("a part that may not be stored is not") {
    world w;
    for (const std::string why : {"no-store", "private, max-age=60"}) {
        CAPTURE(why);
        ranged_object{.fields = "Cache-Control: " + why + "\r\n"}.put_on(w.origin, "/a");
        (void)w.get("/a", range("0-4"));
        CHECK_FALSE(is_hit(w.get("/a", range("0-4"))));
    }
}

TEST_CASE("a part enters at the second sight of its object") {
    world w{basic_settings()};
    ranged_object{}.put_on(w.origin, "/a");
    CHECK(cache_status_of(w.get("/a", range("0-4"))).detail == "first-request");
    CHECK(cache_status_of(w.get("/a", range("10-14"))).stored);
    CHECK_FALSE(is_hit(w.get("/a", range("0-4"))));
    CHECK(is_hit(w.get("/a", range("0-4"))));
}

TEST_CASE("a first part waits on probation, as any first response does") {
    auto settings = basic_settings();
    settings["admission"] = {{"probation", "2%"}};
    world w{settings};
    ranged_object{}.put_on(w.origin, "/a");
    const auto first = w.get("/a", range("0-9"));
    CHECK(first.status == 206);
    CHECK(cache_status_of(first).detail == "probation");
    CHECK(hit_body(w.get("/a", range("2-5"))) == "cdef");
    CHECK(w.origin.count("/a") == 1);
    CHECK(w.get("/a").body == letters);
    CHECK(w.origin.requests("/a").back().get("Range") == "bytes=10-");
}

TEST_CASE("parts together may hold as much as one object may") {
    auto settings = storing_settings();
    settings["memory"]["max_object"] = "1KiB";
    world w{settings};
    std::string body;
    for (int i = 0; i < 4 * 64; ++i) {
        body += letters.substr(0, 16);
    }
    ranged_object{.body = body}.put_on(w.origin, "/a");
    CHECK(cache_status_of(w.get("/a", range("0-599"))).stored);
    const auto more = w.get("/a", range("1000-1599"));
    CHECK(more.body == body.substr(1000, 600));
    CHECK(cache_status_of(more).detail == "too-large");
    CHECK(is_hit(w.get("/a", range("0-599"))));
    CHECK_FALSE(is_hit(w.get("/a", range("1000-1599"))));
}

TEST_CASE("If-Range is judged against the parts") {
    world_with w{"0-9"};
    CHECK(hit_body(w.get("/a", range("2-3") + "If-Range: \"v1\"\r\n")) == "cd");
    const auto other = w.get("/a", range("2-3") + "If-Range: \"v0\"\r\n");
    CHECK(other.status == 200);
    CHECK(other.body == letters);
    CHECK(w.origin.requests("/a").back().get("If-Range") == "\"v0\"");
}

TEST_CASE("what answers an If-Range adds to parts of the same object but begins none") {
    world w;
    // Fields that the asker has already are left out, as RFC 9110 15.3.7 wants.
    w.origin.on("/a", [](origin_request& request, origin_connection& to) {
        const auto part = *range_of(request, 26);
        to.send(answer("206 Partial Content",
                       "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n" + content_range(part, 26) +
                           (request.has("If-Range") ? "" : "Content-Type: text/plain\r\n"),
                       letters.substr(part.first, part.count)));
    });
    const std::string same = "If-Range: \"v1\"\r\n";
    (void)w.get("/a", range("0-4") + same);
    CHECK_FALSE(is_hit(w.get("/a", range("0-4"))));
    (void)w.get("/a", range("10-14") + same);
    const auto later = w.get("/a", range("10-14"));
    CHECK(is_hit(later));
    CHECK(later.get("Content-Type") == "text/plain");
}

TEST_CASE("conditional requests are answered from parts") {
    world_with w{"0-9"};
    const auto same = w.get("/a", range("2-3") + "If-None-Match: \"v1\"\r\n");
    CHECK(same.status == 304);
    CHECK(w.get("/a", "If-None-Match: \"v1\"\r\n").status == 304);
    const auto other = w.get("/a", range("2-3") + "If-None-Match: \"v0\"\r\n");
    CHECK(other.status == 206);
    CHECK(other.body == "cd");
    CHECK(w.origin.count("/a") == 1);
}

TEST_CASE("HEAD and only-if-cached are answered from parts as far as they reach") {
    world_with w{"0-9"};
    const auto head = w.ask("HEAD", "/a");
    CHECK(is_hit(head));
    CHECK(head.status == 200);
    CHECK(head.get("Content-Length") == "26");
    const std::string here = "Cache-Control: only-if-cached\r\n";
    CHECK(w.get("/a", range("3-4") + here).body == "de");
    CHECK(w.get("/a", range("3-14") + here).status == 504);
    CHECK(w.get("/a", here).status == 504);
    CHECK(w.origin.count("/a") == 1);
}

TEST_CASE("stale parts are validated, and a 304 freshens them all") {
    world w;
    ranged_object{.fields = "Cache-Control: max-age=0\r\n"}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-4"));
    (void)w.get("/a", range("10-14"));
    ranged_object{}.put_on(w.origin, "/a");
    const auto part = w.get("/a", range("1-2"));
    CHECK(part.status == 206);
    CHECK(part.body == "bc");
    CHECK(cache_status_of(part).fwd_status == "304");
    CHECK(w.origin.requests("/a").back().get("If-None-Match") == "\"v1\"");
    CHECK(is_hit(w.get("/a", range("11-12"))));
}

TEST_CASE("stale parts of an object that changed are replaced by the new one's range") {
    world w;
    ranged_object{.fields = "Cache-Control: max-age=0\r\n"}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-4"));
    ranged_object{.body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", .etag = "\"v2\""}.put_on(w.origin, "/a");
    const auto part = w.get("/a", range("1-2"));
    CHECK(part.status == 206);
    CHECK(part.body == "BC");
    CHECK(is_hit(w.get("/a", range("1-2"))));
    CHECK_FALSE(is_hit(w.get("/a", range("0-0"))));
}

TEST_CASE("of stale parts nothing goes out before the origin has confirmed them") {
    world w;
    ranged_object{.fields = "Cache-Control: max-age=0\r\n"}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-4"));
    const ranged_object changed{.body = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", .etag = "\"v2\""};
    changed.put_on(w.origin, "/a");
    const auto answer = w.get("/a", range("0-9"));
    CHECK(answer.complete());
    CHECK(answer.status == 200);
    CHECK(answer.body == changed.body);
}

TEST_CASE("a gap that comes freshens the stale parts beside it") {
    world w;
    ranged_object{.fields = "Cache-Control: max-age=0\r\nX-Turn: 1\r\n"}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-4"));
    ranged_object{.fields = "Cache-Control: max-age=60\r\nX-Turn: 2\r\n"}.put_on(w.origin, "/a");
    const auto part = w.get("/a", range("2-9"));
    CHECK(part.status == 206);
    CHECK(part.body == "cdefghij");
    CHECK(part.get("X-Turn") == "2");
    CHECK(is_hit(w.get("/a", range("0-9"))));
    CHECK(w.origin.requests("/a").back().get("Range") == "bytes=5-9");
}

TEST_CASE("an unsafe method drops the parts") {
    world_with w{"0-4"};
    CHECK(w.ask("DELETE", "/a").status == 200);
    CHECK_FALSE(is_hit(w.get("/a", range("0-4"))));
}

TEST_CASE("all of an object as one part, invalidated on its way, takes nobody's place") {
    world w;
    auto& go = w.origin.make_gate();
    const std::string fields = "Cache-Control: max-age=60\r\n";
    w.origin.on("/a", [&go, fields](origin_request& request, origin_connection& to) {
        if (request.has("Range")) {
            to.send(raw_head("206 Partial Content",
                             fields + content_range({0, 26}, 26) + "Content-Length: 26\r\n"));
            go.wait();
            to.send(letters);
        } else {
            to.send(ok(fields, "newer"));
        }
    });
    auto slow = w.proxy.connect(w.request("/a", range("0-")));
    REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
    CHECK(w.ask("DELETE", "/a").status == 200);
    CHECK(w.get("/a").body == "newer");
    go.open();
    CHECK(slow.read().body == letters);
    CHECK(w.get("/a").body == "newer");
    CHECK(is_hit(w.get("/a")));
}

TEST_CASE("parts of one variant are not another's") {
    world w;
    w.origin.on("/a", [](origin_request& request, origin_connection& to) {
        const bool english = request.get("Accept-Language") == "en";
        ranged_object{.body = english ? letters : "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                      .etag = english ? "\"en\"" : "\"de\"",
                      .fields = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n"}
            .answer_to(request, to);
    });
    const std::string en = "Accept-Language: en\r\n";
    const std::string de = "Accept-Language: de\r\n";
    (void)w.get("/a", range("0-4") + en);
    CHECK(w.get("/a", range("0-4") + de).body == "ABCDE");
    CHECK(w.get("/a", range("0-9") + en).body == "abcdefghij");
    CHECK(w.get("/a", range("0-9") + de).body == "ABCDEFGHIJ");
    CHECK(is_hit(w.get("/a", range("5-9") + en)));
    CHECK(is_hit(w.get("/a", range("5-9") + de)));
}

TEST_CASE("a large gap streams between what is held on both its sides") {
    world w;
    std::string body;
    while (body.size() < 3 * mib) {
        body += std::to_string(body.size()) + " ";
    }
    body.resize(3 * mib);
    ranged_object{.body = body}.put_on(w.origin, "/a");
    (void)w.get("/a", range("0-99999"));
    (void)w.get("/a", range("-100000"));
    const auto whole = w.get("/a");
    CHECK(whole.status == 200);
    CHECK(whole.body == body);
    CHECK(w.origin.requests("/a").back().get("Range") ==
          "bytes=100000-" + std::to_string(3 * mib - 100001));
    CHECK(hit_body(w.get("/a")) == body);
}

}  // namespace reprise::tests

TEST_SUITE_END();
