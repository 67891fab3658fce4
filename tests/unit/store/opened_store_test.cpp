#include "proxy/cache/disk/journal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/records.hpp"
#include "tools/store/opened_store.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace reprise::store {

using namespace proxy::cache::disk::test;
namespace cache = proxy::cache;

namespace {

/// A store in a directory, written by hand, gone with it.
class written_store {
public:
    written_store() {
        const auto image = disk::encode(disk::superblock{.store_id = store_id,
                                                         .seed = seed_,
                                                         .segment_bytes = disk::smallest_segment,
                                                         .made = now});
        write("store", {image.begin(), image.end()});
        write_journal({});
    }
    [[nodiscard]] std::string path() const { return directory_.path(); }
    [[nodiscard]] filter::key_hash key(std::string_view url) const {
        return filter::hash_of(url, filter::hash_secret::from_seed(seed_));
    }
    [[nodiscard]] disk::object_source source(std::string_view url,
                                             const cache::stored_response& response) const {
        auto made = source_of(url, response);
        made.primary = key(url);
        return made;
    }
    void write(const std::string& name, const std::vector<char>& bytes) const {
        directory_.write(name, {bytes.data(), bytes.size()});
    }
    void write_journal(const std::vector<disk::journal_entry>& entries) const {
        auto bytes = disk::journal_header(store_id);
        for (const auto& entry : entries) {
            disk::append_entry(bytes, entry, 0, store_id);
        }
        write("purges", bytes);
    }

private:
    tests::temp_dir directory_;
    filter::hash_seed seed_{std::byte{5}};
};

cache::test::drafted plain(std::string_view content) {
    return cache::test::response({.content = content});
}

std::vector<std::string> urls_of(const opened_store& store) {
    std::vector<std::string> urls;
    store.for_each_object([&](const stored_object& object) {
        urls.emplace_back(object.view.url);
        return true;
    });
    return urls;
}

std::string body_of(const opened_store& store, const stored_object& object) {
    std::ostringstream out;
    CHECK(store.write_body(object, out));
    return out.str();
}

}  // namespace

