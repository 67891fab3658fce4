#include "proxy/server/service_manager.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sys/time.h>
#include <unistd.h>

namespace reprise::proxy::server {

service_manager::service_manager() noexcept {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
    const char* const named = std::getenv("NOTIFY_SOCKET");
    if (named == nullptr) {
        return;
    }
    const std::string_view path{named};
    if ((path.empty() || (path[0] != '/' && path[0] != '@')) ||
        path.size() >= sizeof to_.sun_path) {
        return;
    }
    to_.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), to_.sun_path);
    if (path[0] == '@') {
        to_.sun_path[0] = '\0';  // an abstract name (unix(7))
    }
    size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    socket_ = descriptor{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    constexpr timeval patience{.tv_sec = 2, .tv_usec = 0};
    (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

bool service_manager::tell(std::string_view state) const noexcept {
    return size_ == 0 || ::sendto(socket_.get(),
                                  state.data(),
                                  state.size(),
                                  MSG_NOSIGNAL,
                                  reinterpret_cast<const sockaddr*>(&to_),
                                  size_) >= 0;
}

// In one datagram: by the first line alone the manager would begin to count what it gives by itself.
bool service_manager::tell_stopping(std::chrono::milliseconds most) const noexcept {
    constexpr std::string_view lines = "STOPPING=1\nEXTEND_TIMEOUT_USEC=";
    using count = std::chrono::microseconds::rep;
    std::array<char, lines.size() + std::numeric_limits<count>::digits10 + 2> text{};
    auto* const number = std::copy(lines.begin(), lines.end(), text.data());
    const auto* const end = std::to_chars(number,
                                          text.data() + text.size(),
                                          count{std::chrono::microseconds{most}.count()})
                                .ptr;
    return tell({text.data(), static_cast<std::size_t>(end - text.data())});
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
