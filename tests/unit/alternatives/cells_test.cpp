#include "tests/unit/alternatives/trials.hpp"
#include "tools/alternatives/cells.hpp"

namespace reprise::alternatives {

TEST_SUITE("alternatives/cells") {
    TEST_CASE("cells of any width keep their values and leave their neighbours alone") {
        for (unsigned bits = 1; bits <= 32; ++bits) {
            CAPTURE(bits);
            cells some{100, bits};
            std::vector<std::uint32_t> expected(100);
            std::mt19937_64 random{bits};
            for (unsigned step = 0; step < 1'000; ++step) {
                const auto i = random() % 100;
                expected[i] = static_cast<std::uint32_t>(random()) & some.max();
                some.set(i, expected[i]);
            }
            unsigned wrong = 0;
            for (std::uint64_t i = 0; i < 100; ++i) {
                wrong += some.get(i) == expected[i] ? 0 : 1;
            }
            CHECK(wrong == 0);
            some.clear();
            CHECK(some == cells{100, bits});
        }
    }

    TEST_CASE("cells lie without gaps") {
        CHECK(cells{1'000, 13}.bytes() == 13 * 125 + 8);
    }
}

}  // namespace reprise::alternatives
