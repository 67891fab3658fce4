#include "proxy/fetch/prefix_hash.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

namespace reprise::proxy::fetch::test::of_prefix_hash {

namespace {

const std::string body = [] {
    std::string out(10'000, '\0');
    std::mt19937 random{11};
    std::generate(out.begin(), out.end(), [&] { return static_cast<char>(random()); });
    return out;
}();

/// Gives all of `bytes` to it, in pieces that a seed makes; what the last call said.
bool skip_all(prefix_hash& passed, std::string_view bytes, unsigned seed) {
    std::mt19937 random{seed};
    bool same = true;
    while (!bytes.empty()) {
        const auto piece = bytes.substr(0, 1 + random() % 2'000);
        bytes.remove_prefix(piece.size());
        same = passed.skip(piece);
    }
    return same;
}

}  // namespace

TEST_SUITE_BEGIN("fetch/prefix_hash");

TEST_CASE("the same bytes again are passed over, in whatever pieces either came") {
    for (unsigned seed = 1; seed <= 50; ++seed) {
        CAPTURE(seed);
        std::mt19937 random{seed};
        prefix_hash passed;
        for (std::string_view left = body; !left.empty();) {
            const auto piece = left.substr(0, random() % 3'000);
            passed.note(piece);
            left.remove_prefix(piece.size());
        }
        passed.begin_skipping(body.size());
        CHECK(passed.left_to_skip() == body.size());
        CHECK(skip_all(passed, body, seed + 1'000));
        CHECK(passed.left_to_skip() == 0);
    }
}

TEST_CASE("one byte that differs anywhere shows, and not before all are there") {
    for (const std::size_t place :
         {std::size_t{0}, std::size_t{1}, body.size() / 2, body.size() - 1}) {
        CAPTURE(place);
        prefix_hash passed;
        passed.note(body);
        auto other = body;
        other[place] = static_cast<char>(other[place] ^ 1);
        passed.begin_skipping(body.size());
        CHECK(passed.skip(std::string_view{other}.substr(0, body.size() - 1)));
        CHECK(passed.left_to_skip() == 1);
        CHECK(!passed.skip(std::string_view{other}.substr(body.size() - 1)));
    }
}

TEST_CASE("a third source is compared from the beginning, whatever the second one sent") {
    prefix_hash passed;
    passed.note(body);
    passed.begin_skipping(body.size());
    CHECK(passed.skip("something else"));
    passed.begin_skipping(body.size());
    CHECK(passed.left_to_skip() == body.size());
    CHECK(skip_all(passed, body, 1));
}

TEST_CASE("what a second source adds belongs to the beginning that a third must send") {
    prefix_hash passed;
    const std::string_view all{body};
    passed.note(all.substr(0, 100));
    passed.begin_skipping(100);
    REQUIRE(passed.skip(all.substr(0, 100)));
    passed.note(all.substr(100));
    passed.begin_skipping(body.size());
    CHECK(skip_all(passed, all, 2));
    passed.begin_skipping(100);
    CHECK(!passed.skip(all.substr(0, 100)));  // readers have more than that by now
}

TEST_CASE("where readers have had nothing, nothing is to be skipped") {
    prefix_hash passed;
    passed.begin_skipping(0);
    CHECK(passed.left_to_skip() == 0);
    CHECK(passed.skip(""));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_prefix_hash
