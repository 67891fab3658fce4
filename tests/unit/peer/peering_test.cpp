#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/peer/peering.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/watched_threads.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <new>
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

config::options with_homes(bool have = true) {
    config::options options;
    config::peer_options sibling;
    sibling.name = "b";
    sibling.url = "http://127.0.0.1:9";
    options.peers.push_back(sibling);
    options.peering.homes = have;
    return options;
}

/// An instance with a loop of its own, which is told once a second who lives.
struct node_of_homes : net::test_loop {
    node_of_homes() : peers{with_homes(), "a", now} {
        peers.begin(io, timer, names, pool, with_homes(), [this](peering::book_ptr made) {
            book = std::move(made);
            ++books;
        });
    }
    ~node_of_homes() {
        peers.leave();
        pool.stop();
        names.stop();
        timer.stop();
        run_for(30ms);
        peers.stop();
    }
    void housekeep() { peers.housekeep({}, now); }
    /// It is not known who lives, from now on.
    void forget_who_lives() {
        peers.adopt(with_homes(false), {});
        peers.adopt(with_homes(), {});
        books = 0;
    }

    net::fake_dns server;
    net::resolver names{timer, net::asking(server)};
    net::origin_pool pool{timer, names, net::make_guard({}), {}};
    peering::book_ptr book;
    unsigned books = 0;  // that were published
    peering peers;
};

/// Whether memory ended in it, with so many allocations left.
template <class Work>
bool lacks_memory(unsigned still, const Work& work) {
    try {
        const net::memory_ends lack{still};
        work();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

}  // namespace

TEST_SUITE("peer/peering") {
    TEST_CASE("who lives is told though memory ended as it was to be") {
        node_of_homes node;
        bool lacked = true;
        for (unsigned still = 0; lacked; ++still) {
            CAPTURE(still);
            REQUIRE(still < 100);
            node.forget_who_lives();
            lacked = lacks_memory(still, [&] { node.housekeep(); });
            node.run_for(5ms);
            node.housekeep();
            node.run_until([&] { return node.books > 0; });
            CHECK(node.books > 0);
        }
    }

    TEST_CASE("who lives is told again where there was no memory to take it") {
        node_of_homes node;
        bool lacked = true;
        for (unsigned still = 0; lacked; ++still) {
            CAPTURE(still);
            REQUIRE(still < 500);
            node.forget_who_lives();
            node.housekeep();
            node.io.restart();
            lacked = lacks_memory(still, [&] { node.io.poll(); });
            node.housekeep();
            node.run_until([&] { return node.books > 0; });
            CHECK(node.books > 0);
        }
    }

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
