#pragma once
// What is to be purged, as a value; and as bytes, for this proxy's other process during an upgrade.

#include "proxy/cache/memory/purges.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::thread {

enum class purge_kind : std::uint8_t { url, prefix, tag };

struct purge_order {
    purge_kind kind = purge_kind::url;
    cache::purge_mode mode = cache::purge_mode::hard;
    /// Primary keys' texts: the URLs; the prefixes; any keys of the origin whose tags are meant.
    /// Several where a URL is known to several listeners.
    std::vector<std::string> keys;
    std::vector<std::string> tags;
    bool operator==(const purge_order&) const = default;
};

/// Kind, mode, then how many keys and tags there are (32 bits each, little-endian), then each with its
/// length (likewise) before it.
[[nodiscard]] std::string encode(const purge_order& order);
/// None: these bytes are no order. Allocates no more than a few times their number.
[[nodiscard]] std::optional<purge_order> decode_purge(std::string_view bytes);

}  // namespace reprise::proxy::thread
