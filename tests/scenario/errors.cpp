// Errors of ours: right status, Proxy-Status (RFC 9209), never stored, readable by a person.

#include "tests/scenario/world.hpp"

TEST_SUITE("scenario/errors") {

    using namespace reprise::tests;

    namespace {

    void check_is_ours(const response& answer, int status) {
        CHECK(answer.status == status);
        CHECK(answer.complete());
        CHECK(answer.has("Proxy-Status"));
        CHECK(answer.get("Cache-Control").find("no-store") != std::string::npos);
        CHECK(answer.has("Content-Type"));
        CHECK(answer.has("Date"));
        CHECK_FALSE(answer.body.empty());
    }

    std::string root_of(const closed_port& port) {
        return "http://127.0.0.1:" + std::to_string(port.port()) + "/";
    }

    }  // namespace

    TEST_CASE("an origin that refuses is 502, and said so") {
        const closed_port closed;
        const proxy_process proxy{basic_settings()};
        const auto answer = proxy.get(root_of(closed));
        check_is_ours(answer, 502);
        CHECK(answer.get("Proxy-Status").find("error=connection_refused") != std::string::npos);
    }

    TEST_CASE("an origin that closes without a word is 502, and said so") {
        world w{basic_settings()};
        w.origin.on("/a",
                    [](origin_request&, origin_connection& connection) { connection.close(); });
        const auto answer = w.get("/a");
        check_is_ours(answer, 502);
        CHECK(answer.get("Proxy-Status").find("error=") != std::string::npos);
    }

    TEST_CASE("a bad request's error is complete and the connection closes") {
        world w{basic_settings()};
        auto one = w.proxy.connect();
        const auto answer = one.ask("GET nonsense HTTP/1.1\r\nHost: x\r\n\r\n");
        check_is_ours(answer, 400);
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("an error whose request was whole keeps the connection") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        const closed_port closed;
        auto one = w.proxy.connect();
        const auto refused = one.ask(absolute_request("GET", root_of(closed)));
        check_is_ours(refused, 502);
        if (lower(refused.get("Connection")) != "close") {
            CHECK(one.ask(w.request("/a")).body == "hello");
        }
    }

    TEST_CASE("errors are text, and HTML for who accepts it, with everything escaped") {
        world w{basic_settings()};
        const closed_port closed;
        const auto target = root_of(closed) + "<script>alert(1)</script>?a=\"'&b=<img>";
        const auto text = w.proxy.get(target, "Accept: */*\r\n");
        CHECK(text.get("Content-Type").find("text/plain") == 0);
        const auto html = w.proxy.get(target, "Accept: text/html,application/xhtml+xml;q=0.9\r\n");
        CHECK(html.get("Content-Type").find("text/html") == 0);
        CHECK(html.body.find("<script>") == std::string::npos);
        CHECK(html.body.find("<img>") == std::string::npos);
        CHECK(lower(html.body).find("<html") != std::string::npos);

        // A host and a port come back in the page as well.
        const auto odd = w.proxy.get("http://127.0.0.1:22/<b>", "Accept: text/html\r\n");
        CHECK(odd.status == 403);
        CHECK(odd.body.find("<b>") == std::string::npos);
    }

    TEST_CASE("the answer to a HEAD that failed has no body") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", "hello"));
        const closed_port closed;
        auto one = w.proxy.connect();
        const auto refused = one.ask(absolute_request("HEAD", root_of(closed)));
        CHECK(refused.status == 502);
        if (lower(refused.get("Connection")) != "close") {
            CHECK(one.ask(w.request("/a")).body == "hello");
        } else {
            CHECK(one.is_closed_by_proxy());
        }
    }

    TEST_CASE("nor has that to a HEAD that was refused before it was understood") {
        world w{basic_settings()};
        for (const std::string fields : {"Host: a, b\r\n",
                                         "Host: a\r\nHost: b\r\n",
                                         "Host: a\r\nContent-Length: x\r\n",
                                         "Host: a\r\nExpect: more\r\n",
                                         "Host: a\r\nno field\r\n",
                                         "Host: a\r\nX : y\r\n"}) {
            CAPTURE(fields);
            auto one = w.proxy.connect("HEAD " + w.origin.url("/a") + " HTTP/1.1\r\n" + fields +
                                       "\r\n");
            const auto answer = one.read("HEAD");
            CHECK(answer.status >= 400);
            CHECK(answer.get("Content-Length") != "0");
            CHECK(one.read_to_end(a_moment).bytes.empty());
        }
        auto one = w.proxy.connect("HEAD ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n");
        CHECK(one.read("HEAD").status == 501);
        CHECK(one.ask(w.request("/a")).status == 404);
    }

    TEST_CASE("an error is never stored, whatever was asked") {
        world w;
        w.origin.on("/a",
                    [](origin_request&, origin_connection& connection) { connection.reset(); });
        CHECK(w.get("/a").status == 502);
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(w.get("/a").body == "hello");
    }

    TEST_CASE("errors of the origin's own pass as they are") {
        world w{basic_settings()};
        for (const std::string status :
             {"404 Not Found", "500 Oops", "502 Bad Gateway", "418 I'm a teapot", "599 Odd"}) {
            CAPTURE(status);
            w.origin.on("/a", answer(status, "X-Mine: yes\r\n", "my own words"));
            const auto got = w.get("/a");
            CHECK(got.status == std::stoi(status));
            CHECK(got.get("X-Mine") == "yes");
            CHECK(got.body == "my own words");
        }
    }

}  // TEST_SUITE
