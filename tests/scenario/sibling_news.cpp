// Siblings that tell each other what changes as it happens: one request kept open, and answered when
// there is something to tell.

#include "tests/scenario/fleet.hpp"

#include <algorithm>
#include <csignal>
#include <sys/stat.h>

TEST_SUITE("scenario/sibling_news") {

    using namespace reprise::tests;

    namespace {

    /// Two nodes, of which the second follows the first. No reload that ends waits comes later.
    void start(fleet& f, const json& settings = seldom_settings()) {
        f.add(settings);
        f.add(settings);
        auto& [node, its] = f.nodes.at(1);
        its["peers"] = json::array({seldom_peer("n0", f[0].port())});
        node.reload(its);
    }

    bool wait(fleet& f, std::int64_t number) {
        std::int64_t waiting = 0;
        const bool do_wait = eventually([&] {
            waiting = figure(f[0].stats(), "/digest/news/waiting");
            return waiting == number;
        });
        CHECK(waiting == number);
        return do_wait;
    }

    std::int64_t answers(fleet& f, std::size_t i, const char* how) {
        return figure(f[i].stats(), (std::string{"/siblings/digest_answers/n0/"} + how).c_str());
    }

    }  // namespace

    TEST_CASE("what one stored is asked of it soon, though digests are fetched once in an hour") {
        fleet f{0};
        start(f);
        f.serve_everything();
        REQUIRE(f.is_by_news(1, "n0"));
        for (const std::string path : {"/a", "/b", "/c"}) {
            CAPTURE(path);
            const auto url = f.origin.url(path);
            CHECK(f[0].get(url).status == 200);
            REQUIRE(eventually([&] { return f.claims(1, url); }));
            CHECK(f[1].get(url).status == 200);
            CHECK(f.origin.count(path) == 1);
        }
        CHECK(f.asked(1, "n0", "true-hit") == 3);
        CHECK(answers(f, 1, "news") >= 3);
        CHECK(answers(f, 1, "whole") == 1);
        // What leaves is told as well.
        CHECK(f[0].ask("PURGE", f.origin.url("/a")).status == 200);
        CHECK(eventually([&] { return f.estimate(1, "n0") < 2.5; }));
        CHECK(wait(f, 1));
        CHECK(figure(f[0].stats(), "/digest/served/news") >= 3);
    }

    TEST_CASE(
        "a sibling that slept is told what happened meanwhile, and what it missed is not asked") {
        fleet f{0};
        start(f);
        f.serve_everything();
        REQUIRE(f.is_by_news(1, "n0"));
        f[1].signal(SIGSTOP);
        for (int i = 0; i < 50; ++i) {
            CHECK(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        f[1].signal(SIGCONT);
        REQUIRE(f.holds(1, "n0", 50));
        f.origin.stop();
        int served = 0;
        for (int i = 0; i < 50; ++i) {
            served += f[1].get(f.origin.url("/" + std::to_string(i))).status == 200 ? 1 : 0;
        }
        CHECK(served >= 49);
        CHECK(answers(f, 1, "whole") == 1);
    }

    TEST_CASE("one that was started anew is followed anew, from the whole") {
        fleet f{0};
        start(f);
        f.serve_everything();
        REQUIRE(f.is_by_news(1, "n0"));
        CHECK(f[0].get(f.origin.url("/a")).status == 200);
        REQUIRE(eventually([&] { return f.claims(1, f.origin.url("/a")); }));
        const auto before = f.text(1, "/siblings/held_generation/n0");
        auto settings = f.nodes[0].second;
        settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(f[0].port());
        f[0].stop();
        const proxy_process again{settings};
        REQUIRE(again.port() == f[0].port());
        CHECK(again.get(f.origin.url("/b")).status == 200);
        REQUIRE(eventually([&] { return f.claims(1, f.origin.url("/b")); }));
        CHECK(f.text(1, "/siblings/held_generation/n0").substr(0, 8) != before.substr(0, 8));
        CHECK(f[1].get(f.origin.url("/b")).status == 200);
        CHECK(f.origin.count("/b") == 1);
    }

    TEST_CASE("what grows beyond its digest is followed into the next") {
        fleet f{0};
        start(f);
        f.serve_everything();
        REQUIRE(f.is_by_news(1, "n0"));
        constexpr int objects = 1100;  // the first size is for 1,024
        for (int i = 0; i < objects; ++i) {
            REQUIRE(f[0].get(f.origin.url("/" + std::to_string(i))).status == 200);
        }
        // A key whose bits are all on already is no news, and its owner's count of keys comes with the next: of the
        // last of them one in 330 is such.
        REQUIRE(f.holds(1, "n0", objects - 10));
        CHECK(answers(f, 1, "whole") >= 2);
        CHECK(eventually([&] { return f.claims(1, f.origin.url("/1099")); }));
    }

    TEST_CASE("where either side's news is off, digests are fetched as they were") {
        for (const std::size_t off : {0u, 1u}) {
            CAPTURE(off);
            fleet f{0};
            for (std::size_t i = 0; i < 2; ++i) {
                auto settings = node_settings();
                if (i == off) {
                    settings["peering"]["news"] = "0s";
                }
                f.add(settings);
            }
            f.meet();
            f.serve_everything();
            CHECK(f[0].get(f.origin.url("/a")).status == 200);
            REQUIRE(f.holds(1, "n0", 1));
            CHECK(f[0].get(f.origin.url("/b")).status == 200);
            REQUIRE(f.holds(1, "n0", 2));
            CHECK(f[1].get(f.origin.url("/b")).status == 200);
            CHECK(f.origin.count("/b") == 1);
            CHECK(answers(f, 1, "news") == 0);
            CHECK(figure(f[0].stats(), "/digest/news/waiting") == 0);
            CHECK(figure(f[0].stats(), "/digest/served/news") == 0);
        }
    }

    TEST_CASE("who waits is let go of when the proxy drains, and a newer question ends the older") {
        auto settings = seldom_settings();
        settings["timeouts"]["drain"] = "3s";  // for a last word that is late
        fleet f{0};
        start(f, settings);
        REQUIRE(f.is_by_news(1, "n0"));
        client first{f[0].port()};
        const auto whole = first.ask("GET /.well-known/reprise/digest?wait=25 HTTP/1.1\r\n"
                                     "Host: x\r\n\r\n");
        CHECK(whole.status == 200);
        CHECK(whole.get("Reprise-News") == "30");
        auto generation = whole.get("ETag");
        generation = generation.substr(1, generation.size() - 2);
        const auto ask = "GET /.well-known/reprise/digest?since=" + generation +
                         "&wait=25 HTTP/1.1\r\nHost: x\r\nReprise-Node: me\r\n\r\n";
        first.send(ask);
        REQUIRE(wait(f, 2));
        client second{f[0].port()};
        second.send(ask);
        CHECK(first.read().status == 304);
        REQUIRE(wait(f, 2));
        {
            client leaving{f[0].port()};
            leaving.send("GET /.well-known/reprise/digest?since=" + generation +
                         "&wait=25 HTTP/1.1\r\nHost: x\r\nReprise-Node: else\r\n\r\n");
            REQUIRE(wait(f, 3));
        }
        REQUIRE(wait(f, 2));
        CHECK(first.ask("GET /.well-known/reprise/digest?wait=soon HTTP/1.1\r\nHost: x\r\n\r\n")
                  .status == 400);
        CHECK(first
                  .ask("GET /.well-known/reprise/digest?since=" + generation +
                       "&wait=0 HTTP/1.1\r\nHost: x\r\n\r\n")
                  .status == 304);
        f[0].signal(SIGTERM);
        const auto last = second.read();
        CHECK(last.status == 304);
        CHECK(last.get("Connection") == "close");
        CHECK(f[0].stop() == 0);
    }

    TEST_CASE("what was seen on one counts on the other soon") {
        const temp_dir directory;
        auto settings = seldom_settings();
        const auto secret = directory.write("secret", std::string(64, 's'));
        REQUIRE(::chmod(secret.c_str(), 0600) == 0);
        settings["digest"]["secret_file"] = secret;
        settings["digest"]["publish_after"] = "1h";
        settings["admission"] = "second-hit";
        fleet f{2, settings};
        f.serve_everything();
        REQUIRE(f.is_by_news(1, "n0"));
        REQUIRE(f.is_by_news(0, "n1"));
        unsigned tried = 0;
        // The first may be noted before anybody follows.
        CHECK(eventually([&] {
            const auto path = "/seen/" + std::to_string(tried++);
            const auto news = figure(f[1].stats(), "/siblings/seen_news/n0");
            CHECK(f[0].get(f.origin.url(path)).status == 200);
            return eventually(
                       [&] { return figure(f[1].stats(), "/siblings/seen_news/n0") > news; }) &&
                   cache_status_of(f[1].get(f.origin.url(path))).stored;
        }));
        // One question is kept open for both.
        // An invitation that was missed is repeated when the other question ends, 25 seconds later at most.
        CHECK(eventually([&] { return figure(f[0].stats(), "/digest/news/waiting") == 1; },
                         10 * patience));
    }
}
