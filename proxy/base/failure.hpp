#pragma once
// What can go wrong with a request.
// Every failure that a client can see is one enumerator, and all that follows from it is its row in
// failure.cpp: how it is counted, its status, its Proxy-Status error type (RFC 9209 2.3), the
// sentence a person reads, the setting concerned, and what a client or a stale response may do.
// Nothing else decides a status of ours.

#include "proxy/base/outcome.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::proxy {

enum class failure_code : std::uint8_t {
    // the request (400, 408, 414, 417, 431, 501, 505)
    bad_request,
    head_too_large,
    too_many_fields,
    url_too_long,
    unsupported_version,
    unsupported_expectation,
    unsupported_coding,   ///< 501: a transfer coding other than chunked
    https_absolute_form,  ///< 501: an https: URL in the clear
    unsupported_scheme,   ///< 501: ftp: and the like
    request_timeout,      ///< 408
    // what may be asked (403, 405, 503, 508)
    client_refused,       ///< access.clients
    user_unknown,         ///< 407: the client has not said who it is, or is not believed
    user_in_clear,        ///< 403: nor may it say so where others read it
    too_many_tries,       ///< 429: of passwords; from one address, or of all
    purge_refused,        ///< access.purge_clients
    port_refused,         ///< access.connect_ports, access.request_ports
    destination_refused,  ///< the destination guard; access.allow_destinations
    host_blocked,         ///< access.block_lists
    too_many_connections,
    misdirected_request,  ///< 421: another host's, in a tunnel that was opened for one
    loop_detected,        ///< 508
    only_if_cached_miss,  ///< 504, RFC 9111 5.2.1.7
    // names and connections (502, 503, 504)
    dns_not_found,
    dns_error,
    dns_timeout,
    connect_refused,
    connect_unreachable,
    connect_timeout,
    tls_client_certificate,  ///< an origin asks its clients for one
    tls_certificate,         ///< of a parent or sibling; its name, its dates, who signed it
    tls_failed,
    parent_certificate,  ///< peering.never_direct: of the last parent asked, as tls_certificate
    no_parent,           ///< peering.never_direct: none can be reached
    parent_refused,      ///< CONNECT, by the parent that it was sent to
    origin_connection_limit,
    client_share_used,  ///< origins.connections_per_client
    origin_closed,      ///< before a whole response head
    // the response (502, 504)
    origin_upload_timeout,
    origin_head_timeout,
    origin_body_timeout,
    bad_response,  ///< framing or syntax
    response_head_too_large,
    response_cut_short,
    // ours (500, 503)
    draining,
    out_of_memory,
    internal,
};

/// A failure as a value. `detail` is for people (log, error page): what exactly was seen, never a
/// secret.
struct failure {
    failure_code code = failure_code::internal;
    std::string detail;
};

/// One row of the table.
struct failure_facts {
    failure_code code;
    std::string_view name;  ///< as in logs, metrics and Proxy-Status details: "dns_not_found"
    outcome counts_as;
    unsigned status;
    std::string_view reason;        ///< the status line's phrase
    std::string_view proxy_status;  ///< RFC 9209 2.3's error type; empty where none fits
    std::string_view sentence;      ///< what happened, for a person
    std::string_view setting;       ///< which setting decides this, empty when none does
    /// In seconds, for Retry-After; 0: waiting does not mend it.
    unsigned retry_after = 0;
    /// Nothing came back of the origin, neither a refusal of ours nor an answer, however bad: what
    /// is stale may stand in for it.
    bool is_of_origin_unheard = false;
};
/// Whoever answers is not whom it should be, or wants to know who we are: nothing that is stored stands
/// in for that, whatever its origin allowed.
[[nodiscard]] constexpr bool is_of_certificate(failure_code code) noexcept {
    return code == failure_code::tls_certificate || code == failure_code::parent_certificate ||
           code == failure_code::tls_client_certificate;
}
/// A parent can't be reached, or is not whom it should be: another may be asked.
[[nodiscard]] constexpr bool is_of_parent(failure_code code) noexcept {
    return code == failure_code::no_parent || code == failure_code::parent_certificate;
}
/// This proxy lacks something (descriptors, local ports, memory, connections that its own limits allow, time
/// before it ends), or has made a mistake: whoever was to be asked has done nothing, and it is held
/// against nobody.
[[nodiscard]] constexpr bool is_our_own_lack(failure_code code) noexcept {
    return code == failure_code::origin_connection_limit ||
           code == failure_code::client_share_used || code == failure_code::draining ||
           code == failure_code::out_of_memory || code == failure_code::internal;
}
[[nodiscard]] const failure_facts& facts_of(failure_code code) noexcept;

/// What an origin, or the way to it, failed by; none: it is no failure of theirs (a name that there is
/// none of is its asker's matter).
enum class origin_trouble : std::uint8_t {
    none,
    unreached,     ///< no connection
    unresolved,    ///< its name gave no address
    untrusted,     ///< its certificate, or its TLS
    ill_answered,  ///< what it sent, or did not
};
[[nodiscard]] origin_trouble origin_trouble_of(failure_code code) noexcept;

template <class T>
using attempt = boost::system::result<T, failure>;

/// What boost::system::result does when value() is asked of a failure: a mistake of ours.
[[noreturn]] void throw_exception_from_error(const failure& error,
                                             const boost::source_location& where);

}  // namespace reprise::proxy
