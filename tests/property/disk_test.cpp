// The disk format over inputs made from seeds: whatever response is written comes back as it was,
// and whatever happens to a segment's bytes, nothing comes back that was not written there.

#include "tests/unit/cache/disk/records.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk::test::of_disk {

namespace {

class maker {
public:
    explicit maker(std::uint64_t seed) : random_{seed} {}

    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    bool coin() { return below(2) == 0; }

    std::string text(std::size_t most) {
        // Mostly short, now and then long, and of any bytes.
        std::string made(below(8) == 0 ? below(most + 1) : below(std::min<std::size_t>(most, 40)),
                         '\0');
        for (auto& c : made) {
            c = static_cast<char>(random_());
        }
        return made;
    }
    std::optional<http::seconds> some_seconds() {
        if (coin()) {
            return std::nullopt;
        }
        return http::seconds{static_cast<std::int64_t>(below((std::uint64_t{1} << 31) + 1))};
    }

    drafted response() {
        drafted made;
        made->head = (coin() ? "HTTP/1.1 200 OK\r\n" : "") + text(9000);
        made->status_line_size = status_line_size(made->head);
        made->length_at = below(made->head.size() + 1);
        made->status = static_cast<unsigned>(100 + below(500));
        auto& facts = made->freshness;
        facts.response_time = wall_time{std::chrono::milliseconds{
            static_cast<std::int64_t>(below(std::uint64_t{1} << 42)) - 1000}};
        facts.initial_age = some_seconds().value_or(http::seconds{0});
        facts.lifetime = some_seconds().value_or(http::seconds{0}) * 100;
        facts.source = static_cast<http::lifetime_source>(below(6));
        auto& directives = made->directives;
        directives.max_age = some_seconds();
        directives.s_maxage = some_seconds();
        directives.stale_while_revalidate = some_seconds();
        directives.stale_if_error = some_seconds();
        for (bool* flag : {&directives.no_store,
                           &directives.no_cache,
                           &directives.private_,
                           &directives.public_,
                           &directives.must_revalidate,
                           &directives.proxy_revalidate,
                           &directives.must_understand,
                           &directives.immutable,
                           &directives.no_transform,
                           &directives.no_cache_fields,
                           &directives.private_fields,
                           &directives.targeted}) {
            *flag = coin();
        }
        made->vary.names = text(300);
        made->selecting = text(3000);
        for (auto tags = below(5); tags > 0; --tags) {
            made->tags.push_back(random_());
        }
        made->purged_softly = below(4) == 0;
        made->content = pieces();
        return made;
    }

    /// A body cut into slices somewhere.
    body_ptr pieces() {
        const auto whole = random_body(below(6) == 0 ? below(150'000) : below(500), random_());
        auto cut = std::make_shared<body>();
        cut->size = whole->size;
        for (std::size_t begin = 0; begin < whole->size;) {
            const auto bytes = std::min<std::size_t>(1 + below(whole->size), whole->size - begin);
            cut->slices.push_back({whole->slices[0].memory, begin, bytes});
            begin += bytes;
        }
        return cut;
    }

private:
    std::mt19937_64 random_;
};

/// Everything that a reader would hand on of a record.
std::string meaning(std::span<const char> record, const object_view& view) {
    const auto body = record.subspan(view.header.front_bytes, view.header.body_bytes);
    std::string all{view.url};
    all.append("|").append(view.head).append("|").append(body.begin(), body.end());
    return all;
}

}  // namespace

TEST_SUITE("property/disk") {
    TEST_CASE("whatever response is written comes back as it was") {
        for (std::uint64_t seed = 1; seed <= 400; ++seed) {
            CAPTURE(seed);
            maker any{seed};
            const auto made = any.response();
            const auto url = any.text(2000);
            auto source = source_of(url, *made);
            source.discriminator = any.below(3);
            source.ban_epoch = any.below(1u << 30);
            const auto record = record_of(source, stamp(seed, seed + 1));
            const auto header = check_front(record, store_id, seed);
            REQUIRE(header.has_value());
            REQUIRE(check_body(record, *header, store_id));
            const auto view = read_object(record);
            REQUIRE(view.has_value());
            CHECK(meaning(record, *view) ==
                  url + "|" + made->head + "|" + bytes_of(*made->content));
            CHECK(view->ban_epoch == source.ban_epoch);
            const auto read = make_response(*view);
            CHECK(read.status == made->status);
            CHECK(read.status_line_size == made->status_line_size);
            CHECK(read.length_at == made->length_at);
            CHECK(read.freshness == made->freshness);
            CHECK(read.directives == made->directives);
            CHECK(read.vary == made->vary);
            CHECK(read.selecting == made->selecting);
            CHECK(read.tags == made->tags);
            CHECK(read.purged_softly == made->purged_softly);
        }
    }

    TEST_CASE("whatever happens to a segment's bytes, only what was written there is served") {
        for (std::uint64_t seed = 1; seed <= 150; ++seed) {
            CAPTURE(seed);
            maker any{seed};
            filled_segment made{1 + any.below(3)};
            std::map<std::uint64_t, std::string> written;  // by offset, in the last round
            for (auto rounds = 1 + any.below(3); rounds > 0; --rounds) {
                made.begin(made.sequence() + 1 + any.below(2));
                written.clear();
                for (auto count = any.below(25); count > 0; --count) {
                    const auto response = any.response();
                    const auto url = any.text(100);
                    const auto source = source_of(url, *response);
                    if (made.fill().has_room(*sized(source))) {
                        const auto entry = made.add(source);
                        written[entry.offset] = url + "|" + response->head + "|" +
                                                bytes_of(*response->content);
                    }
                }
                if (any.coin()) {
                    made.close();
                }
            }
            auto& bytes = made.bytes();
            const auto used = std::max<std::uint64_t>(made.fill().offset(), 200);
            const auto place = [&] {
                return any.below(8) == 0 ? bytes.size() - 1 - any.below(1000) : any.below(used);
            };
            for (auto harm = any.below(6); harm > 0; --harm) {
                const auto at = place(), from = place();
                const auto length = std::min(
                    {any.below(any.coin() ? 4 : 20'000), bytes.size() - at, bytes.size() - from});
                switch (any.below(3)) {
                case 0: bytes[at] = static_cast<char>(any.below(256)); break;
                case 1: std::fill_n(bytes.begin() + static_cast<long>(at), length, '\0'); break;
                default: {
                    // A misplaced write, at a place that is aligned as ours are.
                    const std::vector<char> moved(bytes.begin() + static_cast<long>(from / 16 * 16),
                                                  bytes.begin() +
                                                      static_cast<long>(from / 16 * 16 + length));
                    std::copy(moved.begin(),
                              moved.end(),
                              bytes.begin() + static_cast<long>(at / 16 * 16));
                }
                }
            }
            const auto found = made.recovered();
            for (const auto& entry : found.entries) {
                const auto record = std::span{bytes}.subspan(entry.offset, entry.bytes);
                const auto header = check_front(record, store_id, found.header.sequence);
                if (header.has_error() || !check_body(record, *header, store_id)) {
                    continue;
                }
                const auto view = read_object(record);
                REQUIRE(view.has_value());
                const auto means = meaning(record, *view);
                const bool known = std::any_of(written.begin(), written.end(), [&](const auto& w) {
                    return w.second == means;
                });
                CHECK(known);
            }
        }
    }
}

}  // namespace reprise::proxy::cache::disk::test::of_disk
