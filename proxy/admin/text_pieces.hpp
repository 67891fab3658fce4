#pragma once
// A URL cut into the pieces that may be shown. Apart from text.hpp because it is a template: the
// access log escapes each piece straight into its line, so that redacting needs no buffer.

#include <cstddef>
#include <string_view>

namespace reprise::proxy {

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
        each(url.substr(authority, end - authority));
        url.remove_prefix(end);
    }
    url = url.substr(0, url.find('#'));
    const auto mark = url.find('?');
    if (query_values || mark == std::string_view::npos) {
        each(url);
        return;
    }
    each(url.substr(0, mark + 1));
    auto query = url.substr(mark + 1);
    for (bool first = true; first || !query.empty(); first = false) {
        const auto ampersand = query.find('&');
        const auto part = query.substr(0, ampersand);
        const auto equals = part.find('=');
        const auto name = equals == std::string_view::npos ? 0 : equals + 1;
        each(part.substr(0, name));
        if (name < part.size()) {
            each(std::string_view{"*"});
        }
        if (ampersand == std::string_view::npos) {
            return;
        }
        each(std::string_view{"&"});
        query.remove_prefix(ampersand + 1);
    }
}

}  // namespace reprise::proxy
