#pragma once
// Who asks, where clients have to say who they are (access.users_file, access.tokens_file).
//
// Asked are clients of forward listeners; not siblings and parents (they ask from the addresses of
// their settings), nor what comes in a tunnel that was opened: its CONNECT has said it, and that holds
// for as long as the lists have what it showed, that password or that token. A password
// that was found right lately costs a hash of some 100 ns (known_logins); another one is tried on a
// thread of its own, for which the answer waits (password_checks).

#include "proxy/net/login.hpp"
#include "proxy/serve/answer.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <optional>

namespace reprise::proxy::serve {

/// None: whoever asks is known, and named in x.book, or need not be. Else the answer:
/// answers::refused, or answers::unverified where a password has to be tried.
/// @pre x.read_request() refused nothing
[[nodiscard]] std::optional<answer> identify(exchange_state& x);

/// Has the password tried. None: it is right, and x.book has the name.
/// @pre identify() said answers::unverified
[[nodiscard]] awaitable<std::optional<failure>> verify(exchange_state& x,
                                                       answers::unverified& what);

}  // namespace reprise::proxy::serve
