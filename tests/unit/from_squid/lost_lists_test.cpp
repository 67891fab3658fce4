#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/lost_lists") {
    TEST_CASE("a list that restrained something, and is lost, is told by each line that did") {
        const std::string lists = "acl lan src 10.0.0.0/8\nacl page rep_mime_type text/html\n";
        for (const std::string name : {"miss_access",
                                       "http_reply_access",
                                       "adapted_http_access",
                                       "store_miss",
                                       "send_hit",
                                       "reply_header_access Set-Cookie",
                                       "request_header_access Cookie",
                                       "http_upgrade_request_protocols WebSocket"}) {
            CAPTURE(name);
            const auto count = [&](const std::string& first, const std::string& second = "") {
                auto text = lists + name + ' ' + first + '\n';
                text += second.empty() ? "" : name + ' ' + second + '\n';
                return settings_of(text).count(fate::laxer);
            };
            CHECK(count("deny all") == 1);
            CHECK(count("deny lan") == 1);
            CHECK(count("deny lan", "deny page") == 2);
            CHECK(count("allow lan", "deny all") == 1);
            // By the opposite of the last line.
            CHECK(count("allow lan") == 1);
            CHECK(count("allow all") == 0);
            CHECK(count("deny") == 0);
        }
    }

    TEST_CASE(
        "whoever could say for whom he asks is told of, by a line or by the opposite of one") {
        const std::string front = "acl front src 10.0.0.9\n";
        for (const std::string rules :
             {"follow_x_forwarded_for allow front\n", "follow_x_forwarded_for deny front\n"}) {
            CAPTURE(rules);
            CHECK(settings_of(front + rules).count(fate::laxer) == 1);
        }
        CHECK(settings_of("follow_x_forwarded_for deny all\n").count(fate::laxer) == 0);
    }

    TEST_CASE("a list of each field's own is judged by itself") {
        CHECK(settings_of("reply_header_access Server allow all\n"
                          "reply_header_access Set-Cookie deny all\n"
                          "reply_header_access server deny all\n")
                  .count(fate::laxer) == 1);
    }
}

}  // namespace reprise::from_squid
