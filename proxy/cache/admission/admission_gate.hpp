#pragma once
// The policy over the admission filter: may this absent key enter the store?
// A listener's own policy comes first, then the first rule whose URL pattern matches, then the
// policy at the top. The filter is told of every sight whatever the policy, so that a policy
// changed on reload finds its memory filled.
//
//     second-hit, nth-hit   as far as the filter remembers
//     tinylfu               the key was asked for more often lately than what leaves the store
//                           nowadays had been; a sketch counts, hits too. While nothing has left,
//                           nothing loses its place: all are admitted. Refusals lower what is asked
//                           of newcomers, or one frequent object that leaves would shut the store
//                           for good (policy/tinylfu_bar.hpp)
//     auto                  whichever of the others it was last told to follow (obey)
//
// What is refused may wait on probation (policy/residents.hpp) where that has a share of memory.
//
// With "remember": "auto" the filter follows the store's age of eviction (admission_sizing.hpp).

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/admission/admission_sizing.hpp"
#include "proxy/cache/admission/resizable_admission.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/tinylfu_bar.hpp"

#include <boost/system/error_code.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache {

struct admission_ruling {
    bool admitted = false;
    bool may_wait = false;       ///< not admitted, but may enter memory on probation
    unsigned uses_to_admit = 1;  ///< of what waits
    config::admission_policy policy = config::admission_policy::second_hit;  ///< not automatic
    std::size_t rule = ~std::size_t{0};  ///< index in admission.rules; ~0: none decided
    unsigned seen_before = 0;            ///< sights before this one, as far as remembered

    /// Whether this request might have been a hit had an earlier sight not been refused. What was
    /// stored and has left since looks the same, so this errs to admission's disadvantage; where
    /// the policy refuses nothing it costs nothing.
    [[nodiscard]] bool may_have_cost_a_hit() const noexcept {
        return seen_before > 0 && policy != config::admission_policy::always;
    }
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

/// Whether any policy of these options asks how often a key was requested.
[[nodiscard]] bool counts_requests(const config::options& options);

/// The filter's settings that these options ask for to begin with: as many layers as the largest
/// nth-hit of any policy or rule.
[[nodiscard]] filter::admission_settings filter_settings(const config::options& options);

/// Threads: any. note, peek, hit, count_request, evicted and what reads one number are lock-free.
/// housekeep, adopt and obey: one at a time. The constructor and save read and write a file: not on
/// an event loop.
class admission_gate {
public:
    /// An empty filter under a new random seed, or what the file of admission.state holds. A file
    /// that can't be used is refused with a log line, and the filter starts empty; one of another
    /// version of the format is put aside. `fixed`: the
    /// secret that keys have already (of a store on disk), and then the file must have it too.
    /// `requests`: what tinylfu counts by; null: a sketch of the gate's own, where it is needed.
    /// `inherited`: a state as encoded() gave it, in the file's place.
    admission_gate(const config::options& options,
                   wall_time now,
                   const filter::hash_secret* fixed = nullptr,
                   std::shared_ptr<frequency_sketch> requests = nullptr,
                   const std::vector<std::byte>* inherited = nullptr);

    [[nodiscard]] const filter::hash_secret& secret() const noexcept { return secret_; }

    /// One sight of an absent or stored key, and whether it may enter by this choice.
    [[nodiscard]] admission_ruling note(const filter::key_hash& key,
                                        const admission_choice_for& by,
                                        wall_time now) noexcept;

    /// What note would say after `pending` further sights that are not recorded yet; records
    /// nothing. (count_request has counted them.)
    [[nodiscard]] admission_ruling peek(const filter::key_hash& key,
                                        const admission_choice_for& by,
                                        std::size_t pending = 0) const noexcept;

    /// A hit: the filter hears of it again, so that what was popular is no stranger after its
    /// eviction. Once a generation is enough.
    void hit(const filter::key_hash& key, wall_time now) noexcept;
    /// The generation that a hit now is told to. One load.
    [[nodiscard]] std::uint32_t generation() const noexcept { return sights_.generation(); }

