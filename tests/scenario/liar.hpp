#pragma once
// A sibling that says what it has and treats those who ask for it as a test likes.

#include "tests/scenario/fleet.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>

namespace reprise::tests {

/// A sibling that has the digest of a true one and treats those who ask it for objects as it is
/// told. Its digest is fetched anew for each who asks; once the true one has ended it answers nobody
/// who asks for that.
struct liar {
    fleet& of;
    fake_origin as;

    liar(fleet& f, std::size_t true_one, origin_handler asked) : of{f} {
        as.on("/.well-known/reprise/digest",
              [this, true_one](origin_request&, origin_connection& connection) {
                  const auto got = digest_of(of[true_one].port());
                  if (!got) {
                      connection.close();
                      return;
                  }
                  connection.send(
                      answer("200 OK",
                             "Cache-Control: private\r\nETag: " + got->get("ETag") + "\r\n",
                             got->body));
              });
        as.on("/.well-known/reprise/figures", answer("404 Not Found", "", ""));
        as.otherwise(std::move(asked));
    }

    /// Nothing where nobody listens any more.
    [[nodiscard]] static std::optional<response> digest_of(std::uint16_t port) try {
        client to{port};
        return to.ask("GET /.well-known/reprise/digest HTTP/1.1\r\nHost: x\r\n\r\n");
    } catch (const std::runtime_error&) {
        return std::nullopt;
    }
};

/// Two nodes, of which the second believes that the first is `as`.
inline void meet_liar(fleet& f, const liar& as, const char* timeout = sibling_timeout) {
    auto known = peer_at("liar", as.as.port());
    known["timeout"] = timeout;
    f.tell(1, json::array({known}));
}

/// The same once the first has stored /a, until the second believes it of `as`.
inline void store_and_meet_liar(fleet& f, const liar& as, const char* timeout = sibling_timeout) {
    CHECK(f[0].get(f.origin.url("/a")).status == 200);
    meet_liar(f, as, timeout);
    REQUIRE(f.holds(1, "liar", 1));
}

}  // namespace reprise::tests
