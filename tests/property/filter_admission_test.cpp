// The admission filter against an exact model of its contract, over schedules made from seeds.
//
// The model knows for each key when it was seen last and how many distinct keys came after that. As
// long as a key is younger than the age and fewer than `objects` others followed, it must be known,
// and with as many sights as the model counted. What the filter knows beyond that is its own affair
// (it may remember for longer), so only this direction is tested.

#include "filter/admission.hpp"
#include "filter/admission_state.hpp"
#include "tests/support/must.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>

namespace reprise::filter::test::of_filter_admission {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using test::nth_key;

namespace {

/// What the contract promises at least.
class model {
public:
    explicit model(const admission_settings& settings) : settings_{settings} {}

    void note(std::uint64_t key, sys_seconds now) {
        record(key, now, std::min(known(key, now) + 1, settings_.layers));
    }
    void refresh(std::uint64_t key, sys_seconds now) { record(key, now, settings_.layers); }

    [[nodiscard]] unsigned known(std::uint64_t key, sys_seconds now) const {
        const auto found = seen_.find(key);
        if (found == seen_.end() || now - found->second.at >= settings_.age) {
            return 0;
        }
        const auto after = std::count_if(seen_.begin(), seen_.end(), [&](const auto& other) {
            return other.second.order > found->second.order;
        });
        return static_cast<std::uint64_t>(after) < settings_.objects ? found->second.times : 0;
    }

    [[nodiscard]] auto begin() const { return seen_.begin(); }
    [[nodiscard]] auto end() const { return seen_.end(); }

private:
    struct sight {
        sys_seconds at;
        std::uint64_t order;
        unsigned times;
    };

    void record(std::uint64_t key, sys_seconds now, unsigned times) {
        seen_.insert_or_assign(key, sight{now, ++order_, times});
    }

    admission_settings settings_;
    std::map<std::uint64_t, sight> seen_;
    std::uint64_t order_ = 0;
};

}  // namespace

TEST_SUITE("property/filter_admission") {
    TEST_CASE("the filter knows whatever its contract says, whatever the schedule") {
        for (std::uint64_t seed = 1; seed <= 60; ++seed) {
            CAPTURE(seed);
            std::mt19937_64 random{seed};
            const auto below = [&](std::uint64_t limit) { return random() % limit; };
            const admission_settings settings{.objects = 1 + below(60),
                                              .age = seconds{1 + below(200)},
                                              .false_positive_rate = 0.01,
                                              .layers = 1 + static_cast<unsigned>(below(4))};
            const hash_seed unused{};
            auto now = sys_seconds{seconds{1'000'000}};
            auto filter = std::make_unique<admission_filter>(settings, now);
            model expected{settings};
            std::uint64_t newest = 0;
            const auto quiet = 1 + below(50);  // a step in time every so many operations
            for (int step = 0; step < 1'500; ++step) {
                CAPTURE(step);
                if (below(quiet) == 0) {
                    now += seconds{below(30) == 0 ? below(1'000) : below(10)};
                }
                // Half new keys, half some that came not long ago.
                const auto key = below(2) == 0
                                     ? ++newest
                                     : newest - below(std::min<std::uint64_t>(newest + 1, 80));
                if (below(4) == 0) {
                    filter->refresh(nth_key(seed, key), now);
                    expected.refresh(key, now);
                } else {
                    const auto least = expected.known(key, now);
                    MUST(filter->peek(nth_key(seed, key)) >= least);
                    MUST(filter->note(nth_key(seed, key), now) >= least);
                    expected.note(key, now);
                }
                if (below(200) == 0) {
                    auto again = decode(encode(*filter, unused), settings, now);
                    REQUIRE(again.has_value());
                    filter = std::move(again->filter);
                }
                if (step % 100 == 0) {
                    for (const auto& [known, sight] : expected) {
                        MUST(filter->peek(nth_key(seed, known)) >= expected.known(known, now));
                    }
                }
            }
        }
    }
}

}  // namespace reprise::filter::test::of_filter_admission
