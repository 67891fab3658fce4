#pragma once
// What was thrown where nobody waits for it: a line of the log, of each place one a minute.

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"

#include <exception>
#include <string_view>

namespace reprise::proxy::admin {

/// `by`: the place's own. `what` failed.
inline void log_thrown(log::seldom& by,
                       std::string_view what,
                       const std::exception_ptr& thrown) noexcept {
    if (!thrown) {
        return;
    }
    const auto more = by.due();
    if (!more) {
        return;
    }
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
        log::error("admin: ", what, ": ", std::string_view{error.what()}, *more);
    } catch (...) {
        log::error("admin: ", what, ": an unknown exception", *more);
    }
}

}  // namespace reprise::proxy::admin
