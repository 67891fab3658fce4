#include "tests/unit/serve/requests.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::serve::test::of_request {

namespace {

const std::string upgrade = "Host: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n";

}  // namespace

TEST_SUITE_BEGIN("serve/request");

TEST_CASE("a plain GET is understood, framed, and may be answered from the store") {
    const auto got = take("GET http://a.example/x?y");
    REQUIRE(!got->read.refused);
    CHECK(got->read.framed);
    CHECK(got->read.facts.is_get);
    CHECK(got->read.target.host == "a.example");
    CHECK(!got->read.accelerator);
    CHECK(!got->read.last);
    CHECK(!got->read.passes());
    CHECK(got->read.url == "http://a.example/x?y");
}

TEST_CASE("what the store has no part in passes: another method, a body, an upgrade") {
    CHECK(
        take("POST http://a.example/", "Host: a.example\r\nContent-Length: 0\r\n")->read.passes());
    CHECK(take("DELETE http://a.example/")->read.passes());
    CHECK(take("GET http://a.example/", "Host: a.example\r\nContent-Length: 1\r\n")->read.passes());
    CHECK(take("GET http://a.example/", "Host: a.example\r\nTransfer-Encoding: chunked\r\n")
              ->read.passes());
    CHECK(take("GET http://a.example/", upgrade)->read.passes());
    CHECK(!take("HEAD http://a.example/")->read.passes());
}

TEST_CASE("a GET or HEAD with a stated body of no bytes has none, and is not kept from the store") {
    for (const auto* method : {"GET", "HEAD"}) {
        CAPTURE(method);
        const auto got = take(std::string{method} + " http://a.example/",
                              "Host: a.example\r\nContent-Length: 0\r\n");
        CHECK(got->read.body.kind == http::body_kind::none);
        CHECK(!got->read.passes());
    }
    const auto posted = take("POST http://a.example/", "Host: a.example\r\nContent-Length: 0\r\n");
    CHECK(posted->read.body.kind == http::body_kind::length);
}

TEST_CASE("nothing behind a CONNECT or an upgrade is read as a request") {
    CHECK(take("CONNECT a.example:443")->read.last);
    CHECK(take("GET http://a.example/", upgrade)->read.last);
    CHECK(!take("GET http://a.example/")->read.last);
    SUBCASE("nor where the request is refused: its sender may have gone on in the other protocol") {
        const auto refused = take("GET http://a.example/",
                                  upgrade + "Content-Length: 1\r\nContent-Length: 2\r\n");
        CHECK(refused->read.refused);
        CHECK(refused->read.last);
        CHECK(!refused->read.framed);
    }
}

TEST_CASE("an upgrade with a body is not asked for, and what follows is no request all the same") {
    const auto got = take("GET http://a.example/", upgrade + "Content-Length: 3\r\n");
    REQUIRE(!got->read.refused);
    CHECK(!got->read.websocket);
    CHECK(got->read.last);
}

TEST_CASE("a request that is refused says whether the next one's beginning is known") {
    struct refusal {
        const char* line;
        const char* fields;
        failure_code code;
        bool framed;
    };
    const std::vector<refusal> all{
        {"GET http://a.example/",
         "Host: a.example\r\nContent-Length: 5, 5\r\n",
         failure_code::bad_request,
         false},
        {"GET http://a.example/", "", failure_code::bad_request, false},
        {"GET https://a.example/", "Host: a.example\r\n", failure_code::https_absolute_form, true},
        {"GET ftp://a.example/", "Host: a.example\r\n", failure_code::unsupported_scheme, true},
        {"GET /x", "Host: a.example\r\n", failure_code::bad_request, true},
        {"purge http://a.example/", "Host: a.example\r\n", failure_code::bad_request, true},
        {"PUT http://a.example/",
         "Host: a.example\r\nContent-Length: 1\r\nExpect: something\r\n",
         failure_code::unsupported_expectation,
         true},
    };
    for (const auto& one : all) {
        CAPTURE(one.line);
        CAPTURE(one.fields);
        const auto got = take(one.line, one.fields);
        CHECK(code_of(got->read.refused) == one.code);
        CHECK(got->read.framed == one.framed);
    }
}

