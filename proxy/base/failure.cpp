// One row per failure, in the enumeration's order. The row is all there is to say of it.
//
// RFC 9209 recommends a status with each error type; where the table has another one, the request
// was at fault (508 says "loop" better than 502 to whoever sees the status alone).

#include "proxy/base/failure.hpp"

#include <array>
#include <cstddef>
#include <stdexcept>

namespace reprise::proxy {

namespace {

using enum failure_code;
using enum outcome;

constexpr bool unheard = true;

// clang-format off
constexpr auto table = std::to_array<failure_facts>({
    {bad_request, "bad_request", client_error, 400, "Bad Request", "http_request_error",
     "The request does not follow HTTP's grammar, or can be read in more than one way.", ""},
    {head_too_large, "head_too_large", client_error, 431, "Request Header Fields Too Large",
     "http_request_error", "The request's head is larger than this proxy accepts.",
     "limits.head_size"},
    {too_many_fields, "too_many_fields", client_error, 431, "Request Header Fields Too Large",
     "http_request_error", "The request has more header fields than this proxy accepts.",
     "limits.fields"},
    {url_too_long, "url_too_long", client_error, 414, "URI Too Long", "http_request_error",
     "The URL is longer than this proxy accepts.", "limits.url_length"},
    {unsupported_version, "unsupported_version", client_error, 505, "HTTP Version Not Supported",
     "http_request_error", "This proxy speaks HTTP/1.1 and HTTP/1.0.", ""},
    {unsupported_expectation, "unsupported_expectation", client_error, 417, "Expectation Failed",
     "http_request_error", "The request's Expect field asks for something other than 100-continue.",
     ""},
    {unsupported_coding, "unsupported_coding", client_error, 501, "Not Implemented",
     "http_request_error", "The request's body has a transfer coding other than chunked.", ""},
    {https_absolute_form, "https_absolute_form", client_error, 501, "Not Implemented",
     "http_request_error",
     "An https URL is asked for by CONNECT, or over TLS: others could read it on its way here.",
     "listeners[].tls"},
    {unsupported_scheme, "unsupported_scheme", client_error, 501, "Not Implemented",
     "http_request_error", "This proxy fetches http and https URLs only.", ""},
    {request_timeout, "request_timeout", client_error, 408, "Request Timeout", "http_request_error",
     "The request did not arrive in time.", "timeouts.client_head"},
    {client_refused, "client_refused", refused, 403, "Forbidden", "http_request_denied",
     "This proxy does not serve your address.", "access.clients"},
    {user_unknown, "user_unknown", refused, 407, "Proxy Authentication Required",
     "http_request_denied", "This proxy wants to know who you are.",
     "access.users_file, access.tokens_file"},
    {user_in_clear, "user_in_clear", refused, 403, "Forbidden", "http_request_denied",
     "This proxy wants to know who you are, and others could read your password on its way here: "
     "ask it over TLS, or on its own machine by 127.0.0.1.", "access.plaintext_passwords"},
    {too_many_tries, "too_many_tries", refused, 429, "Too Many Requests", "http_request_denied",
     "Too many passwords are tried just now: wait a little.", "", 1},
    {purge_refused, "purge_refused", refused, 403, "Forbidden", "http_request_denied",
     "This proxy takes no PURGE from your address; where it runs, reprise purge URL needs no leave.",
     "access.purge_clients"},
    {port_refused, "port_refused", refused, 403, "Forbidden", "http_request_denied",
     "This proxy does not connect to that port.", "access.request_ports, access.connect_ports"},
    {destination_refused, "destination_refused", refused, 403, "Forbidden",
     "destination_ip_prohibited", "This proxy does not connect to that destination.",
     "access.allow_destinations, access.deny_destinations"},
    {host_blocked, "host_blocked", refused, 403, "Forbidden", "http_request_denied",
     "Whoever runs this proxy has listed that host as one that it does not reach.",
     "access.block_lists"},
    {too_many_connections, "too_many_connections", refused, 503, "Service Unavailable",
     "connection_limit_reached", "There are too many connections to this proxy.",
     "limits.client_connections, limits.connections_per_client", 1},
    {misdirected_request, "misdirected_request", client_error, 421, "Misdirected Request",
     "http_request_error", "The request is for another host than its connection.", ""},
    {loop_detected, "loop_detected", refused, 508, "Loop Detected", "proxy_loop_detected",
     "The request has passed through this proxy before.", "forwarding.pseudonym"},
    {only_if_cached_miss, "only_if_cached_miss", only_if_cached, 504, "Gateway Timeout", "",
     "The request wants a stored response only (only-if-cached), and none can be used.", ""},
    {dns_not_found, "dns_not_found", error, 502, "Bad Gateway", "dns_error",
     "The server's name does not exist.", "dns.servers", 0, unheard},
    {dns_error, "dns_error", error, 502, "Bad Gateway", "dns_error",
     "The server's name could not be resolved.", "dns.servers", 0, unheard},
    {dns_timeout, "dns_timeout", error, 504, "Gateway Timeout", "dns_timeout",
     "No name server answered in time.", "dns.timeout", 0, unheard},
    {connect_refused, "connect_refused", error, 502, "Bad Gateway", "connection_refused",
     "The server refused the connection.", "", 0, unheard},
    {connect_unreachable, "connect_unreachable", error, 502, "Bad Gateway",
     "destination_ip_unroutable", "The server's network cannot be reached.", "", 0, unheard},
    {connect_timeout, "connect_timeout", error, 504, "Gateway Timeout", "connection_timeout",
     "The server did not accept the connection in time.", "timeouts.origin_connect", 0, unheard},
    {tls_client_certificate, "tls_client_certificate", error, 502, "Bad Gateway",
     "tls_protocol_error",
     "The server asks its clients for a certificate, and a cache has none to show.",
     "intercept.except"},
    {tls_certificate, "tls_certificate", error, 502, "Bad Gateway", "tls_certificate_error",
     "The server's certificate is not one that this proxy trusts.", "origins.ca_file"},
    {tls_failed, "tls_failed", error, 502, "Bad Gateway", "tls_protocol_error",
     "The encrypted connection to the server could not be set up.", "", 0, unheard},
    {parent_certificate, "parent_certificate", error, 502, "Bad Gateway", "tls_certificate_error",
     "The certificate of the parent that this proxy goes through is not one that it trusts.",
     "origins.ca_file, peers[]"},
    {no_parent, "no_parent", error, 503, "Service Unavailable", "destination_unavailable",
     "None of the parents that this proxy goes through could be reached.",
     "peering.never_direct, peers[]", 1, unheard},
    {parent_refused, "parent_refused", error, 502, "Bad Gateway", "connection_refused",
     "The parent that this proxy goes through made no connection to the server.",
     "peering.never_direct, peers[]", 0, unheard},
    {origin_connection_limit, "origin_connection_limit", error, 503, "Service Unavailable",
     "connection_limit_reached",
     "There are as many connections to this server as the proxy allows.", "origins.connections", 1,
     unheard},
    {client_share_used, "client_share_used", refused, 503, "Service Unavailable",
     "connection_limit_reached",
     "Your address has as many connections to this server, or has as many names looked up, as the "
     "proxy allows to one.",
     "origins.connections_per_client", 1, unheard},
    {origin_closed, "origin_closed", error, 502, "Bad Gateway", "connection_terminated",
     "The server closed the connection before it had answered.", "", 0, unheard},
    {origin_upload_timeout, "origin_upload_timeout", error, 504, "Gateway Timeout",
     "connection_write_timeout", "The server stopped taking the request's body.",
     "timeouts.origin_upload", 0, unheard},
    {origin_head_timeout, "origin_head_timeout", error, 504, "Gateway Timeout",
     "connection_read_timeout", "The server did not answer in time.", "timeouts.origin_head", 0,
     unheard},
    {origin_body_timeout, "origin_body_timeout", error, 504, "Gateway Timeout",
     "http_response_timeout", "The server stopped in the middle of its answer.",
     "timeouts.origin_body"},
    {bad_response, "bad_response", error, 502, "Bad Gateway", "http_protocol_error",
     "The server's answer does not follow HTTP's grammar, or can be read in more than one way.",
     ""},
    {response_head_too_large, "response_head_too_large", error, 502, "Bad Gateway",
     "http_response_header_section_size",
     "The head of the server's answer is larger than this proxy accepts.",
     "limits.head_size, limits.fields"},
    {response_cut_short, "response_cut_short", error, 502, "Bad Gateway",
     "http_response_incomplete", "The server's answer ended before it was whole.", ""},
    {draining, "draining", refused, 503, "Service Unavailable", "http_request_denied",
     "This proxy is shutting down.", "timeouts.drain", 5},
    {out_of_memory, "out_of_memory", error, 503, "Service Unavailable", "proxy_internal_error",
     "This proxy is out of memory, file descriptors or ports of its own.", "", 1, unheard},
    {internal, "internal", error, 500, "Internal Server Error", "proxy_internal_error",
     "This proxy made a mistake; its log says more.", ""},
});
// clang-format on

constexpr bool in_order() {
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (static_cast<std::size_t>(table[i].code) != i) {
            return false;
        }
    }
    return table.size() == static_cast<std::size_t>(internal) + 1;
}
static_assert(in_order(), "facts_of indexes the table by enumerator");

}  // namespace

