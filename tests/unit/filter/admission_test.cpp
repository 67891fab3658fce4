#include "filter/admission.hpp"
#include "filter/sizing.hpp"
#include "tests/support/watched_threads.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reprise::filter {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using test::nth_key;
using test::start;

namespace {

admission_settings settings_of(std::uint64_t objects, seconds age, unsigned layers = 1) {
    // A rate so low that a test of a few thousand keys sees no false positive.
    return {.objects = objects, .age = age, .false_positive_rate = 1e-7, .layers = layers};
}

/// Memory that processes share, mapped twice, as two of them would have it.
class mapped_twice {
public:
    explicit mapped_twice(std::uint64_t bytes) : bytes_{static_cast<std::size_t>(bytes)} {
        const auto file = ::memfd_create("admission", 0);
        REQUIRE(file >= 0);
        REQUIRE(::ftruncate(file, static_cast<off_t>(bytes)) == 0);
        for (auto& each : at_) {
            each = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            REQUIRE(each != MAP_FAILED);
        }
        ::close(file);
    }
    ~mapped_twice() {
        for (auto* each : at_) {
            ::munmap(each, bytes_);
        }
    }
    mapped_twice(const mapped_twice&) = delete;
    mapped_twice& operator=(const mapped_twice&) = delete;

    [[nodiscard]] std::span<std::byte> at(unsigned which) const {
        return {static_cast<std::byte*>(at_[which]), bytes_};
    }

private:
    std::size_t bytes_;
    std::array<void*, 2> at_{};
};

}  // namespace

