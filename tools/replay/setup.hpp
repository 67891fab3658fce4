#pragma once
// One configuration to be tried, in the words in which a user names it, and the model it makes.

#include "config/options.hpp"
#include "proxy/cache/policy/eviction.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/model.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::replay {

/// "lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf", "gdsf:0.4", "lfu-da"; "arc" and "lhd", which the
/// proxy does not have.
enum class yardstick : std::uint8_t { arc, lhd };
struct policy_choice {
    std::optional<proxy::cache::eviction_kind> kind =
        proxy::cache::eviction_kind::lru;  ///< none: `beside`
    yardstick beside = yardstick::arc;
    /// The exponent of size, for gdsf. Without one it is the objective's, as in the proxy.
    std::optional<double> exponent{};
    bool operator==(const policy_choice&) const = default;
};
[[nodiscard]] std::optional<policy_choice> policy_choice_of(std::string_view text);
[[nodiscard]] std::string to_string(const policy_choice& choice);

/// Bytes, as settings have them ("1GiB", "50 GB") or with fractions and short or no units ("1.5GB",
/// "64K", "500000"), or a share of the trace's unique bytes ("10%").
struct cache_size {
    std::uint64_t bytes = 0;
    double of_unique = 0;  ///< 0: `bytes` holds
    bool operator==(const cache_size&) const = default;

    [[nodiscard]] std::uint64_t resolved(std::uint64_t unique_bytes) const noexcept;
};
[[nodiscard]] std::optional<cache_size> cache_size_of(std::string_view text);
/// "10%" and "1.5GiB".
[[nodiscard]] std::string to_string(const cache_size& size);
[[nodiscard]] std::string bytes_text(double bytes);

/// "2%" to 0.02. None outside 0 % to 100 %.
[[nodiscard]] std::optional<double> share_of(std::string_view text);

/// The setting caching.objective.
enum class objective : std::uint8_t { requests, bytes, seconds };
[[nodiscard]] std::string_view to_string(objective wanted) noexcept;

enum class write_when : std::uint8_t { admission, eviction };

/// The disk below the memory, when there is one. `size` is then of both together.
struct disk_choice {
    double memory = 0.2;             ///< share of the size
    std::uint64_t memory_bytes = 0;  ///< instead of the share, where it is not zero: as `size` is
    /// 0: as the proxy divides a disk of that size, or 128 where that is scaled.
    std::uint32_t segments = 0;
    /// In a segment, at least. 0: as the proxy has them. Scaled, 64: an extent is 1 MiB at most, and
    /// a segment of a disk of 8 GiB has 64 MiB; a small disk that stands for a large one is not to
    /// lose more at the ends of its segments than that one.
    std::uint32_t extents = 0;
    double carry = 0.6;  ///< of a reclaimed segment's bytes
    /// The exponent of size in the worth of a byte on disk; without one the objective's.
    std::optional<double> exponent{};
    write_when write = write_when::eviction;
    bool selective = true;  ///< what is worth less than what it pushes out is not written
    /// What is on disk stays in memory too, until it is evicted there. The proxy's write at
    /// admission does so always.
    bool copies = false;
    bool by_object = false;  ///< no segments: the yardstick beside them
    /// Keys that the disk's sketch of requests is made for; 0: as many as the proxy's is for.
    /// Scaled, there is one sketch for both tiers, and with 0 it grows with the objects that fit.
    std::uint64_t sketch = 0;
    bool counts_overhead = true;  ///< scaled: sketch and filter take room from memory
    bool operator==(const disk_choice&) const = default;
};

struct setup {
    cache_size size;
    policy_choice policy;
    admission_choice admission;
    /// The share of memory for what admission refused (residents.hpp). 1: that comes in like all
    /// else, and only the disk is strict.
    double probation = 0;
    std::optional<disk_choice> disk;
    objective wanted = objective::requests;
    /// Sketches, filter and limits are not those of a proxy of that size but as large as the trace
    /// wants them: for small caches that stand for large ones.
    bool scaled = false;
    /// "remember": {"objects": N}; 0: "auto". Not of scaled setups.
    std::uint64_t remember_objects = 0;
    bool remembers_automatically = false;  ///< scaled: "remember": "auto", else all of the trace
    /// Scaled: what admission remembers takes room from the size of one tier.
    bool counts_overhead = false;
    bool operator==(const setup&) const = default;
};

/// What is known of a trace when a model is made.
struct trace_scale {
    std::uint64_t objects = 0;  ///< which the filter remembers
    std::uint64_t unique_bytes = 0;
    /// What one unit of the trace's sizes stands for where it is weighed against memory: 1, or more
    /// for traces without sizes.
    std::uint64_t unit = 1;
    /// The share of keys that are played, each with all its requests. Sizes stay those of the whole.
    double sample = 1;
};

/// For objects of unknown size, whose sizes in the trace are all 1.
inline constexpr std::uint64_t unit_of_unknown = 16u << 10;

/// How many keys the filter of a scaled setup remembers: all of the trace's, and with a disk at
/// most what the proxy would give it room for by itself ("remember": "auto"), or the filter of a
/// small cache would leave no room for objects.
[[nodiscard]] std::uint64_t keys_remembered(const setup& wanted, const trace_scale& scale);

/// The proxy's, for an objective.
[[nodiscard]] double exponent_of(objective wanted) noexcept;
[[nodiscard]] bool goes_by_wait(objective wanted) noexcept;
/// As it is set.
[[nodiscard]] config::caching_objective setting_of(objective wanted) noexcept;

/// gdsf and lfu-da count by `frequencies`, where given.
[[nodiscard]] std::unique_ptr<proxy::cache::eviction_policy> make_policy(
    const setup& wanted,
    std::uint64_t capacity_bytes,
    const proxy::cache::frequency_sketch* frequencies);

[[nodiscard]] std::unique_ptr<model> make_model(const setup& wanted, const trace_scale& scale);

}  // namespace reprise::replay
