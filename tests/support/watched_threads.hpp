#pragma once
// What ThreadSanitizer's build leaves to the others.

#include <doctest/doctest.h>

namespace reprise::test {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool threads_are_watched = true;
#elif !defined(__has_feature)
inline constexpr bool threads_are_watched = false;
#elif __has_feature(thread_sanitizer)
inline constexpr bool threads_are_watched = true;
#else
inline constexpr bool threads_are_watched = false;
#endif

/// Of a TEST_CASE that only one thread runs and that computes for seconds: there is no race to be
/// found in it, and under ThreadSanitizer it takes ten times as long.
inline doctest::skip of_one_thread() {
    return doctest::skip{threads_are_watched};
}

}  // namespace reprise::test
