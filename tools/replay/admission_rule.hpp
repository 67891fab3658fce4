#pragma once
// Which requests for absent objects may store: the proxy's filter, and exact rules to hold it
// against.

#include "filter/admission.hpp"
#include "tools/replay/request.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::replay {

/// What a rule is, in words and numbers.
struct admission_choice {
    enum class kind : std::uint8_t {
        always,
        nth_hit,       ///< filter::admission_filter; second-hit is nth_hit of 2
        exact_second,  ///< seen before, ever: what a filter that never errs and forgets would say
        exact_window,  ///< among the last `keys` distinct keys asked for
    };
    kind what = kind::always;
    unsigned hits = 2;       ///< nth_hit: stores at this request
    std::uint64_t keys = 0;  ///< exact_window; nth_hit: the filter's `objects`, 0: as many as fit
    double of_objects = 0;   ///< instead of `keys`: a share of the trace's objects
    bool operator==(const admission_choice&) const = default;
};

/// "always", "second-hit", "nth-hit:3", "exact-second", "window:50000", "window:5%". None if it is
/// none of these.
[[nodiscard]] std::optional<admission_choice> admission_choice_of(std::string_view text);
[[nodiscard]] std::string to_string(const admission_choice& choice);

/// One model's. One thread.
class admission_rule {
public:
    virtual ~admission_rule() = default;
    /// Whether an absent object may be stored at this request, which is noted.
    [[nodiscard]] virtual bool admits(const request& wanted) = 0;
    /// A request for an object that is stored.
    virtual void hit(const request& wanted) = 0;
    /// Bytes of memory that a proxy would spend on it; of the exact rules none, for they are
    /// yardsticks.
    [[nodiscard]] virtual std::uint64_t memory() const noexcept { return 0; }
};

/// `objects`: how many the trace has, or is thought to have; `filter_age` is the filter's.
[[nodiscard]] std::unique_ptr<admission_rule> make_rule(const admission_choice& choice,
                                                        std::uint64_t objects,
                                                        std::chrono::seconds filter_age);

/// The filter that remembers `objects` keys within `bytes_a_key` of them a generation (and layer),
/// with as few mistakes as fit. @pre bytes_a_key is at least 0.5
[[nodiscard]] filter::admission_settings filter_within(std::uint64_t objects,
                                                       double bytes_a_key,
                                                       unsigned layers);

/// What the proxy spends on a filter of these settings.
[[nodiscard]] std::uint64_t filter_bytes(const filter::admission_settings& settings) noexcept;

}  // namespace reprise::replay
