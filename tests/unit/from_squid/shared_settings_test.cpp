#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/shared_settings") {
    TEST_CASE("the name in Via is that by which Squid finds loops, wherever it stands") {
        for (const std::string text : {"unique_hostname a\nvisible_hostname b\n",
                                       "visible_hostname b\nunique_hostname a\n"}) {
            CAPTURE(text);
            const auto r = settings_of(text);
            CHECK(r.options.forwarding.pseudonym == "a");
            CHECK(r.says(fate::left_out, "loops are found by unique_hostname"));
        }
        const auto alone = settings_of("visible_hostname b\n");
        CHECK(alone.options.forwarding.pseudonym == "b");
        CHECK(alone.says(fate::changed, "no two proxies may share it"));
    }

    TEST_CASE("of two waits that are one here the shorter holds, and both are named") {
        for (const std::string text :
             {"request_timeout 1 minute\nrequest_start_timeout 20 seconds\n",
              "request_start_timeout 20 seconds\nrequest_timeout 1 minute\n"}) {
            CAPTURE(text);
            const auto r = settings_of(text);
            CHECK(r.options.timeouts.client_head == std::chrono::seconds{20});
            CHECK(r.count(fate::approximated) ==
                  settings_of("via on\n").count(fate::approximated) + 2);
            CHECK(r.says(fate::approximated, "the shorter of"));
        }
        // What is not written is Squid's default.
        const auto longer = settings_of("request_timeout 10 minutes\n");
        CHECK(longer.options.timeouts.client_head == std::chrono::minutes{5});
        CHECK(longer.says(fate::approximated, "the shorter of"));
        const auto same = settings_of("request_timeout 5 minutes\n");
        CHECK(same.options.timeouts.client_head == std::chrono::minutes{5});
        CHECK_FALSE(same.says(fate::approximated, "the shorter of"));
        CHECK(settings_of("request_timeout soon\n").says(fate::left_out, "not a time"));
        CHECK(settings_of("request_timeout 0\n").options.timeouts.client_head ==
              std::chrono::milliseconds{10});
    }

    TEST_CASE("of two sizes that are one here the smaller holds, and both are named") {
        for (const std::string text :
             {"request_header_max_size 20 KB\nreply_header_max_size 128 KB\n",
              "reply_header_max_size 128 KB\nrequest_header_max_size 20 KB\n"}) {
            CAPTURE(text);
            const auto r = settings_of(text);
            CHECK(r.options.limits.head_size == 20u << 10);
            CHECK(r.count(fate::approximated) ==
                  settings_of("via on\n").count(fate::approximated) + 2);
            CHECK(r.says(fate::approximated, "the smaller of"));
        }
        const auto one = settings_of("reply_header_max_size 128 KB\n");
        CHECK(one.options.limits.head_size == 64u << 10);
        CHECK(one.says(fate::approximated, "the smaller of"));
        const auto both = settings_of("request_header_max_size 2 MB\nreply_header_max_size 2 MB\n");
        CHECK(both.options.limits.head_size == 1u << 20);
        CHECK(both.says(fate::approximated, "1MiB is the most"));
        CHECK_FALSE(both.says(fate::approximated, "the smaller of"));
    }
}

}  // namespace reprise::from_squid
