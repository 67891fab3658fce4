#pragma once
// Logins that were found right lately: a password is hashed once, and its hash costs what it costs;
// for five minutes it is known again by a hash that costs nothing (login.hpp). The passwords
// themselves are kept nowhere.

#include "proxy/base/clock.hpp"
#include "proxy/net/login.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::net {

using user_name = std::shared_ptr<const std::string>;  ///< null: nobody's

/// Memory   none until the first; then 64 KiB and the names. Where there is no place left the one
///          that ends first goes: whoever is forgotten is checked again.
/// Threads  one.
class known_logins {
public:
    static constexpr std::size_t sets = 256, ways = 4;
    static constexpr std::chrono::minutes kept_for{5};

    /// Whose it is; null: not known, too long ago, or of another list of users.
    [[nodiscard]] user_name find(const login_hash& which,
                                 std::uint64_t generation,
                                 steady_time now) const noexcept;
    /// `from`: when it was found right.
    void note(const login_hash& which, std::uint64_t generation, user_name whose, steady_time from);

private:
    struct entry {
        login_hash which{};
        std::uint64_t generation = 0;
        steady_time until{};
        user_name whose{};
    };
    std::vector<entry> entries_;
};

}  // namespace reprise::proxy::net
