// What was invalidated or purged on one node does not come back to it from a sibling.

#include "tests/scenario/fleet.hpp"

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

TEST_SUITE("scenario/sibling_outdated") {

    using namespace reprise::tests;

    namespace {

    std::string answer(std::string_view fields, std::string_view body) {
        return raw_head("200 OK",
                        "Date: " + http_date_of(std::time(nullptr)) +
                            "\r\nCache-Control: max-age=600\r\n" + std::string{fields} +
                            "Content-Length: " + std::to_string(body.size()) + "\r\n") +
               std::string{body};
    }

    /// Two nodes; the first holds /a, which says "old". The origin will say "new".
    struct one_old : fleet {
        one_old() : fleet{2, node_settings()} {
            origin.on("/a", answer("Surrogate-Key: t\r\n", "old"));
            CHECK((*this)[0].get(url()).body == "old");
            REQUIRE(holds(1, "n0", 1));
            origin.on("/a", [](origin_request& request, origin_connection& connection) {
                connection.send(request.method == "GET" ? answer("", "new") : ok("", "done"));
            });
        }
        [[nodiscard]] std::string url() const { return origin.url("/a"); }
    };

    }  // namespace

    TEST_CASE("what was invalidated or purged here is not taken from a sibling") {
        struct deed {
            std::string name, method, path, fields;
        };
        const std::vector<deed> deeds{
            {"an unsafe method", "POST", "/a", "Content-Length: 0\r\n"},
            {"a purge", "PURGE", "/a", ""},
            {"a soft purge", "PURGE", "/a", "Purge: soft\r\n"},
            {"a purge by prefix", "PURGE", "/", "Purge: prefix\r\n"},
            {"a purge by tag", "PURGE", "/", "Surrogate-Key: t\r\n"},
        };
        for (const bool held_here : {true, false}) {
            for (const auto& one : deeds) {
                // One that is stale here is validated: no sibling is asked at all.
                if (held_here && one.name == "a soft purge") {
                    continue;
                }
                CAPTURE(one.name);
                CAPTURE(held_here);
                one_old f;
                if (held_here) {
                    CHECK(f[1].get(f.url()).body == "old");
                }
                CHECK(f[1].ask(one.method, f.origin.url(one.path), one.fields).status < 500);
                const auto got = f[1].get(f.url());
                CHECK(got.body == "new");
                CHECK(cache_status_of(got).stored);
                CHECK(f.asked(1, "n0", "false-hit") == 1);
                CHECK(f.asked(1, "n0", "true-hit") == (held_here ? 1 : 0));
            }
        }
    }

    TEST_CASE("what a sibling fetched after an invalidation is taken again") {
        one_old f;
        CHECK(f[1].ask("PURGE", f.url()).status == 404);
        // Ages are whole seconds, so what is only just newer counts as old. How long ago the purge was is steady
        // time, which nobody can set forward.
        std::this_thread::sleep_for(std::chrono::seconds{4});
        CHECK(f[0].get(f.url(), "Cache-Control: no-cache\r\n").body == "new");
        CHECK(f[1].get(f.url()).body == "new");
        CHECK(f.asked(1, "n0", "true-hit") == 1);
        CHECK(f[0].get(f.url()).body == "new");
    }
}
