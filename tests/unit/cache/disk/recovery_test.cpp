#include "proxy/cache/disk/recovery.hpp"
#include "tests/unit/cache/disk/records.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

/// Bodies that tell which URL and round they are of.
std::string content_of(std::string_view url, std::uint64_t round, std::size_t bytes) {
    std::string text = std::string{url} + " in round " + std::to_string(round) + ". ";
    while (text.size() < bytes) {
        text += text;
    }
    text.resize(bytes);
    return text;
}

std::string page_url(std::size_t i) {
    return "http://example.net/" + std::to_string(i);
}

/// Whether all that an entry leads to, as a reader would find it, is what was put there in this
/// round. False: found damaged, or gone. A wrong body fails the test.
bool serves(const std::vector<char>& bytes, const footer_entry& entry, std::uint64_t sequence) {
    if (entry.offset + entry.bytes > bytes.size()) {
        return false;
    }
    const auto record = std::span{bytes}.subspan(entry.offset, entry.bytes);
    const auto header = check_front(record, store_id, sequence);
    if (header.has_error() || header->primary != entry.primary ||
        !check_body(record, *header, store_id)) {
        return false;
    }
    const auto view = read_object(record);
    REQUIRE(view.has_value());
    CHECK(key_of(view->url) == entry.primary);
    const auto body = record.subspan(header->front_bytes, header->body_bytes);
    CHECK(std::string{body.begin(), body.end()} ==
          content_of(view->url, sequence, header->body_bytes));
    return true;
}

}  // namespace

