#include "proxy/cache/disk/journal.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr std::uint64_t id = 42;

std::vector<journal_entry> one_of_each() {
    kept_ban prefix;
    prefix.epoch = 3;
    prefix.time = wall_time{5s};
    prefix.prefix = "http://a/";
    prefix.space = " http://up";
    kept_ban tag;
    tag.epoch = 4;
    tag.mode = purge_mode::soft;
    tag.by_tag = true;
    tag.tag = 77;
    tag.prefix = "http://b";
    return {{{1, 64}, dropped_url{key_of("a")}},
            {{1, 80}, dropped_variant{key_of("b"), 9}},
            {{2, 64}, expired_url{key_of("c"), wall_time{7s}}},
            {{2, 65}, dropped_all{}},
            {{2, 66}, epochs_begin{2}},
            {{2, 67}, prefix},
            {{2, 68}, tag},
            {{2, 69}, forgotten_bans{1, 2, wall_time{9s}}},
            {{2, 70}, sealed{}}};
}

footer_entry record_of(const filter::key_hash& primary,
                       std::uint64_t discriminator,
                       std::uint64_t at) {
    footer_entry made;
    made.primary = primary;
    made.discriminator = discriminator;
    made.offset = at;
    return made;
}

std::vector<char> bytes_of_all(const std::vector<journal_entry>& entries, bool synced) {
    auto bytes = journal_header(id);
    for (const auto& entry : entries) {
        append_entry(bytes, entry, synced ? bytes.size() : 0, id);
    }
    return bytes;
}

}  // namespace