TEST_CASE(
    "a method that is acted upon has one spelling, by whatever listener; others pass as sent") {
    // A Squid takes them in any case: what is refused as PURGE would be carried out as purge.
    for (const auto* method :
         {"purge", "Purge", "trace", "Trace", "head", "get", "options", "connect", "Connect"}) {
        CAPTURE(method);
        const auto line = std::string{method} + " http://a.example/";
        const auto got = take(line);
        CHECK(code_of(got->read.refused) == failure_code::bad_request);
        CHECK(code_of(take(line, "Host: a.example\r\n", accelerator)->read.refused) ==
              failure_code::bad_request);
        // Who wrote CONNECT so may have gone on in the other protocol all the same.
        CHECK(got->read.last == (method[1] == 'o'));
    }
    CHECK(take("connect a.example:443")->read.last);
    for (const auto* method : {"patch", "propfind", "Frobnicate"}) {
        CAPTURE(method);
        const auto got = take(std::string{method} + " http://a.example/");
        REQUIRE(!got->read.refused);
        CHECK(got->head.method_text == method);
    }
}

TEST_CASE("hop-by-hop fields are taken out; what an accelerator's client says of its scheme, too") {
    const std::string fields =
        "Host: a.example\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n"
        "Proxy-Authorization: x\r\nX-Forwarded-Proto: https\r\nX-Kept: 1\r\n";
    const auto forwarded = take("GET http://a.example/", fields);
    CHECK(!forwarded->has("Connection"));
    CHECK(!forwarded->has("X-Mine"));
    CHECK(forwarded->has("X-Kept"));
    CHECK(forwarded->has("X-Forwarded-Proto"));
    CHECK(!take("GET /", fields, accelerator)->has("X-Forwarded-Proto"));
}

TEST_CASE("what Connection names takes no fact away: an origin would answer another request") {
    const auto got = take("GET http://a.example/",
                          "Host: a.example\r\nConnection: Cookie, Range, Cache-Control\r\n"
                          "Cookie: a=b\r\nRange: bytes=0-\r\nCache-Control: no-store\r\n");
    CHECK(got->read.facts.has_cookie);
    CHECK(got->read.facts.has_range);
    CHECK(got->read.facts.has_directives);
    CHECK(got->has("Cookie"));
}

TEST_CASE(
    "an accelerator keys a path under the Host it was asked for, without one its upstream's") {
    const auto named = take("GET /x?y", "Host: B.example\r\n", accelerator);
    REQUIRE(!named->read.refused);
    CHECK(named->read.accelerator);
    CHECK(named->read.target.host == "B.example");
    CHECK(named->read.url == "//b.example/x?y http://up.example:8080");

    taken nameless{"GET /x HTTP/1.0\r\n\r\n", {accelerator, {}, false}};
    REQUIRE(!nameless.read.refused);
    CHECK(nameless.read.url == "//up.example:8080/x http://up.example:8080");
}

TEST_CASE("an absolute URL and a path ask an accelerator for the same, with TLS or without") {
    for (const auto* listener : {&accelerator, &with_tls}) {
        const auto path = take("GET /x", "Host: a.example\r\n", *listener);
        const auto absolute = take("GET http://a.example/x", "Host: a.example\r\n", *listener);
        REQUIRE(!path->read.refused);
        REQUIRE(!absolute->read.refused);
        CHECK(path->read.url == absolute->read.url);
        CHECK(absolute->read.target.form == http::target_form::origin);
    }
    const auto https = take("GET https://a.example/x", "Host: a.example\r\n", with_tls);
    REQUIRE(!https->read.refused);
    CHECK(https->read.url == take("GET /x", "Host: a.example\r\n", with_tls)->read.url);
}

TEST_CASE("what was asked over TLS is https and has keys of its own") {
    const auto plain = take("GET /x", "Host: a.example\r\n", accelerator);
    const auto secure = take("GET /x", "Host: a.example\r\n", with_tls);
    CHECK(!plain->read.target.secure);
    CHECK(secure->read.target.secure);
    CHECK(secure->read.target.port == 443);
    CHECK(plain->read.url != secure->read.url);
}

TEST_CASE("a Host that names no host is refused, whatever the target says") {
    for (const auto* host : {"a b", "a.example:0", "a.example:99999", "user@a.example", "[::1"}) {
        CAPTURE(host);
        const auto field = "Host: " + std::string{host} + "\r\n";
        CHECK(code_of(take("GET /", field, accelerator)->read.refused) ==
              failure_code::bad_request);
        CHECK(code_of(take("GET http://a.example/", field)->read.refused) ==
              failure_code::bad_request);
    }
}

