#pragma once
// The last warnings and errors of the diagnostic log, kept for whoever asks what was the matter when
// nobody was reading.
// Fixed memory, and a lock that only such lines take: what is logged at all is rare, and a request
// that is answered from the store logs nothing.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy {

/// Memory   fixed, 10 KiB.
/// Threads  any.
class recent_lines {
public:
    static constexpr std::size_t kept = 20;
    static constexpr std::size_t longest = 480;  ///< bytes of a line; the rest is cut

    struct line {
        wall_time at{};
        config::log_level level{};
        std::string text;  ///< as it was written
    };
    struct counts {
        std::uint64_t warnings = 0, errors = 0;
    };

    /// What is less than a warning is passed over.
    void note(wall_time at, config::log_level level, std::string_view text) noexcept;

    /// The oldest first. @throws std::bad_alloc
    [[nodiscard]] std::vector<line> all() const;
    /// Counts of all that were ever noted.
    [[nodiscard]] counts counted() const noexcept;

private:
    struct cell {
        wall_time at{};
        config::log_level level{};
        std::uint16_t size = 0;
        std::array<char, longest> text{};
    };
    mutable std::mutex guard_;
    std::array<cell, kept> ring_{};
    counts counts_;
};

namespace log {
/// The diagnostic log's, as far as its level let them through.
[[nodiscard]] const recent_lines& recent() noexcept;
}  // namespace log

}  // namespace reprise::proxy
