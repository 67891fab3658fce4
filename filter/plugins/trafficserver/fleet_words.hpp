#pragma once
// What plugin.config says of a node's fleet, as a value; or what is wrong with it, and what would be right.

#include <chrono>
#include <cstdint>
#include <netinet/in.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

namespace reprise::trafficserver {

/// An address and a port, as sockets and as signatures have it.
struct endpoint {
    sockaddr_storage address{};
    socklen_t length = 0;

    /// "192.0.2.7:8080", "[2001:db8::7]:8080".
    [[nodiscard]] std::string text() const;
    /// "192.0.2.7", "2001:db8::7".
    [[nodiscard]] std::string host() const;
};
/// False where it is neither IPv4 nor IPv6. An IPv4 address that IPv6 maps is itself.
[[nodiscard]] bool take_endpoint(const sockaddr* from, endpoint& to) noexcept;
[[nodiscard]] bool are_one(const endpoint& a, const endpoint& b) noexcept;
[[nodiscard]] bool have_one_host(const endpoint& a, const endpoint& b) noexcept;

struct sibling_words {
    std::string name;
    endpoint at;
};

/// Some 57 MiB of places: siblings take no digest above 64.
inline constexpr std::uint64_t most_objects = 50'000'000;

struct fleet_options {
    std::string secret;  ///< absolute; empty: none, where secret=none was said
    std::string node;    ///< this node's name
    std::string state;   ///< absolute, or empty: nothing is kept
    std::chrono::seconds save{60};
    std::uint64_t room = 0;     ///< bytes; 0: as the server says, and as it shows
    std::uint64_t objects = 0;  ///< 0: as many as there is room for at 16 KiB each
    unsigned stripes = 0;       ///< 0: as the bytes between two of their wraps say
    std::chrono::milliseconds timeout{1000};
    std::vector<sibling_words> siblings;
};

/// `secrets` is where a relative secret lies, `runtime` where a relative state.
/// @throws std::invalid_argument with the word and what would be right, std::bad_alloc
[[nodiscard]] fleet_options parse_fleet(std::span<const char* const> words,
                                        std::string_view secrets,
                                        std::string_view runtime);

}  // namespace reprise::trafficserver
