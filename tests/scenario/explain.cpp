// /explain: what it says of a request is what the request then gets, and asking changes nothing.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <random>

TEST_SUITE("scenario/explain") {

    using namespace reprise::tests;

    namespace {

    std::string encoded(const std::string& text) {
        constexpr std::string_view digits = "0123456789ABCDEF";
        std::string out;
        for (const char c : text) {
            const auto byte = static_cast<unsigned char>(c);
            out += '%';
            out += digits[byte / 16];
            out += digits[byte % 16];
        }
        return out;
    }

    /// `fields` are lines ended by CRLF, as a request has them.
    json explained(const proxy_process& proxy,
                   const std::string& url,
                   const std::string& fields = "",
                   const std::string& method = "GET") {
        auto query = "/explain?method=" + method + "&url=" + encoded(url);
        for (std::size_t at = 0; at < fields.size();) {
            const auto end = fields.find("\r\n", at);
            query += "&header=" + encoded(fields.substr(at, end - at));
            at = end + 2;
        }
        const auto answer = proxy.admin(query);
        REQUIRE(answer.status == 200);
        return json::parse(answer.body);
    }

    std::int64_t whole_seconds_since(std::chrono::steady_clock::time_point moment) {
        return std::chrono::floor<std::chrono::seconds>(std::chrono::steady_clock::now() - moment)
            .count();
    }

    }  // namespace

    TEST_CASE("the key, the variants and each term of their freshness") {
        world w;
        w.origin.on(
            "/a", ok("Cache-Control: max-age=60\r\nAge: 7\r\nVary: Accept-Language\r\n", "hello"));
        CHECK(w.get("/a", "Accept-Language: da\r\n").status == 200);
        const auto asked_at = std::chrono::steady_clock::now();
        CHECK(w.get("/a", "Accept-Language: sv\r\n").status == 200);
        const auto took = whole_seconds_since(asked_at);
        const auto told = explained(w.proxy, w.origin.url("/a"), "Accept-Language: sv\r\n");
        CHECK(told.at("key").at("text") == w.origin.url("/a"));
        CHECK(told.at("key").at("hash").get<std::string>().size() == 32);
        REQUIRE(told.at("stored").size() == 2);
        CHECK_FALSE(told.at("stored")[0].at("selected").get<bool>());
        CHECK(told.at("stored")[1].at("selected").get<bool>());
        const auto& terms = told.at("stored")[1].at("freshness");
        // The answer's delay is added (RFC 9111 4.2.3).
        CHECK(terms.at("initial_age").get<std::int64_t>() >= 7);
        CHECK(terms.at("initial_age").get<std::int64_t>() <= 7 + took);
        CHECK(terms.at("lifetime") == 60);
        CHECK(terms.at("lifetime_from") == "max-age");
        CHECK(terms.at("age").get<int>() ==
              terms.at("initial_age").get<int>() + terms.at("resident_time").get<int>());
        CHECK(terms.at("ttl").get<int>() == 60 - terms.at("age").get<int>());
        CHECK(told.at("verdict").at("section") == "RFC 9111 4.2");
        CHECK(explained(w.proxy, w.origin.url("/a")).at("verdict").at("fwd") == "vary-miss");
    }

    TEST_CASE("the admission filter's answer, and asking is no sight") {
        world w{basic_settings()};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        for (int i = 0; i < 3; ++i) {
            const auto told = explained(w.proxy, w.origin.url("/a")).at("admission");
            CHECK(told.at("seen_before") == 0);
            CHECK_FALSE(told.at("admits").get<bool>());
            CHECK(told.at("policy") == "second-hit");
        }
        CHECK(w.origin.count("/a") == 0);
        CHECK(w.get("/a").status == 200);
        CHECK(explained(w.proxy, w.origin.url("/a")).at("admission").at("admits").get<bool>());
        CHECK(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE("what is refused, tunnelled or answered here is said with its setting") {
        const proxy_process proxy;
        const auto port = explained(proxy, "http://127.0.0.1:22/").at("verdict");
        CHECK(port.at("outcome") == "refused");
        CHECK(port.at("refused") == "port_refused");
        CHECK(explained(proxy, "a.example:443", "", "CONNECT").at("verdict").at("outcome") ==
              "tunnel");
        CHECK(explained(proxy, "nonsense").at("verdict").at("outcome") == "client_error");
        CHECK(explained(proxy, "http://a.example/", "", "POST").at("verdict").at("fwd") ==
              "method");
        for (const std::string wrong : {"",
                                        "?url=",
                                        "?url=%zz",
                                        "?uri=http://a/",
                                        "?url=http://a/&listener=9",
                                        "?url=http://a/&header=A:%20b%0d%0aC:%20d"}) {
            CAPTURE(wrong);
            CHECK(proxy.admin("/explain" + wrong).status == 400);
        }
    }

    TEST_CASE("what is refused is said as the refusal itself says it") {
        auto settings = storing_settings();
        settings["access"] = json::object();
        const proxy_process proxy{settings};
        const std::string url = "http://127.0.0.1:18001/";
        const auto said = explained(proxy, url).at("verdict");
        CHECK(said.at("ruling") == "refused");
        CHECK(said.at("rule") == "destination_refused");
        CHECK(said.at("status") == 403);
        CHECK(said.at("detail") ==
              "127.0.0.1:18001 is a loopback address; access.allow_destinations can make an "
              "exception");
        const auto body = proxy.get(url).body;
        CHECK(body.find(said.at("detail").get<std::string>()) != std::string::npos);
        CHECK(body.find(said.at("why").get<std::string>()) != std::string::npos);
    }

    TEST_CASE("cookies and credentials among selecting values are not shown") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\nVary: Cookie\r\n", "hello"));
        CHECK(w.get("/a", "Cookie: secret=1\r\n").status == 200);
        const auto told = explained(w.proxy, w.origin.url("/a"), "Cookie: secret=1\r\n");
        CHECK(told.at("stored")[0].at("selected").get<bool>());
        CHECK(told.dump().find("secret") == std::string::npos);
    }

    // Of each, what /explain says of its end is what the client then gets.
    TEST_CASE("what is refused, and what is not, whatever the URL and the method") {
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        const auto port = std::to_string(origin.port());
        auto settings = basic_settings();
        settings["forwarding"] = {{"pseudonym", "me"}};
        settings["access"] = {
            {"allow_destinations", {"127.0.0.1:" + port}},
            {"deny_destinations", {"denied.example", "*.denied.example", "192.0.2.0/24"}},
            {"connect_ports", {443, origin.port()}}};
        const proxy_process proxy{settings};
        const auto own = std::to_string(proxy.admin_port());
        struct row {
            std::string method, url, fields;
        };
        std::vector<row> rows{
            {"GET", origin.url("/a"), ""},
            {"HEAD", origin.url("/a"), ""},
            {"POST", origin.url("/a"), "Content-Length: 0\r\n"},
            {"GET", origin.url("/a"), "Via: 1.1 me\r\n"},
            {"GET", origin.url("/a"), "Cache-Control: only-if-cached, no-cache\r\n"},
            {"GET", origin.url("/a"), "Expect: a-miracle\r\n"},
            {"GET", origin.url("/a"), "Host: other.example\r\nHost: third.example\r\n"},
            {"GET", origin.url("/a"), "Transfer-Encoding: gzip\r\n"},
            {"OPTIONS", origin.url("/a"), "Max-Forwards: 0\r\n"},
            {"TRACE", origin.url("/a"), "Max-Forwards: 0\r\n"},
            {"TRACE", origin.url("/a"), "Max-Forwards: x\r\n"},
            {"OPTIONS", origin.url("/a"), "Via: 1.1 me\r\n"},
            {"PURGE", origin.url("/a"), ""},
            {"purge", origin.url("/a"), ""},
            {"GET", "http://denied.example../", ""},
            {"CONNECT", "denied.example..:443", ""},
            {"CONNECT", "127.0.0.1:" + port, ""},
            {"CONNECT", "127.0.0.1:" + port, "Via: 1.1 me\r\n"},
            {"CONNECT", "127.0.0.1:22", ""},
            {"CONNECT", "denied.example:443", ""},
            {"GET", "ftp://a.example/", ""},
            {"GET", "nonsense", ""},
            {"GET", "http://user@a.example/", ""},
        };
        for (const std::string host :
             {"denied.example", "A.Denied.Example", "192.0.2.7", "[::ffff:192.0.2.7]"}) {
            rows.push_back({"GET", "http://" + host + "/", ""});
        }
        for (const std::string host : {"127.0.0.1",
                                       "127.9.9.9",
                                       "[::1]",
                                       "[::ffff:127.0.0.1]",
                                       "[64:ff9b::7f00:1]",
                                       "0.0.0.0",
                                       "[::]",
                                       "169.254.169.254",
                                       "[fe80::1]",
                                       "224.0.0.1",
                                       "255.255.255.255",
                                       "localhost",
                                       "a.localhost",
                                       "LOCALHOST."}) {
            rows.push_back({"GET", "http://" + host + ":" + own + "/", ""});
            rows.push_back({"GET", "http://" + host + ":22/", ""});
            rows.push_back({"PUT", "http://" + host + ":" + own + "/", "Content-Length: 0\r\n"});
            rows.push_back({"CONNECT", host + ":443", ""});
        }
        int refused = 0;
        for (const auto& one : rows) {
            CAPTURE(one.method);
            CAPTURE(one.url);
            CAPTURE(one.fields);
            const auto said = explained(proxy, one.url, one.fields, one.method).at("verdict");
            CAPTURE(said.dump());
            auto request = one.method + " " + one.url + " HTTP/1.1\r\n" + one.fields;
            if (one.fields.find("Host:") == std::string::npos) {
                const auto from = one.url.find("://");
                const auto host = from == std::string::npos ? 0 : from + 3;
                request += "Host: " + one.url.substr(host, one.url.find('/', host) - host) + "\r\n";
            }
            auto talk = proxy.connect(request + "Connection: close\r\n\r\n");
            const auto got = talk.read_head(one.method);
            const auto outcome = said.at("outcome");
            const bool refuses = outcome == "refused" || outcome == "client_error" ||
                                 outcome == "only_if_cached" || outcome == "error";
            refused += refuses ? 1 : 0;
            CHECK((got.status >= 400) == refuses);
            if (refuses) {
                CHECK(got.status == said.at("status").get<int>());
            }
        }
        CHECK(refused >= 60);
    }

    TEST_CASE("the section is that of what the client said") {
        world w;
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").status == 200);
        const auto section = [&](const std::string& fields) {
            return explained(w.proxy, w.origin.url("/a"), fields).at("verdict").at("section");
        };
        CHECK(section("Cache-Control: max-age=0\r\n") == "RFC 9111 5.2.1.1");
        CHECK(section("Cache-Control: no-cache\r\n") == "RFC 9111 5.2.1.4");
        CHECK(section("Pragma: no-cache\r\n") == "RFC 9111 5.4");
        CHECK(section("Cache-Control: min-fresh=100\r\n") == "RFC 9111 5.2.1.3");
        CHECK(section("If-Match: \"e\"\r\n") == "RFC 9111 4.3.2");
        CHECK(section("") == "RFC 9111 4.2");
    }

    TEST_CASE("what the disk alone has is read there first, and so it is said") {
        const temp_dir at;
        auto settings = storing_settings();
        settings["disk"] = disk_of_all_admitted(at.file("store"), "64MiB");
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        {
            const proxy_process proxy{settings};
            CHECK(proxy.get(origin.url("/a")).status == 200);
            REQUIRE(
                eventually([&] { return proxy.stats().at("disk").at("objects").get<int>() == 1; }));
        }
        const proxy_process proxy{settings};
        REQUIRE(eventually([&] { return proxy.stats().at("disk").at("state") == "ready"; }));
        const auto said = explained(proxy, origin.url("/a"));
        CHECK(said.at("on_disk").get<bool>());
        CHECK(said.at("verdict").at("ruling") == "disk");
        CHECK(said.at("verdict").at("fwd").is_null());
        CHECK(is_hit(proxy.get(origin.url("/a"))));
        CHECK(origin.count("/a") == 1);
        const auto absent = explained(proxy, origin.url("/b"));
        CHECK_FALSE(absent.at("on_disk").get<bool>());
        CHECK(absent.at("verdict").at("ruling") == "forward");
    }

    TEST_CASE("what is stored after all is not said to be kept out any more") {
        world w;
        w.origin.on("/a", ok("Cache-Control: no-store, max-age=600\r\n", "hello"));
        CHECK(cache_status_of(w.get("/a")).detail == "no-store");
        CHECK(explained(w.proxy, w.origin.url("/a")).at("storing").at("reason") == "no-store");
        auto settings = storing_settings();
        settings["freshness"] = {{"rules", {{{"url", "*/a"}, {"override", {"no-store"}}}}}};
        w.proxy.reload(settings);
        CHECK(cache_status_of(w.get("/a")).stored);
        CHECK(is_hit(w.get("/a")));
        const auto said = explained(w.proxy, w.origin.url("/a"));
        CHECK(said.at("verdict").at("ruling") == "hit");
        CHECK(said.at("storing").is_null());
    }

    TEST_CASE("what is too large for every store is not said to be stored next time") {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "64MiB"}, {"max_object", "64KiB"}};
        world w{settings};
        const auto body = patterned(mib);
        const std::string fresh = "Cache-Control: max-age=60\r\n";
        w.origin.on("/a", ok(fresh, body));
        w.origin.on("/chunked", [&](origin_request&, origin_connection& to) {
            to.send(raw_head("200 OK", fresh + "Transfer-Encoding: chunked\r\n") + "100000\r\n" +
                    body + "\r\n0\r\n\r\n");
        });
        for (const std::string path : {"/a", "/chunked"}) {
            CAPTURE(path);
            const auto before = explained(w.proxy, w.origin.url(path));
            CHECK(before.at("storing").is_null());
            CHECK(before.at("largest") ==
                  json{{"bytes", 64 * kib}, {"setting", "memory.max_object"}});
            CHECK(w.get(path).body == body);
            CHECK(eventually([&] {
                const auto said = explained(w.proxy, w.origin.url(path)).at("storing");
                return said.is_object() && said.at("reason") == "too-large" &&
                       said.at("from") == "last-answer" && said.at("may") == false;
            }));
        }
        w.origin.on("/a", ok(fresh, "small"));
        w.origin.on("/chunked", [&](origin_request&, origin_connection& to) {
            to.send(raw_head("200 OK", fresh + "Transfer-Encoding: chunked\r\n") +
                    "5\r\nsmall\r\n0\r\n\r\n");
        });
        for (const std::string path : {"/a", "/chunked"}) {
            CAPTURE(path);
            CHECK(w.get(path).body == "small");
            CHECK(eventually(
                [&] { return explained(w.proxy, w.origin.url(path)).at("storing").is_null(); }));
        }
    }

    // Random stored states and requests, seed by seed. Some time passes between the word and the
    // deed, which ages are given leave for; every other word is compared exactly.
    TEST_CASE("what it says is what the request then gets") {
        constexpr std::array<std::string_view, 9> stored_as{
            "Cache-Control: max-age=600\r\n",
            "Cache-Control: max-age=600, must-revalidate\r\nAge: 700\r\n",
            "Cache-Control: max-age=600\r\nAge: 700\r\nETag: \"e\"\r\n",
            "Cache-Control: max-age=600, stale-while-revalidate=3000\r\nAge: 700\r\n",
            "Cache-Control: no-cache\r\nETag: \"e\"\r\n",
            "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n",
            "Cache-Control: max-age=600\r\nLast-Modified: Sat, 01 Jan 2022 00:00:00 GMT\r\n",
            "Cache-Control: no-store\r\n",
            "Cache-Control: s-maxage=600\r\nAge: 300\r\nETag: W/\"e\"\r\n"};
        constexpr std::array<std::string_view, 16> asked_with{
            "",
            "",
            "Cache-Control: max-age=100\r\n",
            "Cache-Control: max-stale\r\n",
            "Cache-Control: max-stale=50\r\n",
            "Cache-Control: min-fresh=400\r\n",
            "Cache-Control: no-cache\r\n",
            "Cache-Control: only-if-cached\r\n",
            "Cache-Control: only-if-cached, max-stale=1000\r\n",
            "Pragma: no-cache\r\n",
            "Accept-Language: da\r\n",
            "If-None-Match: \"e\"\r\n",
            "If-Match: \"e\"\r\n",
            "Range: bytes=1-2\r\n",
            "Authorization: Basic eDp5\r\n",
            "If-Modified-Since: Sat, 01 Jan 2022 00:00:00 GMT\r\n"};
        world w;
        std::mt19937 random{4};
        int compared = 0;
        for (int turn = 0; turn < (sanitized ? 60 : 200); ++turn) {
            CAPTURE(turn);
            const auto path = "/" + std::to_string(turn);
            const auto fields = stored_as[random() % stored_as.size()];
            const auto request = std::string{asked_with[random() % asked_with.size()]};
            const std::string method = random() % 5 == 0 ? "HEAD" : "GET";
            CAPTURE(fields);
            CAPTURE(request);
            CAPTURE(method);
            w.origin.on(path, ok(fields, "hello"));
            if (random() % 6 != 0) {
                CHECK(w.get(path).status == 200);
            }
            const auto said_at = std::chrono::steady_clock::now();
            const auto said = explained(w.proxy, w.origin.url(path), request, method);
            const auto again = explained(w.proxy, w.origin.url(path), request, method);
            CHECK(said.at("verdict").at("ruling") == again.at("verdict").at("ruling"));
            const auto before = w.origin.count(path);
            const auto got = w.ask(method, path, request);
            const auto between = whole_seconds_since(said_at);
            const auto status = cache_status_of(got);
            const auto& verdict = said.at("verdict");
            const auto ruling = verdict.at("ruling").get<std::string>();
            CAPTURE(verdict.dump());
            CAPTURE(got.get("Cache-Status"));
            const bool answers = ruling == "hit" || ruling == "stale-hit" ||
                                 ruling == "stale-while-revalidate";
            CHECK(status.hit == answers);
            if (answers) {
                const auto told = verdict.at("cache_status").get<std::string>();
                CHECK(got.get("Cache-Status").substr(0, 12) == told.substr(0, 12));
                const auto ttl = verdict.at("ttl").get<int>();
                CHECK(std::stoi(status.ttl) <= ttl);
                CHECK(std::stoi(status.ttl) >= ttl - 2 - between);
                CHECK((told.find("detail") != std::string::npos) == !status.detail.empty());
            } else {
                CHECK(status.fwd == verdict.at("fwd").get<std::string>());
                CHECK((got.status == 504) == (ruling == "only-if-cached"));
                if (ruling == "only-if-cached") {
                    CHECK(got.get("Cache-Status") == verdict.at("cache_status"));
                    CHECK(w.origin.count(path) == before);
                } else {
                    CHECK(w.origin.count(path) == before + 1);
                    const auto last = w.origin.requests(path).back();
                    const bool validates = last.has("If-None-Match") ||
                                           last.has("If-Modified-Since");
                    CHECK((ruling != "validate" || validates));
                }
            }
            if (!verdict.at("outcome").is_null()) {
                ++compared;
            }
        }
        CHECK(compared > (sanitized ? 10 : 40));  // the property is about something
    }

}  // TEST_SUITE
