#pragma once
// The other end of the admin listener: one request, and its answer. For the program's own commands
// (commands.hpp), which speak to a proxy that runs.

#include "config/options.hpp"

#include <boost/beast/http/verb.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace reprise::proxy::admin {

/// The way in to one proxy.
struct admin_door {
    std::string socket;          ///< a Unix socket's path; empty: `address`
    config::endpoint address{};  ///< of a loopback or other numeric host
    std::string token{};         ///< sent as Bearer where it is wanted; by a socket never

    [[nodiscard]] std::string to_text() const;
};

struct admin_told {
    unsigned status = 0;
    std::string body;
};
/// Why there is no answer, in a sentence that says what may be done.
struct not_reached {
    std::string why;
};

/// The token in a file, without the white space around it. Empty: it can't be read, or is not one line of
/// 4,096 bytes at most.
[[nodiscard]] std::string token_in(const std::string& path);

/// Where a proxy of these settings is to be asked: at its socket, at admin.address where it has
/// none, nowhere where both are off. A socket that is "auto" is looked for in `runtime_directory`.
/// Reads the token file for an address; one that can't be read is no error here: whatever wants it
/// is refused.
[[nodiscard]] std::optional<admin_door> find_door(const config::admin_options& options,
                                                  std::string_view runtime_directory);

/// Asks, and waits for the answer: `most` in all, and for at most 64 MiB of it.
/// @param target  path and query
[[nodiscard]] std::variant<admin_told, not_reached> ask(
    const admin_door& at,
    boost::beast::http::verb method,
    std::string_view target,
    std::chrono::milliseconds most = std::chrono::seconds{30});

}  // namespace reprise::proxy::admin
