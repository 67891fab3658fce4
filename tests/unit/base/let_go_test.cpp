#include "proxy/base/let_go.hpp"

#include <doctest/doctest.h>

#include <string>
#include <unordered_set>
#include <vector>

namespace reprise::proxy::test::of_let_go {

TEST_SUITE("base/let_go") {
    TEST_CASE("what is let go of has no memory any more") {
        std::vector<int> numbers(1000);
        std::string text(1000, 'x');
        std::unordered_set<int> set;
        for (int i = 0; i < 1000; ++i) {
            set.insert(i);
        }
        let_go(numbers);
        let_go(text);
        let_go(set);
        CHECK(numbers.capacity() == 0);
        CHECK(text.capacity() == std::string{}.capacity());
        CHECK(set.bucket_count() == std::unordered_set<int>{}.bucket_count());
    }
}

}  // namespace reprise::proxy::test::of_let_go
