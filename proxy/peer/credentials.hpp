#pragma once
// What parents are told of who we are: peers[].credentials_file, read where waiting for a disk is
// allowed, and kept as the value that goes on the wire (RFC 7617).
//
// Nothing here has a printed form, and no error tells any of the content.

#include "config/options.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>

namespace reprise::proxy::peer {

inline constexpr std::size_t most_credentials = 1024;  ///< bytes of user:password

/// "Basic ..." by the parents' names; those without a file are not there.
using parent_credentials = std::map<std::string, std::string, std::less<>>;

/// What a file's content makes, or what is wrong with it.
struct credentials_reading {
    std::string value{};  ///< of Proxy-Authorization
    std::string wrong{};  ///< empty: nothing is
};
/// One line, user:password, whatever bytes but control characters; a line end at its end.
[[nodiscard]] credentials_reading read_credentials(std::string_view content);
/// Blocks for the disk.
[[nodiscard]] credentials_reading load_credentials(const std::string& path);

/// Those of all parents. Blocks for the disk: at the start and on a reload.
/// @throws std::runtime_error naming the setting and the file: nothing of `peers` may be used
[[nodiscard]] parent_credentials load_all_credentials(std::span<const config::peer_options> peers);

}  // namespace reprise::proxy::peer
