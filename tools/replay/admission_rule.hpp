#pragma once
// Which requests for absent objects may store: the proxy's admission gate, and exact rules to hold
// it against.

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "tools/replay/request.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// What a rule is, in words and numbers.
struct admission_choice {
    enum class kind : std::uint8_t {
        always,
        nth_hit,       ///< the gate's second-hit and nth-hit
        tinylfu,       ///< the gate's: asked for more often than what leaves nowadays
        automatic,     ///< the proxy's advisor decides, and how much size counts too
        exact_second,  ///< seen before, ever: what a filter that never errs and forgets would say
        exact_window,  ///< among the last `keys` distinct keys asked for
    };
    kind what = kind::always;
    unsigned hits = 2;       ///< nth_hit: stores at this request
    std::uint64_t keys = 0;  ///< exact_window
    double of_objects = 0;   ///< instead of `keys`: a share of the trace's objects
    bool operator==(const admission_choice&) const = default;
};

/// "always", "second-hit", "nth-hit:3", "tinylfu", "auto", "exact-second", "window:50000", "window:5%".
/// None if it is none of these.
[[nodiscard]] std::optional<admission_choice> admission_choice_of(std::string_view text);
[[nodiscard]] std::string to_string(const admission_choice& choice);

/// One model's. One thread.
class admission_rule {
public:
    admission_rule() = default;
    admission_rule(const admission_rule&) = delete;
    admission_rule& operator=(const admission_rule&) = delete;
    virtual ~admission_rule() = default;

    /// Requests are counted in `sketch`, by its owner, who lives longer. Before the first request.
    virtual void count_by(proxy::cache::frequency_sketch& sketch) { (void)sketch; }
    /// Every request, first of all.
    virtual void asked(const request& wanted) { (void)wanted; }

    /// What the owner's tiers are to be from now on.
    struct tuning {
        double probation = 0;
        double exponent = 1;  ///< of size
    };
    /// After asked(): something when it has just changed, with "auto" alone.
    [[nodiscard]] virtual std::optional<tuning> tune(const request& wanted) {
        (void)wanted;
        return std::nullopt;
    }
    /// What "auto" came to be, and at which request, a line each.
    [[nodiscard]] virtual std::vector<std::string> told() const { return {}; }

    /// Whether an absent object may be stored at this request, which is noted.
    [[nodiscard]] virtual bool admits(const request& wanted) = 0;
    /// After admits() said no: at how many further requests the object would be admitted.
    [[nodiscard]] virtual unsigned uses_to_admit() const noexcept { return 1; }
    /// A request for an object that is stored.
    virtual void hit(const request& wanted) = 0;
    /// An admitted object left for room, having been unused for so long.
    virtual void evicted(const filter::key_hash& key, std::chrono::seconds unused) {
        (void)key;
        (void)unused;
    }
    /// Where there is a disk, it says how long what nobody asks for stays in the store, instead of
    /// what evicted() told.
    using age_source = std::function<std::optional<std::chrono::seconds>()>;
    virtual void follow(age_source age) { (void)age; }
    /// Bytes of memory that a proxy would spend on it, a sketch of others not included; of the
    /// exact rules none, for they are yardsticks.
    [[nodiscard]] virtual std::uint64_t memory() const noexcept { return 0; }
};

/// How much the gate's filter remembers.
struct remembering {
    bool automatic = false;  ///< as "remember": "auto" does, which `objects` then means nothing to
    /// As a proxy's settings have it, in rate and age too; else within filter_bytes_a_key, forever.
    bool as_set = false;
    std::uint64_t objects = 0;                       ///< the settings' remember.objects
    std::uint64_t memory_bytes = 0, disk_bytes = 0;  ///< of the tiers: "auto" is bounded by them
};

/// `objects`: how many the trace has, for shares.
[[nodiscard]] std::unique_ptr<admission_rule> make_rule(const admission_choice& choice,
                                                        std::uint64_t objects,
                                                        const remembering& filter);

/// "auto" in a proxy of these settings: its gate, and the advisor that tells it what to be. `unit`:
/// bytes for each of the trace's sizes.
[[nodiscard]] std::unique_ptr<admission_rule> make_automatic(const config::options& options,
                                                             std::uint64_t unit);

/// What a filter here may take of memory for each key it remembers, in each generation and layer.
inline constexpr double filter_bytes_a_key = 2;

/// The filter that remembers `objects` keys within `bytes_a_key` of them a generation (and layer),
/// with as few mistakes as fit. @pre bytes_a_key is at least 0.5
[[nodiscard]] filter::admission_settings filter_within(std::uint64_t objects, double bytes_a_key);

}  // namespace reprise::replay
