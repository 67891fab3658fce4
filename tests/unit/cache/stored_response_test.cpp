#include "proxy/cache/stored_response.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

namespace reprise::proxy::cache::test::of_stored_response {
namespace {

using namespace std::chrono_literals;

/// Anything that a draft may say.
class maker {
public:
    explicit maker(std::uint64_t seed) : random_{seed} {}

    response_draft draft(std::size_t body_bytes) {
        response_draft made;
        made.head = (coin() ? "HTTP/1.1 200 OK\r\n" : "") + text(900);
        made.status_line_size = status_line_size(made.head);
        made.length_at = below(made.head.size() + 1);
        made.status = static_cast<unsigned>(100 + below(900));
        const auto came = std::chrono::milliseconds{
            static_cast<std::int64_t>(below(std::uint64_t{1} << 45)) - 1000};
        made.freshness = {
            .response_time = wall_time{came},
            .initial_age = http::seconds{static_cast<std::int64_t>(below(1u << 31))},
            .lifetime = http::seconds{static_cast<std::int64_t>(below(std::uint64_t{1} << 38))},
            .source = static_cast<http::lifetime_source>(below(6))};
        made.asked_at = coin() ? wall_time::min()
                               : made.freshness.response_time -
                                     std::chrono::milliseconds{below(3'600'000)};
        auto& says = made.directives;
        for (auto* span :
             {&says.max_age, &says.s_maxage, &says.stale_while_revalidate, &says.stale_if_error}) {
            if (coin()) {
                *span = http::seconds{static_cast<std::int64_t>(below((1ull << 31) + 1))};
            }
        }
        for (bool* flag : {&says.no_store,
                           &says.no_cache,
                           &says.private_,
                           &says.public_,
                           &says.must_revalidate,
                           &says.proxy_revalidate,
                           &says.must_understand,
                           &says.immutable,
                           &says.no_transform,
                           &says.no_cache_fields,
                           &says.private_fields,
                           &says.targeted}) {
            *flag = coin();
        }
        made.vary = {text(80), coin()};
        made.selecting = text(200);
        made.disk_record = random_();
        made.reusable_until = coin() ? wall_time::min() : http::fresh_until(made.freshness);
        made.purged_softly = coin();
        made.wait = packed_wait::of_code(static_cast<unsigned>(below(packed_wait::most_code + 1)));
        for (auto tags = below(4); tags > 0; --tags) {
            made.tags.push_back(random_());
        }
        made.content = body_of(bytes(body_bytes));
        made.weak_last_modified = coin();
        return made;
    }
    std::string bytes(std::size_t count) {
        std::string made(count, '\0');
        for (auto& c : made) {
            c = static_cast<char>(random_());
        }
        return made;
    }
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

private:
    std::string text(std::size_t most) { return bytes(below(most)); }
    bool coin() { return below(2) == 0; }
    std::mt19937_64 random_;
};

void check_same(const response_draft& one, const response_draft& other) {
    CHECK(one.head == other.head);
    CHECK(one.status_line_size == other.status_line_size);
    CHECK(one.length_at == other.length_at);
    CHECK(one.status == other.status);
    CHECK(one.freshness == other.freshness);
    CHECK(one.asked_at == other.asked_at);
    CHECK(one.directives == other.directives);
    CHECK(one.vary == other.vary);
    CHECK(one.selecting == other.selecting);
    CHECK(one.parts == other.parts);
    CHECK(one.on_disk == other.on_disk);
    CHECK(one.disk_record == other.disk_record);
    CHECK(one.reusable_until == other.reusable_until);
    CHECK(one.purged_softly == other.purged_softly);
    CHECK(one.weak_last_modified == other.weak_last_modified);
    CHECK(one.tags == other.tags);
    CHECK(one.wait == other.wait);
}

}  // namespace

TEST_SUITE("cache/stored_response") {
    TEST_CASE("what a draft says is kept, whatever it is, with a body here or in blocks") {
        for (std::uint64_t seed = 1; seed <= 400; ++seed) {
            CAPTURE(seed);
            maker any{seed};
            const std::size_t sizes[]{
                0, 1, 1024, stored_response::small_body, stored_response::small_body + 1};
            const auto draft = any.draft(sizes[seed % 5]);
            const auto kept = stored_response::make(draft);
            const auto again = kept->draft();
            check_same(again, draft);
            REQUIRE(again.content);
            CHECK(bytes_of(*again.content) == bytes_of(*draft.content));
            CHECK(kept->has_content());
            CHECK(kept->size() == draft.content->size);
            check_same(kept->draft_without_content(), draft);
        }
    }

    TEST_CASE("a large body is shared, and no block of a small one is held on to") {
        maker any{1};
        const auto large = any.draft(stored_response::small_body + 1);
        CHECK(stored_response::make(large)->content() == large.content);
        const auto small = any.draft(stored_response::small_body);
        const auto uses = small.content.use_count();
        const auto kept = stored_response::make(small);
        CHECK(small.content.use_count() == uses);
    }

    TEST_CASE("any range of a body comes in pieces that are its bytes") {
        for (std::uint64_t seed = 1; seed <= 100; ++seed) {
            CAPTURE(seed);
            maker any{seed};
            const auto bytes = any.bytes(1 + any.below(9'000));
            auto draft = any.draft(0);
            auto cut = std::make_shared<body>();
            for (std::size_t at = 0; at < bytes.size();) {
                const auto size = std::min<std::size_t>(1 + any.below(4'000), bytes.size() - at);
                const auto part = body_of(std::string_view{bytes}.substr(at, size));
                cut->slices.push_back(part->slices.front());
                at += size;
            }
            cut->size = bytes.size();
            draft.content = cut;
            const auto kept = stored_response::make(draft);
            const auto first = any.below(bytes.size());
            const auto last = first + any.below(bytes.size() - first);
            std::string got;
            kept->each_piece({first, last}, [&got](std::string_view piece) { got += piece; });
            CHECK(got == bytes.substr(first, last - first + 1));
            got.clear();
            kept->each_piece([&got](std::string_view piece) { got += piece; });
            CHECK(got == bytes);
        }
    }

    TEST_CASE("parts are kept beside a head that has no content") {
        auto draft = maker{3}.draft(0);
        draft.content = nullptr;
        auto parts = std::make_shared<partial_body>();
        parts->total = 100;
        parts->held.push_back({7, body_of("abc")});
        draft.parts = parts;
        const auto kept = stored_response::make(draft);
        CHECK(kept->parts() == parts);
        CHECK_FALSE(kept->has_content());
        CHECK_FALSE(kept->content());
        check_same(kept->draft(), draft);
    }

    TEST_CASE("a response without a body in memory has none") {
        auto draft = maker{4}.draft(0);
        draft.content = nullptr;
        const auto kept = stored_response::make(draft);
        CHECK_FALSE(kept->has_content());
        CHECK(kept->size() == 0);
        CHECK_FALSE(kept->parts());
        CHECK_FALSE(kept->on_disk());
    }

    TEST_CASE("what lasts longer than can be kept lasts as long as can be") {
        auto draft = maker{7}.draft(0);
        draft.freshness.lifetime = http::seconds{std::int64_t{1} << 60};
        draft.freshness.initial_age = http::seconds{std::int64_t{1} << 60};
        draft.directives.max_age = http::seconds{std::int64_t{1} << 40};
        const auto kept = stored_response::make(draft);
        CHECK(kept->freshness().lifetime == http::seconds{(std::int64_t{1} << 38) - 1});
        CHECK(kept->freshness().initial_age == http::seconds{(std::int64_t{1} << 37) - 1});
        CHECK(kept->directives().max_age == http::seconds{UINT32_MAX});
    }

    TEST_CASE(
        "max-age is known where it is the lifetime, and where a purge or a rule made it another") {
        for (const auto lifetime : {std::int64_t{0}, std::int64_t{600}, std::int64_t{UINT32_MAX}}) {
            for (const auto said : {lifetime, std::int64_t{600}}) {
                auto draft = maker{8}.draft(100);
                draft.freshness.lifetime = http::seconds{lifetime};
                draft.directives.max_age = http::seconds{said};
                draft.reusable_until = wall_time::min();
                const auto kept = stored_response::make(draft);
                check_same(kept->draft(), draft);
                CHECK(bytes_of(*kept->content()) == bytes_of(*draft.content));
            }
        }
    }

    TEST_CASE("a head that its numbers cannot tell is not taken") {
        auto draft = maker{9}.draft(0);
        draft.head.assign(std::size_t{1} << 21, 'h');
        CHECK_THROWS_AS((void)stored_response::make(draft), std::bad_alloc);
    }

    TEST_CASE("a request that is longer ago than can be kept is not known") {
        auto draft = maker{5}.draft(0);
        const auto came = draft.freshness.response_time;
        draft.asked_turn = turns - 1;
        draft.asked_at = came - std::chrono::minutes{69};
        CHECK(stored_response::make(draft)->asked_at() == draft.asked_at);
        CHECK(stored_response::make(draft)->asked_turn() == turns - 1);
        draft.asked_at = came - std::chrono::minutes{70};
        CHECK(stored_response::make(draft)->asked_at() == wall_time::min());
        draft.asked_at = came + 1s;  // no answer comes before its request
        CHECK(stored_response::make(draft)->asked_at() == came);
    }

    TEST_CASE("a response lives as long as somebody holds it") {
        const auto draft = maker{6}.draft(10);
        auto first = stored_response::make(draft);
        const auto second = first;
        first = nullptr;
        CHECK(second->head() == draft.head);
    }
}

}  // namespace reprise::proxy::cache::test::of_stored_response
