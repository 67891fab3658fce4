// New settings for the running program, by SIGHUP and POST /reload: all of them or nothing, and what
// waits for the next start is said.

#include "tests/scenario/fleet.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/counted_allocations.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/stat.h>

TEST_SUITE("scenario/reload") {

    using namespace reprise::tests;

    namespace {

    const std::string token = "open-sesame-and-more";

    json operated_settings(const temp_dir& at) {
        auto settings = storing_settings();
        settings["admin"]["token_file"] = at.write("token", token + "\n");
        ::chmod(at.file("token").c_str(), 0600);
        settings["log"]["access"] = at.file("access.log");
        return settings;
    }

    response post_reload(const proxy_process& proxy, const json& settings) {
        proxy.rewrite_settings(settings);
        client one{proxy.admin_port()};
        return one.ask(
            "POST /reload HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(proxy.admin_port()) +
            "\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 0\r\n\r\n");
    }

    std::size_t times(const std::string& text, const std::string& part) {
        std::size_t n = 0;
        for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) {
            ++n;
        }
        return n;
    }

    }  // namespace

    TEST_CASE("SIGHUP brings what can change live into force") {
        auto settings = basic_settings();
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK_FALSE(cache_status_of(w.get("/a?1")).stored);
        settings["admission"] = "always";
        w.proxy.reload(settings);
        for (int i = 2; i < 20; ++i) {  // whichever thread it comes to
            CHECK(cache_status_of(w.get("/a?" + std::to_string(i))).stored);
        }
        // The store and the connections live on.
        CHECK(is_hit(w.get("/a?2")));
    }

    TEST_CASE("SIGHUP with a bad file changes nothing and says why") {
        auto settings = basic_settings();
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        SUBCASE("a wrong value") {
            settings["admission"] = "always";
            settings["memory"] = {{"size", "much"}};
            w.proxy.rewrite_settings(settings);
            w.proxy.signal(SIGHUP);
            CHECK(w.proxy.says("memory.size"));
        }
        SUBCASE("no JSON") {
            const auto before = w.proxy.errors().size();
            w.proxy.rewrite_settings_text("{ nonsense");
            w.proxy.signal(SIGHUP);
            CHECK(eventually([&] { return w.proxy.errors().size() > before; }));
        }
        SUBCASE("no file") {
            const auto before = w.proxy.errors().size();
            std::filesystem::remove(w.proxy.directory().file("settings.json"));
            w.proxy.signal(SIGHUP);
            CHECK(eventually([&] { return w.proxy.errors().size() > before; }));
        }
        const auto answer = w.get("/a");
        CHECK(answer.status == 200);
        CHECK_FALSE(cache_status_of(answer).stored);
        CHECK(w.proxy.is_running());
    }

    TEST_CASE("SIGHUP says which settings wait for a restart") {
        auto settings = basic_settings();
        world w{settings};
        settings["threads"] = 1;
        w.proxy.rewrite_settings(settings);
        w.proxy.signal(SIGHUP);
        CHECK(w.proxy.says("threads"));
        w.origin.on("/a", ok("", "hello"));
        CHECK(w.get("/a").body == "hello");
    }

    TEST_CASE("settings whose files can't all be used change nothing, of the log neither") {
        const temp_dir at;
        const auto good = operated_settings(at);
        world w{good};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto bad = good;
        bad["admission"] = "never";
        bad["log"]["format"] = "squid";
        bad["log"]["query_values"] = true;
        bad["log"]["level"] = "error";
        std::string setting;
        SUBCASE("the access log") {
            setting = "log.access: ";
            bad["log"]["access"] = at.file("none/access.log");
        }
        SUBCASE("the token, which holds on") {
            setting = "admin.token_file: ";
            bad["admin"]["token_file"] = at.file("none");
        }
        SUBCASE("a token file that is a pipe") {
            setting = "admin.token_file: ";
            REQUIRE(::mkfifo(at.file("pipe").c_str(), 0600) == 0);
            bad["admin"]["token_file"] = at.file("pipe");
        }
        SUBCASE("both lists of users, each line of which is named once") {
            setting = "access.users_file: ";
            bad["access"]["users_file"] = at.write("users", "ann:plain\nno colon\n");
        }
        SUBCASE("users and token, both of which are named") {
            setting = "access.users_file: ";
            bad["access"]["users_file"] = at.write("users", "ann:plain\nno colon\n");
            bad["admin"]["token_file"] = at.write("empty", "\n");
            CHECK(post_reload(w.proxy, bad).body.find("\nadmin.token_file: ") != std::string::npos);
        }
        for (int again = 0; again < 2; ++again) {
            const auto refused = post_reload(w.proxy, bad);
            CAPTURE(refused.body);
            CHECK(refused.status == 422);
            CHECK(refused.body.find("nothing was changed:\n" + setting) == 0);
            CHECK(times(refused.body, setting) == (setting == "access.users_file: " ? 2 : 1));
        }
        const auto path = "/a?of=" + std::to_string(::getpid());
        CHECK(cache_status_of(w.get(path)).stored);
        CHECK(eventually([&] { return !read_file(at.file("access.log")).empty(); }));
        const auto line = read_file(at.file("access.log"));
        CAPTURE(line);
        CHECK(line.front() == '{');
        CHECK(line.find(std::to_string(::getpid())) == line.npos);
        const auto taken = post_reload(w.proxy, good);
        CHECK(taken.body.find("reloaded\n") == 0);
        CHECK(taken.body.find("would fail") == std::string::npos);
    }

    TEST_CASE("clients that a reload takes away are served no more, on connections that are there "
              "neither") {
        auto settings = storing_settings();
        world w{settings};
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        auto one = w.proxy.connect();
        CHECK(one.ask(w.request("/a")).status == 200);
        settings["access"]["clients"] = {"10.0.0.0/8"};
        w.proxy.reload(settings);
        CHECK(one.ask(w.request("/a")).status == 403);
        settings["access"]["clients"] = {"127.0.0.1"};
        w.proxy.reload(settings);
        CHECK(w.proxy.connect().ask(w.request("/a")).status == 200);
    }

    TEST_CASE("a token that a reload replaces opens nothing any more, and the new one does") {
        const temp_dir at;
        const auto settings = operated_settings(at);
        world w{settings};
        w.proxy.rewrite_settings(settings);
        const auto asked_with = [&](const std::string& own) {
            client one{w.proxy.admin_port()};
            return one
                .ask("POST /reload HTTP/1.1\r\nHost: 127.0.0.1:" +
                     std::to_string(w.proxy.admin_port()) + "\r\nAuthorization: Bearer " + own +
                     "\r\nContent-Length: 0\r\n\r\n")
                .status;
        };
        const std::string next = "another-word-altogether";
        CHECK(asked_with(token) == 200);
        CHECK(asked_with(next) == 401);
        at.write("token", next + "\n");
        w.proxy.reload(settings);
        // The listener's own thread takes it over when it comes to it.
        CHECK(eventually([&] { return asked_with(next) == 200; }));
        CHECK(asked_with(token) == 401);
    }

    TEST_CASE("less memory holds for what is stored, and a lower max_object for what comes") {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "16MiB"}, {"max_object", "1MiB"}};
        world w{settings};
        const auto body = patterned(400 * kib);
        w.origin.otherwise(sends(ok("Cache-Control: max-age=600\r\n", body)));
        for (int i = 0; i < 20; ++i) {
            CHECK(w.get("/" + std::to_string(i)).status == 200);
        }
        constexpr auto less = static_cast<std::int64_t>(4 * mib);
        const auto before = w.proxy.stats();
        CHECK(figure(before, "/store/capacity_bytes") == 4 * less);
        CHECK(figure(before, figure_name::store_bytes) > less);
        settings["memory"]["size"] = "4MiB";
        w.proxy.reload(settings);
        const auto after = w.proxy.stats();
        CHECK(figure(after, "/store/capacity_bytes") == less);
        CHECK(figure(after, figure_name::store_bytes) <= less);
        CHECK(figure(after, figure_name::store_objects) > 0);
        CHECK(cache_status_of(w.get("/not-too-large")).detail != "too-large");
        settings["memory"]["max_object"] = "100KiB";
        w.proxy.reload(settings);
        const auto answer = w.get("/too-large");
        CHECK((answer.body == body));
        CHECK(cache_status_of(answer).detail == "too-large");
        CHECK_FALSE(is_hit(w.get("/too-large")));
    }

    TEST_CASE("what a start went on without keeps no reload from the rest") {
        const temp_dir at;
        auto settings = operated_settings(at);
        std::filesystem::create_directories(at.path() / "log");
        settings["log"]["access"] = at.file("log/access.log");
        settings["admin"]["token_file"] = at.file("none");
        world w{settings};
        std::filesystem::remove_all(at.path() / "log");
        settings["admission"] = "never";
        w.proxy.reload(settings);
        CHECK(w.proxy.says("settings reloaded"));
        CHECK(w.proxy.says("warning: settings: warning: admin.token_file: "));
        CHECK(w.proxy.says("warning: settings: warning: log.access: cannot open "));
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK_FALSE(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE("what the running program has itself is in no way of the next start") {
        const temp_dir at;
        auto settings = operated_settings(at);
        settings["disk"] = {{"path", at.file("store")}, {"size", "16MiB"}};
        world w{settings};
        const auto port = std::to_string(w.proxy.port());
        settings["disk"]["path"] = at.file("store") + "/";
        settings["listeners"] = json::array(
            {{{"address", "0.0.0.0:" + port}},
             {{"address", "127.0.0.1:0"},
              {"tls", {{"certificate", at.file("none")}, {"key", at.file("none")}}}}});
        settings["admin"]["address"] = "127.0.0.1:" + std::to_string(w.proxy.admin_port());
        w.proxy.rewrite_settings_text(settings.dump());
        w.proxy.signal(SIGHUP);
        CHECK(w.proxy.says("settings reloaded"));
        CHECK(w.proxy.says("the next start would fail: "));
        const auto said = w.proxy.errors();
        CAPTURE(said);
        CHECK(times(said, "would fail now") == 0);
        CHECK(times(said, "the next start would fail: listeners[1].tls.certificate: ") == 1);
    }

    TEST_CASE("what waits for the next start is said, and what that would meet") {
        const temp_dir at;
        auto settings = operated_settings(at);
        world w{settings};
        const acceptor taken;
        settings["threads"] = 7;
        settings["admission"] = "never";
        settings["disk"] = {{"path", at.write("no-directory", "")}};
        settings["digest"] = {{"secret_file", at.file("none")}};
        settings["peers"] = {{{"name", "b"}, {"url", "http://127.0.0.1:9"}}};
        settings["listeners"].push_back({{"address", "127.0.0.1:" + std::to_string(taken.port())}});
        const auto done = post_reload(w.proxy, settings);
        CAPTURE(done.body);
        CHECK(done.status == 200);
        CHECK(done.body.find("reloaded\n") == 0);
        for (const std::string line :
             {"threads changes at the next start",
              "disk.path changes at the next start",
              "peers change at the next start: there were none at this one",
              "the next start would fail: disk.path: ",
              "the next start would fail: digest.secret_file: ",
              "the next start would fail now: listeners[1].address: "}) {
            CAPTURE(line);
            CHECK(times(done.body, "\n" + line) == 1);
            CHECK(w.proxy.says("warning: settings: " + line));
        }
        CHECK(times(done.body, "would fail") == 3);  // what the program holds itself is none
        w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK_FALSE(cache_status_of(w.get("/a")).stored);
    }

    TEST_CASE(
        "a shorter admission.save_every is in force at once, not when the longer one is over") {
        const temp_dir at;
        auto settings = basic_settings();
        settings["admission"] = {{"state", at.file("state")}, {"save_every", "24h"}};
        const proxy_process proxy{settings};
        CHECK_FALSE(std::filesystem::exists(at.file("state")));
        settings["admission"]["save_every"] = "1s";
        proxy.reload(settings);
        CHECK(eventually([&] { return std::filesystem::exists(at.file("state")); }));
    }

    TEST_CASE("peers that there was no memory to take over come when there is, and are said to") {
        if (sanitized) {
            return;  // which allocates by itself
        }
        counted_allocations memory;
        auto settings = node_settings();
        settings["peers"] = json::array({peer_at("former", 1)});
        const proxy_process proxy{settings, memory.environment()};
        const auto follows = [&](const char* name) {
            return proxy.stats().at("siblings").at("state").contains(name);
        };
        REQUIRE(eventually([&] { return follows("former"); }));
        settings["peers"] = json::array({peer_at("next", 2)});
        proxy.rewrite_settings(settings);
        memory.workers_lack_memory(true);
        proxy.signal(SIGHUP);
        CHECK(eventually(
            [&] {
                return proxy.errors().find("settings: warning: peers: not taken over yet") !=
                       std::string::npos;
            },
            2 * patience));
        CHECK(eventually(
            [&] { return proxy.errors().find("settings reloaded") != std::string::npos; },
            2 * patience));
        CHECK_FALSE(follows("next"));
        memory.workers_lack_memory(false);
        CHECK(eventually([&] { return follows("next"); }));
        CHECK_FALSE(follows("former"));
    }

    TEST_CASE("an accelerator that asks nobody for the passwords that a reload brings is named") {
        const temp_dir at;
        auto settings = operated_settings(at);
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"mode", "accelerator"},
                                         {"upstream", "http://127.0.0.1:9"}});
        world w{settings};
        settings["access"]["tokens_file"] = at.write("tokens", "ann:0123456789abcdef\n");
        ::chmod(at.file("tokens").c_str(), 0600);
        const auto done = post_reload(w.proxy, settings);
        CAPTURE(done.body);
        CHECK(done.status == 200);
        CHECK(times(done.body, "\nwarning: listeners[1].mode: \"accelerator\": ") == 1);
    }

}  // TEST_SUITE