TEST_CASE("no listener's key is another's, however the URL is written") {
    const auto other = in_front_of("http://up.example:8081");
    const std::string one{take("GET /x", "Host: a.example\r\n", accelerator)->read.url};
    CHECK(one != take("GET /x", "Host: a.example\r\n", other)->read.url);
    CHECK(one != take("GET http://a.example/x")->read.url);
}

TEST_CASE("a target's key is the target itself where it is normal, else its normal form") {
    std::string scratch = "untouched";
    const auto normal = take("GET http://a.example/x");
    CHECK(key_text(normal->read.target, forward, scratch).data() == normal->read.target.raw.data());
    CHECK(scratch == "untouched");
    for (const auto* same : {"HTTP://a.example/x", "http://A.EXAMPLE/x", "http://a.example:80/x"}) {
        CAPTURE(same);
        CHECK(take(std::string{"GET "} + same)->read.url == "http://a.example/x");
    }
}

TEST_CASE("no beginning of a request head that is taken in says more than the whole") {
    // Whatever a client breaks off at, the head is not read, or it is this one.
    const std::string whole = "GET http://a.example/x HTTP/1.1\r\n" + upgrade + "Cookie: a\r\n\r\n";
    for (std::size_t cut = 0; cut < whole.size(); ++cut) {
        CAPTURE(cut);
        http::request_head head;
        CHECK(http::parse_request_head(whole.substr(0, cut), head, {}).state !=
              http::head_state::done);
    }
}

TEST_CASE("a host is denied by its name, by what it is below, and at a port where one is given") {
    config::access_options access;
    access.deny_destinations = {{"bad.example", {}, {}},
                                {"*.worse.example", {}, {}},
                                {"port.example", {}, std::uint16_t{8080}}};
    const auto now = settings_with(access);
    const auto denied = [&](const std::string& url) {
        return denies_host(now, take("GET " + url)->read.target);
    };
    CHECK(denied("http://bad.example/"));
    CHECK(denied("http://BAD.example./"));
    CHECK(!denied("http://not.bad.example/"));
    CHECK(denied("http://a.worse.example/"));
    CHECK(!denied("http://worse.example/"));
    CHECK(!denied("http://notworse.example/"));
    CHECK(denied("http://port.example:8080/"));
    CHECK(!denied("http://port.example/"));
}

TEST_CASE("a host that is an address is denied by address, in whatever spelling") {
    config::access_options access;
    access.deny_destinations = {
        {"",
         config::network{net::canonical(boost::asio::ip::make_address("10.1.0.0")), 96 + 16},
         {}}};
    const auto now = settings_with(access);
    for (const auto* host : {"10.1.2.3", "0xa010203", "10.66051", "[::ffff:10.1.2.3]"}) {
        CAPTURE(host);
        CHECK(denies_host(now, take("GET http://" + std::string{host} + "/")->read.target));
    }
    CHECK(!denies_host(now, take("GET http://10.2.2.3/")->read.target));
}

TEST_CASE(
    "the destination of a request is judged by Via, port and literal address, in this order") {
    const auto now = settings_with({});
    const auto judged = [&](const std::string& url, const std::string& more = "") {
        const auto got = take("GET " + url, "Host: a.example\r\n" + more);
        return code_of(judge_destination(now, got->read, "me"));
    };
    CHECK(judged("http://a.example/") == std::nullopt);
    CHECK(judged("http://a.example/", "Via: 1.1 other\r\n") == std::nullopt);
    CHECK(judged("http://a.example/", "Via: 1.1 other, 1.1 me\r\n") == failure_code::loop_detected);
    CHECK(judged("http://127.0.0.1:22/", "Via: 1.1 me\r\n") == failure_code::loop_detected);
    CHECK(judged("http://a.example:22/") == failure_code::port_refused);
    CHECK(judged("http://127.0.0.1:22/") == failure_code::port_refused);
    CHECK(judged("http://127.0.0.1/") == failure_code::destination_refused);
    CHECK(judged("http://0x7f.1/") == failure_code::destination_refused);
}

TEST_CASE("inside an opened tunnel the ports are CONNECT's") {
    config::access_options access;
    access.connect_ports = {{443, 444}};
    access.request_ports = {{80, 80}};
    const auto now = settings_with(access);
    const auto judged = [&](std::uint16_t port) {
        const opened_host inside{"a.example", port};
        const auto host = "a.example:" + std::to_string(port);
        const taken got{"GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n",
                        {forward, access, true, &inside}};
        REQUIRE(!got.read.refused);
        return code_of(judge_destination(now, got.read, "me"));
    };
    CHECK(judged(444) == std::nullopt);
    CHECK(judged(80) == failure_code::port_refused);
}

