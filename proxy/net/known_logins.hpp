#pragma once
// Logins that were found right lately: a password is hashed once, and its hash costs what it costs;
// for five minutes it is known again by a hash that costs nothing (login.hpp). The passwords
// themselves are kept nowhere. It goes on being known when the list of users is read again (each
// reload does so) and the name has the same hash there: or all who are at work would be tried anew
// in the same second, and most refused.

#include "proxy/base/clock.hpp"
#include "proxy/net/login.hpp"
#include "proxy/net/user_list.hpp"

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

    /// What a login was found right by.
    struct proof {
        std::uint64_t list = 0;      ///< user_list::generation
        std::uint64_t password = 0;  ///< user_list::password_mark of whose it is; 0: a token
    };

    /// Whose it is; null: not known, too long ago, or these users have another password for it.
    [[nodiscard]] user_name find(const login_hash& which,
                                 const user_list& users,
                                 steady_time now) noexcept;
    /// `from`: when it was found right.
    void note(const login_hash& which, proof by, user_name whose, steady_time from);

private:
    struct entry {
        login_hash which{};
        proof by{};
        steady_time until{};
        user_name whose{};
    };
    std::vector<entry> entries_;
};

}  // namespace reprise::proxy::net
