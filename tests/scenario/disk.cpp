// The store on disk, as clients and operators see it: what outlives a restart, what must not, and
// bodies that memory never held.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"
#include "tests/support/waiting.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/stat.h>

TEST_SUITE("scenario/disk") {

    using namespace reprise::tests;

    namespace {

    /// One origin, one directory, and proxies on it one after the other.
    struct disk_world {
        fake_origin origin;
        temp_dir directory;
        json settings = storing_settings();
        std::optional<proxy_process> proxy;

        explicit disk_world(std::string_view size = "64MiB") {
            settings["disk"] = disk_of_all_admitted(directory.file("store"), std::string{size});
            settings["access"]["purge_clients"] = {"127.0.0.1"};
            start();
        }
        void start() {
            proxy.emplace(settings);
            REQUIRE(eventually([&] { return state() == "ready"; }));
        }
        /// Begun anew: a body above 1 MiB is on disk alone.
        void start_with_little_memory() {
            settings["memory"] = {{"size", "8MiB"}, {"max_object", "1MiB"}};
            proxy.reset();
            start();
        }
        void restart() {
            CHECK(proxy->stop() == 0);
            start();
        }
        /// No time to write anything.
        void crash() {
            proxy->kill();
            proxy.emplace(settings);
            REQUIRE(eventually([&] { return state() == "ready"; }));
        }
        [[nodiscard]] std::string state() const {
            return proxy->stats().at("disk").at("state").get<std::string>();
        }
        /// What was taken so far is in the files.
        void wait_for_writing(std::int64_t objects) const {
            REQUIRE(eventually([&] { return figure(proxy->stats(), "/disk/objects") >= objects; }));
        }
        [[nodiscard]] response get(std::string_view path, std::string_view fields = "") const {
            return proxy->get(origin.url(path), fields);
        }
        [[nodiscard]] response ask(std::string_view method,
                                   std::string_view path,
                                   std::string_view fields = "") const {
            return proxy->ask(method, origin.url(path), fields);
        }
        void put(const std::string& path, const std::string& body, const std::string& fields = "") {
            origin.on(path, [body, fields](origin_request& request, origin_connection& connection) {
                const auto own = "Cache-Control: max-age=600\r\nETag: \"one\"\r\n" + fields;
                connection.send(request.has("If-None-Match") ? raw_head("304 Not Modified", own)
                                                             : ok(own, body));
            });
        }
    };

    std::string long_text(std::size_t size) {
        std::string text(size, ' ');
        for (std::size_t i = 0; i < size; ++i) {
            text[i] = static_cast<char>('a' + (i / 7 + i / 4096) % 26);
        }
        return text;
    }

    }  // namespace

    TEST_CASE("what was stored is a hit after a restart") {
        disk_world w;
        w.put("/a", "hello", "Content-Language: da\r\n");
        CHECK(w.get("/a").body == "hello");
        w.restart();
        const auto hit = w.get("/a");
        CHECK(is_hit(hit));
        CHECK(hit.body == "hello");
        CHECK(hit.get("Content-Language") == "da");
        CHECK(hit.has("Age"));
        CHECK(w.get("/a", "If-None-Match: \"one\"\r\n").status == 304);
        CHECK(w.get("/a", "Range: bytes=1-2\r\n").body == "el");
        CHECK(w.ask("HEAD", "/a").get("Content-Length") == "5");
        CHECK(w.get("/a", "Cache-Control: only-if-cached\r\n").status == 200);
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("what was written is a hit after a crash") {
        disk_world w;
        w.put("/a", "hello");
        CHECK(w.get("/a").status == 200);
        w.wait_for_writing(1);
        w.crash();
        CHECK(is_hit(w.get("/a")));
        CHECK(w.origin.count("/a") == 1);
    }

    TEST_CASE("a passing error for one variant hides no other that the disk alone has") {
        disk_world w;
        w.origin.on("/v", [](origin_request& request, origin_connection& connection) {
            connection.send(
                request.get("Accept-Language") == "da"
                    ? ok("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n", "da")
                    : answer("503 Service Unavailable", "", "broken"));
        });
        CHECK(w.get("/v", "Accept-Language: da\r\n").body == "da");
        w.settings["freshness"] = {{"negative", "60s"}};
        w.restart();
        const auto error = w.get("/v", "Accept-Language: sv\r\n");
        CHECK(error.status == 503);
        CHECK_FALSE(cache_status_of(error).stored);
        CHECK(is_hit(w.get("/v", "Accept-Language: da\r\n")));
    }

    TEST_CASE("variants are told apart after a restart") {
        disk_world w;
        w.origin.on("/v", [](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\nVary: Accept-Language\r\n",
                               "in " + request.get("Accept-Language")));
        });
        CHECK(w.get("/v", "Accept-Language: da\r\n").body == "in da");
        CHECK(w.get("/v", "Accept-Language: sv\r\n").body == "in sv");
        w.restart();
        const auto da = w.get("/v", "Accept-Language: da\r\n");
        const auto sv = w.get("/v", "Accept-Language: sv\r\n");
        CHECK(is_hit(da));
        CHECK(da.body == "in da");
        CHECK(is_hit(sv));
        CHECK(sv.body == "in sv");
        CHECK_FALSE(is_hit(w.get("/v", "Accept-Language: nb\r\n")));
        CHECK(w.origin.count("/v") == 3);
    }

    TEST_CASE("a body too large for memory is a hit from disk, whole and in ranges") {
        disk_world w;
        const auto body = long_text(5 * mib + 12'345);
        w.start_with_little_memory();
        w.put("/large", body);
        CHECK((w.get("/large").body == body));
        w.wait_for_writing(1);
        for (int turn = 0; turn < 2; ++turn) {
            CHECK((hit_body(w.get("/large")) == body));
            const auto last = w.get("/large", "Range: bytes=-10\r\n");
            CHECK(last.status == 206);
            CHECK(last.body == body.substr(body.size() - 10));
            const auto middle = w.get("/large", "Range: bytes=1048570-1048590\r\n");
            CHECK(middle.get("Content-Range") ==
                  "bytes 1048570-1048590/" + std::to_string(body.size()));
            CHECK(middle.body == body.substr(1048570, 21));
            CHECK(w.get("/large", "Range: bytes=99999999-\r\n").status == 416);
            CHECK(w.get("/large", "If-None-Match: \"one\"\r\n").status == 304);
            CHECK(w.ask("HEAD", "/large").get("Content-Length") == std::to_string(body.size()));
            CHECK((w.get("/large", "Range: bytes=0-1,500000-500006\r\n").body == body));
            w.restart();
        }
        CHECK(w.origin.count("/large") == 1);
    }

    TEST_CASE("a small variant in memory gives way to a large one of another Vary, on disk alone") {
        const std::string reload = "Cache-Control: no-cache\r\n";
        const auto large = long_text(100'000);
        disk_world w;
        w.settings["memory"] = {{"size", "8MiB"}, {"max_object", "1KiB"}};
        w.restart();
        w.origin.on("/a", ok("Cache-Control: max-age=600\r\nVary: X-Foo\r\n", "first"));
        CHECK(w.get("/a").body == "first");
        CHECK(hit_body(w.get("/a")) == "first");
        w.origin.on("/a", ok("Cache-Control: max-age=600\r\nETag: \"2\"\r\n", large));
        CHECK((w.get("/a", reload).body == large));
        CHECK(eventually([&] {
            const auto next = w.get("/a");
            CHECK((next.body == large));
            return is_hit(next);
        }));
        w.origin.on("/a", answer("404 Not Found", "Cache-Control: no-store\r\n", "none"));
        CHECK(w.get("/a", reload).body == "none");
        CHECK(w.get("/a").body == "none");
        w.restart();
        CHECK(w.get("/a").body == "none");
    }

    TEST_CASE("a body that memory has no room to promise is a hit from disk") {
        // A quarter of memory is promised at most, so this is below max_object and never fits.
        const auto body = long_text(3 * mib);
        for (const std::string when : {"admission", "eviction"}) {
            CAPTURE(when);
            disk_world w;
            w.settings["memory"] = {{"size", "8MiB"}, {"max_object", "4MiB"}};
            w.settings["disk"]["write"] = when;
            w.restart();
            w.put("/a", body);
            CHECK((w.get("/a").body == body));
            w.wait_for_writing(1);
            CHECK((hit_body(w.get("/a")) == body));
            CHECK(w.origin.count("/a") == 1);
        }
    }

    TEST_CASE("what memory turns away for what it has goes to disk, unless used objects alone do") {
        for (const std::string mode : {"admission", "selective eviction", "eviction"}) {
            CAPTURE(mode);
            disk_world w;
            w.settings["memory"] = {{"size", "1MiB"}, {"policy", "w-tinylfu"}};
            w.settings["disk"]["write"] = mode == "admission" ? "admission" : "eviction";
            w.settings["disk"]["selective"] = mode == "selective eviction";
            w.restart();
            constexpr int popular = 18;
            for (int i = 0; i < popular; ++i) {
                w.put("/popular" + std::to_string(i), long_text(50'000));
            }
            w.put("/stranger", long_text(200'000));
            for (int turn = 0; turn < 4; ++turn) {
                for (int i = 0; i < popular; ++i) {
                    CHECK(w.get("/popular" + std::to_string(i)).status == 200);
                }
            }
            const auto at_first = mode == "admission" ? popular : 0;
            w.wait_for_writing(at_first);
            CHECK((w.get("/stranger").body == long_text(200'000)));
            CHECK(figure(w.proxy->stats(), figure_name::store_objects) == popular);
            if (mode == "eviction") {
                CHECK_FALSE(is_hit(w.get("/stranger")));
                continue;
            }
            w.wait_for_writing(at_first + 1);
            CHECK(is_hit(w.get("/stranger")));
            CHECK(w.origin.count("/stranger") == 1);
        }
    }

    TEST_CASE("by the defaults the disk takes first requests while it has room, and then no more") {
        const temp_dir directory;
        auto settings = basic_settings();
        settings["memory"] = {{"size", "1MiB"}};
        settings["disk"] = {{"path", directory.file("store")}, {"size", "16MiB"}};
        world w{settings};
        w.origin.otherwise([](origin_request&, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n", std::string(50'000, 'x')));
        });
        const auto puts = [&] { return figure(w.proxy.stats(), "/disk/puts"); };
        // How many are put while these are asked for, the writer keeping up.
        const auto put_of = [&](int from, int to, int times) {
            const auto before = puts();
            for (int i = from; i < to; ++i) {
                for (int n = 0; n < times; ++n) {
                    (void)w.get("/" + std::to_string(i));
                }
                if (i % 20 == 0) {
                    CHECK(eventually(
                        [&] { return figure(w.proxy.stats(), "/disk/queued_bytes") == 0; }));
                }
            }
            return puts() - before;
        };
        const auto written = put_of(0, 100, 1);
        CHECK(written > 60);
        const auto spared = w.proxy.stats()["summary"]["writes_spared"];
        CHECK(spared["objects"] == 100 - written);
        CHECK(spared["bytes"] == (100 - written) * 50'000);
        (void)put_of(100, 500, 1);  // it holds 300
        CHECK(put_of(500, 700, 1) == 0);
        CHECK(put_of(700, 800, 3) > 10);
    }

    TEST_CASE("by the defaults an orderly end writes what memory holds") {
        const temp_dir directory;
        auto settings = basic_settings();
        settings["disk"] = {{"path", directory.file("store")}, {"size", "128MiB"}};
        settings["timeouts"]["drain"] = "20s";  // with less there are two seconds for the writing
        fake_origin origin;
        origin.otherwise([](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n", "body of " + request.target));
        });
        std::optional<proxy_process> proxy{std::in_place, settings};
        const auto get = [&](int i) { return proxy->get(origin.url("/" + std::to_string(i))); };
        for (int i = 0; i < 300; ++i) {
            CHECK_FALSE(is_hit(get(i)));
            CHECK((i % 2 == 0 || is_hit(get(i))));
        }
        const auto large = patterned(20 * mib);
        origin.on("/large", ok("Cache-Control: max-age=600\r\n", large));
        CHECK_FALSE(is_hit(proxy->get(origin.url("/large"))));
        CHECK(is_hit(proxy->get(origin.url("/large"))));
        CHECK(figure(proxy->stats(), "/disk/puts") == 0);
        CHECK(proxy->stop() == 0);
        proxy.emplace(settings);
        REQUIRE(eventually([&] { return proxy->stats()["disk"]["state"] == "ready"; }));
        CHECK(figure(proxy->stats(), "/disk/objects") >= 301);
        for (int i = 0; i < 300; i += 7) {
            CHECK(is_hit(get(i)));
        }
        CHECK((hit_body(proxy->get(origin.url("/large"))) == large));
    }

    TEST_CASE("a body above memory.max_object is hit again and again without entering memory") {
        disk_world w;
        w.settings["memory"]["max_object"] = "1KiB";
        w.restart();
        const auto body = long_text(4000);
        w.put("/large", body);
        w.put("/small", "hello");
        for (const std::string path : {"/large", "/small"}) {
            CHECK(w.get(path).status == 200);
        }
        w.wait_for_writing(2);
        w.restart();
        for (int i = 0; i < 4; ++i) {
            CHECK(w.get("/small").body == "hello");
            CHECK(hit_body(w.get("/large")) == body);
        }
        CHECK(figure(w.proxy->stats(), figure_name::store_objects) == 1);
        CHECK(w.origin.count("/large") == 1);
    }

    TEST_CASE("a body of unknown length that outgrows memory goes on to disk") {
        disk_world w;
        w.start_with_little_memory();
        const auto body = long_text(3 * mib + 77);
        w.origin.on("/chunked", [&](origin_request&, origin_connection& connection) {
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=600\r\nTransfer-Encoding: chunked\r\n"));
            for (std::size_t at = 0; at < body.size(); at += 50'000) {
                const auto piece = body.substr(at, 50'000);
                char line[20];
                std::snprintf(line, sizeof line, "%zx\r\n", piece.size());
                connection.send(line + piece + "\r\n");
            }
            connection.send("0\r\n\r\n");
        });
        CHECK((w.get("/chunked").body == body));
        w.wait_for_writing(1);
        const auto hit = w.get("/chunked");
        CHECK(is_hit(hit));
        CHECK(hit.get("Content-Length") == std::to_string(body.size()));
        CHECK((hit.body == body));
        CHECK(w.origin.count("/chunked") == 1);
    }

    TEST_CASE("a purge holds after a crash: by URL, prefix and tag") {
        disk_world w;
        for (const auto* path : {"/a", "/b/1", "/b/2", "/c", "/kept"}) {
            w.put(path, path, std::string{path} == "/c" ? "Surrogate-Key: red\r\n" : "");
            CHECK(w.get(path).status == 200);
        }
        w.wait_for_writing(5);
        CHECK(w.ask("PURGE", "/a").status == 200);
        CHECK(w.ask("PURGE", "/b/", "Purge: prefix\r\n").status == 200);
        CHECK(w.ask("PURGE", "/c", "Surrogate-Key: red\r\n").status == 200);
        w.crash();
        for (const auto* path : {"/a", "/b/1", "/b/2", "/c"}) {
            CAPTURE(path);
            CHECK(w.get(path, "Cache-Control: only-if-cached\r\n").status == 504);
        }
        CHECK(is_hit(w.get("/kept")));
    }

    TEST_CASE("a soft purge holds after a crash, and what it met is validated") {
        disk_world w;
        w.put("/a", "hello");
        CHECK(w.get("/a").status == 200);
        w.wait_for_writing(1);
        CHECK(w.ask("PURGE", "/a", "Purge: soft\r\n").status == 200);
        w.crash();
        const auto next = w.get("/a");
        CHECK(cache_status_of(next).fwd == "stale");
        CHECK(cache_status_of(next).fwd_status == "304");
        CHECK(next.body == "hello");
        CHECK(is_hit(w.get("/a")));
    }

    TEST_CASE("an unsafe method ends what is on disk too") {
        disk_world w;
        w.put("/a", "hello");
        CHECK(w.get("/a").status == 200);
        w.wait_for_writing(1);
        w.restart();
        CHECK(w.ask("POST", "/a").status == 200);
        CHECK(w.get("/a", "Cache-Control: only-if-cached\r\n").status == 504);
        w.restart();
        CHECK(w.get("/a", "Cache-Control: only-if-cached\r\n").status == 504);
    }

    TEST_CASE("a validation gives the record a newer head") {
        disk_world w;
        w.origin.on("/a", [](origin_request& request, origin_connection& connection) {
            const bool asks = request.has("If-None-Match");
            const std::string own =
                "ETag: \"one\"\r\nCache-Control: max-age=" + std::string{asks ? "600" : "0"} +
                "\r\nX-Turn: " + std::string{asks ? "second" : "first"} + "\r\n";
            connection.send(asks ? raw_head("304 Not Modified", own) : ok(own, "hello"));
        });
        CHECK(w.get("/a").get("X-Turn") == "first");
        w.wait_for_writing(1);
        w.restart();
        CHECK(w.get("/a").get("X-Turn") == "second");
        w.restart();
        const auto hit = w.get("/a");
        CHECK(is_hit(hit));
        CHECK(hit.get("X-Turn") == "second");
        CHECK(hit.body == "hello");
        CHECK(w.origin.count("/a") == 2);
    }

    TEST_CASE("a body that is damaged on disk never reaches a client") {
        disk_world w;
        w.start_with_little_memory();
        const auto large = long_text(3 * mib);
        const auto small = long_text(30'000);
        w.put("/large", large);
        w.put("/small", small);
        CHECK((w.get("/large").body == large));
        CHECK((w.get("/small").body == small));
        w.wait_for_writing(2);
        CHECK(w.proxy->stop() == 0);
        w.proxy.reset();
        for (const auto& file : std::filesystem::directory_iterator{w.directory.file("store")}) {
            auto bytes = read_file(file.path());
            // Every copy of these texts, one byte each.
            for (auto at = bytes.find(small.substr(0, 64)); at != std::string::npos;
                 at = bytes.find(small.substr(0, 64), at + 1)) {
                bytes[at + 10'000 < bytes.size() ? at + 10'000 : at] ^= 1;
            }
            const auto far = large.substr(2 * mib, 64);
            for (auto at = bytes.find(far); at != std::string::npos; at = bytes.find(far, at + 1)) {
                bytes[at] ^= 1;
            }
            std::ofstream{file.path(), std::ios::binary} << bytes;
        }
        w.start();
        CHECK((w.get("/small").body == small));
        CHECK((w.get("/large").body == large));
        CHECK(w.origin.count("/small") == 2);
        CHECK(figure(w.proxy->stats(), "/disk/damaged") >= 1);
    }

    TEST_CASE("what is made on disk is for the proxy's own user alone") {
        struct no_umask {  // it would hide a mode that lets others in
            mode_t usual = ::umask(0);
            ~no_umask() { ::umask(usual); }
        } modes_as_asked_for;
        disk_world w;
        w.put("/a", "hello");
        CHECK(w.get("/a").status == 200);
        w.wait_for_writing(1);
        CHECK(w.ask("PURGE", "/a").status == 200);
        CHECK(w.proxy->stop() == 0);
        const auto mode_of = [](const std::filesystem::path& path) {
            struct stat facts {};
            REQUIRE(::lstat(path.c_str(), &facts) == 0);
            return facts.st_mode & 07777;
        };
        const std::filesystem::path store = w.directory.file("store");
        CHECK(mode_of(store) == 0700);
        int files = 0;
        for (const auto& one : std::filesystem::directory_iterator{store}) {
            CAPTURE(one.path().string());
            CHECK(mode_of(one.path()) == 0600);
            ++files;
        }
        CHECK(files >= 5);  // superblocks, lock, journal and a segment
    }

    TEST_CASE("a second process is refused, and is told why") {
        disk_world w;
        const auto file = w.directory.write("second.json", [&] {
            auto other = w.settings;
            other["listeners"][0]["address"] = "127.0.0.1:0";
            other["admin"]["address"] = "off";
            return other.dump();
        }());
        const auto second = run_reprise({"--config", file});
        CHECK(second.exit_status != 0);
        CHECK(second.errors.find(w.directory.file("store")) != std::string::npos);
    }

    TEST_CASE("the files take no more room than disk.size") {
        disk_world w{"16MiB"};
        const auto body = long_text(100'000);
        w.origin.otherwise(sends(ok("Cache-Control: max-age=600\r\n", body)));
        for (int i = 0; i < 400; ++i) {
            CHECK(w.get("/many/" + std::to_string(i)).status == 200);
        }
        // A flood may be skipped; what comes when the writer has caught up is not.
        REQUIRE(eventually([&] { return figure(w.proxy->stats(), "/disk/queued_bytes") == 0; }));
        CHECK(w.get("/many/last").status == 200);
        w.restart();
        std::uintmax_t bytes = 0;
        for (const auto& file : std::filesystem::directory_iterator{w.directory.file("store")}) {
            bytes += file.file_size();
        }
        CHECK(bytes <= 16 * mib);
        CHECK(is_hit(w.get("/many/last")));
    }
}
