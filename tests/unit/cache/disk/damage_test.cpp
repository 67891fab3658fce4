// Records that are damaged, and those that can't be read just now: the former are lost, the latter are
// not, and neither is served with wrong bytes.

#include "proxy/cache/disk_body.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/hanging_disk.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/damage") {

    TEST_CASE("a record that can't be read is absent, and not forgotten") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 100));
        files->set_cold(true);
        files->fail_when([](operation what, std::string_view) { return what == operation::read; });
        CHECK(s.find(url_of(1)).what == lookup::absent);
        CHECK(s->figures().read_errors > 0);
        files->set_hook({});
        CHECK(s.has(url_of(1)));
        CHECK(s->figures().pooled > 0);
    }

    TEST_CASE("a damaged record is dropped, counted and can be stored anew") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 5000));
        const auto segment = files->contents("/store/s-00000000");
        const auto at = segment.find(body_for(url_of(1), 5000).substr(0, 64));
        REQUIRE(at != std::string::npos);
        files->damage("/store/s-00000000", at + 4000, "oops");
        CHECK(s.find(url_of(1)).what == lookup::absent);
        CHECK(s->figures().damaged == 1);
        CHECK(s->figures().objects == 0);
        s.put_surely(url_of(1), object(url_of(1), 5000));
    }

    TEST_CASE("a damaged block of a large body ends its reading there, never with wrong bytes") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 64u << 20};
        s.open();
        const std::string url = "http://large/";
        const auto content = body_for(url, 600'000);
        s.put_surely(url, object(url, content.size()));
        const auto segment = files->contents("/store/s-00000000");
        const auto at = segment.find(content.substr(400'000, 64));
        REQUIRE(at != std::string::npos);
        files->damage("/store/s-00000000", at, "oops");
        const auto got = s.find(url).response;
        REQUIRE(got);
        CHECK_FALSE(whole_body(*got));
        CHECK(read(*got->on_disk(), 0, 300'000) == content.substr(0, 300'000));
        CHECK(s.find(url).what == lookup::absent);  // not whole any more
    }

    TEST_CASE("a large body that is damaged is lost, one that can't be read now is refused") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, 64u << 20};
        s.settings.patience = 20ms;
        s.open();
        const std::string url = "http://large/";
        const auto content = body_for(url, 600'000);
        s.put_surely(url, object(url, content.size()));
        const auto got = s.find(url).response;
        REQUIRE(got);
        const auto ends_as = [&] {
            const auto reader = got->on_disk()->read_from(0, {});
            std::vector<slice> pieces;
            auto came = disk_body_reader::read_result::waiting;
            REQUIRE(eventually([&] {
                came = reader->next(content.size(), 100'000, pieces);
                return came == disk_body_reader::read_result::lost ||
                       came == disk_body_reader::read_result::refused;
            }));
            CHECK(reader->next(content.size(), 100'000, pieces) == came);
            return came;
        };
        files->set_cold(true);
        files->fail_when([](operation what, std::string_view) { return what == operation::read; });
        CHECK(ends_as() == disk_body_reader::read_result::refused);
        {
            const hanging_disk disk{*files, {operation::read}};
            CHECK(ends_as() == disk_body_reader::read_result::refused);
        }
        files->set_hook({});
        files->set_cold(false);
        CHECK(whole_body(*got) == content);
        const auto segment = files->contents("/store/s-00000000");
        files->damage("/store/s-00000000", segment.find(content.substr(400'000, 64)), "oops");
        CHECK(ends_as() == disk_body_reader::read_result::lost);
    }
}

}  // namespace reprise::proxy::cache::disk
