#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/client_address") {
    TEST_CASE("a denial of the field stands, wherever forwarded_for is written") {
        const std::string on = "forwarded_for on\n";
        for (const std::string denial : {"request_header_access X-Forwarded-For deny all\n",
                                         "header_access X-Forwarded-For deny all\n",
                                         "request_header_access x-forwarded-for deny all\n",
                                         "request_header_access All deny all\n",
                                         "request_header_access all deny all\n",
                                         "request_header_access Other deny all\n",
                                         "request_header_access OTHER deny all\n"}) {
            for (const auto& text : {denial, denial + on, on + denial}) {
                CAPTURE(text);
                const auto r = settings_of(text);
                CHECK(r.options.forwarding.client_address == config::forwarded_field::off);
                CHECK(r.says(fate::approximated, "this proxy adds none"));
            }
        }
    }

    TEST_CASE("what is for some clients alone denies the field to all") {
        const std::string lists = "acl inside src 10.0.0.0/8\n";
        for (const std::string rule : {"request_header_access X-Forwarded-For deny inside\n",
                                       "request_header_access X-Forwarded-For allow inside\n"}) {
            CAPTURE(rule);
            const auto r = settings_of(lists + rule + "forwarded_for on\n");
            CHECK(r.options.forwarding.client_address == config::forwarded_field::off);
        }
    }

    TEST_CASE("a rule of its own keeps the field from those for all fields") {
        const auto r = settings_of("request_header_access X-Forwarded-For allow all\n"
                                   "request_header_access All deny all\n");
        CHECK(r.options.forwarding.client_address == config::forwarded_field::x_forwarded_for);
        CHECK(r.says(fate::laxer, "fields are passed on"));
        const auto late = settings_of("request_header_access X-Forwarded-For allow all\n"
                                      "request_header_access X-Forwarded-For deny all\n");
        CHECK(late.options.forwarding.client_address == config::forwarded_field::x_forwarded_for);
        CHECK(late.says(fate::left_out, "is never reached"));
    }

    TEST_CASE("that other fields are passed on is told as laxer") {
        CHECK(settings_of("request_header_access All deny all\n").count(fate::laxer) == 1);
        CHECK(settings_of("request_header_access Cookie deny all\n").count(fate::laxer) == 1);
        CHECK(settings_of("request_header_access Cookie allow all\n").count(fate::laxer) == 0);
        const auto r = settings_of("request_header_access Cookie deny all\n");
        CHECK(r.options.forwarding.client_address == config::forwarded_field::x_forwarded_for);
    }

    TEST_CASE("the last forwarded_for holds") {
        CHECK(settings_of("forwarded_for on\nforwarded_for delete\n")
                  .options.forwarding.client_address == config::forwarded_field::off);
        CHECK(settings_of("forwarded_for delete\nforwarded_for on\n")
                  .options.forwarding.client_address == config::forwarded_field::x_forwarded_for);
    }
}

}  // namespace reprise::from_squid
