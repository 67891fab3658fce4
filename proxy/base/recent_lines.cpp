#include "proxy/base/recent_lines.hpp"

#include <algorithm>

namespace reprise::proxy {

void recent_lines::note(wall_time at, config::log_level level, std::string_view text) noexcept {
    const bool is_error = level == config::log_level::error;
    if (!is_error && level != config::log_level::warn) {
        return;
    }
    auto size = std::min(text.size(), longest);
    // Never half a character: a byte that continues one is not to be the first that is left out.
    while (size < text.size() && size > 0 &&
           (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) {
        --size;
    }
    const std::lock_guard lock{guard_};
    auto& into = ring_[(counts_.warnings + counts_.errors) % kept];
    into.at = at;
    into.level = level;
    into.size = static_cast<std::uint16_t>(size);
    std::copy_n(text.begin(), size, into.text.begin());
    ++(is_error ? counts_.errors : counts_.warnings);
}

std::vector<recent_lines::line> recent_lines::all() const {
    std::vector<line> lines;
    lines.reserve(kept);
    const std::lock_guard lock{guard_};
    const auto noted = counts_.warnings + counts_.errors;
    for (auto number = noted - std::min<std::uint64_t>(noted, kept); number < noted; ++number) {
        const auto& from = ring_[number % kept];
        lines.push_back({from.at, from.level, std::string{from.text.data(), from.size}});
    }
    return lines;
}

recent_lines::counts recent_lines::counted() const noexcept {
    const std::lock_guard lock{guard_};
    return counts_;
}

}  // namespace reprise::proxy
