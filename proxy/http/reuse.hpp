#pragma once
// May a stored response answer this request as it is (RFC 9111 4, 4.2.4, 5.2.1).
// The caller has already matched key and Vary. A hit without request directives and before
// fresh_until needs none of this: `reusable_until` folds the response's side into one comparison.

#include "proxy/base/clock.hpp"
#include "proxy/http/cache_control.hpp"
#include "proxy/http/freshness.hpp"

#include <cstdint>
#include <string_view>

namespace reprise::proxy::http {

enum class reuse : std::uint8_t {
    fresh,          ///< send it
    stale_allowed,  ///< send it: it is stale, but the client said that it may be
    must_validate,  ///< ask the origin first
};

/// Why `reuse` is what it is.
enum class reuse_reason : std::uint8_t {
    fresh,
    max_stale,          ///< 5.2.1.2 allows this much staleness
    stale,              ///< 4.2: lifetime over, nobody allows more
    response_no_cache,  ///< 5.2.2.4
    request_no_cache,   ///< 5.2.1.4, or Pragma (5.4)
    request_max_age,    ///< 5.2.1.1: older than the client takes
    request_min_fresh,  ///< 5.2.1.3: not fresh for long enough
    /// Stale, and must-revalidate, proxy-revalidate or s-maxage (5.2.2.2, 5.2.2.8, 5.2.2.10)
    /// forbids sending it, whatever max-stale says.
    must_revalidate,
};
[[nodiscard]] std::string_view to_string(reuse verdict) noexcept;
[[nodiscard]] std::string_view to_string(reuse_reason reason) noexcept;

struct reuse_verdict {
    reuse what = reuse::must_validate;
    reuse_reason why = reuse_reason::stale;
    seconds age{0};  ///< current_age: the Age field's value
    seconds ttl{0};  ///< remaining freshness, negative when stale
    bool operator==(const reuse_verdict&) const = default;
};

/// Total; no allocation. `asked.no_store` and `only_if_cached` don't matter here: the one is about
/// storing (5.2.1.5), the other about what happens if this says must_validate.
[[nodiscard]] reuse_verdict judge_reuse(const response_directives& allowed,
                                        const freshness_facts& facts,
                                        const request_directives& asked,
                                        wall_time now) noexcept;

/// Until when judge_reuse says `fresh` to every request without directives; wall_time::min() if
/// never. Kept beside a stored response, it makes a hit's test one comparison.
[[nodiscard]] wall_time reusable_until(const response_directives& allowed,
                                       const freshness_facts& facts) noexcept;

/// May be sent while it is validated behind the client's back (RFC 5861 3): within
/// stale-while-revalidate of its end. must-revalidate, proxy-revalidate, s-maxage and no-cache
/// forbid it (RFC 9111 4.2.4). To be asked when judge_reuse named `stale`, not when the client
/// wanted the origin.
[[nodiscard]] bool may_serve_while_revalidating(const response_directives& allowed,
                                                const freshness_facts& facts,
                                                wall_time now) noexcept;

/// May be sent because the origin failed (RFC 5861 4): within stale-if-error of its end. The same
/// directives forbid it.
[[nodiscard]] bool may_serve_on_error(const response_directives& allowed,
                                      const freshness_facts& facts,
                                      wall_time now) noexcept;

/// 4.2.4: no-cache, must-revalidate, proxy-revalidate or s-maxage: never stale, whoever asks and
/// whatever failed.
[[nodiscard]] bool forbids_stale(const response_directives& allowed) noexcept;

}  // namespace reprise::proxy::http
