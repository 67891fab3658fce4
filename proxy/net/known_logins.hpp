#pragma once
// Logins that were found right lately: a password is hashed once, and its hash costs what it costs;
// for five minutes it is known again by a hash that costs nothing (login.hpp). The passwords
// themselves are kept nowhere. It goes on being known when the list of users is read again (each
// reload does so) and the name has the same hash, or the same token, there: or all who are at work
// would be tried anew in the same second, and most refused.

#include "proxy/base/clock.hpp"
#include "proxy/net/login.hpp"
#include "proxy/net/user_list.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::net {

/// Memory   none until the first; then 48 KiB and the names. Where there is no place left the one
///          that ends first goes: whoever is forgotten is checked again.
/// Threads  one.
class known_logins {
public:
    static constexpr std::size_t sets = 256, ways = 4;
    static constexpr std::chrono::minutes kept_for{5};

    /// Whose it is; null: not known, too long ago, or it is no more what these users show.
    [[nodiscard]] user_ptr find(const login_hash& which,
                                const user_list& users,
                                steady_time now) noexcept;
    /// `whose` is not null, and has a mark of `users`. `from`: when it was found right.
    void note(const login_hash& which, const user_list& users, user_ptr whose, steady_time from);

private:
    struct entry {
        login_hash which{};
        std::uint64_t list = 0;  // user_list::generation, of the last that held the mark
        steady_time until{};
        user_ptr whose{};
    };
    std::vector<entry> entries_;
};

}  // namespace reprise::proxy::net
