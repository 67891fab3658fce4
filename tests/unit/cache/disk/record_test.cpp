#include "proxy/cache/disk/record.hpp"
#include "tests/unit/cache/disk/records.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr std::string_view url = "http://example.net/a";

std::span<const char> body_in(const std::vector<char>& record, const record_header& header) {
    return std::span{record}.subspan(header.front_bytes, header.body_bytes);
}

void check_same(const stored_response& read, const stored_response& made) {
    CHECK(read.head() == made.head());
    CHECK(read.status_line_size() == made.status_line_size());
    CHECK(read.length_at() == made.length_at());
    CHECK(read.status() == made.status());
    CHECK(read.freshness() == made.freshness());
    CHECK(read.directives() == made.directives());
    CHECK((read.vary() == made.vary()));
    CHECK(read.selecting() == made.selecting());
    CHECK(std::ranges::equal(read.tags(), made.tags()));
    CHECK(read.purged_softly() == made.purged_softly());
    CHECK(read.weak_last_modified() == made.weak_last_modified());
    CHECK(read.wait() == made.wait());
    CHECK(read.reusable_until() == made.reusable_until());
}

}  // namespace

TEST_SUITE("cache/disk/record") {
    TEST_CASE("an object comes back as it was, its body with it") {
        for (const std::size_t bytes : {0u, 1u, 7u, 4096u, 65536u, 65537u, 200000u}) {
            CAPTURE(bytes);
            auto made = rich_response(random_body(bytes, bytes));
            made->weak_last_modified = bytes % 2 == 1;
            auto source = source_of(url, *made);
            source.discriminator = 5;
            const auto record = record_of(source, stamp(11));
            const auto header = check_front(record, store_id, 11);
            REQUIRE(header.has_value());
            CHECK(header->kind == record_kind::object);
            CHECK(header->id == 77);
            CHECK(header->primary == key_of(url));
            CHECK(header->discriminator == 5);
            CHECK(header->written == now);
            CHECK(is_after(header->expiry, now));
            CHECK_FALSE(header->carried);
            CHECK(check_body(record, *header, store_id));

            const auto view = read_object(record);
            REQUIRE(view.has_value());
            CHECK(view->url == url);
            CHECK(view->ban_epoch == 9);
            CHECK(view->length == bytes);
            const auto read = stored_response::make(make_response(*view));
            check_same(*read, *made);
            CHECK(read->disk_record.load() == 77);
            const auto body = body_in(record, *header);
            CHECK(std::string{body.begin(), body.end()} == bytes_of(*made->content));
        }
    }

    TEST_CASE(
        "what a fetch took is read in every step, and is not known of older and of odd records") {
        constexpr std::size_t at = 80;
        auto made = rich_response(random_body(10, 1));
        const auto wait_in = [](std::vector<char> record, std::uint32_t number) {
            store_at(record.data() + at, number);
            const auto view = read_object(record);
            REQUIRE(view.has_value());
            return stored_response::make(make_response(*view))->wait();
        };
        for (unsigned code = 0; code <= packed_wait::most_code; ++code) {
            made->wait = packed_wait::of_code(code);
            const auto record = record_of(source_of(url, *made), stamp(1));
            CHECK(load_at<std::uint32_t>(record.data() + at) == code);
            CHECK(wait_in(record, code).code() == code);
        }
        const auto record = record_of(source_of(url, *made), stamp(1));
        for (const std::uint32_t number : {0u, 128u, 255u, 256u, 257u, 0xffff'ffffu}) {
            CHECK_FALSE(wait_in(record, number).is_known());
        }
        auto carried = record;
        CHECK(restamp(carried, store_id, 2).wait == made->wait);
        CHECK(check_front(carried, store_id, 2)->wait == made->wait);
    }

    TEST_CASE("a body in many slices is one body on disk") {
        const auto whole = random_body(150'000, 1);
        auto pieces = std::make_shared<body>();
        pieces->size = whole->size;
        for (std::size_t begin = 0; begin < whole->size; begin += 12'345) {
            pieces->slices.push_back({whole->slices[0].memory,
                                      begin,
                                      std::min<std::size_t>(12'345, whole->size - begin)});
        }
        auto made = rich_response(whole);
        const auto from_whole = record_of(source_of(url, *made), stamp(1));
        made->content = pieces;
        CHECK(record_of(source_of(url, *made), stamp(1)) == from_whole);
    }

    TEST_CASE("a softly purged response is never reusable again") {
        auto made = rich_response(random_body(10, 1));
        const auto ended = ended_at(*made, now);
        const auto record = record_of(source_of(url, *ended), stamp(1));
        CHECK(read_header(record)->expiry == 0);
        check_same(*stored_response::make(make_response(*read_object(record))), *ended);
    }

    TEST_CASE("a large object's head says how its body is divided") {
        auto made = rich_response(random_body(0, 1));
        auto source = source_of(url, *made);
        source.kind = record_kind::large;
        source.length = (std::uint64_t{5} << 30) + 1;
        source.extent_bytes = 1u << 20;
        const auto record = record_of(source, stamp(1));
        REQUIRE(check_front(record, store_id, 1).has_value());
        const auto view = read_object(record);
        REQUIRE(view.has_value());
        CHECK(view->length == source.length);
        CHECK(view->extents == 5 * 1024 + 1);
        CHECK(view->extent_bytes == source.extent_bytes);
        CHECK(view->header.body_bytes == 0);
    }

    TEST_CASE("a refresh is a head for the body of its subject") {
        auto made = rich_response(random_body(100, 1));
        auto source = source_of(url, *made);
        source.kind = record_kind::refresh;
        source.subject = 55;
        source.length = 100;
        const auto record = record_of(source, stamp(1));
        const auto view = read_object(record);
        REQUIRE(view.has_value());
        CHECK(view->header.subject == 55);
        const auto read = stored_response::make(make_response(*view));
        CHECK(read->disk_record.load() == 55);
        check_same(*read, *made);
    }

    TEST_CASE("an extent has the bytes of its slices, each block verified by itself") {
        const auto content = random_body(150'000, 2);
        const extent_source source{
            .primary = key_of(url), .object = 55, .part = 3, .bytes = content->slices};
        auto record = record_of(source, stamp(4));
        const auto header = check_front(record, store_id, 4);
        REQUIRE(header.has_value());
        CHECK(header->subject == 55);
        CHECK(header->part == 3);
        CHECK(header->expiry == 0);
        REQUIRE(blocks_of(*header) == 3);
        CHECK(index_key(header->kind, header->primary, header->discriminator) ==
              extent_key(key_of(url), 55, 3));
        const auto body = body_in(record, *header);
        const auto front = std::span{record}.first(header->front_bytes);
        CHECK(check_block(front, 0, body.subspan(0, block_bytes), store_id));
        CHECK(check_block(front, 2, body.subspan(2 * block_bytes), store_id));
        CHECK_FALSE(check_block(front, 0, body.subspan(block_bytes, block_bytes), store_id));
        record[header->front_bytes + block_bytes + 5] ^= 1;
        CHECK(check_block(front, 0, body.subspan(0, block_bytes), store_id));
        CHECK_FALSE(check_block(front, 1, body.subspan(block_bytes, block_bytes), store_id));
        CHECK_FALSE(check_body(record, *header, store_id));
    }

    TEST_CASE("a record cut anywhere is refused") {
        const auto made = rich_response(random_body(100, 1));
        const auto record = record_of(source_of(url, *made), stamp(1));
        const auto whole = *check_front(record, store_id, 1);
        for (std::size_t cut = 0; cut < whole.front_bytes + whole.body_bytes; ++cut) {
            CAPTURE(cut);
            // A copy of its own, so that a sanitizer sees what is read behind it.
            const std::vector<char> part(record.begin(),
                                         record.begin() + static_cast<std::ptrdiff_t>(cut));
            const auto header = check_front(part, store_id, 1);
            CHECK(header.has_value() == (cut >= whole.front_bytes));
            CHECK_FALSE(check_body(part, whole, store_id));
            CHECK(read_object(part).has_value() == (cut >= whole.front_bytes));
        }
    }

    TEST_CASE("every flipped bit of a record is found, but those of its padding") {
        const auto made = rich_response(random_body(100, 1));
        const auto record = record_of(source_of(url, *made), stamp(1));
        const auto whole = *check_front(record, store_id, 1);
        const auto meant = whole.front_bytes + whole.body_bytes;
        for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
            CAPTURE(bit);
            auto bent = record;
            bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
            const auto header = check_front(bent, store_id, 1);
            const bool sound = header.has_value() && check_body(bent, *header, store_id);
            CHECK(sound == (bit / 8 >= meant));
        }
    }

    TEST_CASE("a record of another store or another round is not there") {
        const auto made = rich_response(random_body(100, 1));
        const auto record = record_of(source_of(url, *made), stamp(8));
        CHECK(check_front(record, store_id, 9).error() == format_errc::other_round);
        CHECK(check_front(record, store_id + 1, 8).error() == format_errc::bad_checksum);
    }

    TEST_CASE("a record that is carried forward is the same in another round") {
        const auto made = rich_response(random_body(100'000, 1));
        auto record = record_of(source_of(url, *made), stamp(8));
        const auto header = restamp(record, store_id, 20);
        CHECK(header.carried);
        CHECK(check_front(record, store_id, 8).error() == format_errc::other_round);
        REQUIRE(check_front(record, store_id, 20).has_value());
        CHECK(read_header(record)->id == 77);
        CHECK(check_body(record, header, store_id));
        check_same(*stored_response::make(make_response(*read_object(record))), *made);
    }

    TEST_CASE("what can't be written is refused before a byte is") {
        auto made = rich_response(random_body(1, 1));
        made->head.append(front_most, 'x');
        CHECK(sized(source_of(url, *made)).error() == format_errc::too_large);

        made = rich_response(random_body(1, 1));
        made->vary.any = true;
        CHECK(sized(source_of(url, *made)).error() == format_errc::too_large);

        CHECK(sized(extent_source{.primary = key_of(url), .object = 1, .part = 0, .bytes = {}})
                  .error() == format_errc::too_large);
    }

    TEST_CASE("everything under a URL has a key of its own") {
        const auto primary = key_of(url);
        std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
        const auto add = [&](const filter::key_hash& key) { keys.insert({key.low, key.high}); };
        const auto english = variant_discriminator(primary, "accept-language", "=en\n");
        add(index_key(record_kind::object, primary, 0));
        add(refresh_key(primary, 0));
        add(index_key(record_kind::object, primary, english));
        add(refresh_key(primary, english));
        add(index_key(record_kind::object, primary, variant_discriminator(primary, "", "")));
        add(index_key(record_kind::object,
                      primary,
                      variant_discriminator(primary, "accept", "-language=en\n")));
        for (std::uint32_t part = 0; part < 10; ++part) {
            add(extent_key(primary, 55, part));
            add(extent_key(primary, 56, part));
        }
        CHECK(keys.size() == 26);

        CHECK(index_key(record_kind::object, primary, 0) == primary);
        CHECK(index_key(record_kind::variants, primary, 0) == primary);
        CHECK(index_key(record_kind::large, primary, english) ==
              index_key(record_kind::object, primary, english));
        CHECK(english !=
              variant_discriminator(key_of("http://other/"), "accept-language", "=en\n"));
    }
}

}  // namespace reprise::proxy::cache::disk
