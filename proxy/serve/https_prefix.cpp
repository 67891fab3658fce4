#include "proxy/serve/https_prefix.hpp"

#include "proxy/http/fields.hpp"
#include "proxy/http/reference.hpp"
#include "proxy/serve/request.hpp"

#include <boost/beast/http/verb.hpp>

#include <algorithm>
#include <optional>

namespace reprise::proxy::serve {

namespace {

constexpr std::string_view location_name = "location:";
constexpr std::string_view line_end = "\r\n";

// The https URL that is meant, without its scheme: host[:port]path. None: it is another kind.
std::optional<std::string> url_behind(std::string_view location,
                                      const http::target& asked,
                                      const config::access_options& access) {
    std::string text;
    if (http::has_scheme(location)) {
        text = location;
    } else if (location.starts_with("//")) {
        text = "https:" + std::string{location};
    } else {
        text = "https://";
        http::append_authority(text, asked);
        text += http::resolve_path(asked.path_and_query, location);
    }
    const auto fragment_at = std::min(text.find('#'), text.size());
    const auto fragment = text.substr(fragment_at);
    text.resize(fragment_at);
    const auto leads_to = http::parse_target(boost::beast::http::verb::get, text, http::url_forms);
    if (!leads_to || !leads_to->secure ||
        !is_listed(access.https_prefix, http::connect_host(*leads_to), leads_to->port)) {
        return std::nullopt;
    }
    std::string out;
    http::append_authority(out, *leads_to);
    return out.append(leads_to->path_and_query).append(fragment);
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    const auto last = text.find_last_not_of(" \t");
    return first == text.npos ? std::string_view{} : text.substr(first, last - first + 1);
}

}  // namespace

void append_prefixed(std::string& out,
                     std::string_view head,
                     const http::target& asked,
                     const config::access_options& access) {
    while (!head.empty()) {
        const auto end = std::min(head.find(line_end), head.size());
        const auto line = head.substr(0, end);
        head.remove_prefix(std::min(end + line_end.size(), head.size()));
        const bool names_it = http::iequals(line.substr(0, location_name.size()), location_name);
        const auto url = names_it
                             ? url_behind(trimmed(line.substr(location_name.size())), asked, access)
                             : std::nullopt;
        if (url) {
            out.append("Location: http://HTTPS///").append(*url);
        } else {
            out.append(line);
        }
        out.append(line_end);
    }
}

}  // namespace reprise::proxy::serve
