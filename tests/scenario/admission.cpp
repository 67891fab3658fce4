// Who decides what may enter the store, and what is remembered over a restart.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

TEST_SUITE("scenario/admission") {

    using namespace reprise::tests;

    namespace {

    const std::string fresh_hello = ok("Cache-Control: max-age=3600\r\n", "hello");

    bool stores(const response& answer) {
        return cache_status_of(answer).stored;
    }

    }  // namespace

    TEST_CASE("always stores at the first request") {
        world w{storing_settings()};
        w.origin.on("/a", fresh_hello);
        CHECK(stores(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("what is too large to be stored is not admission's cost, nor what it spares") {
        auto settings = basic_settings();
        settings["memory"] = {{"size", "64MiB"}, {"max_object", "64KiB"}};
        settings["admission"] = {{"policy", "nth-hit"}, {"hits", 3}};
        world w{settings};
        const auto body = patterned(mib);
        const std::string fresh = "Cache-Control: max-age=60\r\n";
        w.origin.on("/large", ok(fresh, body));
        for (int i = 0; i < 4; ++i) {
            const auto answer = w.get("/large");
            CHECK(answer.body == body);
            CHECK(cache_status_of(answer).detail == "too-large");
        }
        const auto stats = w.proxy.stats();
        CHECK(figure(stats, "/admission/hits_lost") == 0);
        CHECK(figure(stats, "/admission/hit_bytes_lost") == 0);
        CHECK(figure(stats, figure_name::ledger_objects) == 0);
        CHECK(figure(stats, figure_name::ledger_bytes) == 0);
        CHECK(figure(stats, figure_name::admission_refused) == 0);

        // Of unknown length: the first is known to be so when it has passed, the next before.
        w.origin.on("/chunked", [&](origin_request&, origin_connection& to) {
            to.send(raw_head("200 OK", fresh + "Transfer-Encoding: chunked\r\n") + "100000\r\n" +
                    body + "\r\n0\r\n\r\n");
        });
        for (int i = 0; i < 4; ++i) {
            CHECK(w.get("/chunked").body == body);
            CHECK(eventually([&] {
                const auto said = w.proxy.admin("/explain?url=" + w.origin.url("/chunked"));
                return said.body.find("too-large") != std::string::npos;
            }));
        }
        const auto after = w.proxy.stats();
        CHECK(figure(after, "/admission/hits_lost") == 0);
        CHECK(figure(after, "/admission/hit_bytes_lost") == 0);
        CHECK(figure(after, figure_name::ledger_bytes) == 0);
    }

    TEST_CASE("never stores nothing, however often it is asked") {
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "never"}};
        world w{settings};
        w.origin.on("/a", fresh_hello);
        for (int i = 0; i < 4; ++i) {
            CHECK_FALSE(stores(w.get("/a")));
        }
        CHECK(w.origin.count("/a") == 4);
        CHECK(figure(w.proxy.stats(), figure_name::store_objects) == 0);
    }

    TEST_CASE("nth-hit stores at the request it says") {
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "nth-hit"}, {"hits", 3}};
        world w{settings};
        w.origin.on("/a", fresh_hello);
        CHECK_FALSE(stores(w.get("/a")));
        CHECK_FALSE(stores(w.get("/a")));
        CHECK(stores(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE(
        "a first request's body waits on probation: the second is a hit, the origin asked once") {
        auto settings = basic_settings();
        settings["admission"] = {{"probation", "2%"}};
        world w{settings};
        w.origin.on("/a", fresh_hello);
        const auto first = w.get("/a");
        CHECK(stores(first));
        CHECK(cache_status_of(first).detail == "probation");
        const auto spared = [&] { return w.proxy.stats()["summary"]["writes_spared"]; };
        CHECK(eventually([&] { return spared()["bytes"] == 5; }));
        CHECK(spared()["objects"] == 1);
        CHECK(hit_body(w.get("/a")) == "hello");
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 1);
        CHECK(spared()["objects"] == 0);  // it was asked for again, and is stored
        CHECK(spared()["bytes"] == 0);
    }

    TEST_CASE("what probation admits under auto is counted for the policy that auto is") {
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "auto"}, {"probation", "2%"}};
        world w{settings};
        w.origin.on("/a", fresh_hello);
        CHECK(stores(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
        const auto by_policy = w.proxy.stats().at("admission").at("by_policy");
        CAPTURE(by_policy.dump());
        std::int64_t admitted = 0;
        const auto counts = by_policy.flatten();
        for (const auto& [place, count] : counts.items()) {
            if (place.find("/admitted") != std::string::npos) {
                admitted += count.get<std::int64_t>();
                CHECK((place.find("auto") == std::string::npos || count == 0));
            }
        }
        CHECK(admitted == 1);
    }

    TEST_CASE("probation spares the fetches that nth-hit would cost, and never waits for nothing") {
        auto settings = basic_settings();
        settings["admission"] = {
            {"policy", "nth-hit"},
            {"hits", 3},
            {"probation", "2%"},
            {"rules", json::array({json{{"url", "*/never"}, {"policy", "never"}}})}};
        world w{settings};
        w.origin.on("/a", fresh_hello);
        w.origin.on("/never", fresh_hello);
        CHECK(stores(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 1);
        CHECK_FALSE(stores(w.get("/never")));
        CHECK_FALSE(stores(w.get("/never")));
    }

    TEST_CASE("tinylfu and auto serve, and /stats says what other settings would have done") {
        for (const std::string policy : {"tinylfu", "auto"}) {
            CAPTURE(policy);
            auto settings = basic_settings();
            settings["admission"] = {{"policy", policy}};
            settings["memory"] = {{"size", "8MiB"}, {"policy", "gdsf"}};
            world w{settings};
            w.origin.on("/a", fresh_hello);
            (void)w.get("/a");
            (void)w.get("/a");
            CHECK(is_hit(w.get("/a")));
            const auto told = w.proxy.stats().at("what_if");
            CHECK(told.at("sample").get<double>() > 0);
            CHECK_FALSE(told.at("advice").get<std::string>().empty());
        }
    }

    TEST_CASE("a URL rule overrides the policy, and the first that matches decides") {
        fake_origin origin;
        auto settings = basic_settings();
        settings["admission"] = {
            {"policy", "second-hit"},
            {"rules",
             json::array({json{{"url", origin.url("/always/but/not/*")}, {"policy", "never"}},
                          json{{"url", origin.url("/always/*")}, {"policy", "always"}}})}};
        const proxy_process proxy{settings};
        for (const std::string path : {"/always/a", "/always/but/not/a", "/other"}) {
            origin.on(path, fresh_hello);
        }
        CHECK(stores(proxy.get(origin.url("/always/a"))));
        CHECK_FALSE(stores(proxy.get(origin.url("/always/but/not/a"))));
        CHECK_FALSE(stores(proxy.get(origin.url("/always/but/not/a"))));
        CHECK_FALSE(stores(proxy.get(origin.url("/other"))));
        CHECK(stores(proxy.get(origin.url("/other"))));
    }

    TEST_CASE("a listener's own admission overrides policy and rules, for the same store") {
        fake_origin origin;
        auto settings = basic_settings();
        settings["listeners"].push_back({{"address", "127.0.0.1:0"}, {"admission", "always"}});
        settings["admission"] = {{"policy", "never"},
                                 {"rules", json::array({json{{"url", "*"}, {"policy", "never"}}})}};
        const proxy_process proxy{settings};
        origin.on("/a", fresh_hello);
        CHECK_FALSE(stores(proxy.get(origin.url("/a"))));
        CHECK_FALSE(stores(proxy.get(origin.url("/a"))));
        client by_the_other{proxy.port(1)};
        CHECK(stores(by_the_other.ask(absolute_request("GET", origin.url("/a")))));
        CHECK(is_hit(proxy.get(origin.url("/a"))));
    }

    TEST_CASE("two requests that wait for one fetch are two sights") {
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "nth-hit"}, {"hits", 3}};
        world w{settings};
        auto& go = w.origin.hold("/a", fresh_hello);
        auto one = w.proxy.connect();
        auto two = w.proxy.connect();
        one.send(w.request("/a"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        two.send(w.request("/a"));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 1; }));
        go.open();
        CHECK(one.read().body == "hello");
        CHECK(two.read().body == "hello");
        CHECK(w.origin.count("/a") == 1);
        CHECK(stores(w.get("/a")));
    }

    TEST_CASE("replacing a stale object never asks admission") {
        auto settings = storing_settings();
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=1\r\n", "old"));
        REQUIRE(stores(w.get("/a")));
        settings["admission"] = "never";
        w.proxy.reload(settings);
        w.origin.on("/b", fresh_hello);
        REQUIRE_FALSE(stores(w.get("/b")));
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "new"));
        response answer;
        REQUIRE(eventually([&] {
            answer = w.get("/a");
            return answer.body == "new";
        }));
        CHECK(stores(answer));
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("what was seen before a restart is admitted at its next request") {
        fake_origin origin;
        origin.on("/seen", fresh_hello);
        origin.on("/unseen", fresh_hello);
        const temp_dir directory;
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "second-hit"}, {"state", directory.file("admission")}};
        {
            proxy_process before{settings};
            CHECK(cache_status_of(before.get(origin.url("/seen"))).detail == "first-request");
            CHECK(before.stop() == 0);
        }
        const auto mode = std::filesystem::status(directory.file("admission")).permissions();
        CHECK(mode == (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));

        const proxy_process after{settings};
        CHECK(stores(after.get(origin.url("/seen"))));
        CHECK(cache_status_of(after.get(origin.url("/unseen"))).detail == "first-request");
    }

    TEST_CASE("a damaged state file is refused with a log line, and the filter starts empty") {
        fake_origin origin;
        origin.on("/seen", fresh_hello);
        const temp_dir directory;
        const auto state = directory.file("admission");
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "second-hit"}, {"state", state}};
        {
            const proxy_process before{settings};
            CHECK(before.get(origin.url("/seen")).status == 200);
        }
        const auto whole = read_file(state);
        REQUIRE(whole.size() > 64);

        std::string damaged = whole;
        SUBCASE("one bit of the middle") {
            damaged[damaged.size() / 2] ^= 1;
        }
        SUBCASE("one bit of the end") {
            damaged.back() ^= 1;
        }
        SUBCASE("cut short") {
            damaged.resize(damaged.size() / 2);
        }
        SUBCASE("something else") {
            damaged = "not a filter\n";
        }
        SUBCASE("empty") {
            damaged.clear();
        }
        directory.write("admission", damaged);

        const proxy_process after{settings};
        CHECK(after.says(state));
        CHECK(cache_status_of(after.get(origin.url("/seen"))).detail == "first-request");
    }

    TEST_CASE("a state file that is not there yet is no trouble") {
        const temp_dir directory;
        auto settings = basic_settings();
        settings["admission"] = {{"policy", "second-hit"}, {"state", directory.file("admission")}};
        proxy_process proxy{settings};
        CHECK(proxy.stop() == 0);
        CHECK(std::filesystem::exists(directory.file("admission")));
    }

    TEST_CASE("what is hit stays known, so that it may come back at once when it has left") {
        auto settings = basic_settings();
        settings["admission"] = {{"remember", {{"objects", 1000}}}};
        world w{settings};
        // The filter takes a stranger for known now and then: enough that most are not.
        std::vector<std::string> paths{"/popular"};
        for (int n = 0; n < 20; ++n) {
            paths.push_back("/forgotten/" + std::to_string(n));
        }
        auto one = w.proxy.connect();
        for (const auto& path : paths) {
            w.origin.on(path, fresh_hello);
            (void)one.ask(w.request(path));
            CHECK(stores(one.ask(w.request(path))));
        }
        // Strangers for more than three generations, with a hit in each.
        for (int n = 0; n < 4000; ++n) {
            const auto path = "/stranger/" + std::to_string(n);
            w.origin.on(path, fresh_hello);
            (void)one.ask(w.request(path));
            if (n % 300 == 0) {
                REQUIRE(is_hit(one.ask(w.request("/popular"))));
            }
        }
        for (const auto& path : paths) {
            CHECK(w.ask("DELETE", path).status == 200);
        }
        CHECK(stores(w.get("/popular")));
        const auto known = std::count_if(
            paths.begin() + 1, paths.end(), [&](const auto& path) { return stores(w.get(path)); });
        CHECK(known < 10);
    }

}  // TEST_SUITE
