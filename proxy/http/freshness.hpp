#pragma once
// Age and lifetime of a response (RFC 9111 4.2): worked out once when it arrives, asked on each
// hit with one subtraction.
// Nothing here reads a clock. The two times of the exchange and `now` are arguments; between them
// the clock may step back, which never makes an age negative nor a stale response fresh that was
// born stale.

#include "proxy/base/clock.hpp"
#include "proxy/http/cache_control.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/overriding.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::proxy::http {

/// What an operator may say of how long responses are fresh, in general or of some URLs.
struct freshness_rules {
    /// The heuristic (RFC 9111 4.2.2): this part of the time between Last-Modified and Date, at
    /// most this long.
    double heuristic_fraction = 0.1;
    seconds heuristic_most = std::chrono::hours{24};
    /// The heuristic serves 404, 405, 414 and 501 too. (410 is for good by its own words.)
    bool heuristic_errors = true;
    seconds negative{0};  ///< the lifetime of errors (is_negative), in place of it
    /// The lifetime of what states none, and of what states a shorter one in a way that `set_aside`
    /// names; for statuses that are heuristically cacheable and no errors (410 is for good).
    seconds at_least{0};
    std::optional<seconds> at_most =
        std::nullopt;  ///< of all; RFC 9111 4.2 bounds lifetimes from above alone
    overrides set_aside{};

    /// For what belongs to one client (is_personal): nothing is raised or set aside.
    [[nodiscard]] freshness_rules for_one_client() const noexcept {
        auto own = *this;
        own.at_least = seconds{0};
        own.set_aside = {};
        return own;
    }
    bool operator==(const freshness_rules&) const = default;
};

/// Where a lifetime comes from, in the order of RFC 9111 4.2.1. `negative`: freshness_rules'.
/// `none`: nothing says anything, so the lifetime is zero. `heuristic`: at_least's too, since it is
/// this cache's word and not the origin's.
enum class lifetime_source : std::uint8_t { s_maxage, max_age, expires, heuristic, negative, none };
[[nodiscard]] std::string_view to_string(lifetime_source source) noexcept;

/// What is kept beside a stored response to age it.
struct freshness_facts {
    wall_time response_time{};  ///< when its head arrived
    seconds initial_age{0};     ///< corrected_initial_age (4.2.3): how old it was then
    seconds lifetime{0};        ///< freshness_lifetime (4.2.1), never negative
    lifetime_source source = lifetime_source::none;
    bool operator==(const freshness_facts&) const = default;
};

/// The origin said how long (s-maxage, max-age, Expires); false for what we made up, and for none.
[[nodiscard]] constexpr bool is_explicit(lifetime_source source) noexcept {
    return source <= lifetime_source::expires;
}

/// What a cache says of a response's age: the first member of its Age; none where there is none, or
/// it is no integer (RFC 9111 5.1).
[[nodiscard]] std::optional<seconds> stated_age(field_list response) noexcept;

/// RFC 9111 4.2.1 to 4.2.3 for a shared cache.
///
/// - Date missing or invalid: the response's arrival (RFC 9110 6.6.1).
/// - Expires invalid (also "0"): already expired (5.3). It is measured from the response's own
///   Date, so a fast or slow origin clock shortens and lengthens nothing. The first of several
///   counts.
/// - Age: the first member of a list or of several lines; ignored if it is no integer (5.1).
///   Directives of a targeted field leave Expires aside (RFC 9213 2.2).
/// - The heuristic serves only a status that RFC 9110 15.1 allows it, or `public`, with a valid
///   Last-Modified before Date; an error's only if the rules want it.
/// - `rules.negative`, where it is not zero, is the lifetime of an error that states none. For 5xx
///   but 501 that goes beyond RFC 9111 4.2.2: an operator's choice, never the default.
/// - `rules.at_least` and `at_most` come last. What at_least raised counts as no longer stated.
/// - A response from a slow origin is aged by the whole round trip (4.2.3's response_delay).
[[nodiscard]] freshness_facts freshness_of(unsigned status,
                                           field_list response,
                                           const response_directives& directives,
                                           wall_time request_time,
                                           wall_time response_time,
                                           const freshness_rules& rules) noexcept;

/// current_age (4.2.3), in whole seconds, never negative and never below initial_age: a clock that
/// stepped back reads as no time passed.
[[nodiscard]] seconds current_age(const freshness_facts& facts, wall_time now) noexcept;

/// The moment it becomes stale; wall_time::min() if it never was fresh. `now < fresh_until(facts)`
/// is `current_age(facts, now) < facts.lifetime`: what a hit tests.
[[nodiscard]] wall_time fresh_until(const freshness_facts& facts) noexcept;

/// Seconds of freshness left; negative by as much as it is stale (RFC 9211 2.4's ttl).
[[nodiscard]] seconds remaining(const freshness_facts& facts, wall_time now) noexcept;

/// Statuses that are heuristically cacheable (RFC 9110 15.1).
[[nodiscard]] bool is_heuristically_cacheable(unsigned status) noexcept;

/// Errors that negative caching keeps: 404, 410 and 500 to 599. Others of 4xx blame the request,
/// so one client's answer may not be the next one's.
[[nodiscard]] bool is_negative(unsigned status) noexcept;

}  // namespace reprise::proxy::http
