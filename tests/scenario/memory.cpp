// What a peak took is given back to the system.

#include "tests/scenario/world.hpp"

#include <string>
#include <vector>

TEST_SUITE("scenario/memory") {

    using namespace reprise::tests;

    TEST_CASE("what thousands of half heads took is given back when they have gone") {
        auto settings = basic_settings();
        settings["limits"]["client_connections"] = 4'000;
        settings["limits"]["connections_per_client"] = 4'000;
        world w{settings};
        const auto resident = [&] {
            return w.proxy.stats()["process"]["resident_bytes"].get<std::int64_t>();
        };
        const auto before = resident();
        std::string half = "GET http://a.example/ HTTP/1.1\r\n";
        for (int i = 0; i < 90; ++i) {
            half += "X-" + std::to_string(i) + ": " + std::string(70, 'a') + "\r\n";
        }
        constexpr std::size_t count = 3'000;
        std::vector<client> all;
        for (std::size_t i = 0; i < count; ++i) {
            all.push_back(w.proxy.connect(half));
        }
        const auto taken = static_cast<std::int64_t>(half.size() * count);
        REQUIRE(eventually([&] { return resident() >= before + taken; }));
        all.clear();
        if (sanitized) {
            return;  // their heap is not ours
        }
        // It is looked for every ten seconds at most.
        CHECK(eventually([&] { return resident() < before + taken / 2; }, 6 * patience));
    }
}