    /// Every request that a stored response may answer, once, before anything is looked up. One
    /// load where nobody counts.
    void count_request(const filter::key_hash& key) noexcept {
        if (requests_) {
            requests_->note(key);
        }
    }
    /// An admitted object left the store for room: tinylfu's measure for newcomers.
    void evicted(const filter::key_hash& key) noexcept;

    /// Whether requests are counted, which tinylfu wants; that is settled when the gate is made.
    [[nodiscard]] bool has_sketch() const noexcept { return requests_ != nullptr; }

    /// How many sights are told from one another; more count as so many.
    [[nodiscard]] unsigned counts_to() const noexcept { return layers_; }

    /// The share of memory for probation: as set, or as "auto" was told: not less than what is
    /// written in the settings.
    [[nodiscard]] double probation() const noexcept { return probation_.load(relaxed); }
    /// The least that obey() makes of probation: what is written in the settings, or 0.
    [[nodiscard]] double least_probation() const noexcept {
        return is_floor_.load(relaxed) ? asked_probation_.load(relaxed) : 0;
    }
    /// New settings (SIGHUP): admission.probation, whether any policy is "auto", and how large a
    /// filter that follows the store may become, which is a share of memory and disk.
    void adopt(const config::options& options) noexcept;
    /// What "auto" is from now on. `choice` is none of the policies that need a choice themselves.
    void obey(const config::admission_choice& choice, double probation) noexcept;
    /// What "auto" is now.
    [[nodiscard]] config::admission_choice obeyed() const noexcept;

    /// Once a second: lets the filter follow the store, where it is to ("remember": "auto").
    /// `eviction_age`: for how long something unused stays there at present; none while nothing
    /// leaves.
    void housekeep(std::optional<std::chrono::seconds> eviction_age, wall_time now);

    /// Writes the state: to a temporary file, mode 0600, synced, then renamed over the old one.
    /// While the filter changes its size, what only the former one remembers is not in it.
    [[nodiscard]] boost::system::error_code save(const std::string& path) const;

    /// What save() writes: some bytes per key that is remembered.
    [[nodiscard]] std::vector<std::byte> encoded() const;

    /// As resizable_admission has them, of both filters during a change of size; `swaps` never falls,
    /// and `memory` is all that is taken.
    [[nodiscard]] filter::admission_figures figures(wall_time now) const;
    /// Of figures() the bytes that are taken, without counting the filters' bits.
    [[nodiscard]] std::size_t memory() const;
    [[nodiscard]] filter::admission_settings settings() const {
        return sights_.current()->settings();
    }

private:
    static constexpr auto relaxed = std::memory_order_relaxed;

    struct beginning {
        std::unique_ptr<filter::admission_filter> filter;
        filter::hash_secret secret;
    };
    admission_gate(const config::options& options,
                   beginning from,
                   std::shared_ptr<frequency_sketch> requests);
    [[nodiscard]] static beginning begin(const config::options& options,
                                         wall_time now,
                                         const filter::hash_secret* fixed,
                                         const std::vector<std::byte>* inherited);
    [[nodiscard]] admission_ruling rule_on(const filter::key_hash& key,
                                           unsigned seen,
                                           const admission_choice_for& by) const noexcept;
    template <class Change>
    void change_bar(const Change& change) noexcept;

    resizable_admission sights_;
    filter::hash_secret secret_;
    unsigned layers_;
    bool follows_;
    admission_bounds bounds_;                     // adopt's and housekeep's
    std::shared_ptr<frequency_sketch> requests_;  // null: nobody counts
    std::atomic<tinylfu_bar> bar_{};              // of tinylfu, by requests_
    std::atomic<std::uint32_t> obeyed_;           // policy and hits
    std::atomic<double> asked_probation_, obeyed_probation_{-1}, probation_;  // -1: not told
    std::atomic<bool> is_floor_;  // asked_probation_ is written in the settings
    std::atomic<bool> automatic_;
};

}  // namespace reprise::proxy::cache
