#include "proxy/http/connection_login.hpp"

#include <algorithm>
#include <array>

namespace reprise::proxy::http {

bool logs_connection_in(field_list request) noexcept {
    constexpr std::array<std::string_view, 3> schemes{"negotiate", "ntlm", "kerberos"};
    return std::any_of(request.begin(), request.end(), [&](const field& line) {
        if (line.id != field_id::authorization) {
            return false;
        }
        const auto scheme = line.value.substr(0, line.value.find_first_of(" \t,"));
        return std::any_of(schemes.begin(), schemes.end(), [&](std::string_view one) {
            return iequals(scheme, one);
        });
    });
}

}  // namespace reprise::proxy::http
