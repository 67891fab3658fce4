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
        const auto twice = spared();
        CHECK(twice > 1.9 * static_cast<double>(of_slow.count()));
        // It says the same to the last digit however long the validation takes: the fetch counts.
        CHECK(w.get("/slow", "Cache-Control: no-cache\r\n").complete());
        CHECK(spared() == twice);
        const auto before = w.origin.count("/slow");
        w.ask("/slow", 1);
        CHECK(w.origin.count("/slow") == before);
        CHECK(spared() == 1.5 * twice);
        CHECK(w.proxy.stats()["summary"]["spared"]["seconds"] == spared());
    }
}
