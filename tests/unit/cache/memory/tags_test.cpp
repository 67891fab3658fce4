#include "proxy/cache/memory/tags.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace reprise::proxy::cache::test::of_tags {

namespace {

std::vector<std::uint64_t> hashes(const std::vector<std::string>& tags) {
    std::vector<std::uint64_t> all;
    for (const auto& tag : tags) {
        all.push_back(tag_hash(tag));
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_SUITE("cache/memory/tags") {

    TEST_CASE("Surrogate-Key is split by white space, Cache-Tag by commas") {
        CHECK(read_tags("Surrogate-Key: a  b,c\r\n") == hashes({"a", "b,c"}));
        CHECK(read_tags("cache-tag:a b , c,,\r\n") == hashes({"a b", "c"}));
    }

    TEST_CASE("lines are read together, each tag once, and other lines not at all") {
        CHECK(read_tags("X: a\r\nSurrogate-Key: a b\r\nCache-Tag: b,c\r\n") ==
              hashes({"a", "b", "c"}));
        CHECK(read_tags("Surrogate-Keys: a\r\nSurrogate-Control: x\r\n").empty());
        CHECK(read_tags("").empty());
        CHECK(read_tags("Surrogate-Key: \r\n").empty());
    }

    TEST_CASE("a tag's case is its own") {
        CHECK(tag_hash("a") != tag_hash("A"));
    }

    TEST_CASE("too many tags are any tag") {
        std::string line = "Surrogate-Key:";
        for (std::size_t i = 0; i < most_tags; ++i) {
            line += " t" + std::to_string(i);
        }
        CHECK(read_tags(line + "\r\n").size() == most_tags);
        CHECK(read_tags(line + " more\r\n") == std::vector{any_tag});
    }
}

}  // namespace reprise::proxy::cache::test::of_tags
