#include "proxy/base/failure.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace reprise::proxy;

namespace {

constexpr unsigned failures = static_cast<unsigned>(failure_code::internal) + 1;

}  // namespace

TEST_SUITE_BEGIN("base/failure");

TEST_CASE("a failure ends its request as refused, as the client's error, or as one") {
    const auto how = [](failure_code code) { return facts_of(code).counts_as; };
    CHECK(how(failure_code::only_if_cached_miss) == outcome::only_if_cached);
    for (const auto code : {failure_code::client_refused,
                            failure_code::user_unknown,
                            failure_code::user_in_clear,
                            failure_code::too_many_tries,
                            failure_code::purge_refused,
                            failure_code::port_refused,
                            failure_code::destination_refused,
                            failure_code::host_blocked,
                            failure_code::too_many_connections,
                            failure_code::client_share_used,
                            failure_code::loop_detected,
                            failure_code::draining}) {
        CAPTURE(facts_of(code).name);
        CHECK(how(code) == outcome::refused);
    }
    CHECK(how(failure_code::bad_request) == outcome::client_error);
    CHECK(how(failure_code::request_timeout) == outcome::client_error);
    CHECK(how(failure_code::dns_error) == outcome::error);
    CHECK(how(failure_code::internal) == outcome::error);
    CHECK(how(failure_code::origin_connection_limit) == outcome::error);
}

TEST_CASE("what a row says agrees with itself") {
    std::set<std::string_view> names;
    for (unsigned i = 0; i < failures; ++i) {
        const auto& facts = facts_of(static_cast<failure_code>(i));
        CAPTURE(facts.name);
        CHECK(names.insert(facts.name).second);
        const bool of_client = facts.counts_as == outcome::client_error ||
                               facts.counts_as == outcome::refused;
        CHECK((facts.status >= 400 && facts.status <= 599));
        // Whoever is at fault itself is told so, but for what is not done here, and what is too
        // much just now.
        CHECK((facts.status < 500) ==
              (of_client && facts.status != 501 && facts.status != 503 && facts.status < 505));
        // Waiting mends what there is too much of, and a restart; all of these are 429 or 503.
        CHECK((facts.retry_after == 0 || facts.status == 429 || facts.status == 503));
        // What is stale stands in for a gateway's failures, and for no refusal of what was asked.
        CHECK((!facts.is_of_origin_unheard || facts.status >= 502));
        CHECK(!facts.sentence.empty());
    }
}

TEST_CASE("what this proxy lacks itself is a failure of nobody else") {
    const std::set<failure_code> ours{failure_code::origin_connection_limit,
                                      failure_code::client_share_used,
                                      failure_code::draining,
                                      failure_code::out_of_memory,
                                      failure_code::internal};
    for (unsigned i = 0; i < failures; ++i) {
        const auto code = static_cast<failure_code>(i);
        CAPTURE(facts_of(code).name);
        CHECK(is_our_own_lack(code) == ours.contains(code));
        CHECK((!is_our_own_lack(code) || origin_trouble_of(code) == origin_trouble::none));
        CHECK_FALSE((is_our_own_lack(code) && is_of_parent(code)));
    }
}

TEST_SUITE_END();
