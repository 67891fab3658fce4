#include "proxy/http/fields.hpp"

#include "proxy/http/characters.hpp"

#include <algorithm>

namespace reprise::proxy::http {

// Not Beast's: in Boost 1.81 it reads one byte past both texts when they differ in case alone.
bool iequals(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return x == y || lower(x) == lower(y);
           });
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

bool is_content_digest(const field& line) noexcept {
    return line.id == field_id::content_md5 || iequals(line.name, "Content-Digest");
}

void remove_lines(std::vector<field>& lines, field_id id) {
    std::erase_if(lines, [id](const field& line) { return line.id == id; });
}

bool has_line(std::string_view lines, std::string_view name) noexcept {
    while (!lines.empty()) {
        if (lines.size() > name.size() && lines[name.size()] == ':' &&
            iequals(lines.substr(0, name.size()), name)) {
            return true;
        }
        const auto end = lines.find('\n');
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
    return false;
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
