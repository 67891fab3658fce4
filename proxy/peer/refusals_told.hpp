#pragma once
// Whoever asks for a digest and is refused is said in the log once: it asks again and again, and
// where it is a sibling, its operator and this one's look for the reason in both logs.

#include "proxy/base/seldom.hpp"

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Memory    at most `most` addresses; beyond them one a minute is said, in the oldest one's place.
/// Threads   any; a short lock.
class refusals_told {
public:
    static constexpr std::size_t most = 64;

    /// Logs a warning unless it did for this address and reason.
    void refused(const std::string& address, std::string_view reason);
    /// The settings are others: everybody is said anew.
    void forget();

private:
    std::mutex guard_;
    std::vector<std::string> told_;
    log::seldom crowded_;
};

}  // namespace reprise::proxy::peer
