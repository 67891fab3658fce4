#include "proxy/cache/disk/segment.hpp"
#include "tests/unit/cache/disk/records.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

TEST_SUITE("cache/disk/segment") {
    TEST_CASE("a segment's header comes back, and with any bit flipped does not") {
        const segment_header made{
            .number = 7, .sequence = 99, .segment_bytes = 1u << 20, .begun = now};
        const auto image = encode(made, store_id);
        const auto read = read_segment_header(image, store_id);
        REQUIRE(read.has_value());
        CHECK(read->number == made.number);
        CHECK(read->sequence == made.sequence);
        CHECK(read->segment_bytes == made.segment_bytes);
        CHECK(read->begun == made.begun);
        CHECK(read_segment_header(image, store_id + 1).error() == format_errc::bad_checksum);
        for (std::size_t bit = 0; bit < image.size() * 8; ++bit) {
            CAPTURE(bit);
            auto bent = image;
            bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
            CHECK(read_segment_header(bent, store_id).has_error());
        }
    }

    TEST_CASE("a full segment has room for its footer, and for nothing else") {
        filled_segment made{1};
        const auto content = std::string(300, 'x');
        const auto response = cache::test::response({.content = content});
        const auto bytes = *sized(source_of("http://a/", *response));
        std::size_t count = 0;
        while (made.fill().has_room(bytes)) {
            made.add("http://a/", content);
            ++count;
        }
        CHECK(count == made.fill().entries().size());
        CHECK(made.fill().offset() <= made.fill().footer_offset());
        CHECK(made.fill().offset() + bytes + footer_entry_bytes > made.fill().footer_offset());
        made.close();
        CHECK(made.recovered().entries == made.fill().entries());
    }

    TEST_CASE("a footer lists what was noted, and with any bit flipped nothing") {
        filled_segment made{5};
        made.add("http://a/", "one");
        made.add("http://b/", "two");
        const auto footer = made.fill().footer(store_id, 5, now);
        const auto end = read_trailer(footer, smallest_segment);
        REQUIRE(end.has_value());
        CHECK(end->entries == 2);
        CHECK(end->footer_bytes() == footer.size());
        CHECK(end->records_end == made.fill().offset());
        const auto entries = read_footer(footer, store_id, 5, smallest_segment);
        REQUIRE(entries.has_value());
        CHECK(*entries == made.fill().entries());
        CHECK((*entries)[0].key() == key_of("http://a/"));
        CHECK((*entries)[0].offset == first_record);

        CHECK(read_footer(footer, store_id, 6, smallest_segment).error() ==
              format_errc::other_round);
        CHECK(read_footer(footer, store_id + 1, 5, smallest_segment).error() ==
              format_errc::bad_checksum);
        for (std::size_t bit = 0; bit < footer.size() * 8; ++bit) {
            CAPTURE(bit);
            auto bent = footer;
            bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
            CHECK(read_footer(bent, store_id, 5, smallest_segment).has_error());
        }
        for (std::size_t cut = 0; cut < footer.size(); ++cut) {
            const std::vector<char> part(footer.begin() + static_cast<std::ptrdiff_t>(cut) + 1,
                                         footer.end());
            CHECK(read_footer(part, store_id, 5, smallest_segment).has_error());
        }
    }

    TEST_CASE("a footer says what fetches took; one of before, or with an odd number, does not") {
        constexpr std::size_t at = 44;
        segment_fill fill{smallest_segment};
        record_header header;
        header.front_bytes = 1024;
        for (unsigned code = 0; code <= packed_wait::most_code; ++code) {
            header.wait = packed_wait::of_code(code);
            (void)fill.note(header);
        }
        auto footer = fill.footer(store_id, 5, now);
        CHECK(*read_footer(footer, store_id, 5, smallest_segment) == fill.entries());
        std::uint32_t odd = 0;
        for (unsigned i = 0; i <= packed_wait::most_code; ++i) {
            store_at(footer.data() + i * footer_entry_bytes + at, odd);
            odd = i < 2 ? 0 : odd * 3 + 128;
        }
        const auto summed = std::span<const char>{footer}.first(footer.size() - 8);
        store_at(footer.data() + summed.size(), checksum(summed, store_id));
        const auto entries = read_footer(footer, store_id, 5, smallest_segment);
        REQUIRE(entries.has_value());
        for (const auto& one : *entries) {
            CHECK(one.wait.code() <= packed_wait::most_code);
        }
        CHECK_FALSE((*entries)[0].wait.is_known());
        CHECK_FALSE((*entries)[4].wait.is_known());
    }

    TEST_CASE("a segment without records can be closed") {
        filled_segment made{5};
        made.close();
        const auto found = made.recovered();
        CHECK(found.state == segment_state::closed);
        CHECK(found.entries.empty());
    }
}

}  // namespace reprise::proxy::cache::disk
