#include "proxy/server/most_memory.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <filesystem>

namespace reprise::proxy::server {

TEST_SUITE("server/most_memory") {

    TEST_CASE("the least limit of a group and of those above it holds") {
        const tests::temp_dir at;
        std::filesystem::create_directories(at.path() / "a/b");
        const auto root = at.path().string();
        CHECK_FALSE(least_group_limit("0::/a/b\n", root));
        at.write("a/memory.max", "1000\n");
        at.write("a/b/memory.max", "max\n");
        CHECK(least_group_limit("0::/a/b\n", root) == 1000);
        CHECK(least_group_limit("0::/\n", root) == std::nullopt);
        at.write("a/b/memory.max", "10\n");
        CHECK(least_group_limit("5:memory:/x\n0::/a/b\n", root) == 10);
        CHECK(least_group_limit("0::/a\n", root) == 1000);
    }

    TEST_CASE("the first version's is its own controller's, seen from within a container too") {
        const tests::temp_dir at;
        const auto root = at.path().string();
        std::filesystem::create_directories(at.path() / "memory/a");
        at.write("memory/memory.limit_in_bytes", "3000\n");
        CHECK(least_group_limit("4:memory:/not/here\n0::/\n", root) == 3000);
        at.write("memory/a/memory.limit_in_bytes", "2000\n");
        CHECK(least_group_limit("3:cpu:/\n4:memory:/a\n0::/\n", root) == 2000);
        at.write("memory.max", "1000\n");
        CHECK(least_group_limit("3:cpu:/\n4:memory:/a\n0::/\n", root) == 1000);
    }

    TEST_CASE("what can't be read is no limit") {
        const tests::temp_dir at;
        at.write("memory.max", "10x\n");
        for (const std::string own : {"", "0::", "0::no/slash", "5:memory:/a", "0::/../.."}) {
            CAPTURE(own);
            CHECK_FALSE(least_group_limit(own, at.path().string()));
        }
    }

    TEST_CASE("this machine has some") {
        const auto most = most_memory();
        REQUIRE(most);
        CHECK(*most > (std::uint64_t{16} << 20));
    }
}

}  // namespace reprise::proxy::server
