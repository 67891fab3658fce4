// What the program does for whoever asks about one that runs: by its Unix socket, without the token.

#include "tests/scenario/world.hpp"

#include <algorithm>
#include <filesystem>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

TEST_SUITE("scenario/commands") {

    using namespace reprise::tests;

    namespace {

    /// A proxy with a socket in a directory of its own, which outlives it.
    struct with_socket {
        temp_dir place;
        std::string socket = place.file("admin.sock");
        world w;

        explicit with_socket(json settings = storing_settings())
            : w{[&] {
                  settings["admin"]["socket"] = socket;
                  return settings;
              }()} {}

        [[nodiscard]] finished_program run(std::vector<std::string> words) const {
            words.insert(words.end(), {"--socket", socket});
            return run_reprise(std::move(words));
        }
    };

    /// One that is asked at its address, by a token, and has answered for /a.
    struct with_token {
        temp_dir place;
        json settings = storing_settings();
        world w;

        with_token()
            : w{[this] {
                  settings["admin"]["token_file"] = place.write("token", "a-token\n");
                  return settings;
              }()} {
            w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
            CHECK(w.get("/a").status == 200);
        }
    };

    bool has(const std::string& page, std::string_view text) {
        return page.find(text) != std::string::npos;
    }

    }  // namespace

    TEST_CASE("status says in a terminal what /stats says, over a socket that is its owner's") {
        with_socket s;
        s.w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(s.w.get("/a").status == 200);
        CHECK(s.w.get("/a").status == 200);
        // A client may have its last byte before its request is counted.
        REQUIRE(eventually([&] { return s.w.proxy.stats()["summary"]["requests"] == 2; }));
        struct stat facts {};
        REQUIRE(::lstat(s.socket.c_str(), &facts) == 0);
        CHECK((facts.st_mode & 0777) == 0600);
        const auto page = s.run({"status"});
        CAPTURE(page.output);
        CHECK(page.exit_status == 0);
        CHECK(has(page.output, "All is well."));
        CHECK(has(page.output, "it answered 2 requests, 50 % of them from what is stored here"));
        CHECK(has(page.output, "Answered from the store  50 %"));
        CHECK(has(page.output, "spared the origins in 1 of 2 requests"));
        const auto life = s.run({"status", "--alive"});
        CHECK(life.exit_status == 0);
        CHECK(has(life.output, "ok"));
        const auto raw = s.run({"status", "--json"});
        CHECK(json::parse(raw.output).at("summary").at("requests") == 2);
        const auto lines = s.run({"status", "--watch", "--times", "2"});
        CHECK(lines.exit_status == 0);
        CHECK(std::count(lines.output.begin(), lines.output.end(), '\n') == 2);
        CHECK(has(lines.output, "well  requests 2  hit ratio 50 %"));
    }

    TEST_CASE("explain and purge need no token by the socket, and say what came of it") {
        with_socket s;
        s.w.origin.on("/a", ok("Cache-Control: max-age=60\r\n", "hello"));
        CHECK(s.w.get("/a").status == 200);
        const auto url = s.w.origin.url("/a");
        const auto told = s.run({"explain", url});
        CAPTURE(told.output);
        CHECK(told.exit_status == 0);
        CHECK(has(told.output, "ruling            hit, by fresh (RFC 9111 4.2)"));
        CHECK(has(told.output, "fresh for 60 s in all (max-age)"));
        const auto gone = s.run({"purge", url});
        CHECK(gone.exit_status == 0);
        CHECK(gone.output == "dropped: " + url + " (1 response)\n");
        const auto again = s.run({"purge", url});
        CHECK(again.exit_status == 1);
        CHECK(again.output == "nothing was stored of " + url + "\n");
        CHECK(s.run({"purge", "--prefix", s.w.origin.url("/")}).exit_status == 0);
        CHECK(s.run({"purge", "--tag", "t", "--origin", s.w.origin.url("")}).exit_status == 0);
        CHECK(s.run({"purge"}).exit_status == 2);
        CHECK(s.run({"explain"}).exit_status == 2);
    }

    TEST_CASE("what a hand mistypes is told before anybody is asked, with what would be right") {
        with_socket s;
        for (const auto* command : {"explain", "purge"}) {
            CAPTURE(command);
            const auto told = s.run({command, "example.org/x"});
            CHECK(told.exit_status == 2);
            CHECK(has(told.errors, "URL must begin with http:// or https://: 'example.org/x'"));
        }
        const auto field = s.run({"explain", "http://a.example/", "--header", "Cookie=1"});
        CHECK(field.exit_status == 2);
        CHECK(has(field.errors, "--header is \"Name: value\", and 'Cookie=1' has no colon"));
        CHECK(s.run({"explain", "--method", "CONNECT", "a.example:443"}).exit_status == 0);
        CHECK(s.run({"purge", "--prefix", "a.example"}).exit_status == 2);
    }

    TEST_CASE("explain says why nothing was stored, and what of the request stands against it") {
        with_socket s;
        s.w.origin.on("/never", ok("Cache-Control: no-store\r\n", "hello"));
        CHECK(s.w.get("/never").status == 200);
        const auto last = s.run({"explain", s.w.origin.url("/never")});
        CAPTURE(last.output);
        CHECK(has(last.output,
                  "its last answer was not stored: the origin said no-store (no-store, RFC 9111 "
                  "5.2.2.5)"));
        CHECK_FALSE(has(last.output, "would be stored"));
        CHECK_FALSE(has(last.output, "not asked for before"));
        const auto url = s.w.origin.url("/new");
        const auto by_user = s.run({"explain", url, "--header", "Authorization: Basic eA=="});
        CAPTURE(by_user.output);
        CHECK(has(by_user.output,
                  "only if the origin allows it; else: the request has Authorization"));
        CHECK(has(by_user.output, "RFC 9111 3.5"));
        const auto forbidden = s.run({"explain", url, "--header", "Cache-Control: no-store"});
        CHECK(has(forbidden.output,
                  "no: the client said no-store (no-store-request, RFC 9111 5.2.1.5)"));
        CHECK(has(s.run({"explain", url}).output, "the client's address is in access.clients"));
    }

    TEST_CASE("explain names the rule in force, and a rule that lacks only the port") {
        auto settings = storing_settings();
        fake_origin origin;
        const auto port = std::to_string(origin.port());
        settings["freshness"]["rules"] = {{{"url", "http://127.0.0.1/*"}, {"at_least", "1h"}},
                                          {{"url", "http://127.0.0.1:" + port + "/kept/*"},
                                           {"at_least", "30d"},
                                           {"override", {"no-store"}}}};
        settings["access"]["allow_destinations"] = {"127.0.0.1:" + port};
        with_socket s{settings};
        origin.on("/kept/a", ok("Cache-Control: no-store\r\n", "hello"));
        CHECK(s.w.proxy.get(origin.url("/kept/a")).status == 200);
        const auto kept = s.run({"explain", origin.url("/kept/a")});
        CAPTURE(kept.output);
        CHECK(has(kept.output,
                  "freshness.rules[1], http://127.0.0.1:" + port +
                      "/kept/*; fresh for at least 2,592,000 s; overrides the "
                      "origin's no-store"));
        CHECK(has(kept.output, "(freshness.rules[1].at_least)"));
        const auto other = s.run({"explain", origin.url("/other")});
        CAPTURE(other.output);
        CHECK(has(other.output, "none of 2 is for this URL"));
        CHECK(has(other.output,
                  "freshness.rules[0], http://127.0.0.1/*: it is for port 80, and "
                  "this URL's is " +
                      port));
    }

    TEST_CASE(
        "without a socket the address of the settings is asked, and the token is read there") {
        with_token at;
        auto& [place, settings, w] = at;
        settings["admin"]["address"] = "127.0.0.1:" + std::to_string(w.proxy.admin_port());
        const auto file = place.write("settings", settings.dump());
        CHECK(run_reprise({"status", "--config", file}).exit_status == 0);
        CHECK(run_reprise({"--config", file, "purge", w.origin.url("/a")}).exit_status == 0);
        settings["admin"].erase("token_file");
        place.write("settings", settings.dump());
        const auto refused = run_reprise({"purge", w.origin.url("/a"), "--config", file});
        CHECK(refused.exit_status == 1);
        CHECK(has(refused.errors, "401: this wants"));
    }

    TEST_CASE("reload says what became of it, and fails where the settings are refused") {
        with_socket s;
        auto settings = storing_settings();
        settings["admin"]["socket"] = s.socket;
        settings["threads"] = 3;
        s.w.proxy.rewrite_settings(settings);
        const auto taken = s.run({"reload"});
        CAPTURE(taken.output);
        CHECK(taken.exit_status == 0);
        CHECK(has(taken.output, "reloaded\n"));
        CHECK(has(taken.output, "threads changes at the next start\n"));
        settings["access"]["users_file"] = s.place.file("absent");
        s.w.proxy.rewrite_settings(settings);
        const auto refused = s.run({"reload"});
        CAPTURE(refused.errors);
        CHECK(refused.exit_status == 1);
        CHECK(has(refused.errors, "nothing was changed:\n"));
        CHECK(has(refused.errors, "access.users_file"));
        CHECK(refused.output.empty());
        CHECK(s.run({"status"}).exit_status != 3);  // it goes on by what it has
    }

    TEST_CASE("a reload of a file with mistakes fails before anybody is told") {
        with_socket s;
        const auto wrong = s.place.write("wrong.json", R"({"memory": {"size": "much"}})");
        const auto said = s.run(
            {"reload", "--config", wrong, "--process", std::to_string(s.w.proxy.pid())});
        CHECK(said.exit_status == 1);
        CHECK(has(said.errors, "memory.size"));
        CHECK(s.w.proxy.is_running());
        CHECK_FALSE(has(s.w.proxy.errors(), "settings "));
    }

    TEST_CASE("a proxy that can't be asked, or wants a token, is told by a signal to reload") {
        const temp_dir place;
        auto settings = basic_settings();
        settings["admin"]["socket"] = "off";
        proxy_process proxy{settings};
        const auto process = std::to_string(proxy.pid());
        const auto off = place.write("off", R"({"admin": {"address": "off", "socket": "off"}})");
        settings["admin"]["address"] = "127.0.0.1:" + std::to_string(proxy.admin_port());
        const auto no_token = place.write("no-token", settings.dump());
        std::size_t told = 0;
        for (const auto& [where, alone] :
             {std::pair{std::vector<std::string>{"--config", off}, 3},
              std::pair{std::vector<std::string>{"--socket", place.file("absent")}, 3},
              std::pair{std::vector<std::string>{"--config", no_token}, 1}}) {
            CAPTURE(where.back());
            auto words = where;
            words.insert(words.begin(), "reload");
            CHECK(run_reprise(words).exit_status == alone);
            words.insert(words.end(), {"--process", process});
            const auto said = run_reprise(words);
            CAPTURE(said.errors);
            CHECK(said.exit_status == 0);
            CHECK(has(said.errors, "process " + process + " is told by SIGHUP"));
            ++told;
            CHECK(eventually([&] {
                const auto log = proxy.errors();
                std::size_t reloads = 0;
                for (auto at = log.find("settings reloaded"); at != std::string::npos;
                     at = log.find("settings reloaded", at + 1)) {
                    ++reloads;
                }
                return reloads == told;
            }));
        }
        CHECK(run_reprise({"reload", "--config", off, "--process", "0"}).exit_status == 2);
    }

    TEST_CASE("a reload that is under way is not begun again by a signal") {
        world w;
        w.origin.on("/reload", answer("504 Gateway Timeout", "", "this takes long; it will be done yet\n"));
        const temp_dir place;
        const auto settings = place.write("settings.json",
                                          R"({"admin": {"address": "127.0.0.1:)" +
                                              std::to_string(w.origin.port()) + R"("}})");
        const auto said = run_reprise(
            {"reload", "--config", settings, "--process", std::to_string(w.proxy.pid())});
        CAPTURE(said.errors);
        CHECK(said.exit_status == 3);
        CHECK(has(said.errors, "504: this takes long"));
        CHECK_FALSE(has(said.errors, "SIGHUP"));
    }

    // Or a health check has it started anew, and the start ends by the mistake.
    TEST_CASE("a proxy that serves is alive and is asked, whatever mistakes its file has by now") {
        with_token at;
        auto& [place, settings, w] = at;
        settings["access"]["block_lists"] = {place.file("absent")};
        settings["memory"] = {{"size", "much"}};
        settings["nonsense"] = 1;
        w.proxy.rewrite_settings(settings);
        const auto file = w.proxy.directory().file("settings.json");
        const auto life = run_reprise({"status", "--alive", "--config", file});
        CHECK(life.exit_status == 0);
        CHECK(life.output == "ok\n");
        const auto page = run_reprise({"status", "--config", file});
        CAPTURE(page.errors);
        CHECK(page.exit_status == 0);
        CHECK(has(page.output, "All is well."));
        CHECK(has(page.errors, file + ": warning: a start or a reload would fail: 2 mistakes"));
        CHECK(has(page.errors, "memory.size: \"much\""));
        CHECK_FALSE(has(page.errors, "block_lists"));  // such files may be large
        const auto url = w.origin.url("/a");
        CHECK(run_reprise({"explain", url, "--config", file}).exit_status == 0);
        CHECK(run_reprise({"purge", url, "--config", file}).exit_status == 0);
        for (const auto& words : {std::vector<std::string>{"reload", "--config", file},
                                  std::vector<std::string>{"check", file}}) {
            CAPTURE(words.front());
            const auto refused = run_reprise(words);
            CHECK(refused.exit_status == 1);
            CHECK(has(refused.errors, "memory.size"));
            CHECK(has(refused.errors, "access.block_lists[0]"));
        }
    }

    TEST_CASE(
        "a mistake in admin.* leaves open where to ask, and that is said; a socket is asked") {
        with_socket s;
        for (const std::string text : {"{,}", "", R"({"admn": {"address": "127.0.0.1:1"}})"}) {
            CAPTURE(text);
            const auto file = s.place.write("nothing", text);
            const auto life = run_reprise({"status", "--alive", "--config", file});
            CAPTURE(life.output);
            CHECK(life.exit_status == 3);
            CHECK(has(life.output, "no: where the proxy is asked is not known"));
            CHECK(s.run({"status", "--alive", "--config", file}).exit_status == 0);
        }
        const auto absent = run_reprise({"status", "--config", s.place.file("absent")});
        CHECK(absent.exit_status == 3);
        CHECK(has(absent.errors, "cannot read"));
        const auto nowhere = s.place.write("nowhere", R"({"admin": {"address": "nowhere"}})");
        const auto life = run_reprise({"status", "--alive", "--config", nowhere});
        CAPTURE(life.output);
        CHECK(life.exit_status == 3);
        CHECK(has(life.output, "no: where the proxy is asked is not known"));
        CHECK(has(life.output, nowhere + ": admin.address: \"nowhere\""));
        for (const auto& words : {std::vector<std::string>{"status"},
                                  std::vector<std::string>{"explain", "http://a.test/"},
                                  std::vector<std::string>{"purge", "http://a.test/"}}) {
            CAPTURE(words.front());
            auto named = words;
            named.insert(named.end(), {"--config", nowhere});
            const auto page = run_reprise(named);
            CHECK(page.exit_status == 3);
            CHECK(has(page.errors, nowhere + ": admin.address: \"nowhere\""));
            CHECK(page.output.empty());
        }
        CHECK(s.run({"status", "--alive", "--config", nowhere}).exit_status == 0);
        const json other{{"admin", {{"socket", s.socket}, {"connections_per_client", 0}}}};
        const auto named = run_reprise(
            {"status", "--config", s.place.write("other", other.dump())});
        CHECK(named.exit_status == 0);
        CHECK(has(named.errors, "admin.connections_per_client: 0"));
    }

    // The image is so: what becomes of the file must not matter to its health check.
    TEST_CASE(
        "where both are given a runtime directory, what the file says by now does not matter") {
        const temp_dir place;
        const auto given = "RUNTIME_DIRECTORY=" + place.path().string();
        const proxy_process proxy{basic_settings(), std::vector<std::string>{given}};
        const auto file = proxy.directory().file("settings.json");
        const auto alive = [&] {
            return run_to_its_end(
                {"env", given, program_under_test(), "status", "--alive", "--config", file});
        };
        for (const auto* text : {R"({"threads" 2})",
                                 R"({"admin": {"address": "nowhere"}})",
                                 R"({"admin": "127.0.0.1:1"})",
                                 R"({"admin": {"address": "127.0.0.1:1"}})"}) {
            CAPTURE(text);
            proxy.rewrite_settings_text(text);
            const auto life = alive();
            CAPTURE(life.errors);
            CHECK(life.exit_status == 0);
            CHECK(life.output == "ok\n");
        }
        std::filesystem::remove(file);
        const auto life = alive();
        CHECK(life.exit_status == 0);
        CHECK(has(life.errors, "cannot read"));
    }

    TEST_CASE("where nobody listens, or one may not ask, it is said so, with a status of its own") {
        const temp_dir place;
        const auto absent = run_reprise({"status", "--socket", place.file("absent")});
        CHECK(absent.exit_status == 3);
        CHECK(has(absent.errors, "absent: nobody listens there"));
        const auto dead = run_reprise({"status", "--alive", "--socket", place.file("absent")});
        CHECK(dead.exit_status == 3);
        CHECK(has(dead.output, "no: "));  // where a health check's output is kept
        CHECK(has(dead.output, "absent: nobody listens there"));
        const auto off = place.write("off", R"({"admin": {"address": "off", "socket": "off"}})");
        CHECK(run_reprise({"status", "--config", off}).exit_status == 3);
    }

    TEST_CASE(
        "a proxy that was killed leaves a socket that the next one replaces; a live one is left") {
        const temp_dir place;
        auto settings = basic_settings();
        settings["admin"]["socket"] = place.file("sock");
        proxy_process first{settings};
        const auto file = place.write("settings", settings.dump());
        const auto second = run_reprise({"--config", file});
        CHECK(second.exit_status == 1);
        CHECK(has(second.errors, "admin.socket"));
        CHECK(has(second.errors, "somebody listens there already"));
        first.kill();
        CHECK(run_reprise({"check", file}).exit_status == 0);
        {
            const proxy_process next{settings};
            CHECK(run_reprise({"status", "--socket", place.file("sock")}).exit_status == 0);
        }
        CHECK_FALSE(std::filesystem::exists(place.file("sock")));
    }

    TEST_CASE("a proxy that answers at all addresses is asked here, by a name that it takes") {
        const temp_dir place;
        fake_origin there;  // in its place, since nothing here may listen beyond loopback
        there.on("/healthz", ok("", "ok"));
        const auto port = std::to_string(there.port());
        const json settings{{"admin", {{"address", "0.0.0.0:" + port}, {"socket", "off"}}}};
        const auto life = run_reprise(
            {"status", "--alive", "--config", place.write("settings.json", settings.dump())});
        CAPTURE(life.output);
        REQUIRE(there.count("/healthz") == 1);
        CHECK(there.requests("/healthz").front().get("Host") == "localhost:" + port);
        CHECK(life.exit_status == 0);
    }

    TEST_CASE("what answers in the proxy's place hears no token unless it is wanted, and is no "
              "proxy without traffic") {
        const temp_dir place;
        fake_origin there;
        there.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(answer("503 Service Unavailable", "", "busy just now\n"));
        });
        const json settings{{"admin",
                             {{"address", "127.0.0.1:" + std::to_string(there.port())},
                              {"socket", "off"},
                              {"token_file", place.write("token", "secret-of-some-length\n")}}}};
        const auto config = place.write("settings.json", settings.dump());
        const auto watched = run_reprise({"status", "--watch", "--times", "1", "--config", config});
        CHECK(watched.exit_status == 1);
        CHECK(has(watched.errors, "503: busy just now"));
        CHECK(watched.output.empty());
        CHECK(run_reprise({"status", "--alive", "--config", config}).exit_status == 3);
        CHECK(run_reprise({"purge", "http://a.test/", "--config", config}).exit_status == 1);
        CHECK_FALSE(there.requests("/stats").front().has("Authorization"));
        CHECK_FALSE(there.requests("/healthz").front().has("Authorization"));
        const auto all = there.requests();
        CHECK(std::count_if(all.begin(), all.end(), [](const origin_request& one) {
                  return one.method == "POST" &&
                         one.get("Authorization") == "Bearer secret-of-some-length";
              }) == 1);
    }

    TEST_CASE("each command's help has what is common to all") {
        for (const auto* const name : {"status", "explain", "purge", "reload", "check"}) {
            CAPTURE(name);
            const auto help = run_reprise({name, "--help"});
            CHECK(help.exit_status == 0);
            CHECK(has(help.output, "--config"));
        }
        const temp_dir place;
        const auto off = place.write("off", R"({"admin": {"address": "off", "socket": "off"}})");
        for (const auto& words : {std::vector<std::string>{"--config", off, "status", "--alive"},
                                  std::vector<std::string>{"status", "--config", off, "--alive"}}) {
            const auto said = run_reprise(words);
            CHECK(said.exit_status == 3);
            CHECK(has(said.output, "admin.socket and admin.address are both off"));
        }
    }

    TEST_CASE("a command that there is not is told with the one that was meant") {
        for (const auto* const name : {"stats", "statsu", "sttaus"}) {
            CAPTURE(name);
            const auto said = run_reprise({name});
            CHECK(said.exit_status == 2);
            CHECK(has(said.errors, "there is no command " + std::string{name}));
            CHECK(has(said.errors, "did you mean status?"));
        }
        CHECK(has(run_reprise({"explian"}).errors, "did you mean explain?"));
        const auto unlike = run_reprise({"frobnicate"});
        CHECK(unlike.exit_status == 2);
        CHECK(has(unlike.errors, "there is no command frobnicate"));
        CHECK_FALSE(has(unlike.errors, "did you mean"));
    }

    TEST_CASE("check is --check-config by another name") {
        const temp_dir place;
        const auto wrong = place.write("wrong", R"({"threads": "many"})");
        const auto checked = run_reprise({"check", wrong});
        CHECK(checked.exit_status == 1);
        CHECK(checked.errors == run_reprise({"--check-config", "--config", wrong}).errors);
        CHECK(run_reprise({"check", "--config", REPRISE_SOURCE_DIR "/config/example.json"})
                  .exit_status == 0);
    }
}
