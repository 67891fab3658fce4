#pragma once
// Asks a program that was just started for every URL that was ever stored, with only-if-cached, so
// that the origin has no part in the answer: 200 must be right, 504 says it is not there.

#include "tests/crash/catalogue.hpp"
#include "tests/crash/ledger.hpp"
#include "tests/crash/load.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise::tests::crash {

struct check_figures {
    std::uint64_t asked = 0, found = 0;
    std::uint64_t owed = 0, owed_found = 0;            ///< admitted a second before, or more
    std::uint64_t freshened = 0, freshened_found = 0;  ///< given a new day by a 304 likewise
    std::uint64_t large = 0, large_found = 0;          ///< of the owed, the large ones
    /// Of the owed that were not there, the one admitted longest before the kill.
    std::chrono::milliseconds oldest_lost{0};
    std::uint64_t ranges = 0;  ///< further requests for parts of those

    check_figures& operator+=(const check_figures& other) noexcept;
};

/// Twice: at once, while the index may still be loading, and what was not there then once more when
/// it is loaded. What is not there is owed no longer.
[[nodiscard]] check_figures check_all(const proxy_process& started,
                                      const catalogue& what,
                                      ledger& owed,
                                      sightings& seen,
                                      const std::string& authority,
                                      const ledger::moment& at);

}  // namespace reprise::tests::crash
