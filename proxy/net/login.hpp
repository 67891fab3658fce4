#pragma once
// What a client says of itself in Proxy-Authorization (RFC 9110 11.7.2): by name and password (Basic,
// RFC 7617) or by a token (Bearer, RFC 6750 2.1); and a hash of it, by which one that was found right
// is known again.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

inline constexpr std::size_t most_of_login = 2048;  ///< bytes of the field's value

struct login {
    bool by_token = false;
    std::string user;    ///< Basic's: anything but a colon
    std::string secret;  ///< password or token
};
/// None: another scheme, no such syntax, or too long. Total.
[[nodiscard]] std::optional<login> read_login(std::string_view value);

struct login_hash {
    std::uint64_t low = 0, high = 0;
    bool operator==(const login_hash&) const = default;
};

/// SipHash-2-4 of 128 bits under a key that this process has drawn at random: without it nobody finds
/// a wrong password that is taken for a right one, as anybody could with a hash that is only fast.
/// Threads  one. Cost  some 100 ns for what people send.
class login_hasher {
public:
    /// Where OpenSSL has no SipHash, or no random numbers, it makes no hash.
    login_hasher();
    ~login_hasher();
    login_hasher(const login_hasher&) = delete;
    login_hasher& operator=(const login_hasher&) = delete;
    /// None: there is none.
    [[nodiscard]] std::optional<login_hash> operator()(std::string_view value) noexcept;

private:
    struct context;
    std::unique_ptr<context> context_;
};

}  // namespace reprise::proxy::net

template <>
struct std::hash<reprise::proxy::net::login_hash> {
    std::size_t operator()(const reprise::proxy::net::login_hash& of) const noexcept {
        return of.low;
    }
};
