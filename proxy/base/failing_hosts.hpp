#pragma once
// Which hosts' origins failed within the last minute, and how often, so that what is not well can be
// named.

#include "proxy/base/clock.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy {

/// Memory   `most` hosts; a further one takes the place of the one whose last failure is the oldest, so
///          many that fail once hide others only as long as they come that fast.
/// Threads  any; a short lock for each call.
/// Cost     a comparison with each of them.
class failing_hosts {
public:
    static constexpr std::size_t most = 64;
    static constexpr std::chrono::seconds step{10};

    struct one {
        std::string host;
        std::uint64_t failures = 0;
    };

    /// @param host  letters in any case
    /// @throws std::bad_alloc, and then nothing has changed
    void note(std::string_view host, steady_time now);

    /// Those that failed within the last minute, or up to a step more; the most frequent first.
    [[nodiscard]] std::vector<one> last_minute(steady_time now) const;

private:
    static constexpr std::size_t steps = 7;  // a minute, and the one under way
    struct entry {
        std::string host;
        std::int64_t last = 0;                  // the step that it failed in last
        std::array<std::uint64_t, steps> of{};  // by step; those before last - 6 are stale
    };
    mutable std::mutex guard_;
    std::vector<entry> entries_;
};

}  // namespace reprise::proxy
