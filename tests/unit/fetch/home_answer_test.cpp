#include "proxy/fetch/home_answer.hpp"
#include "proxy/http/error_page.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::fetch::test::of_home_answer {

namespace {

using kind = home_answer::kind;

home_answer judged(const std::string& bytes) {
    http::response_head head;
    REQUIRE(http::parse_response_head(bytes, head, {}).state == http::head_state::done);
    return judge_home_answer(head, "the-home");
}

/// Of a page that the instance of this name answers with.
home_answer of_page(failure_code code, std::string_view pseudonym = "the-home") {
    std::string page;
    http::append_error_page(page, failure{code, "seen"}, {.pseudonym = pseudonym});
    return judged(page);
}

}  // namespace

TEST_SUITE("fetch/home_answer") {
    TEST_CASE("what it passes on is the answer, whatever its status") {
        for (const std::string status : {"200 OK", "404 Not Found", "502 Bad Gateway", "503 x"}) {
            CHECK(judged("HTTP/1.1 " + status + "\r\nContent-Length: 0\r\n\r\n").what ==
                  kind::passed_on);
        }
        CHECK(of_page(failure_code::connect_refused, "another").what == kind::passed_on);
        CHECK(of_page(failure_code::host_blocked, "the-home-of-others").what == kind::passed_on);
    }

    TEST_CASE("what has a Via is passed on, whatever name its origin wrote into it") {
        for (const auto code : {failure_code::no_parent,
                                failure_code::draining,
                                failure_code::connect_refused,
                                failure_code::host_blocked}) {
            CAPTURE(facts_of(code).name);
            std::string page;
            http::append_error_page(page, failure{code, "seen"}, {.pseudonym = "the-home"});
            CHECK(page.find("\r\nVia: ") == std::string::npos);
            page.insert(page.find("\r\n") + 2, "Via: 1.1 the-home\r\n");
            CHECK(judged(page).what == kind::passed_on);
        }
    }

    TEST_CASE("what failed behind it is as if this node had asked") {
        for (const auto code : {failure_code::connect_refused,
                                failure_code::dns_timeout,
                                failure_code::tls_failed,
                                failure_code::origin_head_timeout,
                                failure_code::bad_response}) {
            const auto got = of_page(code);
            CHECK(got.what == kind::origin_failed);
            CHECK(got.why.code == code);
            CHECK(got.why.detail == "the-home says so");
        }
    }

    TEST_CASE("its own way out, and whom it believes, say nothing of this node's") {
        for (const auto code : {failure_code::parent_refused,
                                failure_code::tls_certificate,
                                failure_code::tls_client_certificate,
                                failure_code::only_if_cached_miss,
                                failure_code::host_blocked,
                                failure_code::destination_refused,
                                failure_code::origin_connection_limit,
                                failure_code::client_share_used}) {
            CAPTURE(facts_of(code).name);
            CHECK(of_page(code).what == kind::declined);
        }
    }

    TEST_CASE("that of a release with other names is no answer either") {
        for (const std::string status : {"502 Bad Gateway", "504 Gateway Timeout"}) {
            CAPTURE(status);
            const auto got = judged("HTTP/1.1 " + status +
                                    "\r\nProxy-Status: the-home; error=x\r\n\r\n");
            CHECK(got.what == kind::declined);
            CHECK(got.why.detail == "the-home answered with " + status.substr(0, 3));
        }
    }

    TEST_CASE("one that answers nothing for now is held to account for it") {
        for (const auto code : {failure_code::no_parent,
                                failure_code::parent_certificate,
                                failure_code::too_many_connections,
                                failure_code::loop_detected,
                                failure_code::user_unknown}) {
            CAPTURE(facts_of(code).name);
            const auto got = of_page(code);
            CHECK(got.what == kind::unfit);
            CHECK(got.why.code == code);
        }
        // What it lacks would be held against nobody, were it this node's own lack.
        for (const auto code : {failure_code::draining, failure_code::out_of_memory}) {
            CAPTURE(facts_of(code).name);
            const auto got = of_page(code);
            CHECK(got.what == kind::unfit);
            CHECK_FALSE(is_our_own_lack(got.why.code));
            CHECK(got.why.detail == "the-home says so: " + std::string{facts_of(code).name});
        }
        const auto of_old = judged("HTTP/1.1 503 x\r\nProxy-Status: the-home; error=x\r\n\r\n");
        CHECK(of_old.what == kind::unfit);
        CHECK(of_old.why.detail == "the-home answered with 503");
    }
}

}  // namespace reprise::proxy::fetch::test::of_home_answer
