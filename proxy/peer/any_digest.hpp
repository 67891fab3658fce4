#pragma once
// A digest of whatever kind, for people: what it is, whether it lists a URL, how two compare. What
// the admin page /digest and tools/digest show.

#include "filter/digest.hpp"
#include "filter/squid_digest.hpp"
#include "proxy/peer/secret.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reprise::proxy::peer {

using any_digest = std::variant<std::shared_ptr<const filter::digest>,
                                std::shared_ptr<const filter::squid_digest>>;

/// Ours by its magic, else a Squid's; under any secret. A delta is refused: it is a digest only
/// together with its base. @returns a digest_errc or squid_errc @throws std::bad_alloc
[[nodiscard]] boost::system::result<any_digest> read_any(std::span<const std::byte> bytes);

struct digest_line {
    std::string name, value;
};
/// Kind, layout, bits, probes, generation, keys said and estimated (with 95 % either way), fill,
/// rate of false positives; for ours the secret's public name and whether it is `secret`'s.
[[nodiscard]] std::vector<digest_line> describe(const any_digest& digest,
                                                const fleet_secret& secret);

/// Whether it says that it has `url`; none when its keys are of another secret than `secret`.
/// `url` is taken as it stands for ours (http://host/path, normalised), and in Squid's form for a
/// Squid's.
[[nodiscard]] std::optional<bool> lists(const any_digest& digest,
                                        std::string_view url,
                                        const fleet_secret& secret);

/// Keys in either, in both, in one alone, each with its standard error; none for two digests that
/// differ in kind, secret or probes, are not of the standard layout, or do not fold to one size:
/// their bits say nothing of each other.
[[nodiscard]] std::optional<std::vector<digest_line>> compare(const any_digest& a,
                                                              const any_digest& b);

}  // namespace reprise::proxy::peer
