#pragma once
// Field lines written in a test as they stand on the wire.

#include "proxy/base/clock.hpp"
#include "proxy/http/fields.hpp"

#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {

/// A moment to count from: Sun, 06 Nov 1994 08:49:37 GMT, RFC 9110's own example.
inline constexpr wall_time sunday{std::chrono::seconds{784111777}};

/// "Name: value" each, with the ids that a parser would give them. The texts must be literals.
inline std::vector<field> lines(std::initializer_list<std::string_view> texts) {
    std::vector<field> result;
    for (const auto text : texts) {
        const auto colon = text.find(':');
        const auto name = text.substr(0, colon);
        auto value = text.substr(colon + 1);
        while (!value.empty() && value.front() == ' ') {
            value.remove_prefix(1);
        }
        const auto id = boost::beast::http::string_to_field({name.data(), name.size()});
        result.push_back({id, name, value});
    }
    return result;
}

/// The same text again, with "Name: value" lines joined by "|".
inline std::string joined(field_list fields) {
    std::string text;
    for (const auto& line : fields) {
        text.append(text.empty() ? "" : "|").append(line.name).append(": ").append(line.value);
    }
    return text;
}

inline bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

}  // namespace reprise::proxy::http
