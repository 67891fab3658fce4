#include "proxy/http/reference.hpp"

#include <algorithm>

namespace reprise::proxy::http {

namespace {

bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string_view path_of(std::string_view path_and_query) noexcept {
    return path_and_query.substr(0, path_and_query.find('?'));
}

/// RFC 3986 5.2.4, of an absolute path: what ".." takes away is never more than there is.
std::string without_dots(std::string_view path) {
    std::string out;
    while (!path.empty()) {
        const auto end = path.find('/', 1);
        const auto segment = path.substr(0, end);  // with its slash in front
        const bool last = end == std::string_view::npos;
        path = last ? std::string_view{} : path.substr(end);
        if (segment == "/..") {
            out.resize(out.empty() ? 0 : out.rfind('/'));
        } else if (segment != "/.") {
            out.append(segment);
            continue;
        }
        if (last) {
            out.push_back('/');
        }
    }
    return out;
}

}  // namespace

bool has_scheme(std::string_view reference) noexcept {
    const auto colon = reference.find(':');
    return colon != std::string_view::npos && colon != 0 && is_letter(reference[0]) &&
           std::all_of(reference.begin(),
                       reference.begin() + static_cast<std::ptrdiff_t>(colon),
                       [](char c) {
                           return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
                                  c == '.';
                       });
}

std::string resolve_path(std::string_view base, std::string_view reference) {
    reference = reference.substr(0, reference.find('#'));
    if (reference.empty()) {
        return std::string{base};
    }
    const auto base_path = path_of(base);
    if (reference.front() == '?') {
        return std::string{base_path}.append(reference);
    }
    const auto path = path_of(reference);
    const auto query = reference.substr(path.size());
    if (path.front() == '/') {
        return without_dots(path).append(query);
    }
    const auto slash = base_path.rfind('/');
    std::string merged{slash == std::string_view::npos ? std::string_view{"/"}
                                                       : base_path.substr(0, slash + 1)};
    merged.append(path);
    return without_dots(merged).append(query);
}

}  // namespace reprise::proxy::http
