#pragma once
// What a service manager is told: by sd_notify(3)'s messages, and by a file with this process's number.

#include <string>
#include <string_view>
#include <sys/types.h>

namespace reprise::proxy::server {

/// Sends `state` ("READY=1", several lines by \n) to the socket that NOTIFY_SOCKET names; nothing where
/// there is none. Never waits, and nobody hears of a failure: it is the manager's to miss it.
void tell_service_manager(std::string_view state) noexcept;

/// Writes this process's number and a newline, whole or not at all. Empty, or why not.
[[nodiscard]] std::string write_pid_file(const std::string& path);
/// Unless it is another's by now.
void remove_pid_file(const std::string& path) noexcept;

}  // namespace reprise::proxy::server
