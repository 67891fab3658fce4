#include "proxy/http/connection_login.hpp"

#include <algorithm>
#include <array>

namespace reprise::proxy::http {

namespace {

bool is_of_connections(std::string_view scheme) noexcept {
    constexpr std::array<std::string_view, 3> schemes{"negotiate", "ntlm", "kerberos"};
    return std::any_of(
        schemes.begin(), schemes.end(), [&](std::string_view one) { return iequals(scheme, one); });
}

std::string_view first_word(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text.substr(0, text.find_first_of(" \t,"));
}

}  // namespace

bool logs_connection_in(field_list request) noexcept {
    return std::any_of(request.begin(), request.end(), [](const field& line) {
        return line.id == field_id::authorization && is_of_connections(first_word(line.value));
    });
}

// What stands behind a comma may be a parameter of the challenge before, which is no scheme's name.
bool asks_for_connection_login(field_list response) noexcept {
    return std::any_of(response.begin(), response.end(), [](const field& line) {
        if (line.id != field_id::www_authenticate) {
            return false;
        }
        auto left = line.value;
        for (;;) {
            if (is_of_connections(first_word(left))) {
                return true;
            }
            const auto comma = left.find(',');
            if (comma == std::string_view::npos) {
                return false;
            }
            left.remove_prefix(comma + 1);
        }
    });
}

}  // namespace reprise::proxy::http
