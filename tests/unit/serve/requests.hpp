#pragma once
// Requests as a listener reads them, for tests.

#include "proxy/serve/request.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::proxy::serve::test {

inline config::listener in_front_of(const std::string& upstream, bool tls = false) {
    config::listener out;
    out.mode = config::listener_mode::accelerator;
    out.upstream = upstream;
    if (tls) {
        out.tls.emplace();
    }
    return out;
}

inline const config::listener forward{};
inline const auto accelerator = in_front_of("http://up.example:8080");
inline const auto with_tls = in_front_of("http://up.example:8080", true);

inline const auto secret = filter::hash_secret::from_seed(std::array<std::byte, 32>{});

/// A request as a listener reads it. What was read are views into it: it stays where it is.
struct taken {
    std::string bytes;
    std::string scratch;
    http::request_head head;
    const request read;

    taken(std::string text, const serve::arrival& how)
        : bytes{std::move(text)},
          read{read_request(parsed(), how, secret, scratch)} {}
    taken(const taken&) = delete;
    taken& operator=(const taken&) = delete;

    [[nodiscard]] bool has(std::string_view name) const {
        return http::find(head.fields, name) != nullptr;
    }

private:
    http::request_head& parsed() {
        REQUIRE(http::parse_request_head(bytes, head, {}).state == http::head_state::done);
        return head;
    }
};

inline std::unique_ptr<taken> take(const std::string& line,
                                   const std::string& fields = "Host: a.example\r\n",
                                   const config::listener& listener = forward) {
    static const config::access_options access;
    return std::make_unique<taken>(line + " HTTP/1.1\r\n" + fields + "\r\n",
                                   serve::arrival{.listener = listener,
                                                  .access = access,
                                                  .encrypted = listener.tls.has_value()});
}

inline thread::settings settings_with(const config::access_options& access) {
    thread::settings out;
    out.options.access = access;
    out.guard = std::make_shared<net::destination_guard>(
        access, std::span<const boost::asio::ip::address>{});
    return out;
}

inline std::optional<failure_code> code_of(const std::optional<failure>& why) {
    return why ? std::optional{why->code} : std::nullopt;
}

}  // namespace reprise::proxy::serve::test
