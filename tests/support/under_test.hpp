#pragma once
// Which program is driven, and how it was built. What drives it is built once, without a sanitizer,
// and used for every kind of build: ctest says by the environment which program it is about.
//
//   REPRISE_PROGRAM           the program; default: that of the tree the driver was built in
//   REPRISE_SANITIZED         set: it has a sanitizer: be patient, and generous with memory
//   REPRISE_WALL_CLOCK_SHIM   as REPRISE_PROGRAM: tests/support/wall_clock_shim.cpp
//   REPRISE_DISK_FAULT_SHIM   as REPRISE_PROGRAM: tests/support/disk_fault_shim.cpp
//   REPRISE_ALLOCATION_SHIM   as REPRISE_PROGRAM: tests/support/allocation_shim.cpp

#include <cstdlib>
#include <string>

namespace reprise::tests {

/// What the environment says under `name`, or `otherwise`.
[[nodiscard]] inline std::string told(const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : otherwise;
}

/// What is tested has a sanitizer. A unit is part of its test, which knows that by itself.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline const bool sanitized = true;
#else
inline const bool sanitized = std::getenv("REPRISE_SANITIZED") != nullptr;
#endif

}  // namespace reprise::tests
