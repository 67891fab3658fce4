#pragma once
// Clients that try passwords as fast as they are answered, each from an address of its own.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise::bench {

/// A line of access.users_file: yescrypt at its usual cost. @throws std::runtime_error
[[nodiscard]] std::string user_line(const std::string& name, const std::string& password);

/// A Proxy-Authorization field, CRLF included.
[[nodiscard]] std::string login_field(const std::string& name, const std::string& password);

/// Until `over`: `clients` threads, from 127.0.1.1 on, ask for `url` as `name`, each time with another wrong
/// password; without a name they send none. Returns how many were answered. @throws std::runtime_error where one was let in
std::uint64_t try_passwords(std::uint16_t port,
                            std::size_t clients,
                            const std::string& url,
                            const std::string& name,
                            const std::atomic<bool>& over);

}  // namespace reprise::bench
