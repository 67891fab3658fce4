#pragma once
// The request target: what is asked for, from whom (RFC 9112 3.2), and the cache key made of it.
//
// The authority is checked strictly, since it decides whom we connect to. Path and query pass as
// they were sent, for the origin alone knows what they mean: what browsers send (`|`, brackets,
// braces, quotes, `%zz`, raw UTF-8) is not ours to refuse. That is why Boost.URL does not read
// them.
//
// Numeric hosts in odd forms (0x7f.1, 2130706433) are names here; whatever the resolver makes of
// them, the destination guard judges the address that is connected to. A host may end in one dot:
// whoever compares names takes it off, one, so that no other stands where a next hop would take it
// off as well.

#include "proxy/base/failure.hpp"

#include <boost/beast/http/verb.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

enum class target_form : std::uint8_t {
    absolute = 1,   ///< http://host/path: to a proxy
    authority = 2,  ///< host:port, CONNECT only
    origin = 4,     ///< /path: to an accelerator, or to the proxy itself
    asterisk = 8,   ///< *, OPTIONS only
    secure = 16,    ///< https://host/path, where a client may ask for it; read as `absolute`
};

/// A set of forms, for what a listener accepts.
struct target_forms {
    std::uint8_t bits;
    [[nodiscard]] constexpr bool has(target_form form) const noexcept {
        return (bits & static_cast<std::uint8_t>(form)) != 0;
    }
};
inline constexpr target_forms forward_forms{1 | 2 | 8};      ///< what a proxy is asked for
inline constexpr target_forms accelerator_forms{1 | 4 | 8};  ///< RFC 9112 3.2.2: absolute, too
inline constexpr target_forms secure_forward_forms{1 | 2 | 8 | 16};
inline constexpr target_forms secure_accelerator_forms{1 | 4 | 8 | 16};
inline constexpr target_forms inside_forms{4 | 8};  ///< in an opened tunnel
inline constexpr target_forms url_forms{1 | 16};    ///< what a field or an operator names
inline constexpr target_forms all_forms{1 | 2 | 4 | 8};

/// Views into the text it was read from (and, after with_authority, into the Host value).
struct target {
    target_form form = target_form::absolute;
    std::string_view raw{};   ///< the whole target as sent
    std::string_view host{};  ///< as sent; an IPv6 literal in its brackets; origin-form: empty
    std::uint16_t port = 80;  ///< its scheme's when not said
    std::string_view path_and_query{};  ///< as sent: empty, or begins with '/' or '?'
    bool lower_host = true;             ///< host has no upper-case letter
    bool normal = false;                ///< absolute form, and raw is the cache key as it stands
    bool secure = false;                ///< https
    [[nodiscard]] std::uint16_t usual_port() const noexcept { return secure ? 443 : 80; }
};

/// Reads a target, no longer than the caller's limit and without control characters or spaces
/// (parse_request_head has seen to both; here they are refused again). No allocation but for
/// errors.
///
/// bad_request: a form not in `allowed` or not for this method, userinfo, a fragment, an empty or
/// malformed host (letters, digits, "-._~", at most 255; or an IPv6 address in brackets, without
/// a zone), a port that is not 1 to 65535 without leading zeros, none at all with CONNECT.
/// https_absolute_form: an https: URL where that form is not in `allowed`. unsupported_scheme: any
/// other scheme.
[[nodiscard]] attempt<target> parse_target(boost::beast::http::verb method,
                                           std::string_view raw,
                                           target_forms allowed = forward_forms);

/// An origin-form or asterisk-form target with host and port from a Host field's value (or from an
/// accelerator's upstream), which must outlive it. Its scheme is the one that the target has.
/// bad_request when `authority` is malformed.
[[nodiscard]] attempt<target> with_authority(const target& origin_form, std::string_view authority);

/// Whether an absolute-form target is http://HTTPS/… (any case, port 80): what apt, curl and wget
/// send for an https URL that is written so, to be fetched for them.
[[nodiscard]] bool has_https_prefix(const target& t) noexcept;

/// What it means: http://HTTPS///host[:port]/path is https://host[:port]/path, behind one to three
/// slashes. bad_request: another number of them, or a malformed authority.
[[nodiscard]] attempt<target> behind_https_prefix(const target& t);

/// Null when `text` is host[":"port] as above, otherwise what is wrong with it; static text.
[[nodiscard]] const char* check_authority(std::string_view text) noexcept;

/// Appends the cache key: "http://" host [":" port] path-and-query, where the host is in lower
/// case, the port left out when it is 80, and an empty path "/". Nothing else is normalised, so
/// targets that differ in anything else have keys that differ. What is keyed is what is forwarded.
/// A target in origin-form, which has been given an authority, is keyed as "//" host [":" port]
/// path-and-query. A secure target of either form begins with "https://", and the port is left out
/// when it is 443. (That an accelerator's keys never meet those of absolute URLs is key_text's, in
/// serve/request.)
void append_key(std::string& out, const target& t);

/// host[":"port unless its scheme's], the host in lower case: the Host field sent on.
void append_authority(std::string& out, const target& t);

/// What the resolver is asked, or the address literal itself: lower case, without brackets. A
/// trailing dot stays.
[[nodiscard]] std::string connect_host(const target& t);

}  // namespace reprise::proxy::http
