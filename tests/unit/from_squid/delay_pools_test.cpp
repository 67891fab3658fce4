#include "tests/unit/from_squid/converted.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::from_squid {

namespace {

// Two pools of class 2, for guests and for all, with these rates of one client.
conversion_result two_pools(const std::string& first, const std::string& second) {
    return settings_of(
        "acl guests src 10.0.0.0/8\ndelay_pools 2\ndelay_class 1 2\ndelay_class 2 2\n"
        "delay_access 1 allow guests\ndelay_access 1 deny all\ndelay_access 2 allow all\n"
        "delay_parameters 1 -1/-1 " +
        first + "\ndelay_parameters 2 -1/-1 " + second + "\n");
}

}  // namespace

TEST_SUITE("from_squid/delay_pools") {
    TEST_CASE("of delay pools the largest rate for one client goes on") {
        const auto r = two_pools("65536/80000", "1048576/1048576");
        CHECK(r.options.limits.client_rate == 1u << 20);
        CHECK(r.says(fate::approximated, "of all pools the largest"));
        const auto by_user = settings_of(
            "delay_pools 1\ndelay_class 1 4\ndelay_access 1 allow all\n"
            "delay_parameters 1 -1/-1 -1/-1 20000/1 10000/1\n");
        CHECK(by_user.options.limits.client_rate == 10'000);
        CHECK(by_user.count(fate::laxer) == 0);
    }

    TEST_CASE("that clients of a pool have more than they had is told") {
        const auto r = two_pools("65536/80000", "1048576/1048576");
        CHECK(r.count(fate::laxer) == 1);
        CHECK(r.says(fate::laxer, "each client of this one had less"));
        CHECK(two_pools("65536/80000", "65536/80000").count(fate::laxer) == 0);
    }

    TEST_CASE("that clients without a bound get that of another pool is said at their pool") {
        for (const std::string none : {"-1/-1", "none"}) {
            CAPTURE(none);
            const auto r = two_pools(none, "65536/65536");
            CHECK(r.options.limits.client_rate == 65536);
            CHECK(r.count(fate::laxer) == 0);
            CHECK(r.made.settings.find("delay_parameters 1 -1/-1 " + none +
                                       ": sets one client no") != std::string::npos);
        }
        const auto neither = two_pools("none", "none");
        CHECK(neither.options.limits.client_rate == 0);
        CHECK_FALSE(neither.says(fate::approximated, "sets one client no bound"));
    }

    TEST_CASE("a pool that nobody is in sets no rate") {
        const std::string first = "delay_pools 10\ndelay_class 2 2\ndelay_class 10 2\n"
                                  "delay_access 2 allow all\ndelay_parameters 2 none 8000/8000\n"
                                  "delay_parameters 10 none 64000/64000\n";
        const auto behind = settings_of(first + "delay_access 10 allow all\n");
        CHECK(behind.options.limits.client_rate == 8000);
        CHECK(behind.says(fate::left_out, "a pool before it has every request"));
        const auto unlisted = settings_of(first);
        CHECK(unlisted.options.limits.client_rate == 8000);
        const auto denied = settings_of("delay_pools 1\ndelay_class 1 2\ndelay_access 1 deny all\n"
                                        "delay_parameters 1 none 8000/8000\n");
        CHECK(denied.options.limits.client_rate == 0);
        CHECK(denied.says(fate::left_out, "no delay_access allows it"));
        // The opposite of the last line is for whoever it is not for.
        CHECK(settings_of("acl staff src 10.0.0.0/8\ndelay_pools 1\ndelay_class 1 2\n"
                          "delay_access 1 deny staff\ndelay_parameters 1 none 8000/8000\n")
                  .options.limits.client_rate == 8000);
    }

    TEST_CASE("a rate of nothing is the least there is, and not none") {
        const auto r = settings_of("delay_pools 1\ndelay_class 1 2\ndelay_access 1 allow all\n"
                                   "delay_parameters 1 none 0/0\n");
        CHECK(r.options.limits.client_rate == 1);
    }

    TEST_CASE("what delay pools say of several clients is lost, and said so") {
        const auto all = settings_of("delay_pools 1\ndelay_class 1 1\ndelay_access 1 allow all\n"
                                     "delay_parameters 1 65536/65536\n");
        CHECK(all.options.limits.client_rate == 0);
        CHECK(all.says(fate::laxer, "for several clients together"));
        const auto some = settings_of("acl kids src 10.0.0.0/8\ndelay_pools 1\ndelay_class 1 3\n"
                                      "delay_access 1 allow kids\ndelay_access 1 deny all\n"
                                      "delay_parameters 1 -1/-1 100000/100000 8000/8000\n");
        CHECK(some.options.limits.client_rate == 8000);
        CHECK(some.says(fate::laxer, "for several clients together"));
        CHECK(some.says(fate::approximated, "not of those of some lists alone"));
        const auto none = settings_of("delay_pools 1\ndelay_class 1 2\n"
                                      "delay_parameters 1 -1/-1 -1/-1\n");
        CHECK(none.options.limits.client_rate == 0);
        CHECK(none.count(fate::laxer) == 0);
        CHECK(settings_of("delay_pools 0\n").count(fate::laxer) == 0);
        (void)settings_of("delay_pools\ndelay_class\ndelay_access 7\ndelay_parameters 3 x/ 1\n");
    }
}

}  // namespace reprise::from_squid
