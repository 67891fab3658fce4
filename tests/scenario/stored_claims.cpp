// What Cache-Status says of storing is so (RFC 9211 2.6), and room is for what comes, not for what
// is only announced.

#include "tests/scenario/world.hpp"
#include "tests/support/waiting.hpp"

#include <list>
#include <string>

TEST_SUITE("scenario/stored_claims") {

    using namespace reprise::tests;

    namespace {

    const std::string fresh = "Cache-Control: max-age=60\r\n";

    json with_memory(std::string_view size, std::string_view max_object) {
        auto settings = storing_settings();
        settings["memory"] = {{"size", size}, {"max_object", max_object}};
        return settings;
    }

    bool is_promised(const response& answer) {
        return cache_status_of(answer).stored;
    }

    /// A large body of which little comes.
    void stall_after(world& w, const std::string& path, std::size_t length, std::size_t sent) {
        auto& go = w.origin.make_gate();
        w.origin.on(path, [=, &go](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", fresh + "Content-Length: " + std::to_string(length) + "\r\n") +
                patterned(sent));
            (void)go.wait(std::chrono::minutes{1});
            connection.close();
        });
    }

    }  // namespace

    TEST_CASE("large answers that stall leave room for what is small") {
        for (const std::size_t sent : {std::size_t{100}, 3 * mib}) {
            CAPTURE(sent);
            world w{with_memory("64MiB", "4MiB")};
            w.origin.on("/small", ok(fresh, patterned(20 * kib)));
            std::list<client> waiting;
            for (int i = 0; i < 9; ++i) {
                const auto path = "/large/" + std::to_string(i);
                stall_after(w, path, 4 * mib, sent);
                waiting.push_back(w.proxy.connect(w.request(path)));
                auto answer = waiting.back().read_head();
                waiting.back().read_body(answer, sent / 2);
                CHECK(answer.status == 200);
            }
            CHECK(is_promised(w.get("/small")));
            CHECK(is_hit(w.get("/small")));
        }
    }

    TEST_CASE("what is large is stored as it comes, where there is room") {
        world w{with_memory("64MiB", "4MiB")};
        const auto body = patterned(3 * mib);
        w.origin.on("/large", ok(fresh, body));
        CHECK(is_promised(w.get("/large")));
        CHECK(hit_body(w.get("/large")) == body);
    }

    TEST_CASE("nobody who shares a body of unknown length is promised that it is stored") {
        auto settings = with_memory("64MiB", "64KiB");
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", fresh + "Transfer-Encoding: chunked\r\n") +
                            chunk("first "));
            go.wait();
            connection.send(chunk(patterned(200 * kib)) + chunk(""));
        });
        auto leader = w.proxy.connect(w.request("/a"));
        auto first = leader.read_head();
        leader.read_body(first, 6);
        auto follower = w.proxy.connect(w.request("/a"));
        const auto second = follower.read_head();
        CHECK(cache_status_of(second).collapsed);
        CHECK_FALSE(is_promised(first));
        CHECK_FALSE(is_promised(second));
        go.open();
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("what the disk may be too slow for is not promised, and is a hit if it was not") {
        const temp_dir directory;
        auto settings = with_memory("64MiB", "64KiB");
        settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
        world w{settings};
        const auto body = patterned(mib);
        w.origin.on("/large", ok(fresh + "ETag: \"1\"\r\n", body));
        REQUIRE(eventually([&] { return w.proxy.stats()["disk"]["state"] == "ready"; }));
        const auto first = w.get("/large");
        CHECK(first.body == body);
        CHECK_FALSE(is_promised(first));
        CHECK(cache_status_of(first).detail == "to-disk");
        CHECK(eventually([&] { return is_hit(w.get("/large")); }));
    }

    TEST_CASE("what neither memory nor disk takes is told so") {
        const temp_dir directory;
        auto settings = with_memory("64MiB", "64KiB");
        settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
        settings["disk"]["max_object"] = "512KiB";
        world w{settings};
        w.origin.on("/large", ok(fresh, patterned(mib)));
        REQUIRE(eventually([&] { return w.proxy.stats()["disk"]["state"] == "ready"; }));
        const auto first = w.get("/large");
        CHECK_FALSE(is_promised(first));
        CHECK(cache_status_of(first).detail == "too-large");
        CHECK_FALSE(is_hit(w.get("/large")));
    }

}  // TEST_SUITE
