#include "proxy/cache/disk/variants.hpp"
#include "tests/unit/cache/disk/records.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr std::string_view page = "http://example.net/a";

std::array<http::field, 1> in_language(std::string_view value) {
    return {http::field{http::field_id::accept_language, "Accept-Language", value}};
}

/// A variant for a request with these fields, that arrived at `seconds`.
listed_variant variant(std::string names, http::field_list request, int seconds) {
    const http::vary_spec spec{.names = names};
    const auto discriminator = variant_discriminator(
        key_of(page), names, http::selecting_values(spec, request));
    return {.names = std::move(names),
            .discriminator = discriminator,
            .id = discriminator + 1,
            .response_time = wall_time{std::chrono::seconds{seconds}},
            .expiry = coarse_time(now + std::chrono::hours{seconds}, now)};
}

}  // namespace

TEST_SUITE("cache/disk/variants") {
    TEST_CASE("a directory comes back as it was") {
        variant_directory made{.url = std::string{page}, .variants = {}};
        for (int i = 0; i < 40; ++i) {
            const auto value = std::string{"l"}.append(std::to_string(i));
            const auto fields = in_language(value);
            made.add(variant(i % 3 == 0 ? "accept-language" : "accept,accept-language", fields, i));
        }
        CHECK(made.variants.size() == memory_tier::most_variants);
        const auto record = record_of(directory_source{.primary = key_of(page), .directory = made},
                                      stamp(5));
        const auto header = check_front(record, store_id, 5);
        REQUIRE(header.has_value());
        CHECK(header->expiry == coarse_time(now + std::chrono::hours{39}, now));
        CHECK(index_key(header->kind, header->primary, header->discriminator) == key_of(page));
        CHECK(*read_variants_url(record) == page);
        const auto read = read_variants(record);
        REQUIRE(read.has_value());
        CHECK(read->url == made.url);
        CHECK(read->variants == made.variants);
    }

    TEST_CASE("a request selects the variant of its own values") {
        variant_directory made{.url = std::string{page}, .variants = {}};
        const auto english = in_language("en");
        const auto german = in_language("de");
        made.add(variant("accept-language", english, 1));
        made.add(variant("accept-language", german, 2));
        CHECK(select(made, key_of(page), english) == &made.variants[0]);
        CHECK(select(made, key_of(page), german) == &made.variants[1]);
        CHECK(select(made, key_of(page), in_language("fr")) == nullptr);
        CHECK(select(made, key_of(page), {}) == nullptr);
    }

    TEST_CASE("of several selected variants the one that arrived last is taken") {
        variant_directory made{.url = std::string{page}, .variants = {}};
        const auto english = in_language("en");
        made.add(variant("accept-language", english, 5));
        made.add(variant("accept,accept-language", english, 9));
        made.add(variant("cookie", english, 7));
        CHECK(select(made, key_of(page), english) == &made.variants[1]);
        made.variants[2].response_time = made.variants[1].response_time;
        CHECK(select(made, key_of(page), english) == &made.variants[2]);
    }

    TEST_CASE("a variant takes the place of its older self, and may be removed") {
        variant_directory made{.url = std::string{page}, .variants = {}};
        const auto english = in_language("en");
        CHECK_FALSE(made.add(variant("accept-language", english, 1)).has_value());
        made.add(variant("cookie", english, 2));
        const auto gone = made.add(variant("accept-language", english, 3));
        REQUIRE(gone.has_value());
        CHECK(gone->response_time == wall_time{std::chrono::seconds{1}});
        REQUIRE(made.variants.size() == 2);
        CHECK(made.variants[1].response_time == wall_time{std::chrono::seconds{3}});
        CHECK(made.remove(made.variants[1].discriminator));
        CHECK_FALSE(made.remove(gone->discriminator));
        CHECK(made.variants.size() == 1);
    }

    TEST_CASE("a directory cut or bent anywhere is refused") {
        variant_directory made{.url = std::string{page}, .variants = {}};
        made.add(variant("accept-language", in_language("en"), 1));
        const auto record = record_of(directory_source{.primary = key_of(page), .directory = made},
                                      stamp(5));
        const auto front = read_header(record)->front_bytes;
        for (std::size_t cut = 0; cut < front; ++cut) {
            const std::vector<char> part(record.begin(),
                                         record.begin() + static_cast<std::ptrdiff_t>(cut));
            CHECK(check_front(part, store_id, 5).has_error());
            CHECK(read_variants(part).has_error());
        }
        for (std::size_t bit = 0; bit < front * 8; ++bit) {
            auto bent = record;
            bent[bit / 8] = static_cast<char>(bent[bit / 8] ^ (1 << (bit % 8)));
            CHECK(check_front(bent, store_id, 5).has_error());
            (void)read_variants(bent);  // whatever it says, it stays within its bytes
        }
    }
}

}  // namespace reprise::proxy::cache::disk
