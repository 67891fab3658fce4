#pragma once
// What was thrown where nobody waits for it: one line of the log.

#include "proxy/base/log.hpp"

#include <exception>
#include <string_view>

namespace reprise::proxy::admin {

inline void log_thrown(std::string_view where, const std::exception_ptr& thrown) noexcept {
    try {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    } catch (const std::exception& error) {
        log::error("admin: ", where, ": ", std::string_view{error.what()});
    } catch (...) {
        log::error("admin: ", where, ": an unknown exception");
    }
}

}  // namespace reprise::proxy::admin
