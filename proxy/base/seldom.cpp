#include "proxy/base/seldom.hpp"

#include "proxy/base/relaxed.hpp"

#include <new>

namespace reprise::proxy::log {

std::optional<std::string> seldom::due(steady_time now) noexcept {
    const auto at = now.time_since_epoch().count();
    auto next = next_.load(relaxed);
    if (at < next ||
        !next_.compare_exchange_strong(next, (now + every_).time_since_epoch().count(), relaxed)) {
        held_back_.fetch_add(1, relaxed);
        return std::nullopt;
    }
    const auto before = held_back_.exchange(0, relaxed);
    if (before == 0) {
        return std::string{};
    }
    try {
        return " (and " + std::to_string(before) + " times since this was said last)";
    } catch (const std::bad_alloc&) {
        return std::string{};
    }
}

}  // namespace reprise::proxy::log
