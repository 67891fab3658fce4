#pragma once
// For figures and flags that order nothing else between threads.

#include <atomic>

namespace reprise::proxy {

inline constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace reprise::proxy
