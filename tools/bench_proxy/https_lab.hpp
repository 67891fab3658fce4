#pragma once
// What the rows of https have beside the lab: a CA, an https origin, hosts by name, and Squid.

#include "tools/bench_proxy/servers.hpp"

#include <string>

namespace reprise::bench {

/// nginx in front of the lab's origin, with the second processor: what it costs is nobody's.
struct https_origin {
    server_ptr process;
    std::uint16_t plain = 0, tls = 0;
    std::uint16_t plain_closing = 0, tls_closing = 0;  ///< one request a connection
};

class https_lab {
public:
    /// @pre may_be_had(of). @throws std::runtime_error
    explicit https_lab(const lab& of);
    /// Why there can be none; empty: there can.
    [[nodiscard]] static std::string obstacle(const lab& of);

    /// A proxy that opens tunnels to `host()`, those below it, and 98 more that nobody asks for.
    [[nodiscard]] std::unique_ptr<reprise_server> start_opening() const;
    /// The same without `intercept`.
    [[nodiscard]] std::unique_ptr<reprise_server> start_passing(const std::string& name,
                                                                const std::string& program) const;
    /// When Squid bumps: as its manual has it, when it has seen the client's hello, and a
    /// certificate of the origin's to copy; or already by CONNECT's name, which needs no origin.
    enum class bumping { after_peek, at_once };
    /// Squid with a certificate helper, and what it stores in memory.
    /// @pre has_squid()
    [[nodiscard]] server_ptr start_bumping(bumping when) const;
    [[nodiscard]] static bool has_squid();

    [[nodiscard]] static std::string host() { return "opened.test"; }
    [[nodiscard]] static std::string host(std::uint64_t number) {
        return "n" + std::to_string(number) + '.' + host();
    }
    /// Leads to the origins too, and is not listed.
    [[nodiscard]] static std::string other_host() { return "other.test"; }

    const https_origin& origin() const noexcept { return origin_; }

private:
    [[nodiscard]] nlohmann::json settings() const;

    const lab& of_;
    std::string ca_, names_;  ///< BASE of the CA's files; a file of hosts
    std::string root_, origin_certificate_;
    https_origin origin_;
};

}  // namespace reprise::bench
