// What a store makes of the files that it finds: another's, damaged, of another format or size.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/memory/tags.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/opening") {

    TEST_CASE("a second process is refused, and told whose it is") {
        const tests::temp_dir dir;
        disk_store s{system_files(), smallest_store, dir.file("store")};
        s.open();
        purge_list purges;
        invalidations lately;
        std::string said;
        try {
            const tier other{s.settings, system_files(), purges, lately};
        } catch (const std::runtime_error& refused) {
            said = refused.what();
        }
        CHECK(said.find(dir.file("store")) != std::string::npos);
        CHECK(said.find("process " + std::to_string(::getpid())) != std::string::npos);
        s.open();  // the lock goes with the tier
    }

    TEST_CASE("whichever bit of one superblock is flipped, the other is read and the one mended") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        s.close();
        const auto right = files->contents("/store/store");
        REQUIRE(right.size() == superblock_bytes);
        REQUIRE(files->contents("/store/store.copy") == right);
        for (const std::string path : {"/store/store", "/store/store.copy"}) {
            for (std::size_t bit = 0; bit < 8 * superblock_bytes; bit += 37) {
                CAPTURE(path);
                CAPTURE(bit);
                const char bent = static_cast<char>(right[bit / 8] ^ (1 << bit % 8));
                files->damage(path, bit / 8, {&bent, 1});
                s.open();
                CHECK(s.has(url_of(1)));
                s.close();
                CHECK(files->contents(path) == right);
            }
            REQUIRE_FALSE(files->remove(path));
            s.open();
            CHECK(s.has(url_of(1)));
            s.close();
            CHECK(files->contents(path) == right);
        }
        files->set_hook([](operation what, std::string_view path) {
            return what == operation::read && path == "/store/store"
                       ? boost::system::errc::make_error_code(boost::system::errc::io_error)
                       : error_code{};
        });
        s.open();
        CHECK(s.has(url_of(1)));
    }

    TEST_CASE("where both superblocks are damaged the tier is off, and touches nothing") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        s.close();
        files->damage("/store/store", 8, "x");
        files->damage("/store/store.copy", 70, "x");
        std::vector<std::string> before;
        for (const auto& path : files->paths()) {
            before.push_back(path + files->contents(path));
        }
        for (int starts = 0; starts < 2; ++starts) {
            s.open();
            CHECK(s->figures().state == tier_state::off);
            CHECK(s->figures().trouble.find("superblock") != std::string::npos);
            CHECK_FALSE(s.has(url_of(1)));
            CHECK_FALSE(s.put(url_of(2), object(url_of(2), 100)));
            CHECK(
                s->begin(key_of("http://x/"), "http://x/", std::nullopt, "", s.mark("http://x/")) ==
                nullptr);
            s.invalidate(url_of(1));  // there is nothing to wait for
            s->expire(key_of(url_of(1)), wall_now());
            s.purges->ban_prefix("http://a.example/", "", purge_mode::hard, wall_now());
            s.keep_bans();
            s.close();
        }
        std::vector<std::string> after;
        for (const auto& path : files->paths()) {
            if (path != "/store/lock") {
                after.push_back(path + files->contents(path));
            }
        }
        std::erase_if(before,
                      [](const std::string& one) { return one.starts_with("/store/lock"); });
        CHECK(after == before);
    }

    TEST_CASE("a store that could not be given another id at once has it when it can be written") {
        for (const std::string path : {"/store/store.new", "/store/store.copy.new"}) {
            CAPTURE(path);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 100));
            s.close();
            files->damage("/store/purges", 0, "x");
            files->fail_when([&path](operation what, std::string_view of) {
                return what == operation::rename && of == path;
            });
            s.open();
            CHECK(s->figures().state == tier_state::reading);
            CHECK_FALSE(s.has(url_of(1)));
            files->set_hook({});
            REQUIRE(eventually([&] { return s->figures().state == tier_state::ready; }));
            s.put_surely(url_of(2), object(url_of(2), 100));
            s.open();
            CHECK(s->figures().state == tier_state::ready);
            CHECK_FALSE(s.has(url_of(1)));
            CHECK(s.has(url_of(2)));
        }
    }

    TEST_CASE("a store of another format is refused") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.close();
        auto other = files->contents("/store/store");
        const auto id = load_at<std::uint64_t>(other.data() + 24);
        store_at(other.data() + 16, std::uint32_t{2});
        store_at(other.data(), checksum(std::span{other}.subspan(8), id));
        files->damage("/store/store", 0, other);
        files->damage("/store/store.copy", 0, other);
        CHECK_THROWS_AS(s.open(), std::runtime_error);
        s.settings.size = smallest_store - 1;
        CHECK_THROWS_AS(s.open(), std::runtime_error);
    }

    TEST_CASE("a store made smaller gives back what is too much") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 16u << 20};
        s.open();
        for (unsigned i = 0; i < 1200; ++i) {
            REQUIRE(eventually([&] { return s.put(url_of(i), object(url_of(i), 10'000)); }));
        }
        s.close();
        CHECK(files->taken() > 8u << 20);
        s.settings.size = 8u << 20;
        s.open();
        CHECK(eventually([&] { return files->taken() <= 8u << 20; }));
        CHECK(s->figures().objects > 100);
        s.put_surely("http://b/", object("http://b/", 10));
    }
}

}  // namespace reprise::proxy::cache::disk
