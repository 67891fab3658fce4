#pragma once
// HTTP Message Signatures (RFC 9421): the fields Signature-Input and Signature, read, and the text
// that a signature is of. Pure; keys and what a signature has to cover are its users' business
// (peer/signature.hpp).
//
//     Signature-Input: label=("@method" "@path" "date");created=1763668089;keyid="k"   4.1
//     Signature: label=:<base64>:                                                      4.2
//
// The signature base (2.5) has a line for each covered component, and a last one with the member of
// Signature-Input as it stands: in the one spelling that 2.3 writes. Whoever writes it in another
// way on its way makes the signature a wrong one.
//
// Components: any field without parameters, its lines joined (2.1), and of the derived ones (2.2)
// @method, @target-uri, @authority, @scheme, @request-target, @path and @query. What covers
// anything else has no base here: @status and parameters (sf, key, bs, req, tr) among it.

#include "proxy/http/fields.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

inline constexpr std::string_view signature_input_field = "Signature-Input";
inline constexpr std::string_view signature_field = "Signature";

/// One signature of a message, as views of its two fields.
struct message_signature {
    std::string_view label{};
    std::string_view covered{};     ///< inside of the inner list: `"@method" "date"`
    std::string_view parameters{};  ///< ";created=1763668089;keyid=\"k\""
    std::string_view base64{};      ///< the signature; nothing is decoded
    // What of the parameters is known (2.3); none: it is not there.
    std::optional<std::int64_t> created{}, expires{};
    std::optional<std::string_view> nonce{}, alg{}, keyid{}, tag{};  ///< no text has an escape
};

enum class signature_search : std::uint8_t {
    none,       ///< no signature with this tag
    malformed,  ///< a line of Signature-Input that is no dictionary, or two such signatures, or one
                ///< that is not as above, or whose Signature is missing
    found,
};

/// The one signature of a message whose parameter `tag` says this. Others are not looked at, but for
/// their grammar. A line of either field must be whole by itself. O(bytes of both fields).
[[nodiscard]] signature_search find_signature(field_list fields,
                                              std::string_view tag,
                                              message_signature& found) noexcept;

/// A request as a signature may cover it, as it stands on the wire.
struct signed_request {
    std::string_view method{};
    std::string_view target{};  ///< in origin-form
    std::string_view host{};    ///< Host's value
    bool secure = false;        ///< over TLS: @scheme, and which port is the default
    field_list fields{};
};

/// Appends the signature base. False: it covers what is not known here, what the request does not
/// have, or one component twice; `out` is then of no use. O(components x lines).
[[nodiscard]] bool append_signature_base(std::string& out,
                                         const signed_request& request,
                                         const message_signature& by);

/// Whether `component` is among those covered. @pre it needs no escape
[[nodiscard]] bool covers(const message_signature& by, std::string_view component) noexcept;

}  // namespace reprise::proxy::http
