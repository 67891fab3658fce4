#pragma once
// Listening sockets that this program was given: by the one before it (UPGRADE.md), or by a service
// manager (sd_listen_fds(3): LISTEN_PID, LISTEN_FDS).

#include "config/options.hpp"
#include "proxy/base/descriptor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::server {

struct given_socket {
    descriptor socket;
    std::string setting;  ///< the address as it was set; empty: whoever gave it had no settings
    bool admin = false;
};

class given_sockets {
public:
    given_sockets() = default;
    explicit given_sockets(std::vector<given_socket> all);

    /// Those for a listener with this address, the admin's or not; they are given once. One fits that
    /// was set so (several listeners with port 0: each has those of one port), or is bound so.
    [[nodiscard]] std::vector<descriptor> take(const config::endpoint& setting, bool admin);
    /// The Unix socket that is bound to this path; none: there is none.
    [[nodiscard]] descriptor take(const std::string& path);
    /// Whether one of them, given by now or not, is in the way of a socket there: nobody else's would be found
    /// by asking the system.
    [[nodiscard]] bool had(const config::endpoint& where) const;
    /// Where the admin's Unix sockets are bound that nobody took.
    [[nodiscard]] std::vector<std::string> admin_paths() const;
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
    /// The rest is closed.
    void close() noexcept { all_.clear(); }

private:
    std::vector<given_socket> all_;
    std::vector<config::endpoint> places_;
};

/// The sockets of a service manager; the variables are removed. None: there is none, or these are not
/// for us.
[[nodiscard]] given_sockets take_service_sockets();

/// Where a socket is bound; none: it is no listening TCP socket.
[[nodiscard]] std::optional<config::endpoint> bound_address(int socket);

}  // namespace reprise::proxy::server
