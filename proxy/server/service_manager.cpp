#include "proxy/server/service_manager.hpp"

#include "proxy/base/descriptor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace reprise::proxy::server {

void tell_service_manager(std::string_view state) noexcept {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    const char* const named = std::getenv("NOTIFY_SOCKET");
    if (named == nullptr) {
        return;
    }
    const std::string_view path{named};
    sockaddr_un to{};
    if ((path.empty() || (path[0] != '/' && path[0] != '@')) || path.size() >= sizeof to.sun_path) {
        return;
    }
    to.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), to.sun_path);
    if (path[0] == '@') {
        to.sun_path[0] = '\0';  // an abstract name (unix(7))
    }
    const descriptor socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    (void)::sendto(socket.get(),
                   state.data(),
                   state.size(),
                   MSG_NOSIGNAL | MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&to),
                   size);
}

std::string write_pid_file(const std::string& path) {
    const auto temporary = path + ".new";
    {
        std::ofstream out{temporary};
        out << ::getpid() << '\n';
        if (!out.flush()) {
            return "--pid-file: cannot write " + temporary;
        }
    }
    return std::rename(temporary.c_str(), path.c_str()) == 0 ? std::string{}
                                                             : "--pid-file: cannot write " + path;
}

void remove_pid_file(const std::string& path) noexcept {
    pid_t there = 0;
    try {
        std::ifstream{path} >> there;
    } catch (...) {  // no memory to read it by: it stays
        return;
    }
    if (there == ::getpid()) {
        (void)std::remove(path.c_str());
    }
}

}  // namespace reprise::proxy::server
