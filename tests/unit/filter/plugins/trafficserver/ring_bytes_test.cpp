#include "filter/plugins/trafficserver/ring_bytes.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <sys/statvfs.h>

namespace reprise::trafficserver::test {

TEST_SUITE("filter/plugins/trafficserver/ring_bytes") {
    TEST_CASE("an object takes whole sectors") {
        CHECK(ring_bytes(0, 512) == 1024);  // 600 of its own
        CHECK(ring_bytes(424, 512) == 1024);
        CHECK(ring_bytes(425, 512) == 1536);
        CHECK(ring_bytes(425, 4096) == 4096);
        CHECK(ring_bytes(4096 + 250, 4096) == 8192);
        CHECK(ring_bytes(16384 + 250, 4096) == 20480);
        CHECK(ring_bytes(16384 + 250, 512) == 17408);
    }

    TEST_CASE("beyond 32 KiB it takes steps of eight times as many, as the directory tells sizes") {
        CHECK(ring_bytes(32'768 - 600, 512) == 32'768);
        CHECK(ring_bytes(32'768 - 599, 512) == 36'864);
        CHECK(ring_bytes(262'144 - 600, 512) == 262'144);
        CHECK(ring_bytes(262'144 - 599, 512) == 294'912);
    }

    TEST_CASE("beyond a MiB it is in pieces, and its head is one more") {
        constexpr std::uint64_t piece = (1 << 20) - 72;
        CHECK(ring_bytes(piece, 4096) == (1 << 20) + 32'768);  // with the head in it
        CHECK(ring_bytes(2 * piece, 4096) == (2 << 20) + 4096);
        CHECK(ring_bytes(2 * piece + 1, 4096) == (2 << 20) + 2 * 4096);
        CHECK(ring_bytes(UINT64_MAX, 4096) > std::uint64_t{1} << 60);
    }

    TEST_CASE("sectors are those of the file system where a file or a folder is the cache, else "
              "the least") {
        const tests::temp_dir folder;
        struct statvfs there {};
        REQUIRE(::statvfs(folder.path().c_str(), &there) == 0);
        const auto config = folder.file("storage.config");
        const auto sector_with = [&](const std::string& lines) {
            folder.write("storage.config", lines);
            return sector_of(config.c_str(), folder.path().c_str(), 0);
        };
        CHECK(sector_with("# a comment\n\n " + folder.path().string() + " 64M\n") == there.f_bsize);
        CHECK(sector_with("storage.config 64M volume=1\n") == there.f_bsize);
        CHECK(sector_with("storage.config 64M\n/dev/null 1G\n") == 512);
        CHECK(sector_with("/none/such 64M\n") == 512);
        CHECK(sector_with("") == 512);
        CHECK(sector_of("/none/such", "/", 0) == 512);
        CHECK(sector_of(config.c_str(), "/", 8192) == 8192);
        CHECK(sector_of(config.c_str(), "/", 1) == 512);
    }
}

}  // namespace reprise::trafficserver::test
