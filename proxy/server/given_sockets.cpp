#include "proxy/server/given_sockets.hpp"

#include "proxy/base/log.hpp"
#include "proxy/net/listening.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace reprise::proxy::server {

namespace {

constexpr int first_of_service = 3;  // sd_listen_fds(3)
constexpr int most_of_service = 1024;

int number_in(const char* name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread runs yet
    const char* const text = std::getenv(name);
    int out = -1;
    if (text != nullptr) {
        const auto* const end = text + std::strlen(text);
        if (std::from_chars(text, end, out).ptr != end) {
            out = -1;
        }
    }
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe)
    return out;
}

/// Where a Unix socket is bound; empty: it is none, or has no name.
std::string path_of(int socket) {
    sockaddr_un at{};
    socklen_t size = sizeof at;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0 ||
        at.sun_family != AF_UNIX || size <= offsetof(sockaddr_un, sun_path)) {
        return {};
    }
    return {at.sun_path, ::strnlen(at.sun_path, size - offsetof(sockaddr_un, sun_path))};
}

}  // namespace

std::optional<config::endpoint> bound_address(int socket) {
    boost::asio::ip::tcp::endpoint at;
    auto size = static_cast<socklen_t>(at.capacity());
    int listens = 0;
    socklen_t whole = sizeof listens;
    if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &whole) != 0 || listens == 0 ||
        ::getsockname(socket, at.data(), &size) != 0) {
        return std::nullopt;
    }
    const auto family = at.data()->sa_family;
    if (family != AF_INET && family != AF_INET6) {
        return std::nullopt;
    }
    at.resize(size);
    return config::endpoint{at.address().to_string(), at.port()};
}

given_sockets::given_sockets(std::vector<given_socket> all) : all_{std::move(all)} {
    for (const auto& one : all_) {
        if (auto at = bound_address(one.socket.get())) {
            places_.push_back(std::move(*at));
        }
    }
}

std::vector<descriptor> given_sockets::take(const config::endpoint& setting, bool admin) {
    const auto wanted = net::to_text(setting);
    std::vector<descriptor> out;
    std::optional<config::endpoint> at;  // all of one listener are bound to one address
    for (auto& one : all_) {
        const auto bound = one.socket ? bound_address(one.socket.get()) : std::nullopt;
        if (!bound || (!one.setting.empty() && one.admin != admin)) {
            continue;
        }
        const bool fits = one.setting == wanted || net::to_text(*bound) == wanted;
        if (fits && (!at || net::to_text(*at) == net::to_text(*bound))) {
            at = bound;
            out.push_back(std::move(one.socket));
        }
    }
    std::erase_if(all_, [](const given_socket& one) { return !one.socket; });
    return out;
}

descriptor given_sockets::take(const std::string& path) {
    for (auto one = all_.begin(); one != all_.end(); ++one) {
        if (path_of(one->socket.get()) == path) {
            auto out = std::move(one->socket);
            all_.erase(one);
            return out;
        }
    }
    return {};
}

bool given_sockets::had(const config::endpoint& where) const {
    return std::any_of(places_.begin(), places_.end(), [&](const config::endpoint& one) {
        return net::overlap(one, where);
    });
}

std::vector<std::string> given_sockets::admin_paths() const {
    std::vector<std::string> out;
    for (const auto& one : all_) {
        if (auto path = one.admin ? path_of(one.socket.get()) : std::string{}; !path.empty()) {
            out.push_back(std::move(path));
        }
    }
    return out;
}

given_sockets take_service_sockets() {
    const auto pid = number_in("LISTEN_PID");
    const auto count = number_in("LISTEN_FDS");
    ::unsetenv("LISTEN_FDNAMES");  // NOLINT(concurrency-mt-unsafe)
    if (pid != ::getpid() || count <= 0) {
        return {};
    }
    std::vector<given_socket> all;
    for (int fd = first_of_service; fd < first_of_service + std::min(count, most_of_service);
         ++fd) {
        ::fcntl(fd, F_SETFD, FD_CLOEXEC);
        all.push_back({descriptor{fd}, {}, false});
    }
    return given_sockets{std::move(all)};
}

}  // namespace reprise::proxy::server
