// News of Reprise's caches, as the library takes them: true, damaged, and a liar's.

#include "filter/bit_words.hpp"
#include "filter/digest_wire.hpp"
#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"
#include "tests/unit/filter/c/sources.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <reprise/digest.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reprise::filter::c::test {

namespace {

/// A cache of Reprise's, which has 64 bits of each URL and tells news.
class news_teller {
public:
    explicit news_teller(double rate, std::uint64_t keys = 2'000)
        : held_{digest_size(keys, rate)},
          secret_{hash_secret::from_seed(std::as_bytes(std::span{fleet_seed}))},
          stamp_{.seed = identify(secret_.seed()),
                 .generation = {.epoch = 5, .counter = 1},
                 .keys = 0},
          before_{digest::of(held_, stamp_)} {}
    [[nodiscard]] key_hash key_of(std::uint64_t name) const {
        std::array<char, 8> text;
        for (std::size_t i = 0; i < text.size(); ++i) {
            text[i] = static_cast<char>(name >> (8 * i));
        }
        return hash_of({text.data(), text.size()}, secret_);
    }
    [[nodiscard]] bool is_named(const reader_ptr& reader, std::uint64_t name) const {
        const auto hash = key_of(name);
        return (reprise_siblings_ask(reader.get(), {hash.low, hash.high}) & 1) != 0;
    }
    void came(std::uint64_t name) {
        held_.insert(key_of(name));
        came_.push_back(name);
        ++stamp_.keys;
    }
    void left(std::uint64_t name) {
        CHECK(held_.erase(key_of(name)));
        --stamp_.keys;
    }
    [[nodiscard]] std::string whole() const { return text_of(encode(digest::of(held_, stamp_))); }
    /// Ends a step. What makes the step before this one, as news and as a delta.
    struct change {
        std::string news, delta;
    };
    change step() {
        ++stamp_.generation.counter;
        auto now = digest::of(held_, stamp_);
        const auto delta = encode_delta(before_, now);
        const auto news = encode_news({.shape = now.shape(),
                                       .stamp = stamp_,
                                       .sum = place_sum(now.words()),
                                       .base_counter = stamp_.generation.counter - 1,
                                       .base_sum = place_sum(before_.words())},
                                      {flipped_places(before_, now), came_},
                                      now.words(),
                                      [this](std::uint64_t name) { return key_of(name); });
        REQUIRE(news.has_value());
        before_ = std::move(now);
        came_.clear();
        return {text_of(*news), text_of(*delta)};
    }

private:
    counting_bloom held_;
    hash_secret secret_;
    digest_stamp stamp_;
    digest before_;
    std::vector<std::uint64_t> came_;
};

}  // namespace

TEST_SUITE("filter/c/digest_news") {

    TEST_CASE(
        "news of Reprise's caches are taken, as places and as names, between wholes and deltas") {
        for (const double rate : {0.01, 0.00001}) {
            CAPTURE(rate);
            news_teller teller{rate};
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            bool by_names = false;
            std::uint64_t missing = 0, gone = 0;
            REQUIRE(take(siblings, 0, teller.whole()) == REPRISE_OK);
            for (std::uint64_t round = 0; round < 60; ++round) {
                const auto first = round * 20;
                for (auto name = first; name < first + 20; ++name) {
                    teller.came(name);
                    if (name >= 500) {
                        teller.left(name - 500);
                    }
                }
                const auto change = teller.step();
                by_names = by_names || change.news[11] == static_cast<char>(digest_encoding::names);
                // Mostly news; now and then what else there is.
                const auto& wire = round % 10 == 4   ? change.delta
                                   : round % 10 == 7 ? teller.whole()
                                                     : change.news;
                REQUIRE(take(siblings, 0, wire) == REPRISE_OK);
                const auto least = first + 20 > 500 ? first + 20 - 500 : 0;
                for (std::uint64_t name = 0; name < first + 20; ++name) {
                    const bool named = teller.is_named(reader, name);
                    missing += name >= least && !named ? 1 : 0;
                    gone += name < least && named ? 1 : 0;
                }
                CHECK(read_of(siblings, 0).counter == round + 2);
                CHECK(read_of(siblings, 0).keys == first + 20 - least);
            }
            CHECK(missing == 0);
            CHECK(gone < 60 * 1'200 / 100);
            CHECK(read_of(siblings, 0).rate > 0);
            CHECK(by_names == (rate < 0.01));
        }
    }

    TEST_CASE(
        "news to something else, or damaged, change nothing, and the whole is to be asked for") {
        news_teller teller{0.01};
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        for (std::uint64_t name = 0; name < 100; ++name) {
            teller.came(name);
        }
        const auto first = teller.step();
        CHECK(take(siblings, 0, first.news) == REPRISE_ASK_WHOLE);  // nothing is held
        REQUIRE(take(siblings, 0, teller.whole()) == REPRISE_OK);
        CHECK(take(siblings, 0, first.news) == REPRISE_ASK_WHOLE);  // it is that already
        teller.came(100);
        teller.left(0);
        const auto second = teller.step();
        teller.came(101);
        const auto third = teller.step();
        CHECK(take(siblings, 0, third.news) == REPRISE_ASK_WHOLE);  // one is missing in between
        for (std::size_t cut = 0; cut < second.news.size(); ++cut) {
            CHECK(take(siblings, 0, second.news.substr(0, cut)) == REPRISE_REFUSED);
        }
        for (std::size_t at = 0; at < second.news.size(); ++at) {
            for (const char bit : {1, 16}) {
                auto damaged = second.news;
                damaged[at] ^= bit;
                const auto code = take(siblings, 0, damaged);
                CHECK((code == REPRISE_REFUSED || code == REPRISE_ASK_WHOLE));
            }
        }
        // Well formed, and not what it says: a header that lies of the sum.
        auto lie = *read_digest_head(std::as_bytes(std::span{second.news}));
        lie.checksum += 1;
        const auto body = std::as_bytes(std::span{second.news}).subspan(digest_header_bytes);
        CHECK(take(siblings, 0, text_of(write_digest(lie, body))) == REPRISE_ASK_WHOLE);
        lie.checksum -= 1;
        lie.base_checksum += 1;
        CHECK(take(siblings, 0, text_of(write_digest(lie, body))) == REPRISE_ASK_WHOLE);
        lie.base_checksum -= 1;
        lie.stamp.seed[0] ^= std::byte{1};
        CHECK(take(siblings, 0, text_of(write_digest(lie, body))) == REPRISE_REFUSED);
        CHECK(teller.is_named(reader, 0));
        CHECK(read_of(siblings, 0).counter == 2);
        CHECK(take(siblings, 0, second.news) == REPRISE_OK);
        CHECK(take(siblings, 0, third.news) == REPRISE_OK);
        for (std::uint64_t name = 1; name < 102; ++name) {
            CHECK(teller.is_named(reader, name));
        }
        // Of another fleet's seed.
        auto options = siblings_options();
        const std::array<unsigned char, 32> other{9};
        options.seed = other.data();
        CHECK(take(siblings_of(options), 0, second.news) == REPRISE_ASK_WHOLE);
    }

    TEST_CASE("news of a liar, whose checksums are right, change nothing") {
        for (const double rate : {0.01, 0.00001}) {
            CAPTURE(rate);
            news_teller teller{rate};
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            for (std::uint64_t name = 0; name < 300; ++name) {
                teller.came(name);
                if (name % 50 == 49) {  // more in one step would be told as a whole
                    (void)teller.step();
                }
            }
            REQUIRE(take(siblings, 0, teller.whole()) == REPRISE_OK);
            for (std::uint64_t name = 300; name < 310; ++name) {
                teller.came(name);
                teller.left(name - 300);
            }
            const auto news = teller.step().news;
            const auto wire = std::as_bytes(std::span{news});
            const auto head = *read_digest_head(wire);
            const auto body = wire.subspan(digest_header_bytes);
            const auto refused = [&](const digest_head& says, std::span<const std::byte> has) {
                const auto code = take(siblings, 0, text_of(write_digest(says, has)));
                CHECK((code == REPRISE_REFUSED || code == REPRISE_ASK_WHOLE));
            };
            for (std::size_t at = 0; at < body.size(); ++at) {
                for (const unsigned bit : {1U, 8U, 128U}) {
                    std::vector<std::byte> changed{body.begin(), body.end()};
                    changed[at] ^= std::byte(bit);
                    if (at + 1 < body.size()) {  // of the last one some bits may be padding's
                        refused(head, changed);
                    }
                }
                refused(head, body.first(at));
            }
            auto many = head;
            many.listed = head.shape.bits;
            refused(many, body);
            auto wide = head;
            wide.divisor = wide.divisor == 1 ? 2 : wide.divisor - 1;
            refused(wide, body);
            auto other = head;
            other.shape.probes += 1;
            refused(other, body);
            std::uint64_t missing = 0;
            for (std::uint64_t name = 0; name < 300; ++name) {
                missing += teller.is_named(reader, name) ? 0 : 1;
            }
            CHECK(missing == 0);
            REQUIRE(take(siblings, 0, news) == REPRISE_OK);
            for (std::uint64_t name = 10; name < 310; ++name) {
                missing += teller.is_named(reader, name) ? 0 : 1;
            }
            CHECK(missing == 0);
        }
    }

    TEST_CASE("what news take beside the digests is within their limit") {
        news_teller teller{0.01, 100'000};
        const auto whole = teller.whole();
        teller.came(1);
        const auto news = teller.step().news;
        const auto taken = [&](std::uint64_t most_bytes) {
            auto options = siblings_options();
            options.most_bytes = most_bytes;
            const auto siblings = siblings_of(options);
            if (take(siblings, 0, whole) != REPRISE_OK) {
                return std::pair{0U, REPRISE_REFUSED};
            }
            unsigned held = 0;
            auto code = REPRISE_OK;
            for (unsigned number = 0; number < 8 && code == REPRISE_OK; ++number) {
                REQUIRE(take(siblings, number, whole) == REPRISE_OK);
                code = static_cast<reprise_code>(take(siblings, number, news));
                held += code == REPRISE_OK ? 1 : 0;
            }
            reprise_siblings_forget(siblings.get(), 0);
            reprise_siblings_forget(siblings.get(), 1);
            REQUIRE(take(siblings, 0, whole) == REPRISE_OK);
            CHECK(take(siblings, 0, news) == (held > 0 ? REPRISE_OK : code));
            return std::pair{held, code};
        };
        // Some 240 kB of bits each; eight siblings have one table, of a byte a place.
        const auto bits = digest_size(100'000, 0.01).bits;
        CHECK(taken(bits / 2) == std::pair{0U, REPRISE_REFUSED});
        CHECK(taken(bits + bits / 16) == std::pair{0U, REPRISE_REFUSED});
        CHECK(taken(bits + bits / 2).first == 4);
        CHECK(taken(bits + bits / 2 - 1).first == 3);
        CHECK(taken(4 * bits) == std::pair{8U, REPRISE_OK});
    }
}

}  // namespace reprise::filter::c::test
