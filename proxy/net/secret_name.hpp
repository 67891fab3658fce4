#pragma once
// What somebody is called in a table that all share: a hash under a secret of the process. Whoever may choose a name (a client's
// host, an origin's) can't choose one that falls together with another's, and so be taken for it.

#include <cstdint>
#include <string_view>

namespace reprise::proxy::net {

/// 64 bits that are as good as drawn at random for each pair of parts. Of no use beyond the process.
enum class secret_name : std::uint64_t {};

/// Where one part ends counts: ("ab", "c") is another than ("a", "bc").
/// Threads  any.
/// Cost     three hashes of XXH3.
/// @throws std::runtime_error: there are no random bytes. In the process's first call alone.
[[nodiscard]] secret_name secret_name_of(std::string_view first, std::string_view second);

}  // namespace reprise::proxy::net
