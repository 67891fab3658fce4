#include "proxy/net/kept_leaves.hpp"
#include "tests/unit/net/leaf_shown.hpp"

#include <doctest/doctest.h>

#include <thread>

namespace reprise::proxy::net::test::of_kept_leaves_test {
namespace {

using namespace std::chrono_literals;

struct leaves_bench {
    authority_files files;
    leaf_authority_ptr by = leaf_authority::read(files.wanted, wall_now()).authority;
    kept_leaves leaves;

    explicit leaves_bench(std::size_t most = 4, std::chrono::seconds lifetime = 48h)
        : leaves{leaf_maker{by, make_leaf_key(), lifetime}, most} {}
};

}  // namespace

TEST_SUITE("net/kept_leaves") {

    TEST_CASE("a host's leaf is made once and shown to all") {
        leaves_bench bench;
        const auto now = wall_now();
        const auto first = bench.leaves.identity_for("a.test", now);
        REQUIRE(first);
        CHECK(bench.leaves.identity_for("a.test", now + 23h) == first);
        CHECK(bench.leaves.identity_for("x.b.test", now) != first);
        CHECK(bench.leaves.made() == 2);
        CHECK(bench.leaves.reused() == 1);
        CHECK(show(*first, "a.test").verdict == "ok");
    }

    TEST_CASE("when half of its lifetime is over the next one is made, in the same place") {
        leaves_bench bench;
        const auto now = wall_now();
        const auto first = bench.leaves.identity_for("a.test", now);
        const auto second = bench.leaves.identity_for("a.test", now + 24h);
        REQUIRE(second);
        CHECK(second != first);
        CHECK(bench.leaves.identity_for("a.test", now + 25h) == second);
        CHECK(bench.leaves.size() == 1);
        CHECK(bench.leaves.made() == 2);
    }

    TEST_CASE("behind the CA's end there is none, also for those that were made before") {
        leaves_bench bench{4, 24h * 825};
        const auto now = wall_now();
        REQUIRE(bench.leaves.identity_for("a.test", now));
        CHECK_FALSE(bench.leaves.identity_for("a.test", bench.by->until()));
        CHECK_FALSE(bench.leaves.identity_for("x.b.test", bench.by->until()));
    }

    TEST_CASE("the leaf used least recently goes when there is no more room") {
        leaves_bench bench{2};
        const auto now = wall_now();
        const auto a = bench.leaves.identity_for("a.b.test", now);
        const auto b = bench.leaves.identity_for("b.b.test", now);
        CHECK(bench.leaves.identity_for("a.b.test", now) == a);
        static_cast<void>(bench.leaves.identity_for("c.b.test", now));
        CHECK(bench.leaves.size() == 2);
        CHECK(bench.leaves.identity_for("a.b.test", now) == a);
        CHECK(bench.leaves.identity_for("b.b.test", now) != b);
        for (int i = 0; i < 50; ++i) {
            static_cast<void>(bench.leaves.identity_for(std::to_string(i) + ".b.test", now));
        }
        CHECK(bench.leaves.size() == 2);
        CHECK(show(*a, "a.b.test").verdict == "ok");  // whoever has it keeps it
    }

    TEST_CASE("threads that ask at once get whole leaves, and one of them stays") {
        leaves_bench bench{8};
        const auto now = wall_now();
        std::vector<std::thread> threads;
        std::atomic<int> without{0};
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&] {
                for (int i = 0; i < 100; ++i) {
                    const auto host = std::to_string(i % 12) + ".b.test";
                    const auto found = bench.leaves.identity_for(host, now);
                    without += found && found->begin() ? 0 : 1;
                }
            });
        }
        for (auto& one : threads) {
            one.join();
        }
        CHECK(without == 0);
        CHECK(bench.leaves.size() == 8);
        CHECK(bench.leaves.made() + bench.leaves.reused() == 400);
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_kept_leaves_test
