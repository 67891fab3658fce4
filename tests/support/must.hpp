#pragma once
// MUST: REQUIRE for what is asked a hundred thousand times. An assertion of doctest's is counted and makes some texts also
// where what it says is so, which takes longer than most conditions do. MUST comes to one only where its condition is
// false, and that is REQUIRE's own, with the same text, values and captures. The condition is evaluated once.

#include <doctest/doctest.h>

namespace reprise::tests {

inline void must(const doctest::detail::Result& is, const char* file, int line, const char* text) {
    if (!is.m_passed) {
        doctest::detail::decomp_assert(doctest::assertType::DT_REQUIRE, file, line, text, is);
    }
}

}  // namespace reprise::tests

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): it says where it stands, and the condition as it is written
#define MUST(...)                                                                                  \
    reprise::tests::must(doctest::detail::ExpressionDecomposer(doctest::assertType::DT_REQUIRE)    \
                             << __VA_ARGS__,                                                       \
                         __FILE__,                                                                 \
                         __LINE__,                                                                 \
                         #__VA_ARGS__)
