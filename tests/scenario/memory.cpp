// What a peak took is given back to the system.

#include "tests/scenario/world.hpp"

#include <string>
#include <vector>

TEST_SUITE("scenario/memory") {

    using namespace reprise::tests;

    // Less than two pages each: what stays of each of them, wherever it lies, would hold all.
    TEST_CASE("what thousands of half heads took is given back when they have gone") {
        auto settings = basic_settings();
        settings["limits"]["client_connections"] = 9'000;
        settings["limits"]["connections_per_client"] = 9'000;
        settings["timeouts"]["client_head"] = "10m";  // the first waits for the last
        world w{settings};
        const auto resident = [&] {
            return w.proxy.stats()["process"]["resident_bytes"].get<std::int64_t>();
        };
        const auto before = resident();
        std::string half = "GET http://a.example/ HTTP/1.1\r\n";
        for (int i = 0; i < 34; ++i) {
            half += "X-" + std::to_string(i) + ": " + std::string(70, 'a') + "\r\n";
        }
        const std::size_t count = sanitized ? 1'000 : 8'000;
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
        CHECK(eventually([&] { return resident() < before + taken / 5; }, 6 * patience));
    }

    TEST_CASE("what the bodies of a few clients took is given back within a minute") {
        constexpr std::size_t bodies = 20, each = 6 * mib;
        auto settings = storing_settings();
        settings["memory"] = {{"size", 256 * mib}, {"max_object", 2 * each}};
        settings["timeouts"]["client_body"] = "300s";
        const std::string body(each, 'b');
        world w{settings};
        w.origin.otherwise([&](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n",
                               request.target == "/small" ? std::string(2'000, 's') : body));
        });
        const auto figures = [&] { return w.proxy.stats(); };
        const auto resident = [&] { return figures()["process"]["resident_bytes"].get<double>(); };
        const auto uptime = [&] { return figures()["uptime_seconds"].get<double>(); };
        const auto before = resident();
        // Each is sent to somebody who does not read, and is stored no more.
        std::vector<client> slow;
        for (std::size_t i = 0; i < bodies; ++i) {
            const auto path = "/" + std::to_string(i);
            CHECK(w.get(path).body.size() == each);
            auto& one = slow.emplace_back(w.proxy.connect());
            one.connection().shrink_receive_buffer(64 << 10);
            one.send(w.request(path));
            REQUIRE(!one.read_raw(1).empty());
            CHECK(w.ask("DELETE", path).status == 200);
        }
        constexpr auto taken = static_cast<double>(bodies * each);
        REQUIRE(resident() > before + 0.8 * taken);
        CHECK(w.get("/small").complete());  // it stays, above all that
        if (sanitized) {
            return;  // their heap is not ours
        }
        // Whoever looks for what could be given back has looked meanwhile, in vain.
        const auto now = uptime();
        REQUIRE(eventually([&] { return uptime() > now + 12; }, 3 * patience));
        slow.clear();
        CHECK(eventually([&] { return resident() < before + taken / 4; }, 9 * patience / 2));
    }
}