TEST_SUITE("filter/admission") {
    TEST_CASE("two over the same memory are one filter, wherever it is mapped") {
        const auto settings = settings_of(1'000, seconds{60}, 2);
        const mapped_twice memory{admission_filter::memory_for(settings)};
        admission_filter first{settings, start, memory.at(0)};
        admission_filter second{settings, memory.at(1)};
        admission_filter alone{settings, start};
        // Three generations and a half, noted by either in turn.
        for (std::uint64_t i = 0; i < 3'500; ++i) {
            const auto key = nth_key(1, i % 3 == 0 ? i / 2 : i);
            auto& one = i % 2 == 0 ? first : second;
            CHECK(one.note(key, start) == alone.note(key, start));
            CHECK(first.peek(key) == second.peek(key));
        }
        CHECK(second.generations() == alone.generations());
        const auto told = second.figures(start);
        CHECK(told.repeats == alone.figures(start).repeats);
        CHECK(told.young.since == start);
        CHECK(told.young.estimated_keys == alone.figures(start).young.estimated_keys);
    }

    TEST_CASE("a process that dies while it clears stops nobody from forgetting for good") {
        const auto settings = settings_of(20'000, seconds{600});
        const mapped_twice memory{admission_filter::memory_for(settings)};
        admission_filter filter{settings, start, memory.at(0)};
        std::uint64_t key = 0;
        for (; key < 20'000; ++key) {
            filter.note(nth_key(1, key), start);
        }
        // Its claim is all that is left of it: the phase's word, after both generations' counts.
        auto& phase = *reinterpret_cast<std::atomic<std::uint64_t>*>(memory.at(1).data() + 128);
        REQUIRE(phase.load() == 0);
        phase.store(1);
        for (; key < 39'000; ++key) {
            filter.note(nth_key(1, key), start);
        }
        CHECK(filter.generations() == 0);
        for (; key < 41'000; ++key) {
            filter.note(nth_key(1, key), start);
        }
        CHECK(filter.generations() == 1);
        CHECK(filter.peek(nth_key(1, 40'999)) == 1);
    }

    TEST_CASE("a key is a stranger at its first sight and known at every one after it") {
        admission_filter filter{settings_of(100, seconds{60}), start};
        CHECK(filter.note(nth_key(1, 1), start) == 0);
        CHECK(filter.note(nth_key(1, 1), start) == 1);
        CHECK(filter.note(nth_key(1, 1), start) == 1);
        CHECK(filter.note(nth_key(1, 2), start) == 0);
    }

    TEST_CASE("with layers, sights are counted up to their number") {
        admission_filter filter{settings_of(100, seconds{60}, 4), start};
        for (const unsigned expected : {0, 1, 2, 3, 4, 4, 4}) {
            CHECK(filter.peek(nth_key(1, 1)) == expected);
            CHECK(filter.note(nth_key(1, 1), start) == expected);
        }
        CHECK(filter.note(nth_key(1, 2), start) == 0);
    }

    TEST_CASE("peek records nothing") {
        admission_filter filter{settings_of(100, seconds{60}), start};
        CHECK(filter.peek(nth_key(1, 1)) == 0);
        CHECK(filter.peek(nth_key(1, 1)) == 0);
        CHECK(filter.note(nth_key(1, 1), start) == 0);
        CHECK(filter.peek(nth_key(1, 1)) == 1);
    }

    TEST_CASE("a count is carried from generation to generation") {
        admission_filter filter{settings_of(10, seconds{60}, 3), start};
        auto now = start;
        for (const unsigned expected : {0, 1, 2, 3, 3, 3}) {
            CHECK(filter.note(nth_key(1, 1), now) == expected);
            now += seconds{50};
        }
        CHECK(filter.figures(now).swaps == 2);
    }

    TEST_CASE("a key is remembered for at least the age, whenever it was seen, when keys are few") {
        constexpr seconds age{100};
        admission_filter filter{settings_of(1'000, age), start};
        // One new key a second: a generation ends by age, with a tenth of its objects.
        for (int second = 0; second < 2'000; ++second) {
            CAPTURE(second);
            filter.note(nth_key(1, static_cast<std::uint64_t>(second)), start + seconds{second});
            for (int before = 0; before < age.count() && before <= second; ++before) {
                REQUIRE(filter.peek(nth_key(1, static_cast<std::uint64_t>(second - before))) == 1);
            }
        }
    }

    TEST_CASE("at least the last objects keys are remembered, however fast they come") {
        for (const std::uint64_t objects : {1, 10, 1'000, 20'000}) {
            CAPTURE(objects);
            admission_filter filter{settings_of(objects, seconds{60}), start};
            for (std::uint64_t i = 0; i < 5 * objects + 500; ++i) {
                filter.note(nth_key(1, i), start);
                if (i >= objects) {
                    REQUIRE(filter.peek(nth_key(1, i - objects)) == 1);
                }
            }
            for (std::uint64_t i = 4 * objects + 500; i < 5 * objects + 500; ++i) {
                REQUIRE(filter.peek(nth_key(1, i)) == 1);
            }
        }
    }

    TEST_CASE("a key is forgotten after two ages of a steady flow") {
        admission_filter filter{settings_of(1'000, seconds{100}), start};
        for (int second = 0; second < 1'000; ++second) {
            filter.note(nth_key(1, static_cast<std::uint64_t>(second)), start + seconds{second});
            if (second >= 202) {  // clearing takes a note
                CHECK(filter.peek(nth_key(1, static_cast<std::uint64_t>(second - 202))) == 0);
            }
        }
    }

    TEST_CASE("a key is forgotten after twice the objects, and the few that come while clearing") {
        constexpr std::uint64_t objects = 20'000;
        admission_filter filter{settings_of(objects, seconds{60}), start};
        for (std::uint64_t i = 0; i < 6 * objects; ++i) {
            filter.note(nth_key(1, i), start);
            if (i >= 2 * objects + 100) {
                REQUIRE(filter.peek(nth_key(1, i - 2 * objects - 100)) == 0);
            }
        }
    }

    TEST_CASE("a refreshed key is no stranger, whatever its age") {
        constexpr unsigned layers = 3;
        admission_filter filter{settings_of(1'000, seconds{100}, layers), start};
        const auto popular = nth_key(9, 9);
        for (unsigned before = 0; before < layers; ++before) {
            filter.note(popular, start);
        }
        for (int second = 0; second < 2'000; ++second) {
            const auto now = start + seconds{second};
            filter.note(nth_key(1, static_cast<std::uint64_t>(second)), now);
            filter.refresh(popular, now);
            REQUIRE(filter.peek(popular) == layers);
        }
        CHECK(filter.figures(start).swaps >= 18);
    }

    TEST_CASE("a refresh writes once a generation") {
        admission_filter filter{settings_of(10'000, seconds{100}), start};
        filter.note(nth_key(9, 9), start);
        for (int second = 0; second < 1'000; ++second) {
            const auto now = start + seconds{second};
            filter.note(nth_key(1, static_cast<std::uint64_t>(second)), now);
            filter.refresh(nth_key(9, 9), now);
            filter.refresh(nth_key(9, 9), now);
        }
        const auto figures = filter.figures(start);
        CHECK(figures.swaps >= 8);
        CHECK(figures.refreshes == figures.swaps);
    }

    TEST_CASE("a refresh makes a key known as often as can be told apart") {
        admission_filter filter{settings_of(100, seconds{60}, 5), start};
        filter.note(nth_key(1, 1), start);
        filter.refresh(nth_key(1, 1), start);
        CHECK(filter.peek(nth_key(1, 1)) == 5);
        filter.refresh(nth_key(1, 2), start);
        CHECK(filter.note(nth_key(1, 2), start) == 5);
    }

    TEST_CASE("with both generations full, strangers are taken for known at most at the rate" *
              reprise::test::of_one_thread()) {
        for (const double rate : {0.05, 0.001}) {
            CAPTURE(rate);
            constexpr std::uint64_t objects = 100'000;
            constexpr double asked = 2'000'000;
            const admission_settings settings{
                .objects = objects, .age = seconds{60}, .false_positive_rate = rate};
            admission_filter filter{settings, start};
            std::uint64_t i = 0;
            while (i < objects || filter.figures(start).swaps == 0) {
                filter.note(nth_key(1, i++), start);
            }
            for (auto more = objects - filter.figures(start).young.keys; more > 0; --more) {
                filter.note(nth_key(1, i++), start);
            }
            double found = 0;
            for (std::uint64_t stranger = 0; stranger < asked; ++stranger) {
                found += filter.peek(nth_key(2, stranger));
            }
            const auto error = 5 * std::sqrt(rate * asked) + 0.01 * rate * asked;
            CHECK(found < rate * asked + error);
            CHECK(found > 0.95 * rate * asked - error);
            // The figures know it from a sample of the bits.
            CHECK(filter.figures(start).false_positive_rate == doctest::Approx(rate).epsilon(0.2));
        }
    }

    TEST_CASE("a clock set back makes keys be remembered for longer, not shorter") {
        admission_filter filter{settings_of(1'000, seconds{100}), start};
        filter.note(nth_key(1, 0), start);
        const auto back = start - std::chrono::hours{24 * 365};
        for (int second = 0; second < 500; ++second) {
            filter.note(nth_key(1, static_cast<std::uint64_t>(second)), back + seconds{second});
        }
        CHECK(filter.peek(nth_key(1, 0)) == 1);
        CHECK(filter.figures(back).swaps == 0);
        CHECK(filter.figures(back).remembers_for == seconds{100});
    }

    TEST_CASE("a clock set forward costs one generation") {
        admission_filter filter{settings_of(1'000, seconds{100}), start};
        filter.note(nth_key(1, 1), start);
        const auto ahead = start + std::chrono::hours{24 * 365};
        filter.note(nth_key(1, 2), ahead);
        filter.note(nth_key(1, 3), ahead);
        CHECK(filter.figures(ahead).swaps == 1);
        CHECK(filter.peek(nth_key(1, 1)) == 1);
        CHECK(filter.peek(nth_key(1, 2)) == 1);
    }

    TEST_CASE("the old generation is cleared one slice of 16 KiB a note") {
        constexpr std::uint64_t objects = 50'000;
        admission_filter filter{settings_of(objects, seconds{60}), start};
        const auto slices = (filter.blocks() + 255) / 256;
        REQUIRE(slices > 4);
        for (std::uint64_t i = 0; i < objects + slices - 1; ++i) {
            filter.note(nth_key(1, i), start);
        }
        CHECK(filter.figures(start).swaps == 0);
        filter.note(nth_key(2, 0), start);
        CHECK(filter.figures(start).swaps == 1);
        CHECK(filter.figures(start).young.keys == 1);
        CHECK(filter.figures(start).old.keys == objects + slices - 1);
    }

    TEST_CASE("memory is two generations of as many blocks as the settings need") {
        const admission_settings settings;
        const admission_filter filter{settings, start};
        CHECK(filter.blocks() == admission_blocks(settings));
        CHECK(filter.figures(start).memory == 2 * filter.blocks() * block_bytes);
        CHECK(filter.figures(start).memory < 4'500'000);
        const auto layered = settings_of(1'000, seconds{60}, admission_filter::max_layers);
        CHECK(admission_filter{layered, start}.figures(start).memory ==
              2 * 15 * admission_blocks(layered) * block_bytes);
    }

    TEST_CASE("the figures say what was noted and for how long it will be remembered") {
        admission_filter filter{
            {.objects = 1'000, .age = seconds{100}, .false_positive_rate = 0.01}, start};
        CHECK(filter.figures(start).remembers_for == seconds{100});
        for (std::uint64_t i = 0; i < 400; ++i) {
            filter.note(nth_key(1, i), start + seconds{i / 20});
            filter.note(nth_key(1, i), start + seconds{i / 20});
        }
        const auto figures = filter.figures(start + seconds{20});
        CHECK(figures.young.keys == doctest::Approx(400).epsilon(0.01));
        CHECK(figures.young.estimated_keys == doctest::Approx(400).epsilon(0.05));
        CHECK(figures.first_sights == doctest::Approx(400).epsilon(0.01));
        CHECK(figures.first_sights + figures.repeats == 800);
        CHECK(figures.young.since == start);
        CHECK(figures.old.estimated_keys == 0);
        // 20 keys a second fill 1,000 in 50 s.
        CHECK(figures.remembers_for.count() == doctest::Approx(50).epsilon(0.03));
    }

    TEST_CASE(
        "threads that note, refresh and change generations at once lose nothing they may rely "
        "on") {
        constexpr int workers = 4;
        constexpr std::uint64_t batch = 200;
        // A round's keys are fewer than the objects, so at its end each must be known.
        const admission_settings settings = settings_of(3 * workers * batch, seconds{50}, 2);
        admission_filter filter{settings, start};
        std::barrier round_done{workers};
        std::vector<std::uint64_t> lost(workers);
        const auto work = [&](unsigned worker) {
            for (std::uint64_t round = 0; round < 100; ++round) {
                const auto now = start + seconds{round};
                const auto key = [&](std::uint64_t i) {
                    return nth_key(worker + 1, round * batch + i);
                };
                for (std::uint64_t i = 0; i < batch; ++i) {
                    filter.note(key(i), now);
                    filter.note(nth_key(99, round * batch + i), now);  // everyone's
                    filter.refresh(nth_key(98, i), now);
                }
                round_done.arrive_and_wait();
                for (std::uint64_t i = 0; i < batch; ++i) {
                    lost[worker] += filter.peek(key(i)) >= 1 ? 0 : 1;
                    lost[worker] += filter.peek(nth_key(98, i)) == 2 ? 0 : 1;
                }
                (void)filter.figures(now);
                round_done.arrive_and_wait();
            }
        };
        std::vector<std::jthread> threads;
        for (unsigned worker = 0; worker < workers; ++worker) {
            threads.emplace_back(work, worker);
        }
        threads.clear();
        CHECK(std::count(lost.begin(), lost.end(), 0u) == workers);
        CHECK(filter.figures(start).swaps > 20);
    }

    TEST_CASE("threads that race to clear change the roles at most once a generation, and go on "
              "doing it") {
        constexpr std::uint64_t objects = 30'000;
        constexpr int workers = 4;
        admission_filter filter{settings_of(objects, seconds{60}), start};
        std::vector<std::jthread> threads;
        for (int worker = 0; worker < workers; ++worker) {
            threads.emplace_back([&filter, worker] {
                for (std::uint64_t i = 0; i < 5 * objects; ++i) {
                    filter.note(nth_key(static_cast<std::uint64_t>(worker) + 1, i), start);
                }
            });
        }
        threads.clear();
        // How often depends on the scheduler: a thread asleep with its slice lets the young
        // generation grow. Never more often than keys came, though, and never stuck.
        const auto swaps = filter.figures(start).swaps;
        CHECK(swaps <= 5 * workers);
        CHECK(swaps > 0);
        for (std::uint64_t i = 0; i < 3 * objects; ++i) {
            filter.note(nth_key(99, i), start);
        }
        CHECK(filter.figures(start).swaps >= swaps + 2);
    }

    TEST_CASE("as a digest it has what was seen lately, also just after a change of generations") {
        admission_filter filter{settings_of(1000, seconds{1000}), start};
        for (std::uint64_t i = 0; i < 500; ++i) {
            filter.note(nth_key(1, i), start);
        }
        const digest_stamp stamp{.generation = {.epoch = 7, .counter = 3}};
        const auto first = filter.recent_digest(stamp);
        CHECK(first.stamp().keys == 500);
        CHECK(first.stamp().generation == stamp.generation);
        CHECK(first.shape().layout == digest_layout::blocked);
        CHECK(first.may_contain(nth_key(1, 499)));
        filter.note(nth_key(2, 1), start + seconds{1001});
        CHECK(filter.generations() == 1);
        const auto second = filter.recent_digest(stamp);
        CHECK(second.shape() == first.shape());
        CHECK(second.stamp().keys == 501);
        CHECK(second.may_contain(nth_key(2, 1)));
        CHECK(second.may_contain(nth_key(1, 499)));
        for (std::uint64_t i = 2; i <= 250; ++i) {
            filter.note(nth_key(2, i), start + seconds{1001});
        }
        const auto third = filter.recent_digest(stamp);
        CHECK(third.stamp().keys == 250);
        CHECK(third.may_contain(nth_key(2, 1)));
        CHECK_FALSE(third.may_contain(nth_key(1, 499)));
    }

    TEST_CASE("the digest of both generations errs little more than one") {
        auto settings = settings_of(10'000, seconds{1000});
        settings.false_positive_rate = 0.01;
        admission_filter filter{settings, start};
        for (std::uint64_t i = 0; i < 12'400; ++i) {
            filter.note(nth_key(1, i), start);
        }
        REQUIRE(filter.generations() == 1);
        const auto both = filter.recent_digest({});
        CHECK(both.may_contain(nth_key(1, 5)));
        unsigned wrong = 0;
        for (std::uint64_t i = 0; i < 100'000; ++i) {
            wrong += both.may_contain(nth_key(2, i)) ? 1 : 0;
        }
        MESSAGE(wrong << " of 100,000");
        CHECK(wrong < 2'500);  // one full generation: 500
    }
}

}  // namespace reprise::filter
