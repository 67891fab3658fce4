#pragma once
// A URL cut into the pieces that may be shown. Apart from text.hpp because it is a template: the
// access log escapes each piece straight into its line, so that redacting needs no buffer.

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace reprise::proxy {

/// "name=value" with its value hidden; without "=" all of it is taken for one.
template <class Each>
void show_name_alone(std::string_view part, Each&& each) {
    const auto equals = part.find('=');
    const auto name = equals == std::string_view::npos ? 0 : equals + 1;
    each(part.substr(0, name));
    if (name < part.size()) {
        each(std::string_view{"*"});
    }
}

/// A path, or what stands where an authority would. What stands behind ";" in a segment is hidden
/// as a query's values are (";jsessionid=...", RFC 3986 3.3), and user information in a URL that is
/// part of the path always.
template <class Each>
void for_each_public_segment(std::string_view path, bool values, Each&& each) {
    if (path.find_first_of(";@") == std::string_view::npos) {
        each(path);
        return;
    }
    while (!path.empty()) {
        const auto slash = path.find('/');
        auto segment = path.substr(0, slash);
        path.remove_prefix(segment.size());
        const auto at = segment.rfind('@');
        if (at != std::string_view::npos && segment.substr(0, at).find(':') < at) {
            each(std::string_view{"*"});
            segment.remove_prefix(at);
        }
        const auto first = values ? segment.npos : segment.find(';');
        each(segment.substr(0, first));
        segment.remove_prefix(std::min(first, segment.size()));
        while (!segment.empty()) {
            each(segment.substr(0, 1));
            segment.remove_prefix(1);
            const auto parameter = segment.substr(0, segment.find(';'));
            show_name_alone(parameter, each);
            segment.remove_prefix(parameter.size());
        }
        const auto slashes = path.substr(0, path.empty() ? 0 : 1);
        each(slashes);
        path.remove_prefix(slashes.size());
    }
}

/// Calls `each(std::string_view)` with what may be shown of `url`, in order; see
/// append_redacted_url. Total; O(length); never more bytes than `url` has.
template <class Each>
void for_each_public_piece(std::string_view url, bool query_values, Each&& each) {
    // A target that begins with "/" or is "*" has no authority; slashes after "scheme:" begin one
    // (however many: what is malformed is logged too); what is neither is CONNECT's "host:port".
    if (!url.empty() && url.front() != '/') {
        const auto end_of = [&](std::size_t from) {
            const auto found = url.find_first_of("/?#", from);
            return found == std::string_view::npos ? url.size() : found;
        };
        std::size_t authority = 0;
        auto end = end_of(0);
        if (end > 0 && url[end - 1] == ':' && end < url.size() && url[end] == '/') {
            const auto after = url.find_first_not_of('/', end);
            authority = after == std::string_view::npos ? url.size() : after;
            end = end_of(authority);
        }
        // The last "@": a password may hold one.
        const auto user = url.substr(authority, end - authority).rfind('@');
        each(url.substr(0, authority));
        if (user != std::string_view::npos) {
            authority += user + 1;
        }
        // What is no host and port may be the front of a password that has a "/", "?" or "#" in it.
        const auto host = url.substr(authority, end - authority);
        const auto colon = host.rfind(':');
        if (colon != std::string_view::npos && end < url.size() &&
            host.find(']', colon) == std::string_view::npos &&
            host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) {
            each(host.substr(0, colon + 1));
            each(std::string_view{"*"});
            return;
        }
        for_each_public_segment(host, query_values, each);
        url.remove_prefix(end);
    }
    url = url.substr(0, url.find('#'));
    const auto mark = url.find('?');
    const auto path = url.substr(0, mark);
    for_each_public_segment(path, query_values, each);
    if (query_values || mark == std::string_view::npos) {
        each(url.substr(path.size()));
        return;
    }
    each(url.substr(mark, 1));
    auto query = url.substr(mark + 1);
    for (bool first = true; first || !query.empty(); first = false) {
        const auto ampersand = query.find('&');
        const auto part = query.substr(0, ampersand);
        show_name_alone(part, each);
        if (ampersand == std::string_view::npos) {
            return;
        }
        each(std::string_view{"&"});
        query.remove_prefix(ampersand + 1);
    }
}

}  // namespace reprise::proxy
