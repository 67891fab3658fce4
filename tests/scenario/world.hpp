#pragma once
// One origin and one proxy: what nearly every scenario starts from.

#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/waiting.hpp"

#include "tests/scenario/figures.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace reprise::tests {

/// The proxy goes first, so that it is asked to stop while the origin still stands.
/// What a handler holds by reference is declared before its world (or is one of its gates).
struct world {
    fake_origin origin;
    proxy_process proxy;

    explicit world(const json& settings = storing_settings()) : proxy{settings} {}

    [[nodiscard]] response get(std::string_view path, std::string_view fields = "") const {
        return proxy.get(origin.url(path), fields);
    }
    [[nodiscard]] response ask(std::string_view method,
                               std::string_view path,
                               std::string_view fields = "") const {
        return proxy.ask(method, origin.url(path), fields);
    }
    /// Both ask for `path`, which the origin withholds: the second joins the first's fetch.
    void share_a_fetch(client& first, client& second, std::string_view path) const {
        first.send(request(path));
        REQUIRE(eventually([&] { return origin.count(std::string{path}) == 1; }));
        second.send(request(path));
        REQUIRE(eventually([&] { return figure(proxy.stats(), figure_name::joined) == 1; }));
    }
    /// The bytes of a GET of this path.
    [[nodiscard]] std::string request(std::string_view path, std::string_view fields = "") const {
        return absolute_request("GET", origin.url(path), fields);
    }
};

/// An origin's answer whose framing is none of the usual: head and body as they stand.
[[nodiscard]] inline std::string raw_head(std::string_view status_line, std::string_view fields) {
    return "HTTP/1.1 " + std::string{status_line} + "\r\n" + std::string{fields} + "\r\n";
}

inline constexpr std::size_t kib = std::size_t{1} << 10;
inline constexpr std::size_t mib = std::size_t{1} << 20;

}  // namespace reprise::tests
