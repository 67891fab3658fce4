#include "filter/bit_words.hpp"
#include "filter/digest_replica.hpp"
#include "filter/key_places.hpp"
#include "filter/little_endian.hpp"
#include "filter/news_bound.hpp"
#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::filter::test::of_news {
namespace {

key_hash by_name(std::uint64_t name) {
    return nth_key(7, name);
}

/// An owner that counts keys in places, as plainly as can be.
struct owner {
    explicit owner(digest_shape of) : shape{of}, words(words_for(of.bits)) {}

    void turn(std::uint64_t place) {
        words[place / 64] ^= bit_at(place);
        sum = turned(sum, place, (words[place / 64] & bit_at(place)) != 0);
    }
    void enter(std::uint64_t name) {
        for_each_place(shape, by_name(name), [&](std::uint64_t place) {
            if (counts[place]++ == 0) {
                turn(place);
            }
        });
        came.insert(name);
    }
    void leave(std::uint64_t name) {
        any_left = true;
        for_each_place(shape, by_name(name), [&](std::uint64_t place) {
            if (--counts[place] == 0) {
                turn(place);
            }
        });
    }
    [[nodiscard]] digest whole() const { return {shape, words, stamp_of(1, counter)}; }

    /// What led from those bits to these.
    [[nodiscard]] std::optional<std::vector<std::byte>> news_since(
        std::uint64_t base, const std::vector<std::uint64_t>& before) {
        net_changes changes;
        changes.names.assign(came.begin(), came.end());
        changes.names_say_all = !any_left;
        for (std::size_t i = 0; i < words.size(); ++i) {
            for (auto left = words[i] ^ before[i]; left != 0; left &= left - 1) {
                changes.places.push_back(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
            }
        }
        if (changes.names_say_all) {
            std::reverse(changes.places.begin(), changes.places.end());  // then any order will do
        }
        return encode_news({.shape = shape,
                            .stamp = stamp_of(9, counter),
                            .sum = sum,
                            .base_counter = base,
                            .base_sum = place_sum(before)},
                           changes,
                           words,
                           by_name);
    }

    digest_shape shape;
    std::vector<std::uint64_t> words;
    std::map<std::uint64_t, unsigned> counts;
    std::set<std::uint64_t> came;
    bool any_left = false;  ///< since they came
    std::uint64_t sum = 0, counter = 1;
};

digest_shape standard(std::uint64_t bits, unsigned probes) {
    return {.layout = digest_layout::standard, .bits = bits, .probes = probes};
}

constexpr digest_shape blocked{.layout = digest_layout::blocked, .bits = 512 * 300, .probes = 8};

bool same(const std::vector<std::uint64_t>& words, const digest& held) {
    return std::equal(words.begin(), words.end(), held.words().begin(), held.words().end());
}

/// News of one key that came to a filter of a thousand, and what it is news to.
struct one_piece {
    explicit one_piece(digest_shape shape = standard(1 << 16, 4), std::uint64_t keys = 3)
        : from{shape} {
        for (std::uint64_t i = 0; i < 1000; ++i) {
            from.enter(i);
        }
        from.came.clear();
        const auto before = from.words;
        base.emplace(from.whole());
        from.counter = 2;
        for (std::uint64_t i = 0; i < keys; ++i) {
            from.enter(5000 + i);
        }
        from.leave(17);
        wire = *from.news_since(1, before);
    }
    owner from;
    std::optional<digest_replica> base;
    std::vector<std::byte> wire;
};

}  // namespace

TEST_SUITE("filter/news") {
    TEST_CASE("marks and sums are those of the format") {
        CHECK(mark_of(0) == 0xe220a8397b1dcdaf);
        CHECK(mark_of(1) != mark_of(2));
        const std::vector<std::uint64_t> words{1, 0};
        CHECK(place_sum(words) == mark_of(0));
        std::uint64_t sum = 0;
        for (const std::uint64_t place : {0u, 77u, 100u}) {
            sum = turned(sum, place, true);
        }
        CHECK(place_sum(std::vector<std::uint64_t>{1, bit_at(77) | bit_at(100)}) == sum);
        CHECK(turned(turned(sum, 5, true), 5, false) == sum);
    }

    TEST_CASE("whoever follows by news has its owner's bits, whatever was missed in between") {
        const std::vector<digest_shape> shapes{standard(1 << 14, 2),
                                               standard(1 << 14, 4),
                                               standard(4999, 7),
                                               standard(1 << 20, 2),
                                               blocked};
        std::mt19937_64 random{5};
        unsigned by_names = 0, by_places = 0;
        for (const auto& shape : shapes) {
            CAPTURE(shape.bits);
            owner from{shape};
            std::vector<std::uint64_t> there;
            digest_replica held{from.whole()};
            auto before = from.words;
            for (int step = 0; step < 300; ++step) {
                CAPTURE(step);
                for (auto events = random() % 8; events > 0; --events) {
                    if (there.size() < 300 || random() % 2 == 0) {
                        there.push_back(random());
                        from.enter(there.back());
                    } else {
                        std::swap(there[random() % there.size()], there.back());
                        from.leave(there.back());
                        there.pop_back();
                    }
                }
                if (random() % 3 == 0) {
                    continue;  // it was not told
                }
                const auto base = std::exchange(from.counter, from.counter + 1);
                const auto wire = from.news_since(base, before);
                REQUIRE(wire.has_value());
                const bool named = read_digest_head(*wire)->encoding == digest_encoding::names;
                (named ? by_names : by_places) += 1;
                const auto turned = held.apply(*wire, by_name, {.false_positive_rate = 1});
                REQUIRE(turned.has_value());
                REQUIRE(same(from.words, held.now()));
                REQUIRE(held.now().stamp() == stamp_of(9, from.counter));
                REQUIRE(held.now().bits_on() == count_on(from.words));
                auto after = before;
                for (const auto place : *turned) {
                    after[place / 64] ^= bit_at(place);
                }
                REQUIRE(after == from.words);
                before = from.words;
                from.came.clear();
                from.any_left = false;
            }
            const digest told{shape, before, stamp_of(1)};
            CHECK(held.settled().checksum() == told.checksum());
            CHECK(held.settled().false_positive_rate() == told.false_positive_rate());
        }
        CHECK(by_names > 100);
        CHECK(by_places > 100);
    }

    TEST_CASE("whoever reads it changes nothing that its owner reads meanwhile") {
        owner from{standard(1 << 14, 4)};
        digest_replica held{from.whole()};
        std::atomic<bool> done{false};
        std::uint64_t torn = 0;
        std::thread reader{[&] {
            while (!done) {
                torn += held.read([](const digest& now) {
                    return now.bits_on() == count_on(now.words()) ? 0u : 1u;
                });
            }
        }};
        std::uint64_t on = 0;
        for (int i = 0; i < 200; ++i) {
            const auto before = from.words;
            from.enter(static_cast<std::uint64_t>(i));
            const auto base = std::exchange(from.counter, from.counter + 1);
            CHECK(held.apply(*from.news_since(base, before), by_name).has_value());
            on += held.now().bits_on() + (held.now().checksum() & 1);
            on += i % 50 == 0 ? held.settled().checksum() & 1 : 0;
        }
        done = true;
        reader.join();
        CHECK(on > 0);
        CHECK(torn == 0);
    }

    TEST_CASE("keys are told by name where that is shorter, and only there") {
        for (const auto& [shape, named] : std::vector<std::pair<digest_shape, bool>>{
                 {standard(1 << 24, 2), false}, {standard(1 << 24, 6), true}, {blocked, true}}) {
            CAPTURE(shape.probes);
            const one_piece piece{shape, 20};
            const auto head = read_digest_head(piece.wire);
            CHECK((head->encoding == digest_encoding::names) == named);
            CHECK(piece.wire.size() < digest_header_bytes + 20 * 9 + 40);
        }
    }

    TEST_CASE("names that say all are told alone, and need no bits to be looked at") {
        owner from{blocked};
        for (std::uint64_t i = 0; i < 100; ++i) {
            from.enter(i);
        }
        digest_replica held{from.whole()};
        const auto before = from.words;
        from.came.clear();
        from.counter = 2;
        from.enter(1000);
        from.enter(7);  // is there
        const auto wire = from.news_since(1, before);
        REQUIRE(wire.has_value());
        const auto head = read_digest_head(*wire);
        CHECK(head->encoding == digest_encoding::golomb);  // eight places are shorter than two names
        REQUIRE(held.apply(*wire, by_name).has_value());
        CHECK(same(from.words, held.now()));
        const auto between = from.words;
        from.came.clear();
        from.counter = 3;
        for (std::uint64_t i = 1001; i < 1020; ++i) {
            from.enter(i);
        }
        const auto more = from.news_since(2, between);
        REQUIRE(more.has_value());
        CHECK(read_digest_head(*more)->encoding == digest_encoding::names);
        CHECK(read_digest_head(*more)->listed == 0);
        REQUIRE(held.apply(*more, by_name).has_value());
        CHECK(same(from.words, held.now()));
    }

    TEST_CASE("news says its base, and nothing else is changed by it") {
        const one_piece piece;
        const auto refused = [&](digest base) {
            digest_replica other{std::move(base)};
            const auto before = other.now().checksum();
            const auto error = other.apply(piece.wire, by_name).error();
            CHECK(other.settled().checksum() == before);
            return error;
        };
        owner like = piece.from;
        like.counter = 1;
        CHECK(refused(like.whole()) == digest_errc::wrong_base);  // bits
        like = one_piece{}.from;
        CHECK(refused(like.whole()) == digest_errc::wrong_base);  // counter
        CHECK(refused(owner{standard(1 << 15, 4)}.whole()) == digest_errc::wrong_base);
        digest_replica right{piece.base->read([](const digest& now) {
            return digest{now.shape(), {now.words().begin(), now.words().end()}, now.stamp()};
        })};
        CHECK(right.apply(encode(piece.from.whole()), by_name).error() == digest_errc::is_whole);
        CHECK(decode_digest(piece.wire, test_seed()).error() == digest_errc::is_news);
        CHECK(apply_delta(piece.wire, piece.base->now()).error() == digest_errc::is_news);
        CHECK(right.apply(piece.wire, by_name, {.bytes = 100}).error() == digest_errc::over_limit);
        CHECK(right.apply(piece.wire, by_name, {.false_positive_rate = 0}).error() ==
              digest_errc::saturated);
        REQUIRE(right.apply(piece.wire, by_name).has_value());
        CHECK(same(piece.from.words, right.now()));
        CHECK(right.apply(piece.wire, by_name).error() == digest_errc::wrong_base);
    }

    TEST_CASE("cut anywhere or damaged anywhere it is refused, and what is held stays") {
        one_piece piece{blocked};
        REQUIRE(read_digest_head(piece.wire)->encoding == digest_encoding::names);
        const auto before = piece.base->now().checksum();
        for (std::size_t cut = 0; cut < piece.wire.size(); ++cut) {
            CAPTURE(cut);
            REQUIRE(piece.base->apply(std::span{piece.wire}.first(cut), by_name).has_error());
        }
        for (std::size_t at = 0; at < piece.wire.size(); ++at) {
            CAPTURE(at);
            auto damaged = piece.wire;
            damaged[at] ^= std::byte{0x10};
            REQUIRE(piece.base->apply(damaged, by_name).has_error());
        }
        CHECK(piece.base->read([](const digest& now) { return now.checksum(); }) == before);
        CHECK(piece.base->apply(piece.wire, by_name).has_value());
    }

    TEST_CASE("a body that says other than its header is turned back, with sums made right") {
        one_piece piece{blocked};
        const auto head = *read_digest_head(piece.wire);
        const auto body = std::vector<std::byte>(piece.wire.begin() + digest_header_bytes,
                                                 piece.wire.end());
        const auto error_of = [&](digest_head with, std::vector<std::byte> bytes) {
            with.body_bytes = bytes.size();
            const auto before = place_sum(piece.base->now().words());
            const auto error = piece.base->apply(write_digest(with, bytes), by_name).error();
            CHECK(place_sum(piece.base->now().words()) == before);
            CHECK(piece.base->sum() == before);
            return error;
        };
        auto longer = body;
        longer.push_back(std::byte{1});
        CHECK(error_of(head, longer) == digest_errc::bad_body);
        auto many = body;
        many[0] = std::byte{200};
        CHECK(error_of(head, many) == digest_errc::bad_body);
        many[7] = std::byte{0xff};
        CHECK(error_of(head, many) == digest_errc::bad_body);
        auto fewer = body;
        fewer[8] ^= std::byte{1};  // another key
        CHECK(error_of(head, fewer) == digest_errc::corrupt);
        auto off = head;
        off.checksum ^= 1;
        CHECK(error_of(off, body) == digest_errc::corrupt);
        auto none = head;
        none.listed = 1000;
        CHECK(error_of(none, body) != boost::system::error_code{});
        auto raw = head;
        raw.encoding = digest_encoding::raw;
        raw.divisor = 0;
        CHECK(error_of(raw, std::vector<std::byte>(head.shape.bits / 8)) ==
              digest_errc::bad_header);
    }

    TEST_CASE("what would turn more than news may is refused, and not written") {
        one_piece piece{blocked};
        auto head = *read_digest_head(piece.wire);
        const auto most = most_news_places(head.shape.bits);
        std::vector<std::byte> body((1 + most / 8 + 1) * 8 + 1);
        put_little_endian(body.data(), std::uint64_t{most / 8 + 1});
        head.body_bytes = body.size();
        head.listed = 0;
        const auto before = place_sum(piece.base->now().words());
        CHECK(piece.base->apply(write_digest(head, body), by_name).error() ==
              digest_errc::over_limit);
        head.encoding = digest_encoding::golomb;
        head.listed = most + 1;
        head.divisor = 1;
        CHECK(piece.base->apply(write_digest(head, body), by_name).error() ==
              digest_errc::over_limit);
        CHECK(piece.base->sum() == before);
        owner from{standard(1 << 16, 4)};
        const auto empty = from.words;
        from.counter = 2;
        for (std::uint64_t i = 0; i < 1100; ++i) {
            from.enter(i);
        }
        CHECK_FALSE(from.news_since(1, empty).has_value());
    }

    TEST_CASE("where the bits as they are would be shorter, there is no news") {
        owner from{standard(256, 2)};
        const auto before = from.words;
        from.counter = 2;
        for (std::uint64_t i = 0; i < 90; ++i) {
            from.enter(i);
        }
        CHECK_FALSE(from.news_since(1, before).has_value());
    }
}

}  // namespace reprise::filter::test::of_news
