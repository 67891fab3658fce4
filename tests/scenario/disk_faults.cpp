// A disk that is full, fails or takes seconds, under a proxy that goes on: memory's hits do not
// notice, nothing wrong is sent, what was promised is kept, /stats tells, and the tier comes back.

#include "tests/support/disk_faults.hpp"

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"
#include "tools/sized_body.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

TEST_SUITE("scenario/disk_faults") {

    using namespace reprise::tests;

    namespace {

    // Memory takes bodies up to 1 KiB in these worlds, so that a larger one is on disk alone.
    constexpr std::size_t small = 500, large = 4000;

    struct faulty_world {
        fake_origin origin;
        disk_faults faults;
        temp_dir directory;
        json settings = storing_settings();
        std::optional<proxy_process> proxy;

        faulty_world() {
            settings["memory"] = {{"size", "16MiB"}, {"max_object", "1KiB"}};
            settings["disk"] = disk_of_all_admitted(directory.file("store"), "64MiB");
            settings["access"]["purge_clients"] = {"127.0.0.1"};
            // "/7/4000": 4,000 bytes that the 7 makes.
            origin.otherwise([](origin_request& request, origin_connection& connection) {
                const auto slash = request.target.find('/', 1);
                connection.send(ok("Cache-Control: max-age=600\r\n",
                                   body(std::stoul(request.target.substr(1)),
                                        std::stoul(request.target.substr(slash + 1)))));
            });
            start();
        }
        void start() {
            proxy.emplace(settings, faults.environment());
            CHECK(becomes("ready"));
        }

        /// Begun anew: what is asked for waits in memory, and goes to disk when it leaves.
        void start_by_the_defaults() {
            proxy.reset();
            settings = basic_settings();
            settings["disk"] = {{"path", directory.file("store")}, {"size", "256MiB"}};
            settings["timeouts"]["drain"] = "20s";  // of which five are for what memory leaves
            start();
        }

        [[nodiscard]] static std::string body(std::uint64_t key, std::size_t size) {
            std::string out(size, ' ');
            reprise::tools::fill_body(key, 0, out);
            return out;
        }
        [[nodiscard]] static std::string path(std::uint64_t key, std::size_t size) {
            return "/" + std::to_string(key) + "/" + std::to_string(size);
        }
        /// The answer, which must be right whatever the disk does.
        response get(std::uint64_t key, std::size_t size) const {
            auto answer = proxy->get(origin.url(path(key, size)));
            CHECK(answer.status == 200);
            CHECK(answer.complete());
            CHECK(answer.body == body(key, size));
            return answer;
        }
        [[nodiscard]] std::string state() const {
            return proxy->stats().at("disk").at("state").get<std::string>();
        }
        [[nodiscard]] bool becomes(const std::string& wanted) const {
            return eventually([&] { return state() == wanted; }, 6 * patience);
        }
        void wait_for_objects(std::int64_t objects) const {
            REQUIRE(eventually([&] { return figure(proxy->stats(), "/disk/objects") >= objects; }));
        }
        /// The large ones of the keys 1 to `objects` are on disk.
        void fill(std::uint64_t objects) const {
            for (std::uint64_t key = 1; key <= objects; ++key) {
                get(key, large);
            }
            wait_for_objects(static_cast<std::int64_t>(objects));
        }
    };

    /// Asks for new objects until `condition` holds: somebody has to want the disk.
    template <class Condition>
    bool asking_for_more(const faulty_world& w, std::uint64_t& next, Condition&& condition) {
        return eventually(
            [&] {
                w.get(next++, large);
                return condition();
            },
            6 * patience);
    }

    struct latencies {
        double p50_us = 0, p99_us = 0, most_us = 0;
    };
    latencies latencies_of_hits(const faulty_world& w, std::uint64_t key, int count) {
        std::vector<double> took;
        auto connection = w.proxy->connect();
        const auto request = absolute_request("GET", w.origin.url(faulty_world::path(key, small)));
        for (int i = 0; i < count; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            const auto answer = connection.ask(request);
            took.push_back(
                std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
                    .count());
            CHECK(is_hit(answer));
        }
        std::sort(took.begin(), took.end());
        return {took[took.size() / 2], took[took.size() * 99 / 100], took.back()};
    }

    }  // namespace

    TEST_CASE(
        "a disk that is full or fails is read from, told of, and written to again when well") {
        for (const int error : {ENOSPC, EIO, EROFS}) {
            CAPTURE(error);
            faulty_world w;
            w.fill(20);
            std::uint64_t next = 21;
            w.faults.set().write_error = error;
            CHECK(asking_for_more(w, next, [&] { return w.state() == "reading"; }));
            CHECK(figure(w.proxy->stats(), "/disk/write_errors") > 0);
            CHECK_FALSE(w.proxy->stats().at("disk").at("trouble").get<std::string>().empty());
            for (std::uint64_t old = 1; old <= 20; ++old) {
                CHECK(is_hit(w.get(old, large)));
            }
            w.faults.heal();
            CHECK(asking_for_more(w, next, [&] { return w.state() == "ready"; }));
            const auto fresh = next++;
            w.get(fresh, large);
            CHECK(eventually([&] { return is_hit(w.get(fresh, large)); }));
        }
    }

    TEST_CASE("what was written before writing failed is a hit after a restart") {
        faulty_world w;
        w.fill(50);
        std::uint64_t next = 51;
        w.faults.set().write_error = ENOSPC;
        CHECK(asking_for_more(w, next, [&] { return w.state() == "reading"; }));
        CHECK(w.proxy->stop() == 0);
        w.faults.heal();
        w.start();
        for (std::uint64_t old = 1; old <= 50; ++old) {
            CHECK(is_hit(w.get(old, large)));
        }
    }

    TEST_CASE("what can't be read is fetched again, whole and right") {
        faulty_world w;
        w.fill(20);
        w.faults.set().read_error = EIO;
        for (std::uint64_t key = 1; key <= 20; ++key) {
            CHECK_FALSE(is_hit(w.get(key, large)));
        }
        CHECK(figure(w.proxy->stats(), "/disk/read_errors") > 0);
        w.faults.heal();
        for (std::uint64_t key = 1; key <= 20; ++key) {
            CHECK(eventually([&] { return is_hit(w.get(key, large)); }));
        }
    }

    TEST_CASE("a large object that could not be read for a while is a hit again") {
        faulty_world w;
        constexpr std::uint64_t key = 1;
        constexpr std::size_t larger = 12u << 20;  // more than the sockets between take
        w.get(key, larger);
        w.wait_for_objects(1);
        CHECK(is_hit(w.get(key, larger)));
        const auto url = w.origin.url(faulty_world::path(key, larger));
        auto connection = w.proxy->connect(absolute_request("GET", url));
        CHECK(is_hit(connection.read_head()));
        w.faults.set().uncached = 1;
        w.faults.set().read_error = EIO;
        (void)connection.read_to_end();
        REQUIRE(w.faults.set().failed > 0);
        w.faults.heal();
        CHECK(is_hit(w.get(key, larger)));
    }

    TEST_CASE("a purge that was answered 200 holds, whatever the disk did") {
        // A disk that takes no writes, and one that takes them and keeps none for sure.
        for (const int write_error : {EIO, 0}) {
            CAPTURE(write_error);
            faulty_world w;
            w.fill(10);
            const auto purge = [&](std::uint64_t key) {
                return w.proxy->connect(
                    absolute_request("PURGE", w.origin.url(faulty_world::path(key, large))));
            };
            w.faults.set().write_error = write_error;
            w.faults.set().sync_error = EIO;
            std::vector<client> purging;
            for (std::uint64_t key = 1; key <= 5; ++key) {
                purging.push_back(purge(key));
            }
            for (auto& one : purging) {
                CHECK(one.read("PURGE").status == 504);
            }
            CHECK(w.faults.set().failed > 0);
            // Kept or not, this process does not serve them any more.
            for (std::uint64_t key = 1; key <= 5; ++key) {
                CHECK_FALSE(is_hit(w.get(key, large)));
            }
            w.faults.heal();
            REQUIRE(w.becomes("ready"));
            CHECK(purge(6).read("PURGE").status == 200);
            CHECK(w.proxy->stop() == 0);
            w.start();
            // That the sixth is kept says so of those before it.
            for (std::uint64_t key = 1; key <= 10; ++key) {
                CAPTURE(key);
                CHECK(is_hit(w.get(key, large)) == (key > 6));
            }
        }
    }

    TEST_CASE("what is asked for faster than a slow disk writes it becomes a hit") {
        faulty_world w;
        const auto body = patterned(mib);
        w.origin.on("/wanted", ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n", body));
        const auto before = figure(w.proxy->stats(), "/disk/puts");
        const auto ask = [&] {
            auto answer = w.proxy->get(w.origin.url("/wanted"));
            CHECK(answer.body == body);
            return answer;
        };
        w.faults.set().delay_ms = 600'000;  // until it was asked for while it is written
        CHECK(eventually([&] { return cache_status_of(ask()).detail == "being-written"; }));
        w.faults.set().delay_ms = 100;
        CHECK(eventually([&] { return is_hit(ask()); }));
        // Each copy would have hidden the one before it.
        CHECK(figure(w.proxy->stats(), "/disk/puts") - before < 4);
    }

    TEST_CASE("an admitted object that comes faster than the disk takes it waits for the disk") {
        faulty_world w;
        w.settings["disk"]["size"] = "256MiB";
        w.proxy.reset();
        w.start();
        const long_body body{40 * mib};
        for (const bool is_told_length : {true, false}) {
            CAPTURE(is_told_length);
            const std::string path = is_told_length ? "/told" : "/chunked";
            w.origin.on(path, [&](origin_request&, origin_connection& connection) {
                const std::string fields = "Cache-Control: max-age=600\r\n";
                if (!is_told_length) {
                    connection.send(raw_head("200 OK", fields + "Transfer-Encoding: chunked\r\n"));
                } else {
                    connection.send(raw_head(
                        "200 OK",
                        fields + "Content-Length: " + std::to_string(body.size()) + "\r\n"));
                }
                for (std::uint64_t at = 0; at < body.size();) {
                    const auto piece = body.piece(at, mib);
                    if (!connection.send(is_told_length ? piece : chunk(piece), 6 * patience)) {
                        return;
                    }
                    at += piece.size();
                }
                if (!is_told_length) {
                    connection.send("0\r\n\r\n");
                }
            });
            const auto ask = [&] {
                client one{w.proxy->port()};
                one.send(absolute_request("GET", w.origin.url(path)));
                long_body_check check{body};
                auto got = one.read("GET", [&](std::string_view bytes) { check.feed(bytes); });
                CHECK(check.is_whole());
                return got;
            };
            w.faults.set().delay_ms = 10;
            CHECK_FALSE(is_hit(ask()));
            w.faults.heal();
            CHECK(eventually([&] { return figure(w.proxy->stats(), "/disk/queued_bytes") == 0; }));
            CHECK(is_hit(ask()));
            CHECK(w.origin.count(path) == 1);
        }
    }

    TEST_CASE("a disk that takes seconds holds up no hit in memory, and is skipped by the rest") {
        faulty_world w;
        constexpr std::uint64_t in_memory = 1'000'000;
        std::uint64_t next = 1;
        for (; next <= 200; ++next) {
            w.get(next, large);
        }
        w.get(in_memory, small);
        w.wait_for_objects(201);
        const int hits = sanitized ? 300 : 3000;
        const auto well = latencies_of_hits(w, in_memory, hits);

        // Others ask for what is on disk and for what has to be written, all the while.
        w.faults.set().delay_ms = 3000;
        std::atomic<bool> over{false};
        std::vector<std::jthread> others;
        for (unsigned i = 0; i < 8; ++i) {
            others.emplace_back([&, i] {
                for (std::uint64_t turn = 0; !over; ++turn) {
                    const auto key = turn % 2 == 0 ? 1 + (i * 25 + turn / 2) % 200
                                                   : 2'000'000 + i * 100'000 + turn;
                    const auto answer = w.proxy->get(w.origin.url(faulty_world::path(key, large)));
                    if (!answer.complete() || answer.body != faulty_world::body(key, large)) {
                        ADD_FAIL_CHECK_AT(__FILE__, __LINE__, "a wrong answer for " << key);
                    }
                }
            });
        }
        REQUIRE(eventually([&] { return w.faults.set().delayed > 0; }));
        const auto slow = latencies_of_hits(w, in_memory, hits);
        const auto state = w.state();
        over = true;
        w.faults.heal();
        others.clear();
        MESSAGE("memory hits, us: p50 " << well.p50_us << ", p99 " << well.p99_us << ", most "
                                        << well.most_us << "; with a disk of 3 s a call (state "
                                        << state << "): p50 " << slow.p50_us << ", p99 "
                                        << slow.p99_us << ", most " << slow.most_us);
        CHECK(w.becomes("ready"));
        CHECK(eventually([&] { return is_hit(w.get(1, large)); }, 6 * patience));
    }

    TEST_CASE("purges that wait for a disk that hangs hold up no page of the admin listener") {
        faulty_world w;
        w.proxy.reset();
        w.settings["admin"]["token_file"] = w.directory.write("token", "t0ken\n");
        w.start();
        w.get(1, large);
        w.wait_for_objects(1);
        w.faults.set().delay_ms = 600'000;
        std::vector<client> purging;
        for (std::uint64_t key = 1; key <= 4; ++key) {
            auto& one = purging.emplace_back(w.proxy->admin_port());
            one.send("POST /purge?url=" + w.origin.url(faulty_world::path(key, large)) +
                     " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(w.proxy->admin_port()) +
                     "\r\nAuthorization: Bearer t0ken\r\nContent-Length: 0\r\n\r\n");
        }
        // All four are carried out before the first has been answered.
        REQUIRE(eventually([&] { return figure(w.proxy->stats(), "/purges/by_kind/url") == 4; }));
        CHECK(w.proxy->admin("/healthz").status == 200);
        CHECK(w.proxy->admin("/readyz").status == 200);
        CHECK(w.proxy->admin("/metrics").status == 200);
        CHECK(w.proxy->ask("GET", w.origin.url(faulty_world::path(1, small))).status == 200);
        for (auto& one : purging) {
            const auto answer = one.read("POST");
            CHECK(answer.status == 504);
            CHECK(answer.body.find("the purge holds") == 0);
        }
        w.faults.heal();
        CHECK(w.becomes("ready"));
        CHECK_FALSE(is_hit(w.get(1, large)));
    }

    TEST_CASE("a proxy whose disk never answers ends all the same, and says what was not written") {
        faulty_world w;
        w.get(1, large);
        w.wait_for_objects(1);
        w.faults.set().delay_ms = 600'000;
        w.get(2, large);
        REQUIRE(eventually([&] { return w.faults.set().delayed > 0; }));
        w.get(3, large);
        w.proxy->signal(SIGTERM);
        CHECK(w.proxy->wait(2 * patience) == 1);
        w.proxy->kill();  // it ended as it should
        const auto said = w.proxy->errors();
        CHECK(said.find("not waited for any longer: disk.path") != std::string::npos);
        CHECK(said.find("not written") != std::string::npos);
    }

    TEST_CASE("an end without time for all of memory writes the most valuable, and ends well") {
        faulty_world w;
        w.start_by_the_defaults();
        const auto path = [](int i) { return "/" + std::to_string(i) + "/1000000"; };
        const auto get = [&](int i) { return w.proxy->get(w.origin.url(path(i))); };
        for (int i = 1; i <= 60; ++i) {
            for (int times = 0; times < (i % 12 == 0 ? 6 : 2); ++times) {
                (void)get(i);
            }
        }
        w.faults.set().delay_ms = 50;
        w.proxy->signal(SIGTERM);
        CHECK(w.proxy->wait(3 * patience) == 0);
        CHECK(w.proxy->says("there was no time to write"));
        w.faults.heal();
        w.start();
        for (int i = 12; i <= 60; i += 12) {
            CHECK(is_hit(get(i)));
        }
    }

    TEST_CASE("told twice to end, a proxy leaves what memory holds") {
        faulty_world w;
        w.start_by_the_defaults();
        for (int i = 1; i <= 40; ++i) {
            (void)w.proxy->get(w.origin.url("/" + std::to_string(i) + "/1000000"));
        }
        w.faults.set().delay_ms = 50;
        w.proxy->signal(SIGTERM);
        REQUIRE(eventually([&] { return w.faults.set().delayed > 0; }));
        w.proxy->signal(SIGTERM);
        CHECK(w.proxy->wait() == 0);
        CHECK(w.proxy->says("there was no time to write"));
    }

    TEST_CASE("a store whose superblock is damaged costs the store at most, never the start") {
        faulty_world w;
        w.get(1, large);
        w.wait_for_objects(1);
        CHECK(w.proxy->stop() == 0);
        const auto damage = [&](const char* name) {
            const auto path = w.directory.file("store") + "/" + name;
            std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
            file.seekp(9);
            file.put('\x01');
            REQUIRE(file.flush());
        };
        damage("store");
        w.start();
        CHECK(is_hit(w.get(1, large)));
        CHECK(eventually([&] {
            return w.proxy->errors().find("a copy of the superblock was damaged") !=
                   std::string::npos;
        }));
        CHECK(w.proxy->stop() == 0);
        damage("store");
        damage("store.copy");
        w.proxy.emplace(w.settings, w.faults.environment());
        CHECK(w.state() == "off");
        CHECK(w.proxy->says("turned off"));
        CHECK_FALSE(is_hit(w.get(1, large)));
        CHECK_FALSE(is_hit(w.get(2, small)));
        CHECK(is_hit(w.get(2, small)));  // memory
        CHECK(w.proxy->ask("PURGE", w.origin.url(faulty_world::path(2, small))).status == 200);
        CHECK_FALSE(is_hit(w.get(2, small)));
    }

    TEST_CASE("a proxy whose disk does not answer can be stopped") {
        faulty_world w;
        w.get(1, large);
        w.wait_for_objects(1);
        w.faults.set().delay_ms = 5000;
        w.get(2, large);
        REQUIRE(eventually([&] { return w.faults.set().delayed > 0; }));
        w.proxy->signal(SIGTERM);
        w.faults.heal();
        CHECK(w.proxy->stop() == 0);
    }
}
