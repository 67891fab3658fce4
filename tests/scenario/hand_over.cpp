// SIGUSR2: the next program takes over, whatever it is, and nobody is the worse for it
// (proxy/server/UPGRADE.md).

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/waiting.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

TEST_SUITE("scenario/hand_over") {

    using namespace reprise::tests;

    namespace {

    namespace fs = std::filesystem;

    /// The program under test where it may be replaced.
    class installed {
    public:
        installed() { fs::copy_file(program_under_test(), path()); }
        [[nodiscard]] std::string path() const { return directory_.file("reprise"); }
        /// The same program by another version.
        void put_version(std::string_view version) {
            auto bytes = read_file(program_under_test());
            for (const std::string_view text :
                 {std::string_view{"reprise 0.1.0\0", 14}, std::string_view{"\0000.1.0\0", 7}}) {
                for (auto at = bytes.find(text); at != std::string::npos;
                     at = bytes.find(text, at + 1)) {
                    bytes.replace(at + text.size() - 6, 5, version);
                }
            }
            put(bytes);
        }
        /// What is none: a script.
        void put_script(std::string_view text) { put("#!/bin/sh\n" + std::string{text} + "\n"); }

    private:
        // As a package manager does: the program that runs keeps its file.
        void put(std::string_view bytes) {
            const auto made = directory_.write("reprise.new", bytes);
            fs::permissions(made, fs::perms::owner_all);
            fs::rename(made, path());
        }
        temp_dir directory_;
    };

    struct upgrade_world {
        fake_origin origin;
        temp_dir directory;
        installed program;
        json settings = storing_settings();
        std::optional<proxy_process> proxy;

        explicit upgrade_world(bool with_disk = true) {
            if (with_disk) {
                settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
            }
            settings["access"]["purge_clients"] = {"127.0.0.1"};
            settings["timeouts"]["hand_over"] = "20s";
            proxy.emplace(settings, start_options{.program = program.path()});
            if (with_disk) {
                REQUIRE(eventually([&] { return disk_state() == "ready"; }));
            }
        }
        [[nodiscard]] std::string disk_state() const {
            return proxy->stats().at("disk").at("state").get<std::string>();
        }
        /// Once more: the program before has ended, of which the one that took over hears a moment later.
        [[nodiscard]] bool upgrade_again() {
            return eventually([&] { return proxy->upgrade(); });
        }
        /// Empty: none answered. The admin of a program that has just given way may end before it does.
        [[nodiscard]] std::string version() const {
            const auto said = proxy->admin("/stats");
            return said.status == 200 ? json::parse(said.body).at("version").get<std::string>()
                                      : std::string{};
        }
        [[nodiscard]] response get(std::string_view path) const {
            return proxy->get(origin.url(path));
        }
        [[nodiscard]] response purge(std::string_view path, std::string_view fields = "") const {
            return proxy->ask("PURGE", origin.url(path), fields);
        }
        /// A connection that is kept, and asked once.
        [[nodiscard]] client kept(std::string_view path) {
            client one{proxy->port()};
            CHECK(ask(one, "GET", path).status == 200);
            return one;
        }
        [[nodiscard]] response ask(client& by, std::string_view method, std::string_view path) {
            return by.ask(absolute_request(method, origin.url(path)));
        }
        void put(const std::string& path, const std::string& body = "hello") {
            origin.on(path, ok("Cache-Control: max-age=600\r\nCache-Tag: all\r\n", body));
        }
        void fill(unsigned objects) {
            for (unsigned i = 0; i < objects; ++i) {
                put("/" + std::to_string(i), body_of(i));
                CHECK(get("/" + std::to_string(i)).status == 200);
            }
        }
        static std::string body_of(unsigned number) {
            return std::string(1000 + 37 * number, static_cast<char>('a' + number % 26));
        }
    };

    /// Clients that ask without end, and what went wrong.
    class load {
    public:
        load(const upgrade_world& w, unsigned objects) : objects_{objects} {
            for (unsigned i = 0; i < 4; ++i) {
                threads_.emplace_back([this, &w, i] { run(w, i, i % 2 == 0); });
            }
        }
        ~load() { stop(); }
        load(const load&) = delete;
        load& operator=(const load&) = delete;
        void stop() {
            stopping_ = true;
            for (auto& one : threads_) {
                if (one.joinable()) {
                    one.join();
                }
            }
        }
        [[nodiscard]] unsigned asked() const { return asked_; }
        [[nodiscard]] std::vector<std::string> failures() const {
            const std::lock_guard lock{guard_};
            return failures_;
        }

    private:
        void run(const upgrade_world& w, unsigned seed, bool keeps) {
            std::optional<client> one;
            for (unsigned i = seed; !stopping_; i = (i * 7 + 3) % 1009) {
                const auto number = i % objects_;
                try {
                    if (!one) {
                        one.emplace(w.proxy->port());
                    }
                    const auto got = one->ask(
                        absolute_request("GET",
                                         w.origin.url("/" + std::to_string(number)),
                                         keeps ? "" : "Connection: close\r\n"));
                    if (got.status != 200 || !got.complete() ||
                        got.body != upgrade_world::body_of(number)) {
                        note("status " + std::to_string(got.status) + ", " +
                             std::string{to_string(got.end)});
                    }
                    if (!keeps || lower(got.get("Connection")) == "close") {
                        one.reset();
                    }
                } catch (const std::exception& failed) {
                    note(failed.what());
                    one.reset();
                }
                ++asked_;
                // Some hundred requests a second are load enough, and leave the programs the processor.
                std::this_thread::sleep_for(std::chrono::milliseconds{5});
            }
        }
        void note(std::string what) {
            const std::lock_guard lock{guard_};
            failures_.push_back(std::move(what));
        }

        const unsigned objects_;
        std::atomic<bool> stopping_{false};
        std::atomic<unsigned> asked_{0};
        mutable std::mutex guard_;
        std::vector<std::string> failures_;
        std::vector<std::thread> threads_;
    };

    bool is_miss(const response& answer) {
        return answer.status == 200 && !is_hit(answer);
    }

    std::string all(const std::vector<std::string>& lines) {
        std::string out;
        for (const auto& one : lines) {
            out += one + "\n";
        }
        return out;
    }

    }  // namespace

    TEST_CASE("to the next version and back under load: no request fails, no hit is lost") {
        constexpr unsigned objects = 40;
        upgrade_world w;
        w.fill(objects);
        CHECK(w.version() == "0.1.0");
        const auto asked_of_origin = w.origin.asked();
        load clients{w, objects};
        for (const std::string version : {"0.1.1", "0.1.0", "0.1.1"}) {
            CAPTURE(version);
            const auto before = clients.asked();
            REQUIRE(eventually([&] { return clients.asked() > before + 50; }));
            w.program.put_version(version);
            REQUIRE(w.upgrade_again());
            CHECK(eventually([&] { return w.version() == version; }));
            for (unsigned i = 0; i < objects; ++i) {
                CHECK(hit_body(w.get("/" + std::to_string(i))) == upgrade_world::body_of(i));
            }
            REQUIRE(w.proxy->have_others_ended());
            CHECK(eventually([&] { return w.disk_state() == "ready"; }));
        }
        clients.stop();
        CHECK_MESSAGE(clients.failures().empty(), all(clients.failures()));
        CHECK(clients.asked() > 200);
        CHECK(w.origin.asked() == asked_of_origin);
        CHECK(w.proxy->errors().find("[error]") == std::string::npos);
    }

    TEST_CASE("what is under way is finished by the program that began it") {
        upgrade_world w;
        auto& go = w.origin.make_gate();
        w.origin.on("/slow", [&](origin_request&, origin_connection& connection) {
            connection.send(raw_head("200 OK", "Content-Length: 10\r\n") + "first");
            go.wait();
            connection.send("later");
        });
        auto slow = w.proxy->connect(absolute_request("GET", w.origin.url("/slow")));
        auto got = slow.read_head();
        slow.read_body(got, 5);
        REQUIRE(w.proxy->upgrade());
        CHECK(w.proxy->is_running());
        go.open();
        slow.read_body(got, 10);
        CHECK(got.body == "firstlater");
        slow.connection().close();
        CHECK(w.proxy->have_others_ended());
    }

    TEST_CASE("a kept connection gets one answer more, and is told that it is the last") {
        upgrade_world w{false};
        w.put("/a");
        auto one = w.kept("/a");
        REQUIRE(w.proxy->upgrade());
        // The old program says that it drains, perhaps a moment before each of its threads has heard.
        CHECK(eventually([&] {
            const auto got = w.ask(one, "GET", "/a");
            REQUIRE(got.status == 200);
            return lower(got.get("Connection")) == "close";
        }));
        CHECK(one.is_closed_by_proxy());
    }

    TEST_CASE("a purge reaches both programs, whichever is asked") {
        upgrade_world w;
        for (const std::string path : {"/before", "/new", "/old", "/new/prefix", "/old/prefix"}) {
            w.put(path);
            CHECK(w.get(path).status == 200);
        }
        std::vector<client> olds;
        for (unsigned i = 0; i < 5; ++i) {
            olds.push_back(w.kept("/before"));
        }
        CHECK(w.purge("/before").status == 200);
        REQUIRE(w.proxy->upgrade());
        CHECK(is_miss(w.get("/before")));

        CHECK(w.purge("/new").status == 200);
        CHECK(is_miss(w.ask(olds[0], "GET", "/new")));
        CHECK(w.ask(olds[1], "PURGE", "/old").status == 200);
        CHECK(is_miss(w.get("/old")));

        CHECK(w.purge("/new/", "Purge: prefix\r\n").status == 200);
        CHECK(is_miss(w.ask(olds[2], "GET", "/new/prefix")));
        const auto by_old = absolute_request("PURGE", w.origin.url("/old/"), "Purge: prefix\r\n");
        CHECK(olds[3].ask(by_old).status == 200);
        CHECK(is_miss(w.get("/old/prefix")));

        // What an unsafe method invalidates by the old one is gone from the new one too.
        w.put("/posted");
        // Both programs may accept yet.
        REQUIRE(eventually([&] { return is_hit(w.get("/posted")); }));
        CHECK(olds[4].ask(absolute_request("POST", w.origin.url("/posted"), "", "x")).status ==
              200);
        CHECK(eventually([&] { return !is_hit(w.get("/posted")); }));
        olds.clear();  // one that had its answer before the old program knew that it drains is kept
        CHECK(w.proxy->have_others_ended());
        // And the journal has all of it: nothing is back in the program after that.
        CHECK(w.purge("/old").status == 200);
        REQUIRE(w.upgrade_again());
        CHECK(is_miss(w.get("/old")));
    }

    TEST_CASE("what was asked for once before is stored at its next request") {
        upgrade_world w{false};
        w.settings.erase("admission");
        w.proxy.emplace(w.settings, start_options{.program = w.program.path()});
        w.put("/a");
        CHECK_FALSE(cache_status_of(w.get("/a")).stored);
        REQUIRE(w.proxy->upgrade());
        REQUIRE(w.proxy->have_others_ended());  // who accepts for a moment yet
        CHECK(cache_status_of(w.get("/a")).stored);
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("what the last day's figures are goes over, though counts begin anew") {
        upgrade_world w;
        w.fill(5);
        for (int i = 0; i < 5; ++i) {
            CHECK(is_hit(w.get("/0")));
        }
        const auto day = [&] { return w.proxy->stats().at("summary").at("last_day"); };
        REQUIRE(eventually([&] { return day().at("requests") == 10; }));
        CHECK(day().at("period").get<std::string>().ends_with(", since the start"));
        for (int upgrade = 1; upgrade <= 2; ++upgrade) {
            REQUIRE(w.upgrade_again());
            REQUIRE(w.proxy->have_others_ended());
            CHECK(figure(w.proxy->stats(), "/summary/requests") == 0);
            CHECK(day().at("requests") == 9 + upgrade);
            CHECK(day().at("hits") == 4 + upgrade);
            CHECK(day().at("period").get<std::string>().ends_with("before an upgrade"));
            CHECK(is_hit(w.get("/0")));
            REQUIRE(eventually([&] { return day().at("requests") == 10 + upgrade; }));
        }
        const auto hour = json::parse(w.proxy->admin("/history").body).at("hour");
        std::int64_t sum = 0;
        for (const auto& one : hour.at("requests")) {
            sum += one.get<std::int64_t>();
        }
        CHECK(sum == 12);
    }

    TEST_CASE("where the next program's settings are bad the old one goes on, and says so") {
        upgrade_world w;
        w.put("/a");
        CHECK(w.get("/a").status == 200);
        w.proxy->rewrite_settings_text(R"({"memory": {"size": "much"}})");
        CHECK_FALSE(w.proxy->upgrade());
        CHECK(w.proxy->says("memory.size"));
        CHECK(is_hit(w.get("/a")));
        w.put("/b");
        CHECK(w.get("/b").status == 200);
        CHECK(eventually([&] { return figure(w.proxy->stats(), "/disk/objects") == 2; }));
        w.proxy->rewrite_settings(w.settings);
        CHECK(w.proxy->upgrade());
        CHECK(is_hit(w.get("/b")));
    }

    TEST_CASE("where the next program fails the old one goes on, and so does its store") {
        upgrade_world w;
        w.put("/a");
        CHECK(w.get("/a").status == 200);
        for (const std::string script : {"exit 3", "kill -9 $$", "exec /nonexistent"}) {
            CAPTURE(script);
            w.program.put_script(script);
            CHECK_FALSE(w.proxy->upgrade());
            CHECK(is_hit(w.get("/a")));
        }
        fs::remove(w.program.path());
        CHECK_FALSE(w.proxy->upgrade());
        CHECK(w.proxy->says("cannot start " + w.program.path()));
        w.program.put_version("0.1.1");
        CHECK(w.version() == "0.1.0");
        w.put("/b");
        CHECK(w.get("/b").status == 200);
        CHECK(eventually([&] { return figure(w.proxy->stats(), "/disk/objects") == 2; }));
        CHECK(w.disk_state() == "ready");
        CHECK(w.purge("/a").status == 200);
        CHECK(w.proxy->upgrade());
        CHECK(eventually([&] { return w.version() == "0.1.1"; }));
        CHECK(is_hit(w.get("/b")));
        CHECK_FALSE(is_hit(w.get("/a")));
    }

    TEST_CASE("a next program that dies with the store in its hands gives it back") {
        upgrade_world w;
        w.put("/a");
        CHECK(w.get("/a").status == 200);
        // An address that somebody else has is found out by the start itself, behind the taking over.
        auto other = w.settings;
        other["listeners"].push_back({{"address", "127.0.0.1:" + std::to_string(w.origin.port())}});
        w.proxy->rewrite_settings(other);
        CHECK_FALSE(w.proxy->upgrade());
        CHECK(w.proxy->says("ended before it was serving"));
        CHECK(eventually([&] { return w.disk_state() == "ready"; }));
        w.put("/b");
        CHECK(w.get("/b").status == 200);
        CHECK(eventually([&] { return figure(w.proxy->stats(), "/disk/objects") == 2; }));
        CHECK(w.purge("/b").status == 200);
        w.proxy->rewrite_settings(w.settings);
        CHECK(w.proxy->upgrade());
        CHECK(is_hit(w.get("/a")));
        CHECK_FALSE(is_hit(w.get("/b")));
    }

    TEST_CASE("SIGUSR2 while the program before lasts is refused") {
        upgrade_world w{false};
        w.put("/a");
        auto holds = w.kept("/a");
        const auto before = w.proxy->pid();
        REQUIRE(w.proxy->upgrade());
        w.proxy->signal(SIGUSR2);
        CHECK(w.proxy->says("has not ended yet"));
        REQUIRE(w.proxy->says("serves; draining"));
        REQUIRE(::kill(before, SIGUSR2) == 0);
        CHECK(w.proxy->says("upgrade: this program is ending: not now"));
        REQUIRE(::kill(before, SIGHUP) == 0);
        CHECK(w.proxy->says("settings: this program is ending: not loaded anew"));
        CHECK(w.get("/a").status == 200);
        holds.connection().close();
        CHECK(w.proxy->have_others_ended());
        CHECK(w.upgrade_again());
    }

    TEST_CASE(
        "a program that has been taken over from is told to end again and again, and ends well") {
        upgrade_world w;
        for (int round = 0; round < 5; ++round) {
            const auto before = w.proxy->pid();
            REQUIRE(w.upgrade_again());
            siginfo_t ended{};
            const auto until = std::chrono::steady_clock::now() + patience;
            while (ended.si_pid == 0 && std::chrono::steady_clock::now() < until) {
                ::kill(before, SIGTERM);
                ::waitid(P_PID, static_cast<id_t>(before), &ended, WEXITED | WNOHANG | WNOWAIT);
            }
            CHECK(ended.si_code == CLD_EXITED);
            CHECK(ended.si_status == 0);
            CHECK(w.proxy->have_others_ended());
        }
    }

    TEST_CASE("a socket that a service manager bound is used, by all threads, and handed over") {
        fake_origin origin;
        origin.on("/a", ok("Cache-Control: max-age=600\r\n", "hello"));
        const int bound = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        REQUIRE(::bind(bound, reinterpret_cast<const sockaddr*>(&at), size) == 0);
        REQUIRE(::listen(bound, 100) == 0);
        REQUIRE(::getsockname(bound, reinterpret_cast<sockaddr*>(&at), &size) == 0);
        auto settings = storing_settings();
        settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
        proxy_process proxy{settings,
                            start_options{.run_by = {"bash",
                                                     "-c",
                                                     "exec 3<&" + std::to_string(bound) +
                                                         "; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"",
                                                     "bash"}}};
        CHECK(proxy.port() == ntohs(at.sin_port));
        for (unsigned i = 0; i < 20; ++i) {
            CHECK(proxy.get(origin.url("/a")).body == "hello");
        }
        REQUIRE(proxy.upgrade());
        CHECK(proxy.get(origin.url("/a")).body == "hello");
        ::close(bound);
    }

    TEST_CASE("the admin's Unix socket goes over too, and its file with it") {
        upgrade_world w{false};
        const auto socket = w.directory.file("admin.sock");
        w.settings["admin"]["socket"] = socket;
        w.proxy.emplace(w.settings, start_options{.program = w.program.path()});
        const auto version = [&] {
            const auto told = run_reprise({"status", "--json", "--socket", socket});
            return told.exit_status == 0 ? json::parse(told.output).at("version").get<std::string>()
                                         : told.output;
        };
        const auto before = version();
        w.program.put_version("0.1.1");
        REQUIRE(w.proxy->upgrade());
        CHECK(before == "0.1.0");
        CHECK(eventually([&] { return version() == "0.1.1"; }));  // the old one's may answer yet
        CHECK(w.proxy->have_others_ended());
        CHECK(version() == "0.1.1");
        w.program.put_script("exit 1");
        CHECK_FALSE(w.proxy->upgrade());
        CHECK(version() == "0.1.1");
        // One that has the socket in its hands already: the file stays whose it is.
        w.program.put_version("0.1.2");
        auto other = w.settings;
        other["admin"]["address"] = "127.0.0.1:" + std::to_string(w.origin.port());
        other["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(w.proxy->port());
        w.proxy->rewrite_settings_text(other.dump());
        CHECK_FALSE(w.proxy->upgrade());
        CHECK(version() == "0.1.1");
        w.proxy.reset();
        CHECK(!fs::exists(socket));
    }

    TEST_CASE("the file of a socket that the next settings have elsewhere goes with the program") {
        upgrade_world w{false};
        const auto socket = w.directory.file("admin.sock");
        w.settings["admin"]["socket"] = socket;
        w.proxy.emplace(w.settings, start_options{.program = w.program.path()});
        auto other = w.settings;
        other["admin"]["socket"] = w.directory.file("other.sock");
        w.proxy->rewrite_settings(other);
        REQUIRE(w.proxy->upgrade());
        CHECK(w.proxy->have_others_ended());
        CHECK(eventually([&] { return !fs::exists(socket); }));
        CHECK(fs::exists(w.directory.file("other.sock")));
    }

    TEST_CASE("a listener's address grows and shrinks at its port") {
        upgrade_world w{false};
        w.put("/a");
        const auto port = std::to_string(w.proxy->port());
        for (const auto* host : {"0.0.0.0:", "127.0.0.1:"}) {
            CAPTURE(host);
            auto holds = w.kept("/a");
            auto other = w.settings;
            other["listeners"][0]["address"] = host + port;
            w.proxy->rewrite_settings_text(other.dump());
            REQUIRE(w.upgrade_again());
            CHECK(w.ask(holds, "GET", "/a").status == 200);
            holds.connection().close();
            CHECK(w.proxy->have_others_ended());
            CHECK(w.get("/a").status == 200);
        }
    }

    TEST_CASE("a service manager is told who it is now, and the numbers' file says it too") {
        temp_dir directory;
        const auto path = directory.file("notify");
        const int hears = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        REQUIRE(path.size() < sizeof at.sun_path);
        path.copy(at.sun_path, path.size());
        REQUIRE(::bind(hears, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
        const auto heard = [hears] {
            std::array<char, 200> bytes{};
            std::string got;
            REQUIRE(eventually([&] {
                const auto size = ::recv(hears, bytes.data(), bytes.size(), 0);
                got.assign(bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
                return size > 0;
            }));
            return got;
        };
        proxy_process proxy{basic_settings(),
                            start_options{.environment = {"NOTIFY_SOCKET=" + path}}};
        CHECK(heard() == "READY=1");
        REQUIRE(proxy.upgrade());
        CHECK(heard() == "MAINPID=" + std::to_string(proxy.pid()));
        CHECK(proxy.have_others_ended());
        CHECK(read_file(proxy.directory().file("pid")) == std::to_string(proxy.pid()) + "\n");
        // A drain as long as this is cut by no TimeoutStopSec; what counts is the one in force.
        auto longer = basic_settings();
        longer["timeouts"]["drain"] = "10m";
        proxy.reload(longer);
        CHECK(proxy.stop() == 0);
        CHECK(heard() == "STOPPING=1\nEXTEND_TIMEOUT_USEC=660000000");
        CHECK_FALSE(fs::exists(proxy.directory().file("pid")));
        ::close(hears);
    }
}
