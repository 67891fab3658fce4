// Origins of which some take longer than others, and an operator who minds that.

#include "tests/scenario/world.hpp"

#include <chrono>
#include <string>
#include <thread>

TEST_SUITE("scenario/slow_origins") {

    using namespace reprise::tests;

    namespace {

    constexpr std::chrono::seconds of_slow{1};

    /// An origin that takes a second for what is below /slow, and no time for all else. What a test
    /// relies on is that a second is more than most of the others take, however busy the machine is.
    struct two_origins : world {
        explicit two_origins(const json& settings) : world{settings} {
            origin.otherwise([](origin_request& request, origin_connection& to) {
                if (request.target.starts_with("/slow")) {
                    std::this_thread::sleep_for(of_slow);
                }
                to.send(ok("Cache-Control: max-age=600\r\nETag: \"1\"\r\n",
                           std::string(100 * kib, 'x')));
            });
        }
        void ask(const std::string& path, int times) const {
            for (; times > 0; --times) {
                CHECK(get(path).body.size() == 100 * kib);
            }
        }
        /// Whether it is stored: asking for it costs no fetch.
        bool has(const std::string& path) {
            const auto before = origin.count(path);
            ask(path, 1);
            return origin.count(path) == before;
        }
    };

    json settings_for(const std::string& objective) {
        auto settings = storing_settings();
        settings["memory"] = {{"size", "1MiB"}, {"max_object", "200KiB"}, {"policy", "gdsf"}};
        settings["caching"] = {{"objective", objective}};
        return settings;
    }

    }  // namespace

    TEST_CASE("the objective decides whether what is asked for often stays, or what takes long") {
        for (const std::string objective : {"requests", "seconds"}) {
            CAPTURE(objective);
            two_origins w{settings_for(objective)};
            w.ask("/slow", 1);
            w.ask("/often", 3);
            for (int i = 0; i < 14; ++i) {
                w.ask("/once/" + std::to_string(i), 1);
            }
            // The last that are asked, so that asking for one changes nothing for the other.
            if (objective == "requests") {
                CHECK(w.has("/often"));
                CHECK_FALSE(w.has("/slow"));
            } else {
                CHECK(w.has("/slow"));
            }
        }
    }

    TEST_CASE("what hits spared clients is counted, and goes on counting after a validation") {
        two_origins w{settings_for("seconds")};
        const auto spared = [&] { return w.proxy.stats()["wait_spared_seconds"].get<double>(); };
        w.ask("/slow", 1);
        CHECK(spared() == 0);
        w.ask("/slow", 2);
        // A request is counted when it has been answered, which is a moment later.
        CHECK(eventually([&] { return spared() > 1.9 * static_cast<double>(of_slow.count()); }));
        const auto twice = spared();
        // A hit spares the same to the last digit however long the validation takes: the fetch counts.
        CHECK(w.get("/slow", "Cache-Control: no-cache\r\n").complete());
        const auto before = w.origin.count("/slow");
        w.ask("/slow", 1);
        CHECK(w.origin.count("/slow") == before);
        CHECK(eventually([&] { return spared() == 1.5 * twice; }));
        CHECK(w.proxy.stats()["summary"]["spared"]["seconds"] == spared());
    }

    TEST_CASE("a client who reads slowly does not make an object dear") {
        auto settings = settings_for("seconds");
        settings["memory"] = {{"size", "64MiB"}, {"max_object", "16MiB"}, {"policy", "gdsf"}};
        settings["timeouts"]["client_body"] = "300s";
        world w{settings};
        const std::string body(12 * mib, 'b');
        w.origin.on("/a", ok("Cache-Control: max-age=600\r\n", body));
        const auto uptime = [&] { return w.proxy.stats()["uptime_seconds"].get<double>(); };
        const auto began = uptime();
        auto slow = w.proxy.connect();
        slow.connection().shrink_receive_buffer(64 << 10);
        slow.send(w.request("/a"));
        auto answer = slow.read_head();
        // No more comes from the origin: the proxy waits for its client.
        double came = -1, since = 0;
        REQUIRE(eventually([&] {
            const auto stats = w.proxy.stats();
            const auto now = stats["uptime_seconds"].get<double>();
            if (const auto more = stats["origins"]["received_bytes"].get<double>(); more != came) {
                came = more;
                since = now;
            }
            return now > since + 1;
        }));
        REQUIRE(came < static_cast<double>(body.size()));
        constexpr double stall = 4;
        const auto from = uptime();
        REQUIRE(eventually([&] { return uptime() > from + stall; }));
        slow.read_body(answer, body.size());
        CHECK(answer.complete());
        const auto all = uptime() - began;
        REQUIRE(eventually([&] { return w.proxy.stats()["store"]["objects"].get<int>() == 1; }));
        CHECK(is_hit(w.get("/a")));
        double spared = 0;
        REQUIRE(eventually([&] {
            spared = w.proxy.stats()["wait_spared_seconds"].get<double>();
            return spared > 0;
        }));
        CHECK(0.95 * spared < all - stall);  // a step of a wait may be a twentieth too much
    }
}
