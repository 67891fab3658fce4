#include "proxy/serve/interception.hpp"
#include "tests/unit/serve/requests.hpp"

#include <string>

namespace reprise::proxy::serve::test::of_interception {

TEST_SUITE_BEGIN("serve/interception");

TEST_CASE("an entry lists a host, or all below one; the first that does is told") {
    const std::vector<std::string> entries{"a.test", "*.b.test", "*.c.b.test"};
    CHECK(entry_for(entries, "a.test") == "a.test");
    CHECK(entry_for(entries, "a.test.") == "a.test");
    CHECK(entry_for(entries, "x.b.test") == "*.b.test");
    CHECK(entry_for(entries, "x.c.b.test") == "*.b.test");
    for (const std::string_view other : {"b.test", "xb.test", "x.a.test", "test", "", ".b.test"}) {
        CAPTURE(other);
        CHECK(entry_for(entries, other).empty());
    }
}

TEST_CASE("a hello is answered by us if it is one that we can answer in the host's place") {
    net::client_hello hello;
    hello.host = "A.test";
    hello.tls_1_2 = true;
    CHECK(why_passed_on(hello, "a.test").empty());
    CHECK(why_passed_on(hello, "a.test.").empty());
    CHECK(why_passed_on(hello, "b.test") == "sni");
    hello.has_alpn = true;
    CHECK(why_passed_on(hello, "a.test") == "alpn");
    hello.http_1_1 = true;
    CHECK(why_passed_on(hello, "a.test").empty());
    hello.tls_1_2 = false;
    CHECK(why_passed_on(hello, "a.test") == "tls-version");
    hello = {};
    hello.tls_1_2 = true;
    CHECK(why_passed_on(hello, "a.test") == "sni");  // none
}

TEST_CASE("inside an opened tunnel a target is a path of CONNECT's host") {
    const config::access_options access;
    const opened_host inside{"a.test", 8443};
    const serve::arrival how{forward, access, true, &inside};
    const auto read = [&](const std::string& line, const std::string& fields) {
        return std::make_unique<taken>(line + " HTTP/1.1\r\n" + fields + "\r\n", how);
    };
    const auto got = read("GET /x?y", "Host: A.test:8443\r\n");
    REQUIRE(!got->read.refused);
    CHECK(got->read.inside);
    CHECK(!got->read.https_prefix);
    CHECK(got->read.target.secure);
    CHECK(got->read.url == "https://a.test:8443/x?y");
    CHECK(read("OPTIONS *", "Host: a.test:8443\r\n")->read.target.form ==
          http::target_form::asterisk);
    CHECK(code_of(read("GET /x", "Host: a.test\r\n")->read.refused) ==
          failure_code::misdirected_request);
    CHECK(code_of(read("GET /x", "Host: b.test:8443\r\n")->read.refused) ==
          failure_code::misdirected_request);
    CHECK(code_of(read("GET https://a.test:8443/x", "Host: a.test:8443\r\n")->read.refused) ==
          failure_code::bad_request);
    CHECK(code_of(read("CONNECT a.test:8443", "Host: a.test:8443\r\n")->read.refused) ==
          failure_code::bad_request);
    CHECK(code_of(taken{"GET /x HTTP/1.0\r\n\r\n", how}.read.refused) == failure_code::bad_request);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_interception
