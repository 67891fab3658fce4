#pragma once
// What was thrown where nobody waits for it: one line of the log, and not one for each request.

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"

#include <exception>
#include <string_view>

namespace reprise::proxy::admin {

inline constinit log::seldom something_thrown;

inline void log_thrown(std::string_view where, const std::exception_ptr& thrown) noexcept {
    if (!thrown) {
        return;
    }
    const auto more = something_thrown.due();
    if (!more) {
        return;
    }
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
        log::error("admin: ", where, ": ", std::string_view{error.what()}, *more);
    } catch (...) {
        log::error("admin: ", where, ": an unknown exception", *more);
    }
}

}  // namespace reprise::proxy::admin