TEST_SUITE("cache/disk/journal") {

    TEST_CASE("what is written is read") {
        const auto entries = one_of_each();
        const auto bytes = bytes_of_all(entries, true);
        const auto read = read_journal(bytes, id);
        CHECK_FALSE(read.damaged);
        CHECK(read.end == bytes.size());
        REQUIRE(read.entries.size() == entries.size());
        verdicts says;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            CHECK(read.entries[i].at == entries[i].at);
            CHECK(read.entries[i].fact.index() == entries[i].fact.index());
            says.add(read.entries[i]);
        }
        CHECK(says.epoch == 4);
        REQUIRE(says.bans.size() == 2);
        CHECK(says.bans[0].space == " http://up");
        CHECK(says.bans[1].by_tag);
        CHECK(says.bans[1].mode == purge_mode::soft);
        CHECK(says.bans[1].tag == 77);
        CHECK(says.forgotten.soft_time == wall_time{9s});
        CHECK(read_journal(bytes, id + 1).damaged);  // another store's
    }

    TEST_CASE("a torn end is no damage, a hole in what was synced is") {
        const auto entries = one_of_each();
        for (const bool synced : {false, true}) {
            CAPTURE(synced);
            const auto bytes = bytes_of_all(entries, synced);
            for (std::size_t cut = journal_header_bytes; cut < bytes.size(); ++cut) {
                const auto read = read_journal(std::span{bytes}.first(cut), id);
                CHECK_FALSE(read.damaged);
                CHECK(read.end <= cut);
            }
            std::vector<std::uint64_t> ends;
            auto grown = journal_header(id);
            for (const auto& entry : entries) {
                append_entry(grown, entry, 0, id);
                ends.push_back(grown.size());
            }
            for (std::size_t at = journal_header_bytes; at < bytes.size(); at += 3) {
                auto hurt = bytes;
                hurt[at] = static_cast<char>(hurt[at] ^ 1);
                const auto read = read_journal(hurt, id);
                CAPTURE(at);
                // Nobody knows of the last entry that it was synced.
                const bool in_last = at >= ends[ends.size() - 2];
                CHECK(read.damaged == (synced && !in_last));
                CHECK(read.end <= at);
            }
        }
        auto hurt = bytes_of_all(entries, false);
        hurt[3] = 'x';
        CHECK(read_journal(hurt, id).damaged);
        CHECK(read_journal({}, id).damaged);
    }

    TEST_CASE("what is older than an entry is dead, what is younger is not") {
        verdicts says;
        says.add({{5, 100}, dropped_url{key_of("a")}});
        says.add({{5, 200}, dropped_variant{key_of("b"), 7}});
        CHECK(says.is_dead(record_of(key_of("a"), 0, 99), 5));
        CHECK(says.is_dead(record_of(key_of("a"), 3, 900), 4));
        CHECK_FALSE(says.is_dead(record_of(key_of("a"), 0, 100), 5));
        CHECK_FALSE(says.is_dead(record_of(key_of("a"), 0, 64), 6));
        CHECK(says.is_dead(record_of(key_of("b"), 7, 199), 5));
        CHECK_FALSE(says.is_dead(record_of(key_of("b"), 0, 199), 5));
        CHECK_FALSE(says.is_dead(record_of(key_of("b"), 8, 199), 5));
        says.add({{6, 0}, dropped_all{}});
        CHECK(says.is_dead(record_of(key_of("z"), 0, 900), 5));
        CHECK_FALSE(says.is_dead(record_of(key_of("z"), 0, 64), 6));
    }

    TEST_CASE("gathered entries say the same in fewer, but for what is older than everything") {
        verdicts says;
        for (std::uint64_t i = 1; i <= 100; ++i) {
            says.add({{i, 0}, dropped_url{key_of(std::to_string(i % 10))}});
            says.add({{i, 0}, expired_url{key_of("e"), wall_time{1s}}});
        }
        verdicts again;
        for (const auto& entry : says.entries({95, 0})) {
            again.add(entry);
        }
        CHECK(again.urls.size() == 5);
        CHECK(again.expiries.size() == 1);
        for (std::uint64_t i = 96; i <= 100; ++i) {
            CHECK(again.is_dead(record_of(key_of(std::to_string(i % 10)), 0, 64), i - 1));
        }
    }

    TEST_CASE("the file is appended to, and begun anew") {
        auto files = std::make_shared<memory_files>();
        const auto entries = one_of_each();
        {
            journal kept{"/p", files, id};
            CHECK(kept.load().missing);
            CHECK_FALSE(kept.replace({}));
            CHECK_FALSE(kept.append(entries, true));
            CHECK_FALSE(kept.append(std::span{entries}.first(1), false));
        }
        journal kept{"/p", files->cut(1), id};
        const auto read = kept.load();
        CHECK_FALSE(read.damaged);
        CHECK(read.says.urls.size() == 1);
        CHECK(read.says.bans.size() == 2);
        CHECK_FALSE(kept.append(std::span{entries}.first(2), true));
    }

    TEST_CASE("after a failure nothing is appended until it is begun anew") {
        auto files = std::make_shared<memory_files>();
        journal kept{"/p", files, id};
        CHECK_FALSE(kept.replace({}));
        bool failing = true;
        files->set_hook([&failing](operation what, std::string_view) {
            return failing && what == operation::sync
                       ? boost::system::errc::make_error_code(boost::system::errc::io_error)
                       : error_code{};
        });
        const auto entries = one_of_each();
        CHECK(kept.append(entries, true));
        failing = false;
        CHECK(kept.append(entries, true));
        CHECK_FALSE(kept.replace(entries));
        CHECK_FALSE(kept.append(entries, true));
    }

    TEST_CASE("a damaged or missing journal drops what was stored before, and nothing after") {
        for (const bool missing : {false, true}) {
            CAPTURE(missing);
            auto files = std::make_shared<memory_files>();
            disk_store s{files};
            s.open();
            s.put_surely(url_of(1), object(url_of(1), 10));
            s.purge(url_of(2));
            s.purge(url_of(3));
            const auto seed = s->secret().seed();
            s.close();
            if (missing) {
                (void)files->remove("/store/purges");
            } else {
                files->damage("/store/purges", journal_header_bytes + 20, "x");
            }
            s.open();
            CHECK_FALSE(s.has(url_of(1)));
            CHECK(s->secret().seed() == seed);
            s.put_surely(url_of(4), object(url_of(4), 10));
            s.open();
            CHECK(s.has(url_of(4)));
        }
    }

    TEST_CASE("a journal longer than any is damaged, and not read") {
        const tests::temp_dir dir;
        disk_store s{system_files(), smallest_store, dir.file("store")};
        s.open();
        s.put_surely(url_of(1), object(url_of(1), 10));
        s.close();
        std::filesystem::resize_file(dir.file("store") + "/purges", std::uintmax_t{1} << 40);
        s.open();
        CHECK_FALSE(s.has(url_of(1)));
        s.put_surely(url_of(2), object(url_of(2), 10));
        s.open();
        CHECK(s.has(url_of(2)));
    }

    TEST_CASE("a flood of purges keeps the journal within its bounds and holds") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.open();
        for (unsigned i = 0; i < 40; ++i) {
            s.put_surely(url_of(i), object(url_of(i), 10));
        }
        for (unsigned i = 0; i < 4000; ++i) {
            s->purge(key_of("http://other/" + std::to_string(i)));
            if (i < 20) {
                s->invalidate(key_of(url_of(i)));
            }
        }
        s.invalidate(url_of(20));
        CHECK(files->taken() <= smallest_store);
        s.close();
        s.files = files->after_kill();
        s.open();
        for (unsigned i = 0; i <= 20; ++i) {
            CHECK_FALSE(s.has(url_of(i)));
        }
    }

    TEST_CASE("unsafe methods on URLs that the disk has nothing of end nothing that it has") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.open();
        const auto there = url_of(1), ended = url_of(2);
        s.put_surely(there, object(there, 10));
        s.put_surely(ended, object(ended, 10));
        s.invalidate("http://first/");  // the writer knows then that the index is whole
        const auto before = files->contents("/store/purges").size();
        for (unsigned i = 0; i < 20'000; ++i) {
            const auto key = key_of("http://other/" + std::to_string(i));
            s.lately->note(key);
            s->invalidate(key);
        }
        CHECK(s->figures().queued_purges == 0);
        s.invalidate("http://last/");
        CHECK(files->contents("/store/purges").size() < before + 1'000);
        s.invalidate(ended);
        s.go_on_with(files->after_kill());
        CHECK(s.has(there));
        CHECK_FALSE(s.has(ended));
    }

    TEST_CASE("of what was purged by an order the next start knows, be it on this disk or not") {
        disk_store s{std::make_shared<memory_files>()};
        s.open();
        s.invalidate("http://first/");
        s.invalidate("http://invalidated/");
        s.purge("http://purged/");
        s.open();
        const auto known = s->take_purged_before();
        const auto knows = [&known](std::string_view url) {
            return std::find(known.urls.begin(), known.urls.end(), key_of(url)) != known.urls.end();
        };
        CHECK_FALSE(known.all);
        CHECK(knows("http://purged/"));
        CHECK_FALSE(knows("http://invalidated/"));
    }

    TEST_CASE("what bans purge that left a full list before they were journaled stays purged") {
        // Before some that are journaled already are forgotten as well, and after.
        for (const unsigned earlier : {0u, 300u}) {
            CAPTURE(earlier);
            auto files = std::make_shared<memory_files>();
            disk_store s{files, 32u << 20};
            s.open();
            unsigned made = 0;
            const auto ban_others = [&](unsigned many) {
                for (unsigned i = 0; i < many; ++i) {
                    s.purges->ban_prefix(
                        "http://x/" + std::to_string(made++), "", purge_mode::hard, wall_now());
                }
            };
            ban_others(earlier);
            s.keep_bans();
            s.put_surely("http://a/b", object("http://a/b", 10));
            s.purges->ban_prefix("http://a/", "", purge_mode::hard, wall_now());
            ban_others(1'100);
            s.keep_bans();
            REQUIRE(s.purges->figures().forgotten > 0);
            s.put_surely("http://a/c", object("http://a/c", 10));
            s.close();
            s.files = files->after_kill();
            s.open();
            CHECK_FALSE(s.has("http://a/b"));
            CHECK(s.has("http://a/c"));
        }
    }

    TEST_CASE("bans that are too much for a small store's journal purge everything, not nothing") {
        auto files = std::make_shared<memory_files>();
        disk_store s{files, smallest_store};
        s.open();
        s.put_surely("http://a/b", object("http://a/b", 10));
        s.purges->ban_prefix("http://a/", "", purge_mode::hard, wall_now());
        for (unsigned i = 0; i < 200; ++i) {
            s.purges->ban_prefix("http://x/" + std::string(1000, 'y') + std::to_string(i),
                                 "",
                                 purge_mode::hard,
                                 wall_now());
        }
        s.keep_bans();
        CHECK(files->contents("/store/purges").size() <= 128u << 10);
        s.open();
        CHECK_FALSE(s.has("http://a/b"));
    }
}

}  // namespace reprise::proxy::cache::disk
