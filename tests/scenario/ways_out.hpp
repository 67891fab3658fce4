#pragma once
// Parents that are the only way out (peering.never_direct).

#include "tests/scenario/world.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::tests {

inline json way_out(std::string_view name, std::uint16_t port) {
    return {
        {"name", name}, {"url", "http://127.0.0.1:" + std::to_string(port)}, {"kind", "parent"}};
}

inline json only_by(json parents) {
    auto settings = storing_settings();
    settings["peers"] = std::move(parents);
    settings["peering"] = {{"never_direct", true}};
    settings["access"]["connect_ports"] = {443};
    return settings;
}

/// A parent that answers by itself, and says to whom.
inline void serve_all(fake_origin& parent, std::string fields = "Cache-Control: max-age=600\r\n") {
    parent.otherwise(
        [own = std::move(fields)](origin_request& request, origin_connection& connection) {
            connection.send(ok(own, "parent: " + request.method + ' ' + request.target));
        });
}

inline std::string connect_to(std::string_view authority, std::string_view fields = "") {
    return "CONNECT " + std::string{authority} + " HTTP/1.1\r\nHost: " + std::string{authority} +
           "\r\n" + std::string{fields} + "\r\n";
}

}  // namespace reprise::tests
