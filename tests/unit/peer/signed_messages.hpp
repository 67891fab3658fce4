#pragma once
// Requests that are signed by RFC 9421, by the old field or by both, and what a checker says of them.

#include "proxy/http/message_head.hpp"
#include "proxy/peer/signature.hpp"
#include "tests/support/old_signature.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_signature {

using namespace std::chrono_literals;
using verdict = signature_verdict;

inline constexpr wall_time now{1'763'668'089'500ms};
inline constexpr steady_time begun{1h};  // and then, by the other clock
inline constexpr std::string_view place = "192.0.2.2:3128";
inline constexpr receiver here{place, "reprise-b"};
inline constexpr parties who{"cache-a", place};

inline const std::string secret_text(32, 's');
inline const std::string other_text(32, 't');

inline fleet_secret secret() {
    return *fleet_secret::from_content(secret_text);
}

inline nonce nonce_of(unsigned number) {
    nonce out{};
    out[0] = static_cast<std::byte>(number);
    out[1] = static_cast<std::byte>(number >> 8);
    return out;
}

/// A request with the lines that sign it, as its receiver has it.
struct message {
    std::string method = "GET";
    std::string target = "/.well-known/reprise/digest?since=1-2";
    std::string host = "b.example:3128";
    bool secure = false;
    std::string lines;

    [[nodiscard]] http::signed_request bare() const {
        return {.method = method, .target = target, .host = host, .secure = secure};
    }
    void sign_with(const fleet_secret& by, unsigned number = 1, wall_time when = now) {
        lines = sign(by, bare(), who, when, nonce_of(number));
    }
    /// The old field, as earlier nodes make it.
    [[nodiscard]] std::string old_line(const std::string& by,
                                       unsigned number = 1,
                                       wall_time when = now) const {
        char digits[33];
        std::snprintf(digits, sizeof digits, "%02x%02x%028d", number & 255, number >> 8 & 255, 0);
        return reprise::tests::old_signature_line(
            {.method = method,
             .target = target,
             .host = host,
             .to = std::string{place},
             .time = std::chrono::floor<std::chrono::seconds>(when).time_since_epoch().count(),
             .nonce = digits},
            by);
    }
    void drop(std::string_view name) {
        const auto at = lines.find(std::string{name} + ": ");
        REQUIRE(at != std::string::npos);
        lines.erase(at, lines.find("\r\n", at) + 2 - at);
    }
};

inline message signed_one(unsigned number = 1, wall_time when = now) {
    message out;
    out.sign_with(secret(), number, when);
    return out;
}

/// By the old field and nothing else.
inline message signed_before(unsigned number = 1, wall_time when = now) {
    message out;
    out.lines = out.old_line(secret_text, number, when);
    return out;
}

/// By both, as some nodes send it.
inline message signed_twice(unsigned number = 1) {
    auto out = signed_one(number);
    out.lines += out.old_line(secret_text, number);
    return out;
}

inline judged_signature judge(signature_checker& checker,
                              const message& of,
                              wall_time when = now,
                              const receiver& at = here,
                              steady_time steady = begun) {
    std::vector<http::field> fields;
    REQUIRE(http::parse_field_lines(of.lines, fields, 100) == nullptr);
    auto request = of.bare();
    request.fields = fields;
    return checker.check(request, at, when, steady);
}

inline verdict check(signature_checker& checker,
                     const message& of,
                     wall_time when = now,
                     const receiver& at = here) {
    return judge(checker, of, when, at).what;
}

/// Signed so long after the moment that the clock then calls `at_start`, and heard at once.
inline verdict check_after(signature_checker& checker,
                           std::chrono::seconds after,
                           unsigned number,
                           wall_time at_start) {
    const auto then = at_start + after;
    return judge(checker, signed_one(number, then), then, here, begun + after).what;
}

inline verdict check_alone(const message& of, const receiver& at = here) {
    signature_checker fresh{secret()};
    return check(fresh, of, now, at);
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

}  // namespace reprise::proxy::peer::test::of_signature
