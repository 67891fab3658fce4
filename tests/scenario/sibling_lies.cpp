// Siblings that are gone, hang, say that they have everything, or send a request back: no request
// fails for it.

#include "tests/scenario/liar.hpp"

#include <atomic>
#include <random>

TEST_SUITE("scenario/sibling_lies") {

    using namespace reprise::tests;

    namespace {

    constexpr int objects = 100;

    std::string path_of(int i) {
        return "/" + std::to_string(i);
    }

    void ask_for_all(fleet& f, std::size_t node) {
        for (int i = 0; i < objects; ++i) {
            const auto got = f[node].get(f.origin.url(path_of(i)));
            CHECK(got.status == 200);
            CHECK(got.body == "body of " + path_of(i));
        }
    }

    /// A digest in Squid's form, which has no checksum: these bits are its mask.
    std::string squid_digest_of(const std::string& mask) {
        std::string out(128, '\0');
        const auto put = [&out](std::size_t at, std::size_t bytes, std::size_t value) {
            for (std::size_t i = 0; i < bytes; ++i) {
                out[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
            }
        };
        put(0, 2, 5);
        put(2, 2, 3);
        put(4, 4, mask.size());  // entries, of eight bits
        put(16, 4, mask.size());
        put(20, 1, 8);
        put(21, 1, 4);
        return out + mask;
    }

    json squid_at(std::uint16_t port) {
        auto peer = peer_at("liar", port);
        peer["protocol"] = "squid";
        return peer;
    }

    }  // namespace

    TEST_CASE("a sibling that was killed is not missed") {
        fleet f{2};
        f.serve_everything();
        ask_for_all(f, 0);
        REQUIRE(f.holds(1, "n0", objects));
        f[0].kill();
        ask_for_all(f, 1);
        CHECK(f.asked(1, "n0", "true-hit") == 0);
        CHECK(f.asked(1, "n0", "failed") > 0);
    }

    TEST_CASE("a sibling whose digest has all bits on is not asked") {
        fleet f{1};
        f.serve_everything();
        fake_origin as;
        as.on("/squid-internal-periodic/store_digest",
              ok("", squid_digest_of(std::string(1000, '\xff'))));
        f.tell(0, json::array({squid_at(as.port())}));
        REQUIRE(eventually([&] { return f.text(0, "/siblings/trouble/liar") == "saturated"; }));
        ask_for_all(f, 0);
        CHECK(as.count(path_of(0)) == 0);
        CHECK(f.asked(0, "liar", "false-hit") == 0);
    }

    TEST_CASE("a sibling whose digest is random bits is asked by chance, and less and less") {
        fleet f{1};
        f.serve_everything();
        std::mt19937 random{6};
        std::string mask(1000, '\0');
        for (auto& byte : mask) {
            byte = static_cast<char>(random());
        }
        fake_origin as;
        as.on("/squid-internal-periodic/store_digest", ok("", squid_digest_of(mask)));
        as.otherwise([](auto&, auto& c) { c.send(answer("504 Not Here", "", "no")); });
        f.tell(0, json::array({squid_at(as.port())}));
        REQUIRE(eventually([&] { return f.text(0, "/siblings/state/liar") == "current"; }));
        for (int i = 0; i < 10 * objects; ++i) {
            CHECK(f[0].get(f.origin.url(path_of(i))).body == "body of " + path_of(i));
        }
        const auto stats = f[0].stats();
        const auto named = figure(stats, "/siblings/named/liar");
        CHECK(named > 20);  // a sixteenth of them is expected
        CHECK(named < 140);
        CHECK(f.asked(0, "liar", "false-hit") < named);
        CHECK(f.asked(0, "liar", "false-hit") + figure(stats, "/siblings/held_back/liar") == named);
    }

    TEST_CASE("a sibling that accepts and says nothing, not even its digest, is not waited for") {
        fleet f{1};
        f.serve_everything();
        fake_origin as;
        as.otherwise([](auto&, auto& c) { (void)c.is_closed_by_proxy(); });
        f.tell(0, json::array({peer_at("mute", as.port())}));
        REQUIRE(eventually([&] { return as.connections() > 0; }));
        ask_for_all(f, 0);
        CHECK(f.text(0, "/siblings/state/mute") == "never");
    }

    TEST_CASE("a sibling that sends the request back where it came from holds up nobody") {
        for (const bool tells : {true, false}) {
            CAPTURE(tells);
            auto settings = node_settings();
            settings["peering"]["budget"] = "500ms";  // each of its loops takes that
            fleet f{2, settings};
            f.serve_everything();
            std::atomic<int> looped{0};
            // It asks whoever asks it, as a proxy that has us for a parent; and may keep from us
            // that the request was ours.
            liar as{f, 0, [&](origin_request& request, origin_connection& c) {
                        ++looped;
                        std::string fields = "Connection: close\r\n";
                        if (tells) {
                            fields += "Via: " + request.get("Via") + ", 1.1 liar\r\n";
                        }
                        client back{f[1].port()};
                        if (!back.send(absolute_request("GET", request.target, fields))) {
                            return;
                        }
                        const auto got = back.read_to_end(std::chrono::seconds{3});
                        c.send(got.bytes);
                        c.close();
                    }};
            ask_for_all(f, 0);
            meet_liar(f, as);
            REQUIRE(f.holds(1, "liar", objects));
            ask_for_all(f, 1);
            CHECK(looped > 0);
            CHECK(f.asked(1, "liar", "true-hit") == 0);
            for (int i = 0; i < objects; ++i) {
                CHECK(f.origin.count(path_of(i)) == 2);
            }
        }
    }

    TEST_CASE("what was evicted is not asked for after one exchange") {
        auto settings = node_settings();
        settings["memory"]["size"] = "1MiB";
        fleet f{0};
        f.add(settings);
        f.add(node_settings());
        f.meet();
        const std::string padding(16 * kib, '.');
        f.origin.otherwise([&](origin_request& request, origin_connection& connection) {
            connection.send(ok("Cache-Control: max-age=600\r\n", request.target + padding));
        });
        constexpr int asked_for = 200;  // three times what there is room for
        for (int i = 0; i < asked_for; ++i) {
            CHECK(f[0].get(f.origin.url(path_of(i))).status == 200);
        }
        // How many are held changes little while others come and go: what was stored last is in
        // none but the last digest.
        const auto last = f.origin.url(path_of(asked_for - 1));
        REQUIRE(eventually([&] {
            const auto page = f[1].admin("/digest?of=n0&url=" + last).body;
            return page.find(": listed") != page.npos;
        }));
        const auto held = figure(f[0].stats(), "/store/objects");
        REQUIRE(held > 10);
        REQUIRE(held < asked_for / 2);
        for (int i = 0; i < asked_for; ++i) {
            CHECK(f[1].get(f.origin.url(path_of(i))).body == path_of(i) + padding);
        }
        CHECK(f.asked(1, "n0", "true-hit") >= held - held / 50);
        CHECK(f.asked(1, "n0", "false-hit") <= 5);
    }
}
