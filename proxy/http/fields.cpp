#include "proxy/http/fields.hpp"

#include <boost/beast/core/string.hpp>

namespace reprise::proxy::http {

bool iequals(std::string_view a, std::string_view b) noexcept {
    return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

const field* find(field_list fields, field_id id) noexcept {
    for (const auto& line : fields) {
        if (line.id == id) {
            return &line;
        }
    }
    return nullptr;
}

const field* find(field_list fields, std::string_view name) noexcept {
    for (const auto& line : fields) {
        if (iequals(line.name, name)) {
            return &line;
        }
    }
    return nullptr;
}

std::size_t count(field_list fields, field_id id) noexcept {
    std::size_t lines = 0;
    for (const auto& line : fields) {
        lines += line.id == id ? 1 : 0;
    }
    return lines;
}

bool has_token(field_list fields, field_id id, std::string_view token) noexcept {
    bool found = false;
    for (const auto& line : fields) {
        if (line.id == id) {
            for_each_member(line.value, [&](std::string_view member) {
                found = found || iequals(member, token);
                return !found;
            });
        }
        if (found) {
            break;
        }
    }
    return found;
}

}  // namespace reprise::proxy::http