TEST_SUITE("store/opened_store") {
    TEST_CASE("the newest record of a URL is the one that is found") {
        const written_store made;
        filled_segment older{3, 0}, newer{4, 1};
        older.add(made.source("http://a/", *plain("old")));
        older.add(made.source("http://b/", *plain("other")));
        older.close();
        newer.add(made.source("http://a/", *plain("new")));
        made.write(disk::segment_name(0), older.bytes());
        made.write(disk::segment_name(1), newer.bytes());

        const opened_store store{made.path()};
        CHECK(store.journal_trouble().empty());
        CHECK(urls_of(store) == std::vector<std::string>{"http://a/", "http://b/"});
        const auto found = store.find("http://a/");
        REQUIRE(found.size() == 1);
        CHECK(body_of(store, found[0]) == "new");
        CHECK(store.find("http://c/").empty());
        REQUIRE(store.segments().size() == 2);
        CHECK(store.segments()[0].number == 1);
        CHECK(store.segments()[1].current == 1);
    }

    TEST_CASE("what was purged is not there, or stale") {
        const written_store made;
        filled_segment segment{3, 0};
        for (const auto* url : {"http://a/", "http://b/", "http://c/", "http://c/x"}) {
            auto response = plain("content");
            response->freshness.lifetime = std::chrono::hours{24 * 365 * 100};
            segment.add(made.source(url, *response));
        }
        made.write(disk::segment_name(0), segment.bytes());
        const disk::log_position behind{3, segment.fill().offset()};
        made.write_journal({{behind, disk::dropped_url{made.key("http://a/")}},
                            {behind, disk::expired_url{made.key("http://b/"), now}},
                            {behind,
                             cache::kept_ban{.epoch = 20,
                                             .time = now,
                                             .mode = cache::purge_mode::hard,
                                             .by_tag = false,
                                             .tag = 0,
                                             .prefix = "http://c/x",
                                             .space = ""}}});
        const opened_store store{made.path()};
        CHECK(store.find("http://a/").empty());
        REQUIRE(store.find("http://b/").size() == 1);
        CHECK(store.find("http://b/")[0].fresh_until <= now);
        REQUIRE(store.find("http://c/").size() == 1);
        CHECK_FALSE(store.find("http://c/")[0].purged);
        CHECK(store.find("http://c/")[0].fresh_until > now);
        REQUIRE(store.find("http://c/x").size() == 1);
        CHECK(store.find("http://c/x")[0].purged);
    }

    TEST_CASE("a large object is put together from its extents, and missed if one is") {
        for (const std::uint32_t missing : {9u, 1u}) {
            const written_store made;
            filled_segment segment{3, 0};
            const auto key = made.key("http://large/");
            const auto content = random_body(70'000, 1);
            // filled_segment numbers its records from 1001 on; the head comes behind the extents.
            const std::uint64_t head_id = missing < 3 ? 1003 : 1004;
            for (std::uint32_t part = 0; part < 3; ++part) {
                const auto begin = part * std::size_t{30'000};
                const cache::slice piece{content->slices[0].memory,
                                         begin,
                                         std::min<std::size_t>(30'000, 70'000 - begin)};
                if (part != missing) {
                    segment.add(disk::extent_source{
                        .primary = key, .object = head_id, .part = part, .bytes = {&piece, 1}});
                }
            }
            auto head = plain("");
            auto source = made.source("http://large/", *head);
            source.kind = disk::record_kind::large;
            source.length = 70'000;
            source.extent_bytes = 30'000;
            CHECK(segment.add(source).id == head_id);
            made.write(disk::segment_name(0), segment.bytes());

            const opened_store store{made.path()};
            const auto found = store.find("http://large/");
            REQUIRE(found.size() == 1);
            CHECK(found[0].is_whole == (missing == 9));
            std::ostringstream out;
            CHECK(store.write_body(found[0], out) == (missing == 9));
            CHECK((out.str() == bytes_of(*content)) == (missing == 9));
        }
    }

    TEST_CASE("variants are all found, the last stored first") {
        const written_store made;
        filled_segment segment{3, 0};
        const auto key = made.key("http://v/");
        disk::variant_directory directory{.url = "http://v/", .variants = {}};
        for (const auto* value : {"=de\n", "=en\n"}) {
            auto response = plain(value);
            response->vary.names = "accept-language";
            response->selecting = value;
            auto source = made.source("http://v/", *response);
            source.discriminator = disk::variant_discriminator(key, "accept-language", value);
            const auto entry = segment.add(source);
            directory.add({.names = "accept-language",
                           .discriminator = source.discriminator,
                           .id = entry.id,
                           .response_time = now});
        }
        segment.add(disk::directory_source{.primary = key, .directory = directory});
        made.write(disk::segment_name(0), segment.bytes());
        const opened_store store{made.path()};
        const auto found = store.find("http://v/");
        REQUIRE(found.size() == 2);
        CHECK(found[0].view.selecting == "=en\n");
        CHECK(body_of(store, found[1]) == "=de\n");
        CHECK(urls_of(store).size() == 2);
    }

    TEST_CASE("a refresh's head is shown, with the body that it is for") {
        const written_store made;
        filled_segment segment{3, 0};
        const auto response = plain("content");
        const auto object = segment.add(made.source("http://a/", *response));
        auto newer = plain("content");
        newer->head = "HTTP/1.1 200 OK\r\nX-Newer: yes\r\nContent-Length: 7\r\n";
        cache::index_head(newer);
        auto source = made.source("http://a/", *newer);
        source.kind = disk::record_kind::refresh;
        source.subject = object.id;
        source.length = 7;
        segment.add(source);
        made.write(disk::segment_name(0), segment.bytes());
        const opened_store store{made.path()};
        const auto found = store.find("http://a/");
        REQUIRE(found.size() == 1);
        CHECK(found[0].view.head == newer->head);
        CHECK(body_of(store, found[0]) == "content");
    }

    TEST_CASE("a scan finds the damage that a footer does not know of") {
        const written_store made;
        filled_segment segment{3, 0};
        const auto entry = segment.add(made.source("http://a/", *plain("content")));
        segment.add(made.source("http://b/", *plain("content")));
        segment.close();
        segment.bytes()[entry.offset + 100] ^= 1;
        made.write(disk::segment_name(0), segment.bytes());
        const opened_store store{made.path()};
        CHECK(store.segments()[0].records == 2);
        CHECK(store.scan(0).entries.size() == 1);
        CHECK(urls_of(store) == std::vector<std::string>{"http://b/"});
    }

    TEST_CASE("pipes, links, directories and files without end are not read") {
        const written_store made;
        REQUIRE(::mkfifo((made.path() + "/s-00000000").c_str(), 0600) == 0);
        REQUIRE(::symlink("/dev/zero", (made.path() + "/s-00000001").c_str()) == 0);
        std::filesystem::create_directory(made.path() + "/s-00000002");
        {
            const opened_store store{made.path()};
            CHECK(store.journal_trouble().empty());
            REQUIRE(store.segments().size() == 3);
            for (const auto& segment : store.segments()) {
                CHECK(segment.found.state == disk::segment_state::unreadable);
            }
        }
        const auto purges = made.path() + "/purges";
        std::filesystem::resize_file(purges, std::uintmax_t{1} << 40);
        CHECK_FALSE(opened_store{made.path()}.journal_trouble().empty());
        std::filesystem::remove(purges);
        REQUIRE(::mkfifo(purges.c_str(), 0600) == 0);
        CHECK_FALSE(opened_store{made.path()}.journal_trouble().empty());
        const auto block = made.path() + "/store";
        std::filesystem::remove(block);
        REQUIRE(::mkfifo(block.c_str(), 0600) == 0);
        CHECK_THROWS_AS(opened_store{made.path()}, std::runtime_error);
    }

    TEST_CASE("what is no store is refused with its path, and a damaged journal is said") {
        CHECK_THROWS_WITH_AS(
            opened_store{"/nowhere"}, "/nowhere/store: can't be read", std::runtime_error);
        const written_store made;
        made.write("purges", std::vector<char>(100));
        const opened_store store{made.path()};
        CHECK(store.journal_trouble() == made.path() + "/purges: is damaged");
        std::filesystem::copy_file(made.path() + "/store", made.path() + "/store.copy");
        made.write("store", std::vector<char>(200));
        CHECK_NOTHROW(opened_store{made.path()});  // one of two copies is enough
        made.write("store.copy", std::vector<char>(200));
        CHECK_THROWS_AS(opened_store{made.path()}, std::runtime_error);
    }
}

}  // namespace reprise::store
