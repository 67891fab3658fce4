// The library as a server has it: linked by its exported symbols alone.

#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/c/admissions.hpp"
#include "tests/unit/filter/c/counted_memory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <memory>
#include <reprise/admission.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reprise::filter::c::test {

TEST_SUITE("filter/c/admission") {
    TEST_CASE("a key is wanted at its second request, or at whichever is asked for") {
        for (const unsigned hits : {2, 3, 16}) {
            CAPTURE(hits);
            auto options = small_options();
            options.hits = hits;
            const auto gate = must_open(options);
            for (unsigned request = 1; request <= 20; ++request) {
                const auto before = peek(gate, "http://a/");
                CHECK(before == std::min(request - 1, hits - 1));
                CHECK(reprise_admission_wanted(gate.get(), before) == (request >= hits ? 1 : 0));
                CHECK(note(gate, "http://a/") == before);
            }
            CHECK(peek(gate, "http://b/") == 0);
        }
    }

    TEST_CASE("what is refreshed is wanted at once when it comes again") {
        auto options = small_options();
        options.hits = 4;
        const auto gate = must_open(options);
        const auto key = key_of(gate, "http://a/");
        reprise_admission_refresh(gate.get(), key, start);
        CHECK(reprise_admission_wanted(gate.get(), reprise_admission_peek(gate.get(), key)) == 1);
        CHECK(figures_of(gate).refreshes == 1);
        reprise_admission_refresh(gate.get(), key, start);
        CHECK(figures_of(gate).refreshes == 1);
    }

    TEST_CASE("keys are any bytes, and those of one seed are the same") {
        std::array<unsigned char, 32> seed{};
        seed.fill(7);
        auto options = small_options();
        options.seed = seed.data();
        const auto one = must_open(options), other = must_open(options);
        options.seed = nullptr;
        const auto stranger = must_open(options);
        for (const auto& text :
             {std::string{}, std::string{"a\0b", 3}, std::string(100'000, 'x')}) {
            CHECK(key_of(one, text).low == key_of(other, text).low);
            CHECK(key_of(one, text).high == key_of(other, text).high);
            CHECK(key_of(one, text).low != key_of(stranger, text).low);
        }
    }

    TEST_CASE("the figures say what was noted") {
        const auto gate = must_open(small_options());
        CHECK(figures_of(gate).strangers_known == 0);
        for (unsigned i = 0; i < 15'000; ++i) {
            note(gate, std::to_string(i));
        }
        note(gate, "14999");
        const auto read = figures_of(gate);
        CHECK(read.objects == 10'000);
        CHECK(read.age == 180'000);
        CHECK(read.rate == 0.001);
        CHECK(read.hits == 2);
        CHECK(read.generation == 1);
        CHECK(read.first_sights + read.repeats == 15'001);
        CHECK(read.repeats >= 1);
        CHECK(read.young_keys + read.old_keys == doctest::Approx(15'000).epsilon(0.01));
        CHECK(read.young_since == start);
        CHECK(read.strangers_known > 0);
        CHECK(read.strangers_known < 0.001);
        CHECK(read.memory ==
              reprise_admission_memory(
                  std::make_unique<reprise_admission_options>(small_options()).get()));
    }

    TEST_CASE("words are options, the same for every server") {
        auto options = small_options();
        reprise_error error = REPRISE_ERROR_INIT;
        REQUIRE(reprise_admission_parse(
                    &options, " objects=10M,age=50h\trate=0.01 hits=3\n", &error) == REPRISE_OK);
        CHECK(options.objects == 10'000'000);
        CHECK(options.age == 180'000);
        CHECK(options.rate == 0.01);
        CHECK(options.hits == 3);
        CHECK(reprise_admission_parse(&options, "", &error) == REPRISE_OK);
        struct wrong {
            const char* words;
            const char* said;
        };
        for (const auto& one : {wrong{"objects", "such as objects=10M"},
                                wrong{"objects=", "such as objects=10M"},
                                wrong{"objects=-1", "'objects=-1'"},
                                wrong{"objects=1Q", "'objects=1Q'"},
                                wrong{"objects=1MM", "'objects=1MM'"},
                                wrong{"objects=0", "must be 1 to"},
                                wrong{"objects=99999999999999999999", "is not understood"},
                                wrong{"objects=9000000000000G", "is not understood"},
                                wrong{"objects=11G", "must be 1 to"},
                                wrong{"age=1.5h", "such as age=50h"},
                                wrong{"age=0s", "must be 1 to"},
                                wrong{"rate=1", "must be 0.000000001 to 0.5"},
                                wrong{"rate=nan", "must be 0.000000001 to 0.5"},
                                wrong{"rate=0.1%", "such as rate=0.001"},
                                wrong{"hits=1", "hits is 1"},
                                wrong{"hits=5000000000", "to 16"},
                                wrong{"age=1h objcts=5", "'objcts=5' is not understood"},
                                wrong{"=", "one of objects="}}) {
            CAPTURE(one.words);
            const auto before = options;
            CHECK(reprise_admission_parse(&options, one.words, &error) == REPRISE_BAD_OPTION);
            CHECK(error.code == REPRISE_BAD_OPTION);
            CHECK_MESSAGE(says(error, one.said), error.text);
            CHECK(std::memcmp(&before, &options, sizeof options) == 0);
        }
        CHECK(reprise_admission_parse(&options, nullptr, &error) == REPRISE_BAD_ARGUMENT);
    }

    TEST_CASE("absurd options are refused, and need no memory") {
        const auto refused = [](auto change, const char* said) {
            CAPTURE(said);
            auto options = small_options();
            change(options);
            const auto made = open_with(options);
            CHECK(made.code == REPRISE_BAD_OPTION);
            CHECK(made.gate == nullptr);
            CHECK_MESSAGE(says(made.error, said), made.error.text);
            CHECK(reprise_admission_memory(&options) == 0);
        };
        refused([](auto& o) { o.objects = 0; }, "objects is 0");
        refused([](auto& o) { o.objects = UINT64_MAX; }, "objects is 18446744073709551615");
        refused([](auto& o) { o.age = 0; }, "age is 0");
        refused([](auto& o) { o.age = INT64_MIN; }, "age is -9223372036854775808");
        refused([](auto& o) { o.rate = 0; }, "rate is 0");
        refused([](auto& o) { o.rate = -0.0 / 0.0; }, "rate is");
        refused([](auto& o) { o.hits = 17; }, "hits is 17");
        refused([](auto& o) { o.reserved = 1; }, "reserved is 1");
        refused([](auto& o) { o.memory_take = counted_memory::take; }, "both or none");

        // The most that may be asked for has a size, which nobody has.
        counted_memory none;
        none.is_out = true;
        auto most = small_options();
        most.objects = 10'000'000'000;
        most.rate = 1e-9;
        most.hits = 16;
        none.lend_to(most);
        CHECK(open_with(most).code == REPRISE_NO_MEMORY);
        CHECK(none.taken == std::vector<std::size_t>{reprise_admission_memory(&most)});
        CHECK(none.taken[0] > 1'000'000'000'000);
    }

    TEST_CASE("a structure's size from the past or the future is told") {
        struct {
            reprise_admission_options known = small_options();
            std::array<unsigned char, 64> later{};
        } options;
        const auto code_with = [&](std::size_t size) {
            options.known.size = size;
            reprise_admission* gate = nullptr;
            reprise_error error = REPRISE_ERROR_INIT;
            const auto code = reprise_admission_open(&options.known, start, &gate, &error);
            CHECK((gate != nullptr) == (code == REPRISE_OK));
            CHECK(error.code == code);
            reprise_admission_close(gate);
            return code;
        };
        constexpr auto own = sizeof(reprise_admission_options);
        CHECK(code_with(own) == REPRISE_OK);
        CHECK(code_with(sizeof options) == REPRISE_OK);  // all that is new is zero
        for (const std::size_t size : {std::size_t{0}, std::size_t{8}, own - 1, SIZE_MAX}) {
            CHECK(code_with(size) == REPRISE_BAD_SIZE);
        }
        options.later[63] = 1;
        CHECK(code_with(sizeof options) == REPRISE_BAD_SIZE);
        CHECK(code_with(own) == REPRISE_OK);

        const auto gate = must_open(small_options());
        struct {
            reprise_admission_figures known = REPRISE_ADMISSION_FIGURES_INIT;
            std::array<unsigned char, 64> later{};
        } figures;
        figures.known.size = sizeof figures;
        figures.later.fill(1);
        CHECK(reprise_admission_read(gate.get(), start, &figures.known) == REPRISE_OK);
        CHECK(figures.known.objects == 10'000);
        CHECK(figures.later == std::array<unsigned char, 64>{});
        figures.known.size = 8;
        CHECK(reprise_admission_read(gate.get(), start, &figures.known) == REPRISE_BAD_SIZE);
        CHECK(reprise_admission_read(nullptr, start, &figures.known) == REPRISE_BAD_ARGUMENT);

        // An error that is too small is left alone, one that is short is cut.
        reprise_error error = REPRISE_ERROR_INIT;
        std::memset(error.text, 'x', sizeof error.text);
        error.size = offsetof(reprise_error, text) + 8;
        CHECK(reprise_admission_parse(&options.known, "what=1", &error) != REPRISE_OK);
        CHECK(std::strlen(error.text) >= 7);
        CHECK(error.text[9] == 'x');
        error.size = 3;
        CHECK(reprise_admission_attach(nullptr, 0, nullptr, &error) == REPRISE_BAD_ARGUMENT);
    }

    TEST_CASE("memory comes from where it is told to, all at once, and goes back there") {
        counted_memory memory;
        auto options = small_options();
        memory.lend_to(options);
        {
            const auto gate = must_open(options);
            CHECK(figures_of(gate).young_fill == 0);  // whatever lay there
            CHECK(note(gate, "http://a/") == 0);
            CHECK(note(gate, "http://a/") == 1);
            CHECK(memory.given.empty());
        }
        CHECK(memory.taken == std::vector<std::size_t>{reprise_admission_memory(&options)});
        CHECK(memory.given == memory.taken);
        memory.off_by = 8;
        CHECK(open_with(options).code == REPRISE_BAD_ARGUMENT);
        CHECK(memory.given.size() == 2);
        memory.is_out = true;
        const auto without = open_with(options);
        CHECK(without.code == REPRISE_NO_MEMORY);
        CHECK_MESSAGE(says(without.error, "for 10000 objects"), without.error.text);
        CHECK(memory.given.size() == 2);
    }

    TEST_CASE("processes share a filter in memory that they share") {
        auto options = small_options();
        const auto bytes = static_cast<std::size_t>(reprise_admission_memory(&options));
        const auto file = ::memfd_create("seen", 0);
        REQUIRE(file >= 0);
        REQUIRE(::ftruncate(file, static_cast<off_t>(bytes)) == 0);
        const auto map = [&] {
            auto* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            REQUIRE(at != MAP_FAILED);
            return at;
        };
        auto* const here = map();
        reprise_error error = REPRISE_ERROR_INIT;
        reprise_admission* none = nullptr;
        CHECK(reprise_admission_attach(here, bytes, &none, &error) == REPRISE_REFUSED);
        CHECK_MESSAGE(says(error, "not open yet"), error.text);
        options.memory_take = [](void* context, std::size_t, std::size_t) { return context; };
        options.memory_give = [](void*, void*, std::size_t) {};
        options.memory_context = here;
        const auto gate = must_open(options);
        note(gate, "http://parent/");
        const auto child = ::fork();
        if (child == 0) {  // at another address
            auto* const there = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            reprise_admission* attached = nullptr;
            if (reprise_admission_attach(there, bytes, &attached, nullptr) != REPRISE_OK) {
                ::_exit(1);
            }
            const auto key_in_child = [&](const char* text) {
                return reprise_admission_key(attached, text, std::strlen(text));
            };
            const auto seen = reprise_admission_peek(attached, key_in_child("http://parent/"));
            reprise_admission_note(attached, key_in_child("http://child/"), start);
            reprise_admission_close(attached);
            ::_exit(seen == 1 ? 0 : 2);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
        CHECK(peek(gate, "http://child/") == 1);
        CHECK(figures_of(gate).first_sights == 2);

        // What says of itself what can't be is no filter.
        for (std::size_t byte = 0; byte < 48; ++byte) {
            CAPTURE(byte);
            auto* const raw = static_cast<unsigned char*>(here);
            const auto was = raw[byte];
            raw[byte] ^= 0x80;
            reprise_admission* attached = nullptr;
            const auto code = reprise_admission_attach(here, bytes, &attached, nullptr);
            CHECK((code == REPRISE_OK) == (attached != nullptr));
            reprise_admission_close(attached);
            raw[byte] = was;
        }
        // Nor is what another release lays out for as many objects in other bytes.
        std::uint64_t itself = 0;
        constexpr std::size_t behind_magic = 8;
        auto* const at = static_cast<std::byte*>(here) + behind_magic;
        std::memcpy(&itself, at, sizeof itself);
        REQUIRE(itself == bytes);
        const auto other = itself - 64;
        std::memcpy(at, &other, sizeof other);
        CHECK(reprise_admission_attach(here, bytes, &none, &error) == REPRISE_REFUSED);
        CHECK_MESSAGE(says(error, "does not go with"), error.text);
        std::memcpy(at, &itself, sizeof itself);
        CHECK(reprise_admission_attach(here, bytes - 1, &none, nullptr) == REPRISE_REFUSED);
        CHECK(reprise_admission_attach(here, 10, &none, nullptr) == REPRISE_REFUSED);
        CHECK(none == nullptr);
        ::munmap(here, bytes);
        ::close(file);
    }

    TEST_CASE("threads ask, note, read and save at once") {
        const tests::temp_dir folder;
        const auto path = (folder.path() / "seen").string();
        const auto gate = must_open(small_options());
        std::vector<std::thread> threads;
        for (unsigned number = 0; number < 4; ++number) {
            threads.emplace_back([&, number] {
                for (unsigned i = 0; i < 5'000; ++i) {
                    const auto text = std::to_string(i % 2 == 0 ? i : i * 4 + number);
                    const auto key = reprise_admission_key(gate.get(), text.data(), text.size());
                    reprise_admission_peek(gate.get(), key);
                    reprise_admission_note(gate.get(), key, start);
                    reprise_admission_refresh(gate.get(), key, start);
                }
            });
        }
        for (unsigned i = 0; i < 3; ++i) {
            CHECK(reprise_admission_save(gate.get(), path.c_str(), nullptr) == REPRISE_OK);
            (void)figures_of(gate);
        }
        for (auto& each : threads) {
            each.join();
        }
        CHECK(peek(gate, "4998") == 1);
    }

    TEST_CASE("what a request calls allocates nothing") {
        // Seen without a sanitizer alone: what its heap holds, mallinfo2 does not know.
        const auto gate = must_open(small_options());
        const auto before = ::mallinfo2().uordblks;
        std::size_t most = before;
        for (unsigned i = 0; i < 30'000; ++i) {
            const auto key = reprise_admission_key(gate.get(), &i, sizeof i);
            (void)reprise_admission_wanted(gate.get(), reprise_admission_peek(gate.get(), key));
            (void)reprise_admission_note(gate.get(), key, start);
            reprise_admission_refresh(gate.get(), key, start);
            most = std::max(most, ::mallinfo2().uordblks);
        }
        CHECK(most == before);
        CHECK(reprise_admission_generation(gate.get()) > 0);  // clearing allocates nothing either
    }

    TEST_CASE("times that can't be are the nearest that can") {
        const auto gate = must_open(small_options());
        for (const auto now : {INT64_MIN, INT64_MAX, std::int64_t{-1}}) {
            note(gate, "http://a/", now);
            reprise_admission_refresh(gate.get(), key_of(gate, "http://a/"), now);
            reprise_admission_figures figures = REPRISE_ADMISSION_FIGURES_INIT;
            CHECK(reprise_admission_read(gate.get(), now, &figures) == REPRISE_OK);
        }
        CHECK(peek(gate, "http://a/") == 1);
        CHECK(open_with(small_options(), INT64_MIN).code == REPRISE_OK);
    }

    TEST_CASE("nothing where something must be is told, where that can be") {
        reprise_error error = REPRISE_ERROR_INIT;
        reprise_admission* gate = nullptr;
        auto options = small_options();
        CHECK(reprise_admission_open(nullptr, start, &gate, &error) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_admission_open(&options, start, nullptr, nullptr) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_admission_memory(nullptr) == 0);
        CHECK(reprise_admission_save(nullptr, "x", &error) == REPRISE_BAD_ARGUMENT);
        CHECK(reprise_admission_write(nullptr, nullptr, nullptr, &error) == REPRISE_BAD_ARGUMENT);
        reprise_admission_close(nullptr);
        CHECK(std::string{reprise_admission_version()} == "0.1.0");
    }
}

}  // namespace reprise::filter::c::test
