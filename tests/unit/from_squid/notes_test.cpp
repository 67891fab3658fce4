#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

TEST_SUITE("from_squid/notes") {
    TEST_CASE("no password of a line is told") {
        for (const std::string line :
             {"cache_peer p.example parent 3128 0 no-query login=user:s3cret",
              "cache_peer p.example parent 3128 0 no-query login=*:s3cret",
              "cache_peer p.example parent 3128 0 \"login=user:s3cret\"",
              "cache_peer p.example sibling 3128 3130 login=user:s3cret",
              "cache_peer p.example multicast 3128 3130 login=user:s3cret",
              "http_port 80 accel\ncache_peer p.example parent 80 0 originserver login=user:s3cret",
              "cachemgr_passwd s3cret shutdown",
              "wccp2_service standard 0 password=s3cret",
              "auth_param basic program /x/basic_ldap_auth -D cn=squid -w s3cret -b o=a",
              "auth_param basic program /x/basic_ldap_auth -ws3cret -b o=a",
              "auth_param basic program /x/basic_db_auth --password s3cret",
              "external_acl_type g %LOGIN /x/ext_ldap_group_acl -w s3cret"}) {
            CAPTURE(line);
            const auto r = settings_of(line + "\n");
            CHECK(r.made.settings.find("s3cret") == std::string::npos);
            for (const auto& each : r.made.told) {
                CHECK(each.line.find("s3cret") == std::string::npos);
                CHECK(each.why.find("s3cret") == std::string::npos);
            }
            CHECK(r.made.settings.find("...") != std::string::npos);
        }
    }

    TEST_CASE("what only looks like a password stays in its line") {
        for (const std::string line : {"cache_peer p.example parent 3128 0 login=PASSTHRU",
                                       "cache_peer p.example parent 3128 0 login=NEGOTIATE:proxy",
                                       "cachemgr_passwd disable all",
                                       "cachemgr_passwd none info",
                                       "debug_options -w ALL"}) {
            CAPTURE(line);
            CHECK(settings_of(line + "\n").made.settings.find(line) != std::string::npos);
        }
    }
}

}  // namespace reprise::from_squid