TEST_CASE("an accelerator's upstream is the operator's choice: only a loop stands against it") {
    const auto now = settings_with({});
    const auto looped = take("GET /", "Host: 127.0.0.1:22\r\nVia: 1.1 me\r\n", accelerator);
    CHECK(code_of(judge_destination(now, looped->read, "me")) == failure_code::loop_detected);
    const auto odd = take("GET /", "Host: 127.0.0.1:22\r\n", accelerator);
    CHECK(!judge_destination(now, odd->read, "me"));
}

TEST_CASE("a tunnel is judged by Via and its own ports") {
    const auto now = settings_with({});
    const auto judged = [&](const std::string& authority, const std::string& more = "") {
        const auto got = take("CONNECT " + authority, "Host: a.example\r\n" + more);
        return code_of(judge_tunnel(now, got->read, "me"));
    };
    CHECK(judged("a.example:443") == std::nullopt);
    CHECK(judged("a.example:80") == failure_code::port_refused);
    CHECK(judged("a.example:443", "Via: 1.1 me\r\n") == failure_code::loop_detected);
}

TEST_CASE("an https URL is asked for where nobody on the way reads it, under a key of its own") {
    const config::access_options access;
    const std::string text = "GET https://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    const taken seen{text, {forward, access, false}};
    REQUIRE(seen.read.refused);
    CHECK(seen.read.refused->code == failure_code::https_absolute_form);
    const taken unseen{text, {forward, access, true}};
    REQUIRE(!unseen.read.refused);
    CHECK(unseen.read.target.secure);
    CHECK(!unseen.read.https_prefix);
    CHECK(unseen.read.url == "https://a.example/x");
    // An accelerator's answer to the same URL is another object: whose Host it is nobody checks.
    const taken behind{text, {with_tls, access, true, nullptr, true}};
    CHECK(behind.read.url == "https://a.example/x http://up.example:8080");
}

TEST_CASE("what is said between nodes is said by who names it in Connection, and not passed on") {
    const auto fields = [](const std::string& more) {
        return take("GET http://a.example/", "Host: a.example\r\n" + more);
    };
    const auto named = fields("Connection: Reprise-Site, Reprise-Home\r\nReprise-Site: ?1\r\n"
                              "Reprise-Home: b\r\n");
    CHECK(named->read.names_site);
    CHECK(named->read.names_home);
    CHECK_FALSE(named->has("Reprise-Site"));
    // A client's own field passes a node that asks for trailers, or closes, in its own name.
    for (const std::string connection :
         {"", "Connection: TE\r\nTE: trailers\r\n", "Connection: close\r\n"}) {
        const auto passed = fields(connection + "Reprise-Site: ?1\r\nReprise-Home: b\r\n");
        CHECK_FALSE(passed->read.names_site);
        CHECK_FALSE(passed->read.names_home);
    }
}

TEST_CASE("http://HTTPS/ means https for the hosts that are listed") {
    config::access_options access;
    access.https_prefix = {{"*.deb.example", {}, {}}, {"b.example", {}, 443}};
    const auto read = [&](const std::string& url, const config::access_options& by) {
        return std::make_unique<taken>("GET " + url + " HTTP/1.1\r\nHost: HTTPS\r\n\r\n",
                                       serve::arrival{forward, by, false});
    };
    const auto got = read("http://HTTPS///A.deb.example/p", access);
    REQUIRE(!got->read.refused);
    CHECK(got->read.https_prefix);
    CHECK(got->read.target.secure);
    CHECK(got->read.url == "https://a.deb.example/p");
    CHECK(read("http://https/b.example/", access)->read.url == "https://b.example/");
    CHECK(code_of(read("http://HTTPS///b.example:444/", access)->read.refused) ==
          failure_code::destination_refused);
    CHECK(code_of(read("http://HTTPS///deb.example/", access)->read.refused) ==
          failure_code::destination_refused);
    CHECK(code_of(read("http://HTTPS/", access)->read.refused) == failure_code::bad_request);
    // Without a list it is a host like others.
    const config::access_options none;
    CHECK(read("http://HTTPS///b.example/", none)->read.url == "http://https///b.example/");
    const auto plain = read("http://a.example/x", access);
    CHECK(!plain->read.https_prefix);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_request
