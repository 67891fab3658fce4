#pragma once
// An https origin, and a proxy that opens tunnels to it (intercept).

#include "tests/scenario/world.hpp"
#include "tests/support/tls_client.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace reprise::tests {

/// What the origin's certificate comes from, and what the proxy's CA does: two roots.
inline const test_authority& of_origins() {
    static const test_authority one;
    return one;
}
inline const test_authority& of_the_proxy() {
    static const test_authority one;
    return one;
}

inline constexpr std::string_view cacheable = "Cache-Control: max-age=60\r\n";

/// An https origin by the names a.test, b.test and c.test; the first two are listed.
struct opened_world {
    temp_dir files;
    fake_origin origin;
    json settings;
    std::unique_ptr<proxy_process> proxy;

    explicit opened_world(const json& more = json::object(),
                          const json& from = storing_settings(),
                          const made_certificate& made =
                              of_origins().issue("DNS:a.test,DNS:b.test,DNS:x.b.test,DNS:c.test"),
                          const tls_peer::server_wishes& origins_tls = {})
        : origin{{.identity = made, .tls = origins_tls}},
          settings(from) {
        const auto ca = of_the_proxy().issue_authority();
        const auto key = files.write("ca.key", ca.key);
        REQUIRE(::chmod(key.c_str(), 0600) == 0);
        settings["intercept"] = {{"hosts", {"a.test", "b.test"}},
                                 {"clients", {"127.0.0.0/8"}},
                                 {"ports", {origin.port()}},
                                 {"ca_certificate", files.write("ca.pem", ca.certificate)},
                                 {"ca_key", key}};
        settings["intercept"].update(more);
        settings["access"]["connect_ports"] = settings["intercept"]["ports"];
        settings["origins"]["ca_file"] = files.write("origins.pem", of_origins().certificate());
        settings["dns"]["hosts_file"] = files.write(
            "hosts", "127.0.0.1 a.test\n127.0.0.1 b.test x.b.test\n127.0.0.1 c.test\n");
        proxy = std::make_unique<proxy_process>(settings);
    }
    [[nodiscard]] std::string at(const std::string& host) const {
        return host + ':' + std::to_string(origin.port());
    }
    [[nodiscard]] std::string connect_request(const std::string& host) const {
        return connect_request(host, origin.port());
    }
    [[nodiscard]] static std::string connect_request(const std::string& host, std::uint16_t port) {
        const auto at = host + ':' + std::to_string(port);
        return "CONNECT " + at + " HTTP/1.1\r\nHost: " + at + "\r\n\r\n";
    }
    /// A connection that has had its 200.
    [[nodiscard]] stream connect(const std::string& host,
                                 const std::string& from = "127.0.0.1") const {
        return connect(host, origin.port(), from);
    }
    [[nodiscard]] stream connect(const std::string& host,
                                 std::uint16_t port,
                                 const std::string& from = "127.0.0.1") const {
        auto one = stream::connect(proxy->port(), from);
        one.send(connect_request(host, port));
        std::string head;
        while (head.find("\r\n\r\n") == std::string::npos) {
            REQUIRE(one.read_some(head, patience, 1) == read_end::data);
        }
        REQUIRE(head.starts_with("HTTP/1.1 200 "));
        return one;
    }
    [[nodiscard]] tls_peer::wishes wishes(const std::string& host) const {
        tls_peer::wishes wanted;
        wanted.trusted = of_the_proxy().certificate();
        wanted.host = host;
        return wanted;
    }
    /// What `enters` makes: a client in a tunnel that is opened. One that is kept from its hello for a second is
    /// passed on, as it should be, to a certificate that it does not trust: it is made anew.
    template <class Enter>
    [[nodiscard]] auto in_time(const Enter& enters) const {
        for (;;) {
            try {
                return enters();
            } catch (const std::runtime_error&) {
                const auto late = late_hellos();
                if (late == std::exchange(late_before_, late)) {
                    throw;
                }
            }
        }
    }
    [[nodiscard]] std::unique_ptr<tls_client> enter(const std::string& host,
                                                    const std::string& from = "127.0.0.1") const {
        return in_time(
            [&] { return std::make_unique<tls_client>(connect(host, from), wishes(host)); });
    }
    /// A client that takes no certificate but the origin's leaves when it is shown another, and that is known of it.
    void refuse(const std::string& host) const {
        auto pinned = wishes(host);
        pinned.trusted = of_origins().certificate();
        const auto before = figure("refused");
        REQUIRE(eventually([&] {
            try {
                const tls_client one{connect(host), pinned};
                return false;  // kept from its hello, it was passed on
            } catch (const std::runtime_error&) {
                return true;
            }
        }));
        // Counted last, behind what is remembered of it.
        REQUIRE(eventually([&] { return figure("refused") > before; }));
        CHECK(proxy->says("does not take our certificate for " + host));
    }
    /// For what reasons tunnels to this host were passed on, and how many, but for hellos that came late.
    [[nodiscard]] json passed_on(const std::string& host) const {
        const auto all = passed_on();
        auto whys = all.contains(host) ? all.at(host) : json::object();
        whys.erase(late_hello);
        return whys;
    }
    [[nodiscard]] std::string get(const std::string& host,
                                  const std::string& path,
                                  const std::string& fields = "") const {
        return "GET " + path + " HTTP/1.1\r\nHost: " + at(host) + "\r\n" + fields + "\r\n";
    }
    /// Through a tunnel, to the origin's own certificate.
    void check_passed_on(const std::string& host) const {
        auto wanted = wishes(host);
        wanted.trusted = of_origins().certificate();
        tls_client one{connect(host), wanted};
        CHECK(one.ask(get(host, "/a")).body == "hello");
    }
    /// The settings with other members of intercept, and the proxy told.
    void reload(const json& more) {
        settings["intercept"].update(more);
        proxy->reload(settings);
    }
    [[nodiscard]] std::uint64_t figure(const char* name) const {
        return proxy->stats()["intercept"][name].get<std::uint64_t>();
    }

private:
    static constexpr const char* late_hello = "no hello in time";
    [[nodiscard]] json passed_on() const {
        return proxy->stats()["intercept"]["hosts"]["passed_on"];
    }
    [[nodiscard]] std::uint64_t late_hellos() const {
        std::uint64_t sum = 0;
        for (const auto& whys : passed_on()) {
            sum += whys.value(late_hello, std::uint64_t{0});
        }
        return sum;
    }
    mutable std::uint64_t late_before_ = 0;
};

}  // namespace reprise::tests
