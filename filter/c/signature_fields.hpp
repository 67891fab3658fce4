#pragma once
// The signature of a request for a digest, in its fields (RFC 9421): what proxy/peer/signature.hpp describes, and no more of that
// standard. Read are dictionaries whose members are inner lists of strings (Signature-Input) and byte sequences (Signature), and
// covered may be the six components that such a signature has to cover, in any order.

#include <cstdint>
#include <optional>
#include <reprise/digest.h>
#include <string>
#include <string_view>

namespace reprise::filter::c {

inline constexpr std::string_view node_field = "Reprise-Node";
inline constexpr std::string_view to_field = "Reprise-To";

/// As views of the request's fields.
struct signature_said {
    std::string_view covered{};     ///< `"@method" ... "reprise-to"`
    std::string_view parameters{};  ///< `;created=...;tag="reprise-peer"`
    std::string_view base64{};
    std::int64_t created = 0, expires = 0;
    std::string_view nonce{}, keyid{};
};

enum class signature_there : std::uint8_t { none, malformed, found };

/// The one signature with our tag. Total. O(bytes of both fields).
[[nodiscard]] signature_there find_signature(const reprise_request& request, signature_said& found);

/// The text that it is of (2.5); none where the request lacks what is covered, or a value has a line end.
[[nodiscard]] std::optional<std::string> signature_base(const reprise_request& request,
                                                        std::string_view covered,
                                                        std::string_view parameters);

/// What a signer covers.
[[nodiscard]] std::string_view all_covered() noexcept;
/// `;created=...;expires=...;nonce="...";alg="hmac-sha256";keyid="...";tag="reprise-peer"`
[[nodiscard]] std::string parameters_of(std::int64_t created,
                                        std::string_view nonce,
                                        std::string_view keyid);

/// The first field of this name; empty: none.
[[nodiscard]] std::string_view field_value(const reprise_request& request,
                                           std::string_view name) noexcept;

}  // namespace reprise::filter::c
