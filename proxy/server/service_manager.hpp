#pragma once
// What a service manager is told: by sd_notify(3)'s messages, and by a file with this process's number.

#include "proxy/base/descriptor.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

namespace reprise::proxy::server {

/// The socket that NOTIFY_SOCKET names, if any.
///
/// Threads   any number
class service_manager {
public:
    /// Takes the descriptor that is needed: clients may have all others when there is something to tell.
    service_manager() noexcept;

    /// Sends `state` ("READY=1", several lines by \n). Waits two seconds at most, where the manager reads
    /// nothing. False: it was not told; true where there is none.
    bool tell(std::string_view state) const noexcept;

    /// The same of STOPPING=1, and of the time within which the process will have ended: a manager that would
    /// kill it sooner waits as long (EXTEND_TIMEOUT_USEC), and one that would wait longer still does. Allocates
    /// nothing: there may be no memory when the program is to end.
    /// @pre most > 0
    bool tell_stopping(std::chrono::milliseconds most) const noexcept;

private:
    descriptor socket_;
    sockaddr_un to_{};
    socklen_t size_ = 0;  ///< of `to_`; 0: there is none
};

/// Writes this process's number and a newline, whole or not at all. Empty, or why not.
[[nodiscard]] std::string write_pid_file(const std::string& path);
/// Unless it is another's by now.
void remove_pid_file(const std::string& path) noexcept;

}  // namespace reprise::proxy::server
