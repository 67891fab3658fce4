// Five nodes that are siblings of each other, on loopback.

#include "tests/scenario/fleet.hpp"
#include "tests/support/temp_dir.hpp"

#include <array>

using namespace reprise::tests;

namespace {

constexpr std::size_t nodes = 5;

std::string path_of(int i) {
    return "/" + std::to_string(i);
}

std::string secret_in(const temp_dir& directory) {
    return directory.write("secret", std::string(64, 'a'));
}

/// How often the origin was asked for each of `objects`, in all.
std::size_t fetches(fleet& f, int objects) {
    std::size_t out = 0;
    for (int i = 0; i < objects; ++i) {
        out += f.origin.count(path_of(i));
    }
    return out;
}

void ask_for_all(fleet& f, std::size_t node, int objects) {
    for (int i = 0; i < objects; ++i) {
        const auto got = f[node].get(f.origin.url(path_of(i)));
        CHECK(got.status == 200);
        CHECK(got.body == "body of " + path_of(i));
    }
}

}  // namespace

TEST_SUITE("scenario/fleet_of_five") {
    TEST_CASE("what one of five stores all serve, without the origin") {
        fleet f{nodes};
        f.serve_everything();
        constexpr int objects = 200;
        ask_for_all(f, 0, objects);
        for (std::size_t i = 1; i < nodes; ++i) {
            REQUIRE(f.holds(i, "n0", objects - 1));
        }
        f.origin.stop();
        for (std::size_t i = 1; i < nodes; ++i) {
            CAPTURE(i);
            int served = 0;
            for (int object = 0; object < objects; ++object) {
                const auto got = f[i].get(f.origin.url(path_of(object)));
                served += got.status == 200 && got.body == "body of " + path_of(object) ? 1 : 0;
            }
            CHECK(served >= objects * 0.99);
            CHECK(f[i].get(f.origin.url("/never-asked")).status == 502);
        }
    }

    // Of an object that all ask for twice. Each strict proxy alone fetches it twice; with digests
    // it is the first that stores it who fetches twice; with what was seen shared, two fetch once.
    TEST_CASE("fetches of five: ten alone, six with digests, two with what was seen") {
        constexpr int objects = 20;
        const temp_dir directory;
        auto settings = node_settings();
        settings["admission"] = {{"policy", "second-hit"}};
        settings["digest"]["secret_file"] = secret_in(directory);

        fleet alone{0, settings};
        for (std::size_t i = 0; i < nodes; ++i) {
            alone.add(settings);  // which knows nobody
        }
        alone.serve_everything();
        for (int round = 0; round < 2; ++round) {
            for (std::size_t i = 0; i < nodes; ++i) {
                ask_for_all(alone, i, objects);
            }
        }
        CHECK(fetches(alone, objects) == 2 * nodes * objects);

        settings["admission"]["share"] = false;
        fleet digests{nodes, settings};
        digests.serve_everything();
        for (std::size_t i = 0; i < nodes; ++i) {
            ask_for_all(digests, i, objects);
        }
        ask_for_all(digests, 0, objects);
        for (std::size_t i = 1; i < nodes; ++i) {
            REQUIRE(digests.holds(i, "n0", objects));
        }
        for (std::size_t i = 1; i < nodes; ++i) {
            ask_for_all(digests, i, objects);
        }
        CHECK(fetches(digests, objects) == (nodes + 1) * objects);

        settings["admission"]["share"] = true;
        fleet seen{nodes, settings};
        seen.serve_everything();
        ask_for_all(seen, 0, objects);
        // What n0 saw after these has reached n1, and so have these. One probe is stored.
        REQUIRE(!seen.shared_sight(0, 1).empty());
        ask_for_all(seen, 1, objects);
        for (const std::size_t i : {0, 2, 3, 4}) {
            REQUIRE(seen.holds(i, "n1", objects + 1));
        }
        for (std::size_t i = 2; i < nodes; ++i) {
            ask_for_all(seen, i, objects);
        }
        ask_for_all(seen, 0, objects);
        CHECK(fetches(seen, objects) == 2 * objects);
    }
}
