#pragma once
// The policy over the admission filter: may this absent key enter the store?
// A listener's own policy comes first, then the first rule whose URL pattern matches, then the
// policy at the top. The filter is told of every sight whatever the policy, so that a policy
// changed on reload finds its memory filled.

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "filter/key_hash.hpp"
#include "proxy/clock.hpp"

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::cache {

struct admission_ruling {
    bool admitted = false;
    config::admission_policy policy = config::admission_policy::second_hit;
    std::size_t rule = ~std::size_t{0};  ///< index in admission.rules; ~0: none decided
    unsigned seen_before = 0;            ///< sights before this one, as far as remembered
};

/// True when `pattern`, in which * stands for any run of characters, is the whole of `url`.
/// O(pattern x url) at worst.
[[nodiscard]] bool url_matches(std::string_view pattern, std::string_view url) noexcept;

/// Which policy is in force for a URL.
struct admission_choice_for {
    config::admission_choice choice;
    std::size_t rule = ~std::size_t{0};
};
[[nodiscard]] admission_choice_for choice_for(
    const config::admission_options& options,
    const std::optional<config::admission_choice>& of_listener,
    std::string_view url);

/// The filter's settings that these options ask for: as many layers as the largest nth-hit of any
/// policy or rule.
[[nodiscard]] filter::admission_settings filter_settings(const config::options& options);

/// Threads: note, peek, hit: any. load and save: one at a time, not on an event loop (they read and
/// write a file).
class admission_gate {
public:
    /// An empty filter under a new random seed, or what `state_file` holds (empty: none). A file
    /// that can't be used is refused with a log line, and the filter starts empty. `fixed`: the
    /// secret that keys have already (of a store on disk), and then the file must have it too.
    admission_gate(const config::options& options,
                   wall_time now,
                   const filter::hash_secret* fixed = nullptr);

    [[nodiscard]] const filter::hash_secret& secret() const noexcept { return secret_; }

    /// One sight of an absent or stored key, and whether it may enter by this choice.
    [[nodiscard]] admission_ruling note(const filter::key_hash& key,
                                        const admission_choice_for& by,
                                        wall_time now) noexcept;

    /// What note would say after `pending` further sights that are not recorded yet; records
    /// nothing.
    [[nodiscard]] admission_ruling peek(const filter::key_hash& key,
                                        const admission_choice_for& by,
                                        std::size_t pending = 0) const noexcept;

    /// A hit: the filter hears of it again, so that what was popular is no stranger after its
    /// eviction.
    void hit(const filter::key_hash& key, wall_time now) noexcept;
    /// The generation that a hit now is told to. One load.
    [[nodiscard]] std::uint32_t generation() const noexcept { return filter_->generations(); }

    /// Writes the state: to a temporary file, mode 0600, synced, then renamed over the old one.
    [[nodiscard]] boost::system::error_code save(const std::string& path) const;

    [[nodiscard]] filter::admission_figures figures(wall_time now) const noexcept;
    [[nodiscard]] const filter::admission_settings& settings() const noexcept {
        return filter_->settings();
    }

private:
    std::unique_ptr<filter::admission_filter> filter_;
    filter::hash_secret secret_;
};

}  // namespace reprise::proxy::cache
