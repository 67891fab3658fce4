#pragma once
// The diagnostic log: lines for people on standard error, handed to a thread of spdlog's.
// An event loop must not wait for a terminal or a pipe, so the queue is bounded and the oldest
// line gives way. What is logged may hold bytes from strangers: every line is made printable here,
// so that nobody can forge a line or drive a terminal. Keeping secrets out is the caller's part:
// URLs go through append_redacted_url, field values that may be credentials are not logged at all.

#include "config/options.hpp"

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::proxy {

/// Runs the log for as long as it lives: one in a program, made before the threads that log and
/// destroyed after them. Without one, lines go straight to standard error (tests, --check-config).
class diagnostic_log {
public:
    explicit diagnostic_log(config::log_level level);
    /// Writes what is queued; when nobody reads it, gives up after half a second.
    ~diagnostic_log();
    diagnostic_log(const diagnostic_log&) = delete;
    diagnostic_log& operator=(const diagnostic_log&) = delete;
};

/// Any thread, at any time.
void set_log_level(config::log_level level) noexcept;

/// Lines since start that were overrun in the queue or could not be written.
[[nodiscard]] std::uint64_t log_lines_dropped() noexcept;

namespace log {

inline constexpr std::size_t longest_line = 2048;  ///< bytes; the rest is cut

/// One relaxed load.
[[nodiscard]] bool enabled(config::log_level level) noexcept;

/// Any thread; never blocks on output. Never throws: a line that cannot be made is dropped.
void write(config::log_level level, std::string_view line) noexcept;

namespace detail {
inline void append(std::string& line, std::string_view part) {
    line.append(part);
}
template <std::integral Number>
    requires(!std::same_as<Number, char> && !std::same_as<Number, bool>)
void append(std::string& line, Number part) {
    char digits[24];
    line.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
}
template <class... Parts>
void write_parts(config::log_level level, const Parts&... parts) noexcept {
    if (!enabled(level)) {
        return;
    }
    try {
        std::string line;
        (append(line, parts), ...);
        write(level, line);
    } catch (...) {
        // Out of memory: the line is lost, the request it speaks of need not be.
    }
}
}  // namespace detail

/// The parts (texts and integers) make one line: log::warn("admission: ", path, ": ", reason).
template <class... Parts>
void debug(const Parts&... parts) noexcept {
    detail::write_parts(config::log_level::debug, parts...);
}
template <class... Parts>
void info(const Parts&... parts) noexcept {
    detail::write_parts(config::log_level::info, parts...);
}
template <class... Parts>
void warn(const Parts&... parts) noexcept {
    detail::write_parts(config::log_level::warn, parts...);
}
template <class... Parts>
void error(const Parts&... parts) noexcept {
    detail::write_parts(config::log_level::error, parts...);
}

}  // namespace log
}  // namespace reprise::proxy
