#include "proxy/peer/secret.hpp"
#include "proxy/peer/sibling_table.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/filter/squid_fixtures.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace reprise::proxy::peer::test::of_sibling_table {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;
using filter::test::nth_key;

constexpr steady_time start{1h};
const auto size = filter::digest_size(1000, 1e-4);

std::vector<unsigned> slots_of(const candidates& from) {
    return {from.begin(), from.end()};
}

std::vector<unsigned> ask(sibling_table::reader& reader, std::uint64_t i) {
    return slots_of(reader.find("http://none/", nth_key(1, i), start));
}

using list = std::vector<unsigned>;

}  // namespace

TEST_SUITE("peer/sibling_table") {
    TEST_CASE("a look-up names those whose digests say yes") {
        sibling_table table;
        sibling_table::reader reader{table};
        CHECK(ask(reader, 1).empty());
        const auto a = *table.enrol("a");
        const auto b = *table.enrol("b");
        table.put(a, digest_of_keys(size, 0, 100));
        table.put(b, digest_of_keys(size, 50, 150));
        CHECK(ask(reader, 10) == list{a});
        CHECK(ask(reader, 75) == list{a, b});
        CHECK(ask(reader, 120) == list{b});
        CHECK(ask(reader, 500).empty());
        reader.tell();
        CHECK(table.benefit_of(a).figures().offered == 4);
        for (int i = 0; i < 20; ++i) {
            (void)ask(reader, 500);
        }
        CHECK(table.benefit_of(a).figures().offered >= 20);  // they are told by and by
        CHECK(table.benefit_of(a).figures().named == 2);
    }

    TEST_CASE("the cheapest comes first: a short way, and few false hits") {
        sibling_table table;
        sibling_table::reader reader{table};
        for (const auto* name : {"far", "near", "liar"}) {
            table.put(*table.enrol(name), digest_of_keys(size, 0, 100));
        }
        for (int i = 0; i < 40; ++i) {
            table.benefit_of(0).ended(asking_end::true_hit, 10ms, {90ms}, 1, start);
            table.benefit_of(1).ended(asking_end::true_hit, 4ms, {90ms}, 1, start);
            table.benefit_of(2).ended(
                i % 10 == 0 ? asking_end::true_hit : asking_end::false_hit, 4ms, {90ms}, 1, start);
        }
        CHECK(ask(reader, 5).front() == 1);
        CHECK(ask(reader, 5)[1] == 0);
    }

    TEST_CASE("a delta changes what is named, and a delta to what is not there puts the whole") {
        sibling_table table;
        sibling_table::reader reader{table};
        const auto a = *table.enrol("a");
        const auto before = digest_of_keys(size, 0, 100, 1);
        const auto after = digest_of_keys(size, 50, 150, 2);
        table.put(a, before);
        table.flip(a, after, filter::flipped_places(before, after));
        CHECK(ask(reader, 10).empty());
        CHECK(ask(reader, 140) == list{a});
        table.remove(a);
        CHECK(ask(reader, 140).empty());
        table.flip(a, after, filter::flipped_places(before, after));
        CHECK(ask(reader, 60) == list{a});
        CHECK(ask(reader, 10).empty());
    }

    TEST_CASE("slots are the names', and are free again once dismissed") {
        sibling_table table;
        for (unsigned i = 0; i < most_slots; ++i) {
            CHECK(table.enrol(std::string{"s"}.append(std::to_string(i))) == i);
        }
        CHECK(table.enrol("s7") == 7u);
        CHECK_FALSE(table.enrol("more"));
        table.put(7, digest_of_keys(size, 0, 100));
        table.benefit_of(7).ended(asking_end::failed, 1ms, {1ms}, 0, start);
        table.dismiss(7);
        table.remove(7);
        sibling_table::reader reader{table};
        CHECK(ask(reader, 1).empty());
        CHECK(table.enrol("more") == 7u);
        CHECK(table.name_of(7) == "more");
        CHECK(table.benefit_of(7).figures().asked() == 0);
    }

    TEST_CASE("a Squid is asked by its own keys, beside the others") {
        sibling_table table;
        sibling_table::reader reader{table};
        const auto squid = *table.enrol("squid");
        const auto ours = *table.enrol("ours");
        auto read = filter::squid_digest::decode(filter::test::squid_bytes("digest-small.bin"));
        REQUIRE(read.has_value());
        table.put(squid, std::make_shared<const filter::squid_digest>(std::move(*read)));
        table.put(ours, digest_of_keys(size, 0, 100));
        const auto urls = filter::test::squid_lines("digest-small.urls");
        CHECK(slots_of(reader.find(urls.front(), nth_key(1, 5), start)) == list{squid, ours});
        CHECK(slots_of(reader.find(urls.back(), nth_key(1, 500), start)) == list{squid});
        CHECK(table.bytes() > 70);
        table.remove(squid);
        CHECK(slots_of(reader.find(urls.front(), nth_key(1, 5), start)) == list{ours});
    }

    TEST_CASE("what takes more than all together may is not put") {
        const auto larger = filter::digest_size(2000, 1e-4);
        sibling_table table{size.bits + larger.bits};  // up to 8 siblings take a byte a bit
        sibling_table::reader reader{table};
        for (unsigned i = 0; i < 8; ++i) {
            const auto slot = *table.enrol(std::string{"s"}.append(std::to_string(i)));
            CHECK(table.put(slot, digest_of_keys(size, 0, 100)));
        }
        CHECK(table.bytes() == size.bits);
        CHECK(table.put(7, digest_of_keys(larger, 0, 100)));
        CHECK(table.bytes() == size.bits + larger.bits);
        const auto ninth = *table.enrol("ninth");
        const auto largest = filter::digest_size(4000, 1e-4);
        CHECK_FALSE(table.put(ninth, digest_of_keys(largest, 0, 100)));
        CHECK_FALSE(table.put(ninth, digest_of_keys(size, 0, 100)));  // all rows become wider
        CHECK_FALSE(table.flip(ninth, digest_of_keys(size, 0, 100), {}));
        CHECK_FALSE(table.put(7, digest_of_keys(largest, 0, 100)));
        CHECK(ask(reader, 10) == list{0, 1, 2, 3, 4, 5, 6, 7});
        auto read = filter::squid_digest::decode(filter::test::squid_bytes("digest-small.bin"));
        REQUIRE(read.has_value());
        const auto squid = std::make_shared<const filter::squid_digest>(std::move(*read));
        CHECK_FALSE(table.put(ninth, squid));
        reader.rest();  // what a reader has not let go of counts
        table.remove(7);
        CHECK(table.put(ninth, squid));
        CHECK_FALSE(table.put(7, digest_of_keys(larger, 0, 100)));
        CHECK(table.put(7, digest_of_keys(size, 0, 100)));
    }

    TEST_CASE("one that is not worth asking is left out of most look-ups") {
        sibling_table table;
        sibling_table::reader reader{table};
        table.put(*table.enrol("a"), digest_of_keys(size, 0, 100));
        for (int i = 0; i < 20; ++i) {
            table.benefit_of(0).ended(asking_end::false_hit, 5ms, {50ms}, 0, start);
        }
        unsigned named = 0;
        for (int i = 0; i < 256; ++i) {
            named += ask(reader, 5).empty() ? 0 : 1;
        }
        CHECK(named <= 2);
    }

    TEST_CASE("one that was not worth asking is tried again where nobody comes before it") {
        sibling_table table;
        sibling_table::reader reader{table};
        table.put(*table.enrol("bad"), digest_of_keys(size, 0, 100));
        table.put(*table.enrol("good"), digest_of_keys(size, 50, 100));
        for (int i = 0; i < 20; ++i) {
            table.benefit_of(0).ended(asking_end::timed_out, 300ms, {50ms}, 0, start);
            table.benefit_of(1).ended(asking_end::true_hit, 2ms, {50ms}, 0, start);
        }
        REQUIRE(table.benefit_of(0).figures().one_in == 256);
        (void)ask(reader, 5);  // the first of 256 chances
        const auto later = start + 11s;
        for (std::uint64_t i = 50; i < 100; ++i) {
            CHECK(slots_of(reader.find("http://none/", nth_key(1, i), later)) == list{1});
        }
        CHECK(slots_of(reader.find("http://none/", nth_key(1, 5), later)) == list{0});
        CHECK(slots_of(reader.find("http://none/", nth_key(1, 6), later)).empty());
    }

    TEST_CASE("256 siblings are told from one another") {
        sibling_table table;
        sibling_table::reader reader{table};
        for (unsigned i = 0; i < most_slots; ++i) {
            const auto slot = table.enrol("s" + std::to_string(i));
            REQUIRE(slot == i);
            REQUIRE(table.put(*slot, digest_of_keys(size, 100 * i, 100 * i + 10)));
        }
        CHECK_FALSE(table.enrol("one too many"));
        for (const unsigned i : {0u, 63u, 64u, 127u, 128u, 191u, 192u, 255u}) {
            const auto named = reader.named("http://none/", nth_key(1, 100 * i));
            CHECK(named.has(i));
            unsigned all = 0;
            named.for_each([&all](unsigned) { ++all; });
            CHECK(all < 20);
            // Of those that may be asked.
            slot_set one;
            one.add(i);
            CHECK(slots_of(reader.find("http://none/", nth_key(1, 100 * i), start, one)) ==
                  list{i});
            CHECK(slots_of(reader.find("http://none/", nth_key(1, 100 * i), start, ~one)).size() ==
                  all - 1);
        }
        table.remove(200);
        CHECK_FALSE(reader.named("http://none/", nth_key(1, 20'000)).has(200));
        table.dismiss(200);
        CHECK(table.enrol("another") == 200);
    }

    TEST_CASE("all digests together are bounded, in whichever block they are") {
        sibling_table table{std::uint64_t{3} * size.bits};  // three of a block's least slices, of 8
        unsigned taken = 0;
        for (unsigned i = 0; i < most_slots; ++i) {
            const auto slot = table.enrol("s" + std::to_string(i));
            taken += i % 64 == 0 && table.put(*slot, digest_of_keys(size, 0, 10)) ? 1 : 0;
        }
        CHECK(taken == 3);
        CHECK(table.bytes() <= 3 * size.bits);
    }

    TEST_CASE("who may not be asked has no chance in it, and takes none from those behind") {
        sibling_table table;
        sibling_table::reader reader{table};
        table.put(*table.enrol("plain"), digest_of_keys(size, 0, 100));
        table.put(*table.enrol("secure"), digest_of_keys(size, 0, 100));
        for (int i = 0; i < 20; ++i) {
            table.benefit_of(0).ended(asking_end::true_hit, 2ms, {50ms}, 0, start);
            table.benefit_of(1).ended(asking_end::timed_out, 300ms, {50ms}, 0, start);
        }
        REQUIRE(table.benefit_of(1).figures().one_in == 256);
        slot_set second;
        second.add(1);
        const auto find = [&](steady_time now) {
            return slots_of(reader.find("https://none/", nth_key(1, 5), now, second));
        };
        CHECK(find(start) == list{1});  // the first of 256 chances
        CHECK(find(start).empty());
        CHECK(find(start + 11s) == list{1});
        CHECK(find(start + 11s).empty());
        reader.tell();
        CHECK(table.benefit_of(0).figures().offered == 0);
        CHECK(table.benefit_of(1).figures().offered == 4);
        // And the other way round.
        for (int i = 0; i < 20; ++i) {
            table.benefit_of(0).ended(asking_end::timed_out, 300ms, {50ms}, 0, start);
        }
        for (int i = 0; i < 3; ++i) {
            (void)find(start);
        }
        CHECK(table.benefit_of(0).figures().held_back == 0);
    }

    TEST_CASE("the origin's latency is a mean") {
        sibling_table table;
        CHECK(table.hit_gives().time == 0us);
        table.note_origin(50ms);
        CHECK(table.hit_gives().time == 50ms);
        for (int i = 0; i < 1000; ++i) {
            table.note_origin(20ms);
        }
        CHECK(table.hit_gives().time < 21ms);
    }

    TEST_CASE("threads look up while digests come, change and go") {
        sibling_table table;
        const auto stays = *table.enrol("stays");
        const auto goes = *table.enrol("goes");
        table.put(stays, digest_of_keys(size, 0, 100));
        std::jthread changer{[&](const std::stop_token& stop) {
            const auto before = digest_of_keys(size, 0, 100, 1);
            const auto after = digest_of_keys(size, 0, 110, 2);
            const auto places = filter::flipped_places(before, after);
            while (!stop.stop_requested()) {
                table.put(goes, before);
                table.flip(goes, after, places);
                table.remove(goes);
            }
        }};
        std::vector<std::jthread> askers;
        for (int t = 0; t < 2; ++t) {
            askers.emplace_back([&table, stays] {
                sibling_table::reader reader{table};
                for (int i = 0; i < 2000; ++i) {
                    const auto named = reader.find("http://x/", nth_key(1, 5), start);
                    if (named.empty() || *named.begin() != stays) {
                        FAIL_CHECK("a sibling whose digest stayed was not named");
                        return;
                    }
                }
            });
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_sibling_table
