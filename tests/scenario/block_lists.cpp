// Hosts that nobody is to reach: access.block_lists.

#include "tests/scenario/world.hpp"

#include <string>

TEST_SUITE("scenario/block_lists") {

    using namespace reprise::tests;

    namespace {

    struct with_list {
        temp_dir place;
        fake_origin origin;
        json settings = storing_settings();
        proxy_process proxy;

        with_list() : proxy{prepared()} {}

        [[nodiscard]] std::string url(const std::string& host) const {
            return "http://" + host + ':' + std::to_string(origin.port()) + "/a";
        }
        [[nodiscard]] unsigned status(const std::string& host,
                                      std::string_view method = "GET") const {
            return static_cast<unsigned>(proxy.ask(method, url(host), "").status);
        }
        [[nodiscard]] unsigned connect_status(const std::string& host) const {
            const auto at = host + ':' + std::to_string(origin.port());
            auto to = proxy.connect();
            return static_cast<unsigned>(
                to.ask("CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n").status);
        }
        void reload_with(const std::string& lines) const {
            place.write("listed", lines);
            proxy.reload(settings);
        }

    private:
        const json& prepared() {
            origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
            settings["dns"]["hosts_file"] = place.write(
                "hosts", "127.0.0.1 ads.test www.ads.test good.test late.test\n");
            settings["access"]["block_lists"] = {place.write("listed", "# ads\nads.test\n")};
            settings["access"]["connect_ports"] = {origin.port()};
            return settings;
        }
    };

    }  // namespace

    TEST_CASE(
        "a listed host and what is below it is refused by whatever method, counted, explained") {
        with_list w;
        CHECK(w.status("good.test") == 200);
        const auto refused = w.proxy.get(w.url("ads.test"));
        CHECK(refused.status == 403);
        CHECK(refused.body.find("access.block_lists") != std::string::npos);
        CHECK(refused.body.find("listed\n") == std::string::npos);
        CHECK(w.status("WWW.ads.test.") == 403);
        CHECK(w.status("ads.test", "POST") == 403);
        CHECK(w.status("ads.test", "PURGE") == 403);
        CHECK(w.connect_status("www.ads.test") == 403);
        CHECK(w.connect_status("good.test") == 200);
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.proxy.stats()["failures"]["host_blocked"] == 5);
        const auto told = json::parse(
            w.proxy.admin("/explain?url=http%3A%2F%2Fwww.ads.test%2F").body);
        CHECK(told.at("verdict").at("rule") == "host_blocked");
    }

    TEST_CASE("a reload takes another list, and with a bad line leaves the one that was there") {
        with_list w;
        CHECK(w.status("late.test") == 200);
        w.reload_with("late.test\n||ads.test^\n");
        CHECK(w.proxy.says("access.block_lists[0]: " + w.place.file("listed") +
                           ":2: is a rule of a browser's filter"));
        CHECK(w.status("late.test") == 200);
        CHECK(w.status("ads.test") == 403);
        w.reload_with("0.0.0.0 late.test\n");
        CHECK(w.status("late.test") == 403);  // though it is stored
        CHECK(w.status("ads.test") == 200);
        w.settings["access"].erase("block_lists");
        w.proxy.reload(w.settings);
        CHECK(w.status("late.test") == 200);
    }

    TEST_CASE("an accelerator's clients are asked nothing: its upstream is the operator's own") {
        with_list w;
        auto settings = w.settings;
        settings["listeners"].push_back(
            {{"address", "127.0.0.1:0"}, {"mode", "accelerator"}, {"upstream", w.origin.url("")}});
        const proxy_process front{settings};
        client to{front.port(1)};
        CHECK(to.ask("GET /a HTTP/1.1\r\nHost: ads.test\r\n\r\n").status == 200);
        CHECK(front.get(w.url("ads.test")).status == 403);
    }
}
