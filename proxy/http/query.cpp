#include "proxy/http/query.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::http {

namespace {

int digit_of(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Controls are refused, so that no decoded value can begin a line of its own somewhere.
bool decode(std::string_view text, std::string& into) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            const int high = i + 2 < text.size() ? digit_of(text[i + 1]) : -1;
            const int low = i + 2 < text.size() ? digit_of(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            return false;
        }
        into.push_back(c);
    }
    return true;
}

}  // namespace

std::optional<std::vector<query_parameter>> parse_query(std::string_view query, std::size_t most) {
    std::vector<query_parameter> all;
    while (!query.empty()) {
        const auto end = std::min(query.find('&'), query.size());
        const auto piece = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (piece.empty()) {
            continue;
        }
        if (all.size() == most) {
            return std::nullopt;
        }
        const auto equals = std::min(piece.find('='), piece.size());
        query_parameter one;
        if (!decode(piece.substr(0, equals), one.name) ||
            !decode(piece.substr(std::min(equals + 1, piece.size())), one.value)) {
            return std::nullopt;
        }
        all.push_back(std::move(one));
    }
    return all;
}

std::string_view named_twice(const std::vector<query_parameter>& all,
                             std::initializer_list<std::string_view> once) noexcept {
    for (const auto name : once) {
        const auto is_it = [name](const query_parameter& one) { return one.name == name; };
        if (std::count_if(all.begin(), all.end(), is_it) > 1) {
            return name;
        }
    }
    return {};
}

}  // namespace reprise::proxy::http
