#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/peer/peering.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/watched_threads.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::proxy::peer::test::of_peering {
namespace {

using namespace std::chrono_literals;

constexpr wall_time now{1'763'668'089'000ms};

config::options sharing(const tests::temp_dir& in) {
    config::options options;
    options.digest.secret_file = in.write("secret", std::string(40, 's'));
    options.admission.share = true;
    config::peer_options sibling;
    sibling.name = "b";
    sibling.url = "http://127.0.0.1:9";
    options.peers.push_back(sibling);
    return options;
}

}  // namespace

TEST_SUITE("peer/peering") {
    TEST_CASE("what siblings are told was asked for grows as it fills, up to the filter that "
              "admits here" *
              reprise::test::of_one_thread()) {
        const tests::temp_dir directory;
        const auto options = sharing(directory);
        peering peers{options, "a", now};
        const peer::peer_book nobody;
        const auto shared = [&] { return peers.report(nobody).seen_objects; };
        std::uint64_t next = 0;
        const auto see = [&](std::uint64_t count) {
            for (std::uint64_t i = 0; i < count; ++i) {
                peers.note_seen("http://o/" + std::to_string(next++), now);
            }
        };
        // Siblings fetch it: it begins small whatever room the own one begins with.
        auto own = cache::filter_settings(options);
        own.layers = 3;
        own.objects = 1u << 19;
        CHECK(shared() == 1u << 16);
        peers.housekeep(own, now);
        CHECK(shared() == 1u << 16);
        // It grows as it fills. A change ends before the next begins.
        see(50'000);
        peers.housekeep(own, now);
        CHECK(shared() == 1u << 18);
        peers.housekeep(own, now);
        CHECK(shared() == 1u << 18);
        // A flow that turned it between two looks made it no less full; never larger than the own.
        see((1u << 18) + 30'000);
        for (int i = 0; i < 3; ++i) {
            peers.housekeep(own, now);
        }
        CHECK(shared() == 1u << 19);
        // It shrinks with the own one, once that change is over.
        see((1u << 19) + 30'000);
        own.objects = 1u << 15;
        for (int i = 0; i < 3; ++i) {
            peers.housekeep(own, now);
        }
        CHECK(shared() == 1u << 15);
    }
}

}  // namespace reprise::proxy::peer::test::of_peering
