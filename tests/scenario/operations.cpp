// What an operator does to the running program: reopen, stop; and the command line.

#include "tests/scenario/world.hpp"
#include "tests/support/counted_allocations.hpp"

#include <csignal>
#include <filesystem>
#include <sys/stat.h>

TEST_SUITE("scenario/operations") {

    using namespace reprise::tests;

    TEST_CASE("--version says name and version") {
        const auto ran = run_reprise({"--version"});
        CHECK(ran.exit_status == 0);
        CHECK(ran.output.find("0.") != std::string::npos);
        CHECK(lower(ran.output).find("reprise") != std::string::npos);
    }

    TEST_CASE("--help-config prints every setting that is fixed by name") {
        const auto ran = run_reprise({"--help-config"});
        CHECK(ran.exit_status == 0);
        for (const std::string name : {"listeners",
                                       "token_file",
                                       "threads",
                                       "memory",
                                       "false_positive_rate",
                                       "connect_ports",
                                       "allow_destinations",
                                       "deny_destinations"}) {
            CAPTURE(name);
            CHECK(ran.output.find(name) != std::string::npos);
        }
    }

    TEST_CASE("an unknown option is an error") {
        const auto ran = run_reprise({"--frobnicate"});
        CHECK(ran.exit_status != 0);
        CHECK_FALSE(ran.errors.empty());
    }

    TEST_CASE("--check-config says yes to a good file, comments and all") {
        const temp_dir directory;
        const auto ran = run_reprise(
            {"--check-config",
             "--config",
             directory.write("settings.json",
                             "{ // a comment\n \"memory\": { \"size\": \"1GiB\" } }")});
        CHECK(ran.exit_status == 0);
        const auto example = run_reprise(
            {"--check-config", "--config", REPRISE_SOURCE_DIR "/config/example.json"});
        CHECK(example.exit_status == 0);
    }

    TEST_CASE(
        "--check-config reports every mistake at once, with path, value and what would be right") {
        const temp_dir directory;
        const auto ran = run_reprise({"--check-config",
                                      "--config",
                                      directory.write("settings.json",
                                                      R"({ "memory": { "size": "much" },
                                                       "threads": -1,
                                                       "admision": "always",
                                                       "listeners": [ { "address": "nowhere" } ] })")});
        CHECK(ran.exit_status != 0);
        const auto said = ran.errors + ran.output;
        for (const std::string part : {"memory.size",
                                       "much",
                                       "threads",
                                       "-1",
                                       "admision",
                                       "admission",
                                       "listeners[0].address",
                                       "nowhere"}) {
            CAPTURE(part);
            CHECK(said.find(part) != std::string::npos);
        }
    }

    TEST_CASE("a file that is no JSON, or is not there, is an error and nothing starts") {
        const temp_dir directory;
        for (const auto& file :
             {directory.write("bad.json", "{ \"threads\": "), directory.file("none.json")}) {
            CAPTURE(file);
            for (const bool check : {false, true}) {
                std::vector<std::string> arguments{"--config", file};
                if (check) {
                    arguments.push_back("--check-config");
                }
                const auto ran = run_reprise(arguments);
                CHECK(ran.exit_status != 0);
                CHECK((ran.errors + ran.output).find(file) != std::string::npos);
            }
        }
    }

    TEST_CASE("a port that is taken is an error and names the address") {
        const acceptor taken;
        auto settings = basic_settings();
        settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(taken.port());
        const temp_dir directory;
        const auto ran = run_reprise(
            {"--config", directory.write("settings.json", settings.dump())});
        CHECK(ran.exit_status != 0);
        CHECK(ran.errors.find(std::to_string(taken.port())) != std::string::npos);
    }

    TEST_CASE("SIGUSR1 reopens the access log, so that logrotate may move it") {
        const temp_dir directory;
        auto settings = basic_settings();
        settings["log"]["access"] = directory.file("access.log");
        world w{settings};
        w.origin.on("/before", ok("", "hello"));
        w.origin.on("/after", ok("", "hello"));
        CHECK(w.get("/before").status == 200);
        const auto has = [&](const char* file, const char* path) {
            return read_file(directory.file(file)).find(path) != std::string::npos;
        };
        CHECK(eventually([&] { return has("access.log", "/before"); }));
        std::filesystem::rename(directory.file("access.log"), directory.file("access.log.1"));
        w.proxy.signal(SIGUSR1);
        CHECK(eventually([&] { return std::filesystem::exists(directory.file("access.log")); }));
        CHECK(w.get("/after").status == 200);
        CHECK(eventually([&] { return has("access.log", "/after"); }));
        CHECK_FALSE(has("access.log", "/before"));
        CHECK(w.proxy.output().empty());
    }

    TEST_CASE("SIGTERM lets a request finish, takes no new ones, and exits with 0") {
        auto settings = basic_settings();
        settings["timeouts"]["drain"] = "20s";
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/slow", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Content-Length: 10\r\n") + "first");
            go.wait();
            connection.send(" last");
        });
        auto idle = w.proxy.connect();
        w.origin.on("/a", ok("", "hello"));
        CHECK(idle.ask(w.request("/a")).body == "hello");
        auto busy = w.proxy.connect(w.request("/slow"));
        auto answer = busy.read_head();
        busy.read_body(answer, 5);
        w.proxy.signal(SIGTERM);
        CHECK(idle.is_closed_by_proxy());
        CHECK(eventually([&] {
            try {
                (void)w.proxy.connect();
                return false;
            } catch (const std::runtime_error&) {
                return true;
            }
        }));
        CHECK(w.proxy.is_running());
        go.open();
        busy.read_body(answer, 11);
        CHECK(answer.body == "first last");
        CHECK(answer.complete());
        CHECK(w.proxy.wait() == 0);
    }

    TEST_CASE("draining is bounded by timeouts.drain") {
        auto settings = basic_settings();
        settings["timeouts"]["drain"] = "300ms";
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/slow", [&](origin_request&, origin_connection&) { go.wait(); });
        auto busy = w.proxy.connect(w.request("/slow"));
        REQUIRE(eventually([&] { return w.origin.count("/slow") == 1; }));
        w.proxy.signal(SIGTERM);
        CHECK(w.proxy.wait() == 0);
    }

    TEST_CASE("SIGINT stops it as SIGTERM does") {
        world w{basic_settings()};
        w.proxy.signal(SIGINT);
        CHECK(w.proxy.wait() == 0);
    }

    TEST_CASE("a second SIGTERM ends the drain at once") {
        auto settings = basic_settings();
        settings["timeouts"]["drain"] = "60s";
        world w{settings};
        auto& go = w.origin.make_gate();
        w.origin.on("/slow", [&](origin_request&, origin_connection&) { go.wait(3 * patience); });
        auto busy = w.proxy.connect(w.request("/slow"));
        REQUIRE(eventually([&] { return w.origin.count("/slow") == 1; }));
        w.proxy.signal(SIGTERM);
        REQUIRE(w.proxy.says("draining"));  // two that nobody has heard of yet would be one
        CHECK(never_within_a_moment([&] { return !w.proxy.is_running(); }));
        w.proxy.signal(SIGTERM);
        CHECK(w.proxy.wait() == 0);
    }

    TEST_CASE("SIGPIPE and clients that reset kill nobody") {
        world w{basic_settings()};
        w.origin.on("/a", ok("", patterned(4 * mib)));
        for (int i = 0; i < 20; ++i) {
            auto one = w.proxy.connect(w.request("/a"));
            (void)one.read_head();
            one.connection().reset();
        }
        w.proxy.signal(SIGPIPE);
        CHECK(w.get("/a").complete());
    }

    TEST_CASE("a time without memory for whoever hears of signals is no end of the program") {
        if (sanitized) {
            return;  // which allocates by itself
        }
        counted_allocations memory;
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        proxy_process proxy{storing_settings(), memory.environment()};
        const auto ask = absolute_request("GET", origin.url("/a"));
        auto one = proxy.connect();
        CHECK(one.ask(ask).body == "hello");
        memory.main_lacks_memory(true);
        for (int i = 0; i < 100; ++i) {
            proxy.signal(SIGHUP);  // some are lost
            proxy.signal(SIGUSR1);
            REQUIRE(one.ask(ask).body == "hello");
            REQUIRE(proxy.stats().contains("uptime_seconds"));
        }
        memory.main_lacks_memory(false);
        CHECK(proxy.is_running());
        proxy.reload(storing_settings());  // is heard of again
        CHECK(proxy.stop() == 0);
    }

}  // TEST_SUITE
