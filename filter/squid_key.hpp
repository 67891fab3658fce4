#pragma once
// A URL as Squid's cache digests know it: an MD5 key, four bits per key.
//
// Written from observation of Squid 5.7 (tests/data/squid/squid-peering.md, section 4). The digest
// has no secret: whoever reads one can test any URL against it, and can choose URLs whose bits
// collide. MD5 is named here only.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::filter {

/// Squid's key of a stored response: 16 bytes of MD5.
using squid_key = std::array<std::byte, 16>;

/// The byte that stands for the method in a key. A digest's reader asks for GET only.
enum class squid_method : std::uint8_t { get = 1, head = 4 };

/// `url` as Squid keys it: scheme and host in lower case, dots at the host's end and the scheme's
/// default port dropped, an absent path as "/"; all else as asked, escapes, dot segments and an
/// empty query included. What is no absolute URL comes back as it is. One with a user in it is
/// keyed with it, and never found: Squid asks siblings for none. IPv6 literals are put in lower
/// case, not shortened. @throws std::bad_alloc
[[nodiscard]] std::string squid_url(std::string_view url);

/// The key of `url`, asked with GET, whatever its form: MD5 of the byte 1 and squid_url(url). A
/// response with Vary is listed under this key too. Half a microsecond, any thread.
/// @throws std::bad_alloc
[[nodiscard]] squid_key squid_key_of(std::string_view url);

/// The same for bytes that are in Squid's form already, any method, and a variant's mark
/// (`name="value"`, joined by ", "; empty for none).
[[nodiscard]] squid_key squid_raw_key(std::string_view url,
                                      squid_method method = squid_method::get,
                                      std::string_view vary_mark = {});

/// The four places of a key in a mask of `bits` bits: its big-endian 32-bit words modulo `bits`.
/// They may repeat. @pre bits > 0
[[nodiscard]] std::array<std::uint64_t, 4> squid_places(const squid_key& key,
                                                        std::uint64_t bits) noexcept;

}  // namespace reprise::filter
