#include "proxy/base/live_feed.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace reprise::proxy;
using namespace std::chrono_literals;

namespace {

const steady_time start{1h};

access_record a_request(std::string_view url, outcome how = outcome::miss) {
    access_record one;
    one.method = "GET";
    one.url = url;
    one.how = how;
    one.status = 200;
    return one;
}

void note(live_feed& to,
          std::string_view url,
          steady_time now = start,
          outcome how = outcome::miss) {
    to.note(a_request(url, how), host_in(url), now);
}

}  // namespace

TEST_SUITE("base/live_feed") {
    TEST_CASE("nobody watches, and then somebody does, and nobody again") {
        live_feed feed;
        CHECK_FALSE(feed.watched());
        {
            const auto one = feed.watch({});
            REQUIRE(one);
            CHECK(feed.watched());
        }
        CHECK_FALSE(feed.watched());
    }

    TEST_CASE("a request is shown as the log has it, the values of its query hidden") {
        live_feed feed;
        const auto one = feed.watch({});
        note(feed, "http://u:p@a.example/x?token=secret");
        const auto got = one->take();
        REQUIRE(got.lines.size() == 1);
        CHECK(got.lines[0].find("\"url\":\"http://a.example/x?token=*\"") != std::string::npos);
        CHECK(got.lines[0].find("secret") == std::string::npos);
        CHECK(got.lines[0].ends_with("}\n"));
        CHECK(got.left_out == 0);
        CHECK(one->take().lines.empty());
    }

    TEST_CASE("a long URL is cut behind what is hidden, and user information is known by an @ that "
              "is far away") {
        live_feed feed;
        const auto one = feed.watch({});
        note(feed, "http://user:" + std::string(2000, 's') + "@a.example/x");
        note(feed, "http://a.example/" + std::string(2000, 'p'));
        const auto got = one->take();
        REQUIRE(got.lines.size() == 2);
        CHECK(got.lines[0].find("\"url\":\"http://a.example/x\"") != std::string::npos);
        CHECK(got.lines[1].find("/" + std::string(1024 - 17, 'p') + "...\"") != std::string::npos);
    }

    TEST_CASE("a viewer sees the hosts and outcomes that it wants, and those alone") {
        live_feed feed;
        const auto host = feed.watch({.host = "a.example"});
        const auto hits = feed.watch({.how = outcome::hit});
        for (const auto* const url : {"http://a.example/",
                                      "http://A.Example:81/",
                                      "http://sub.a.example/",
                                      "http://ba.example/",
                                      "http://a.example.org/",
                                      "/path"}) {
            note(feed, url);
        }
        CHECK(host->take().lines.size() == 3);
        CHECK(hits->take().lines.empty());
        note(feed, "http://b/", start, outcome::hit);
        CHECK(hits->take().lines.size() == 1);
        CHECK(host->take().left_out == 0);  // what was not wanted is not missed
    }

    TEST_CASE("more than so many a second are left out, and counted") {
        live_feed feed;
        const auto one = feed.watch({});
        for (int i = 0; i < 1000; ++i) {
            note(feed, "http://a/");
        }
        auto got = one->take();
        CHECK(got.lines.size() == live_feed::most_a_second / 4);
        CHECK(got.lines.size() + got.left_out == 1000);
        note(feed, "http://a/", start + 250ms);
        got = one->take();
        CHECK(got.lines.size() == 1);
        CHECK(got.left_out == 0);
    }

    TEST_CASE("what is not taken does not grow") {
        live_feed feed;
        const auto one = feed.watch({});
        for (int second = 0; second < 60; ++second) {
            for (int i = 0; i < 100; ++i) {
                note(feed, "http://a/", start + second * 1s);
            }
        }
        const auto got = one->take();
        CHECK(got.lines.size() == live_feed::most_waiting);
        CHECK(got.lines.size() + got.left_out == 6000);
    }

    TEST_CASE("there is room for so many viewers, and again when one has left") {
        live_feed feed;
        std::vector<std::unique_ptr<live_feed::view>> all;
        for (std::size_t i = 0; i < live_feed::most_viewers; ++i) {
            all.push_back(feed.watch({}));
            CHECK(all.back());
        }
        CHECK_FALSE(feed.watch({}));
        all.erase(all.begin());
        CHECK(feed.watch({}));
    }

    TEST_CASE("the host is read of whatever a request may name") {
        CHECK(host_in("http://a.example:80/x") == "a.example");
        CHECK(host_in("a.example:443") == "a.example");
        CHECK(host_in("https://u@[::1]:8/") == "::1");
        CHECK(host_in("http://[::1") == "::1");
        CHECK(host_in("http://[") == "");
        CHECK(host_in("/x") == "");
        CHECK(host_in("*") == "*");
        CHECK(host_in("") == "");
    }
}