TEST_SUITE("cache/disk/recovery") {
    TEST_CASE("a closed segment is read from its footer, an open one record by record, alike") {
        filled_segment made{5};
        for (std::size_t i = 0; i < 50; ++i) {
            made.add(page_url(i), content_of(page_url(i), 5, 10 + 70 * i));
        }
        auto found = made.recovered();
        CHECK(found.state == segment_state::scanned);
        CHECK(found.entries == made.fill().entries());
        CHECK(found.end == made.fill().offset());
        CHECK(found.damaged == 0);
        made.close();
        found = made.recovered();
        CHECK(found.state == segment_state::closed);
        CHECK(found.entries == made.fill().entries());
        CHECK(found.end == made.fill().offset());
        CHECK(found.header.sequence == 5);
    }

    TEST_CASE("a footer of more than one read is put together") {
        filled_segment made{5};
        for (std::size_t i = 0; made.fill().has_room(1024) && i < 10'000; ++i) {
            variant_directory directory{.url = "http://a/", .variants = {}};
            made.add(directory_source{.primary = key_of(page_url(i)), .directory = directory});
        }
        REQUIRE(made.fill().entries().size() * footer_entry_bytes > 64u << 10);
        made.close();
        const auto found = made.recovered();
        CHECK(found.state == segment_state::closed);
        CHECK(found.entries == made.fill().entries());
    }

    TEST_CASE("what was written in earlier rounds never comes back") {
        std::mt19937_64 random{20261120};
        filled_segment made{1};
        for (std::uint64_t round = 1; round <= 60; ++round) {
            CAPTURE(round);
            made.begin(round);
            const auto count = random() % 40;
            for (std::size_t i = 0; i < count; ++i) {
                const auto url = page_url(random() % 20);
                const auto content = content_of(url, round, random() % 3000);
                if (made.fill().has_room(content.size() + 1024)) {
                    made.add(url, content);
                }
            }
            if (round % 3 == 0) {
                made.close();
            }
            const auto found = made.recovered();
            CHECK(found.entries == made.fill().entries());
            for (const auto& entry : found.entries) {
                CHECK(serves(made.bytes(), entry, round));
            }
        }
    }

    TEST_CASE("after a torn write everything before it is there") {
        filled_segment old{4};
        for (std::size_t i = 0; i < 30; ++i) {
            old.add(page_url(i), content_of(page_url(i), 4, 900));
        }
        old.close();
        const auto before = old.bytes();
        old.begin(9);
        for (std::size_t i = 0; i < 3; ++i) {
            old.add(page_url(i), content_of(page_url(i), 9, 600 + i));
        }
        const auto entries = old.fill().entries();
        for (auto torn = first_record; torn <= old.fill().offset(); torn += 7) {
            CAPTURE(torn);
            auto bytes = before;
            std::copy_n(old.bytes().begin(), torn, bytes.begin());
            const auto found = filled_segment::recovered_from(bytes);
            CHECK(found.state == segment_state::scanned);
            // Padding may be missing, and old bytes may happen to be the new ones.
            const auto whole = std::count_if(entries.begin(), entries.end(), [&](const auto& one) {
                const auto header = *read_header(std::span{old.bytes()}.subspan(one.offset));
                const auto meant = header.front_bytes + header.body_bytes;
                return std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(one.offset),
                                  bytes.begin() + static_cast<std::ptrdiff_t>(one.offset + meant),
                                  old.bytes().begin() + static_cast<std::ptrdiff_t>(one.offset));
            });
            CHECK(found.entries.size() == static_cast<std::size_t>(whole));
            for (const auto& entry : found.entries) {
                CHECK(serves(bytes, entry, 9));
            }
        }
    }

    TEST_CASE("a flipped bit anywhere loses at most the record that it is in") {
        filled_segment made{5};
        for (std::size_t i = 0; i < 4; ++i) {
            made.add(page_url(i), content_of(page_url(i), 5, 40 + i));
        }
        made.close();
        const auto& sound = made.bytes();
        const auto entries = made.fill().entries();
        const auto last = made.fill().offset();
        const auto try_bit = [&](std::size_t at, unsigned bit) {
            auto bytes = sound;
            bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
            const auto found = filled_segment::recovered_from(bytes);
            if (at < first_record) {
                CHECK(found.state == segment_state::unused);
                return;
            }
            std::size_t served = 0;
            for (const auto& entry : found.entries) {
                served += serves(bytes, entry, 5) ? 1 : 0;
            }
            CHECK(served >= entries.size() - (at < last ? 1 : 0));
        };
        for (std::size_t at = 0; at < last; ++at) {
            try_bit(at, at % 8);
            try_bit(at, (at + 3) % 8);
        }
        for (std::size_t at = made.fill().footer_offset(); at < sound.size(); ++at) {
            try_bit(at, at % 8);
            try_bit(at, (at + 5) % 8);
        }
    }

    TEST_CASE("behind a damaged front a scan finds the next record, and counts the gap") {
        filled_segment made{5};
        for (std::size_t i = 0; i < 5; ++i) {
            made.add(page_url(i), content_of(page_url(i), 5, 5000));
        }
        auto bytes = made.bytes();
        const auto entries = made.fill().entries();
        bytes[entries[1].offset + 100] ^= 4;                    // front
        bytes[entries[3].offset + entries[3].bytes - 64] ^= 4;  // body
        const auto found = filled_segment::recovered_from(bytes);
        REQUIRE(found.entries.size() == 3);
        CHECK(found.entries[0] == entries[0]);
        CHECK(found.entries[1] == entries[2]);
        CHECK(found.entries[2] == entries[4]);
        CHECK(found.damaged == 2);
        CHECK(found.end == made.fill().offset());
    }

    TEST_CASE("a page that is at a second place in its segment brings no record a second time") {
        filled_segment made{5};
        for (std::size_t i = 0; i < 60; ++i) {
            made.add(page_url(i), content_of(page_url(i), 5, 400));
        }
        const auto written = made.fill().entries();
        constexpr std::size_t page = 4096;
        for (const std::size_t to : {std::size_t{6}, made.fill().offset() / page + 2}) {
            CAPTURE(to);
            auto copied = made.bytes();
            std::copy_n(made.bytes().begin() + 2 * page,
                        page,
                        copied.begin() + static_cast<long>(to * page));
            std::swap(copied, made.bytes());
            const auto found = made.recovered();
            std::swap(copied, made.bytes());
            CHECK(found.damaged != 0);
            for (const auto& one : found.entries) {
                CHECK(std::find(written.begin(), written.end(), one) != written.end());
            }
        }
    }

    TEST_CASE("pages that can't be read cost the records in them") {
        filled_segment made{5};
        for (std::size_t i = 0; i < 20; ++i) {
            made.add(page_url(i), content_of(page_url(i), 5, 8000));
        }
        const auto& bytes = made.bytes();
        const std::uint64_t bad_begin = 40'960, bad_end = 45'056;
        const auto read = [&](std::uint64_t offset, std::span<char> into) {
            if (offset < bad_end && offset + into.size() > bad_begin) {
                return false;
            }
            std::copy_n(
                bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
            return true;
        };
        const auto found = recover(
            read, {.store_id = store_id, .number = 3, .segment_bytes = bytes.size()});
        CHECK(found.state == segment_state::scanned);
        CHECK(found.unreadable_bytes == bad_end - bad_begin);
        CHECK(found.entries.size() >= 18);
        CHECK(found.damaged >= 1);
        const auto nothing = [](std::uint64_t, std::span<char>) { return false; };
        CHECK(recover(nothing, {.store_id = store_id, .number = 3, .segment_bytes = bytes.size()})
                  .state == segment_state::unreadable);
    }

    TEST_CASE("a file under another's name, of another store or shape is unused") {
        filled_segment made{5};
        made.add("http://a/", "a");
        made.close();
        CHECK(filled_segment::recovered_from(made.bytes(), 4).state == segment_state::unused);
        const std::vector<char> zeros(smallest_segment);
        CHECK(filled_segment::recovered_from(zeros).state == segment_state::unused);
    }

    TEST_CASE("writing goes on where a scan ended") {
        filled_segment made{5};
        made.add("http://a/", "a");
        const auto found = made.recovered();
        auto fill = segment_fill::resumed(smallest_segment, found.entries, found.end);
        CHECK(fill.offset() == made.fill().offset());
        CHECK(fill.footer(store_id, 5, now) == made.fill().footer(store_id, 5, now));
    }

    TEST_CASE("a closed segment can be scanned nevertheless") {
        filled_segment made{5};
        const auto first = made.add("http://a/", "a");
        made.add("http://b/", "b");
        made.close();
        made.bytes()[first.offset + 90] ^= 1;
        const auto& bytes = made.bytes();
        const auto read = [&](std::uint64_t offset, std::span<char> into) {
            std::copy_n(
                bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
            return true;
        };
        CHECK(made.recovered().entries.size() == 2);
        const auto scanned = recover(read,
                                     {.store_id = store_id,
                                      .number = 3,
                                      .segment_bytes = smallest_segment,
                                      .footer = false});
        CHECK(scanned.entries.size() == 1);
    }
}

}  // namespace reprise::proxy::cache::disk
