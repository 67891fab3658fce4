#include "proxy/cache/admission_gate.hpp"
#include "proxy/peering.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::proxy {
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
    TEST_CASE("what siblings are told was asked for follows the filter that admits here") {
        const tests::temp_dir directory;
        const auto options = sharing(directory);
        peering peers{options, "a", now};
        const peer::peer_book nobody;
        auto own = cache::filter_settings(options);
        CHECK(peers.report(nobody).seen_objects == own.objects);
        own.objects *= 4;
        own.layers = 3;
        peers.housekeep(own, now);
        CHECK(peers.report(nobody).seen_objects == own.objects);
        // A change ends before the next begins.
        own.objects *= 2;
        peers.housekeep(own, now);
        CHECK(peers.report(nobody).seen_objects == own.objects / 2);
        for (std::uint64_t i = 0; i <= own.objects / 2 + 100; ++i) {
            peers.note_seen(peers.key_of("http://o/" + std::to_string(i)), now);
        }
        for (int i = 0; i < 3; ++i) {
            peers.housekeep(own, now);
        }
        CHECK(peers.report(nobody).seen_objects == own.objects);
    }
}

}  // namespace reprise::proxy