origin_trouble origin_trouble_of(failure_code code) noexcept {
    switch (code) {
        using enum failure_code;
    case connect_refused:
    case connect_unreachable:
    case connect_timeout:
    case no_parent:
    case parent_refused: return origin_trouble::unreached;
    case dns_error:
    case dns_timeout: return origin_trouble::unresolved;
    case tls_client_certificate:
    case tls_certificate:
    case tls_failed: return origin_trouble::untrusted;
    case origin_closed:
    case origin_upload_timeout:
    case origin_head_timeout:
    case origin_body_timeout:
    case bad_response:
    case response_head_too_large:
    case response_cut_short: return origin_trouble::ill_answered;
    case bad_request:
    case head_too_large:
    case too_many_fields:
    case url_too_long:
    case unsupported_version:
    case unsupported_expectation:
    case unsupported_coding:
    case https_absolute_form:
    case unsupported_scheme:
    case request_timeout:
    case client_refused:
    case user_unknown:
    case user_in_clear:
    case too_many_tries:
    case purge_refused:
    case port_refused:
    case destination_refused:
    case host_blocked:
    case too_many_connections:
    case misdirected_request:
    case loop_detected:
    case only_if_cached_miss:
    case dns_not_found:
    case parent_certificate:
    case origin_connection_limit:
    case client_share_used:
    case draining:
    case out_of_memory:
    case internal: return origin_trouble::none;
    }
    return origin_trouble::none;
}

const failure_facts& facts_of(failure_code code) noexcept {
    return table[static_cast<std::size_t>(code)];
}

void throw_exception_from_error(const failure& error, const boost::source_location& where) {
    std::string what{facts_of(error.code).name};
    what += ": ";
    what += error.detail;
    what += " (value() asked of a failure at ";
    what += where.to_string();
    what += ")";
    throw std::logic_error{what};
}

}  // namespace reprise::proxy
