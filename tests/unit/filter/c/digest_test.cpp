// The library as a server has it: linked by its exported symbols alone. What it sends is read by filter/ too, as Reprise
// would.

#include "filter/digest_wire.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/watched_threads.hpp"
#include "tests/unit/filter/c/counted_memory.hpp"
#include "tests/unit/filter/c/sources.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <reprise/digest.h>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace reprise::filter::c::test {

namespace {

/// Bytes that are not zero.
std::size_t count_on(std::span<const unsigned char> bytes) {
    return bytes.size() - static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), 0));
}

}  // namespace

TEST_SUITE("filter/c/digest") {
    TEST_CASE("what came is named, what left is not, and what changed travels as a delta") {
        const auto source = source_of(counting_options());
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        came(source, 0, 2'000, 0);
        CHECK(figures_of(source).places_changed > 0);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        CHECK(reprise_source_publish(source.get(), nullptr) == REPRISE_UNCHANGED);
        const auto whole = follow(siblings, 5, source);
        CHECK(whole > 2'000);
        CHECK(follow(siblings, 5, source) == 0);
        CHECK(count_named(reader, source, 5, 0, 2'000) == 2'000);
        CHECK(count_named(reader, source, 5, 10'000, 20'000) < 150);
        CHECK(read_of(siblings, 5).keys == 2'000);
        for (std::uint64_t i = 0; i < 20; ++i) {
            CHECK(reprise_source_left(source.get(), key_of(source, i)) == REPRISE_OK);
        }
        CHECK(reprise_source_left(source.get(), key_of(source, 99'999)) == REPRISE_REFUSED);
        came(source, 2'000, 2'020, 0);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        CHECK(follow(siblings, 5, source) < whole / 5);
        CHECK(count_named(reader, source, 5, 0, 20) < 5);
        CHECK(count_named(reader, source, 5, 20, 2'020) == 2'000);
        reprise_siblings_forget(siblings.get(), 5);
        CHECK(count_named(reader, source, 5, 20, 2'020) == 0);
        CHECK(read_of(siblings, 5).counter == 0);
    }

    TEST_CASE("who is too far behind, or asks another epoch, is sent the whole") {
        auto options = counting_options();
        options.history = 2;
        const auto source = source_of(options), restarted = source_of(options);
        const auto siblings = siblings_of(siblings_options());
        const auto epoch = figures_of(source).epoch;
        for (std::uint64_t i = 0; i < 6; ++i) {
            came(source, i * 300, (i + 1) * 300, 0);
            REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        }
        const auto newest = figures_of(source).counter;
        const auto whole = served(source);
        CHECK(served(source, epoch, newest).empty());
        CHECK(served(source, epoch, newest - 1) != whole);
        CHECK(served(source, epoch, newest - 3) == whole);
        CHECK(served(source, epoch, newest + 1) == whole);
        CHECK(served(source, epoch + 1, newest - 1) == whole);
        const auto delta = served(source, epoch, newest - 1);
        CHECK(take(siblings, 0, delta) == REPRISE_ASK_WHOLE);
        CHECK(take(siblings, 0, served(restarted)) == REPRISE_OK);
        CHECK(take(siblings, 0, delta) == REPRISE_ASK_WHOLE);
        CHECK(take(siblings, 0, whole) == REPRISE_OK);
        CHECK(take(siblings, 0, delta) == REPRISE_ASK_WHOLE);
        CHECK(read_of(siblings, 0).counter == newest);
    }

    TEST_CASE("of a ring's objects none is missing, and few are named that are gone") {
        constexpr std::uint64_t kept = 2'000, bytes = 1'000;
        auto options = ring_options(kept * bytes);
        options.rate = 0.0001;
        const auto source = source_of(options);
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        std::uint64_t missing = 0, named_gone = 0, looks = 0;
        for (std::uint64_t i = 0; i < 5 * kept; ++i) {
            came(source, i, i + 1, bytes);
            if (i > 2 * kept && i % 97 == 0) {
                REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
                follow(siblings, 0, source);
                missing += kept - count_named(reader, source, 0, i + 1 - kept, i + 1);
                named_gone += count_named(reader, source, 0, i + 1 - 2 * kept, i + 1 - kept);
                ++looks;
            }
        }
        CHECK(missing == 0);
        // Nobody counts them, so it says what its bits say; by a delta, too.
        CHECK(static_cast<double>(read_of(siblings, 0).keys) ==
              doctest::Approx(kept * 27.0 / 26).epsilon(0.1));
        const auto share = static_cast<double>(named_gone) / static_cast<double>(looks * kept);
        CHECK(share == doctest::Approx(1.0 / 26).epsilon(0.3));
        CHECK(reprise_source_left(source.get(), key_of(source, 1)) == REPRISE_REFUSED);

        // Half the room: what is the older half is over by and by.
        CHECK(reprise_source_set_room(source.get(), kept * bytes / 2) == REPRISE_OK);
        came(source, 5 * kept, 7 * kept, bytes);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 6 * kept + kept / 2, 7 * kept) == kept / 2);
        CHECK(count_named(reader, source, 0, 5 * kept, 6 * kept) < kept / 20);
        // One as large as all of the room leaves nothing.
        came(source, 0, 1, UINT64_MAX);
        came(source, 1, 2, 1);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 6 * kept, 7 * kept) < kept / 20);
        CHECK(count_named(reader, source, 0, 1, 2) == 1);
        reprise_source_clear(source.get());
        CHECK(figures_of(source).places_on == 0);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 1, 2) == 0);
        CHECK(reprise_source_set_room(source.get(), 0) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_source_set_room(source_of(counting_options()).get(), 1) ==
              REPRISE_BAD_ARGUMENT);
    }

    TEST_CASE("a ring whose room turns out smaller forgets nothing that the smaller one holds") {
        const auto source = source_of(ring_options(1'300'000));
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        came(source, 0, 90, 1'000);  // nine tenths of a generation, and nine of the smaller room's
        REQUIRE(reprise_source_set_room(source.get(), 130'000) == REPRISE_OK);
        CHECK(figures_of(source).written < 10'000);
        came(source, 1'000, 1'052, 1'000);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 12, 90) == 78);
        CHECK(count_named(reader, source, 0, 1'000, 1'052) == 52);
        // They go once the store has written its room over, and a generation or two.
        came(source, 2'000, 2'150, 1'000);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 0, 90) < 10);
    }

    TEST_CASE("what comes first after a room turned out far smaller is named") {
        const auto source = source_of(ring_options(1'300'000));
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        came(source, 0, 99, 1'000);  // as many of the smaller room's generations, and there are 14
        REQUIRE(reprise_source_set_room(source.get(), 13'000) == REPRISE_OK);
        came(source, 1'000, 1'001, 1'000);
        REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 1'000, 1'001) == 1);
        CHECK(count_named(reader, source, 0, 87, 99) == 12);
    }

    TEST_CASE("what a ring holds is known after a restart, and goes when it would have") {
        const tests::temp_dir folder;
        const auto path = folder.file("ring");
        auto options = ring_options(1'300'000);
        options.state = path.c_str();
        {
            const auto source = source_of(options);
            CHECK(reprise_source_set_room(source.get(), 2'600'000) == REPRISE_OK);
            came(source, 0, 1'300, 1'000);
            REQUIRE(reprise_source_save(source.get(), nullptr, nullptr) == REPRISE_OK);
        }
        const auto source = source_of(options);
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        CHECK(follow(siblings, 0, source) > 1'000);  // the first digest is of it already
        CHECK(count_named(reader, source, 0, 0, 1'300) == 1'300);
        CHECK(figures_of(source).room == 2'600'000);
        came(source, 5'000, 5'000 + 1'299, 1'000);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 0, 1'300) == 1'300);
        came(source, 7'000, 7'000 + 3'000, 1'000);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        CHECK(count_named(reader, source, 0, 0, 1'300) < 100);

        const auto refused = [&](const reprise_source_options& with, const char* why) {
            reprise_source* made = nullptr;
            reprise_error error = REPRISE_ERROR_INIT;
            CHECK(reprise_source_open(&with, &made, &error) == REPRISE_OK);
            REQUIRE(made != nullptr);
            const source_ptr empty{made};
            CHECK(error.code == REPRISE_REFUSED);
            CHECK_MESSAGE(std::strstr(error.text, why) != nullptr, error.text);
            CHECK(figures_of(empty).places_on == 0);
        };
        auto larger = options;
        larger.keys = 3'000;
        refused(larger, "made for other keys");
        const std::array<unsigned char, 32> other{9};
        auto stranger = options;
        stranger.seed = other.data();
        refused(stranger, "another seed");
        folder.write("ring", "damaged");
        refused(options, "cut short");
        reprise_error error = REPRISE_ERROR_INIT;
        auto counting = counting_options();
        const auto without = source_of(counting);
        CHECK(reprise_source_save(without.get(), path.c_str(), &error) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_source_save(source.get(), folder.file("none/x").c_str(), &error) ==
              REPRISE_FILE);
        CHECK_MESSAGE(std::strstr(error.text, "none/x: not saved") != nullptr, error.text);
        counting.state = path.c_str();
        reprise_source* made = nullptr;
        CHECK(reprise_source_open(&counting, &made, &error) == REPRISE_BAD_OPTION);
    }

    TEST_CASE("Reprise reads what it sends, and it what Reprise sends") {
        const auto source = source_of(counting_options());
        came(source, 0, 1'000, 0);
        reprise_source_publish(source.get(), nullptr);
        const auto wire = served(source);
        hash_seed seed{};
        std::memcpy(seed.data(), fleet_seed.data(), seed.size());
        const auto read = decode_digest(std::as_bytes(std::span{wire}), identify(seed));
        REQUIRE(read.has_value());
        const auto secret = hash_secret::from_seed(seed);
        CHECK(read->may_contain(hash_of("http://host/999", secret)));
        CHECK(read->stamp().keys == 1'000);

        counting_bloom ours{digest_size(100, 0.01)};
        ours.insert(hash_of("http://host/7", secret));
        const auto sent = encode(digest::of(
            ours, {.seed = identify(seed), .generation = {.epoch = 3, .counter = 4}, .keys = 1}));
        const auto siblings = siblings_of(siblings_options());
        CHECK(reprise_siblings_take(siblings.get(), 1, sent.data(), sent.size(), nullptr) ==
              REPRISE_OK);
        CHECK(reprise_siblings_ask(reader_of(siblings).get(), key_of(source, 7)) == 2);
        CHECK(read_of(siblings, 1).epoch == 3);
    }

    TEST_CASE("bytes that are no digest of the fleet are refused, and change nothing") {
        const auto source = source_of(counting_options());
        const auto siblings = siblings_of(siblings_options());
        const auto reader = reader_of(siblings);
        came(source, 0, 300, 0);
        reprise_source_publish(source.get(), nullptr);
        const auto wire = served(source);
        REQUIRE(take(siblings, 0, wire) == REPRISE_OK);
        reprise_error error = REPRISE_ERROR_INIT;
        const auto refused = [&](const std::string& bytes, const char* why) {
            const auto code = reprise_siblings_take(
                siblings.get(), 0, bytes.data(), bytes.size(), &error);
            CHECK(code == REPRISE_REFUSED);
            CHECK_MESSAGE(std::strstr(error.text, why) != nullptr, error.text);
            CHECK(std::strstr(error.text, "sibling 0") != nullptr);
        };
        refused("", "cut short");
        refused(std::string(500, 'x'), "not a digest");
        refused(wire + "x", "bytes follow");
        for (std::size_t cut = 0; cut < wire.size(); cut += 7) {
            CHECK(take(siblings, 0, wire.substr(0, cut)) == REPRISE_REFUSED);
        }
        for (std::size_t at = 0; at < wire.size(); at += 3) {
            auto damaged = wire;
            damaged[at] ^= 0x10;
            CHECK(take(siblings, 0, damaged) == REPRISE_REFUSED);
        }
        auto stranger = counting_options();
        const std::array<unsigned char, 32> other{9};
        stranger.seed = other.data();
        refused(served(source_of(stranger)), "another secret");
        // What was seen, as Reprise tells it.
        const digest_stamp stamp{
            .seed = identify(hash_seed{}), .generation = {.epoch = 1, .counter = 1}, .keys = 0};
        refused(text_of(encode(digest::of(blocked_bloom{100}, stamp))),
                "blocked, which what was seen");
        auto tight = siblings_options();
        tight.most_bytes = 100'000;
        const auto narrow = siblings_of(tight);
        auto somewhat = counting_options();
        somewhat.keys = 20'000;
        CHECK(take(narrow, 0, served(source_of(somewhat))) == REPRISE_REFUSED);
        CHECK(take(narrow, 0, wire) == REPRISE_OK);
        // Of many more keys than it was made for: it would name anything.
        const auto full = source_of(counting_options());
        came(full, 0, 40'000, 0);
        reprise_source_publish(full.get(), nullptr);
        refused(served(full), "saturated");
        CHECK(count_named(reader, source, 0, 0, 300) == 300);
        CHECK(reprise_siblings_take(siblings.get(), 64, wire.data(), wire.size(), &error) ==
              REPRISE_BAD_ARGUMENT);
        CHECK(reprise_siblings_take(siblings.get(), 0, nullptr, 5, &error) == REPRISE_BAD_ARGUMENT);
    }

    TEST_CASE("readers and siblings are closed in any order") {
        const auto source = source_of(counting_options());
        came(source, 0, 1, 0);
        reprise_source_publish(source.get(), nullptr);
        auto siblings = siblings_of(siblings_options());
        follow(siblings, 3, source);
        const auto reader = reader_of(siblings);
        { const auto other = reader_of(siblings); }
        siblings.reset();
        CHECK(reprise_siblings_ask(reader.get(), key_of(source, 0)) == 8);
    }

    TEST_CASE("a room that generations do not divide evenly is kept whole" *
              reprise::test::of_one_thread()) {
        for (const std::uint64_t room : {1U, 5U, 12U, 14U, 25U, 100U}) {
            CAPTURE(room);
            auto options = ring_options(room);
            options.rate = 1e-6;
            const auto source = source_of(options);
            const auto siblings = siblings_of(siblings_options());
            const auto reader = reader_of(siblings);
            std::uint64_t missing = 0;
            for (std::uint64_t i = 0; i < room + room / 4 + 20; ++i) {
                came(source, i, i + 1, 1);
                reprise_source_publish(source.get(), nullptr);
                follow(siblings, 0, source);
                const auto first = i + 1 < room ? 0 : i + 1 - room;
                missing += i + 1 - first - count_named(reader, source, 0, first, i + 1);
            }
            CHECK(missing == 0);
        }
    }

    TEST_CASE("memory that is lent is taken once, as large as was said, and given back") {
        const tests::temp_dir folder;
        const auto path = (folder.path() / "held").string();
        for (const auto kind : {REPRISE_COUNTING, REPRISE_STAMPED}) {
            CAPTURE(kind);
            for (const std::uint64_t keys : {1U, 100U, 2'000U}) {
                CAPTURE(keys);
                counted_memory lent;
                auto options = kind == REPRISE_STAMPED ? ring_options(keys) : counting_options();
                options.keys = keys;
                lent.lend_to(options);
                const auto bytes = reprise_source_memory(&options);
                {
                    const auto source = source_of(options);
                    REQUIRE(lent.taken == std::vector<std::size_t>{bytes});
                    const auto said = figures_of(source).memory;
                    CHECK(said <= bytes);
                    CHECK(said + 3 * 64 > bytes);
                    const auto* const first = static_cast<const unsigned char*>(lent.last);
                    const std::vector<unsigned char> empty{first, first + bytes};
                    CHECK(count_on(empty) <= 3 * 64);  // all was set, but between the pieces
                    came(source, 0, keys, 1);
                    REQUIRE(reprise_source_publish(source.get(), nullptr) == REPRISE_OK);
                    CHECK(std::memcmp(empty.data(), first, bytes) != 0);
                    const auto siblings = siblings_of(siblings_options());
                    const auto reader = reader_of(siblings);
                    follow(siblings, 0, source);
                    CHECK(count_named(reader, source, 0, 0, keys) == keys);
                    if (kind == REPRISE_STAMPED) {
                        CHECK(reprise_source_save(source.get(), path.c_str(), nullptr) ==
                              REPRISE_OK);
                    }
                    reprise_source_clear(source.get());
                    CHECK(lent.given.empty());
                }
                CHECK(lent.given == std::vector<std::size_t>{bytes});
                if (kind == REPRISE_COUNTING) {
                    continue;
                }
                // What is read from a file lies there too.
                options.state = path.c_str();
                const auto source = source_of(options);
                const auto siblings = siblings_of(siblings_options());
                const auto reader = reader_of(siblings);
                follow(siblings, 0, source);
                CHECK(count_named(reader, source, 0, 0, keys) == keys);
                const auto* const first = static_cast<const unsigned char*>(lent.last);
                CHECK(count_on({first, first + bytes / 2}) > 0);
                came(source, keys, 10 * keys, 1);
                follow(siblings, 0, source);
                CHECK(lent.taken == std::vector<std::size_t>{bytes, bytes});
            }
        }
    }

    TEST_CASE("memory that can't be had, or is on no boundary, is an error, and given back") {
        auto options = counting_options();
        reprise_source* made = nullptr;
        reprise_error error = REPRISE_ERROR_INIT;
        counted_memory off;
        off.off_by = 8;
        off.lend_to(options);
        CHECK(reprise_source_open(&options, &made, &error) == REPRISE_BAD_ARGUMENT);
        CHECK_MESSAGE(std::strstr(error.text, "boundary of 64 bytes") != nullptr, error.text);
        CHECK(off.given == off.taken);
        // The most that may be asked for has a size, and nothing is taken from elsewhere.
        counted_memory none;
        none.is_out = true;
        none.lend_to(options);
        options.keys = 1'000'000'000;
        options.rate = 1e-6;
        CHECK(reprise_source_open(&options, &made, &error) == REPRISE_NO_MEMORY);
        CHECK(none.taken == std::vector<std::size_t>{reprise_source_memory(&options)});
        CHECK(none.taken[0] > 10'000'000'000);
        CHECK(none.given.empty());
        CHECK(made == nullptr);
        options.keys = 0;
        CHECK(reprise_source_memory(&options) == 0);
        CHECK(reprise_source_memory(nullptr) == 0);
    }

    TEST_CASE("who was compiled before memory could be lent has the heap's, whatever follows") {
        auto options = counting_options();
        counted_memory lent;
        lent.lend_to(options);
        options.size = offsetof(reprise_source_options, memory_take);
        const auto source = source_of(options);
        CHECK(lent.taken.empty());
        CHECK(reprise_source_memory(&options) > 0);
    }

    TEST_CASE("options out of range say what would be right, and sizes which is wrong") {
        const auto refused = [](auto change, const char* said) {
            auto options = ring_options(1'000);
            change(options);
            reprise_source* made = nullptr;
            reprise_error error = REPRISE_ERROR_INIT;
            const auto code = reprise_source_open(&options, &made, &error);
            CHECK((code == REPRISE_BAD_OPTION || code == REPRISE_BAD_SIZE));
            CHECK(made == nullptr);
            CHECK_MESSAGE(std::strstr(error.text, said) != nullptr, error.text);
        };
        refused([](auto& o) { o.kind = 3; }, "kind is 3");
        refused([](auto& o) { o.generations = 15; }, "must be 2 to 14");
        refused([](auto& o) { o.room = 0; }, "room is 0");
        refused([](auto& o) { o.keys = 0; }, "keys is 0");
        refused([](auto& o) { o.keys = UINT64_MAX; }, "1 to 1,000,000,000");
        refused([](auto& o) { o.rate = 0.5; }, "rate is 0.5");
        refused([](auto& o) { o.history = 17; }, "history is 17");
        refused([](auto& o) { o.reserved = 1; }, "reserved is 1");
        refused([](auto& o) { o.seed = nullptr; }, "seed is null");
        refused([](auto& o) { o.memory_take = counted_memory::take; }, "both or none");
        refused([](auto& o) { o.memory_give = counted_memory::give; }, "both or none");
        refused([](auto& o) { o.size = 63; }, "options->size is 63");
        refused([](auto& o) { o.size = 4; }, "options->size is 4");
        refused([](auto& o) { o.size = SIZE_MAX; }, "by its initialiser");
        auto options = siblings_options();
        reprise_siblings* made = nullptr;
        options.most_rate = 0;
        CHECK(reprise_siblings_open(&options, &made, nullptr) == REPRISE_BAD_OPTION);
        options = siblings_options();
        options.seed = nullptr;
        CHECK(reprise_siblings_open(&options, &made, nullptr) == REPRISE_BAD_OPTION);
        CHECK(reprise_siblings_open(nullptr, &made, nullptr) == REPRISE_BAD_ARGUMENT);
        reprise_sibling read = REPRISE_SIBLING_INIT;
        read.size = 1;
        CHECK(reprise_siblings_read(siblings_of(siblings_options()).get(), 0, &read) ==
              REPRISE_BAD_SIZE);
        CHECK(std::string{reprise_digest_version()} == "0.1.0");
    }

    TEST_CASE("threads store, publish, send, take and ask at once, and nothing held is missed") {
        const auto source = source_of(counting_options());
        const auto siblings = siblings_of(siblings_options());
        came(source, 0, 500, 0);
        reprise_source_publish(source.get(), nullptr);
        follow(siblings, 0, source);
        std::atomic<bool> done{false};
        std::atomic<std::uint64_t> never_named{0};
        std::vector<std::thread> threads;
        threads.emplace_back([&] {
            for (unsigned round = 0; round < 100; ++round) {
                came(source, 500, 700, 0);
                for (std::uint64_t i = 500; i < 700; ++i) {
                    (void)reprise_source_left(source.get(), key_of(source, i));
                }
            }
            done = true;
        });
        threads.emplace_back([&] {
            while (!done) {
                (void)reprise_source_publish(source.get(), nullptr);
                std::string wire;
                reprise_sibling held = REPRISE_SIBLING_INIT;
                (void)reprise_siblings_read(siblings.get(), 1, &held);
                (void)reprise_source_serve(
                    source.get(),
                    held.epoch,
                    held.counter,
                    [](void* context, const void* piece, std::size_t bytes) {
                        auto& to = *static_cast<std::string*>(context);
                        to.append(static_cast<const char*>(piece), bytes);
                        return 0;
                    },
                    &wire,
                    nullptr);
                (void)reprise_siblings_take(siblings.get(), 1, wire.data(), wire.size(), nullptr);
            }
        });
        threads.emplace_back([&] {
            const auto reader = reader_of(siblings);
            do {
                never_named += 500 - count_named(reader, source, 0, 0, 500);
                reprise_siblings_rest(reader.get());
            } while (!done);
        });
        for (auto& each : threads) {
            each.join();
        }
        CHECK(never_named == 0);
    }
}

}  // namespace reprise::filter::c::test
