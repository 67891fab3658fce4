#pragma once
// Which keys brought a response that could not be stored, lately: hit-for-miss.
// Requests for such a key gain nothing by waiting for one another: when the head comes, each is
// released to a fetch of its own. Knowing it beforehand spares them the wait. What is remembered is
// a hint and nothing else: a request that goes alone may still store what it gets.
//
// Beside them, which keys brought a body too large for every store. Their requests may share a fetch
// as any others; what is known is for /explain, and for what is said to be admission's doing.
//
// A table of fixed size, one atomic word per slot: 28 bits of the key's hash, 4 of why, 32 of the
// second until which it holds (136 years). Two keys in one slot displace each other; a stranger that
// shares slot and tag (about one in 2^28) goes alone for nothing.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/http/storability.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace reprise::proxy::cache {

/// An error that may have passed by the next request. It says nothing of the key: a recovering
/// origin should not be asked by each client separately.
[[nodiscard]] bool is_passing(unsigned status) noexcept;

/// Whether a response that was not storable for this reason says that the key's next ones will not
/// be either. A reason that lies in the request does not; an error does only if it says so itself.
[[nodiscard]] bool speaks_for_next(http::storability verdict, unsigned status) noexcept;

/// Memory   512 KiB.
/// Threads  any number; one relaxed load or store per call.
class uncacheable_keys {
public:
    uncacheable_keys();

    /// The key's last response could not be stored, and why; holds for `for_long`.
    void note(const filter::key_hash& key,
              http::storability why,
              steady_time now,
              std::chrono::seconds for_long) noexcept;
    /// The key's last body was larger than what any store takes; for as long as with note().
    void note_too_large(const filter::key_hash& key,
                        steady_time now,
                        std::chrono::seconds for_long) noexcept;
    /// It could be stored after all, or is not too large.
    void forget(const filter::key_hash& key) noexcept;
    [[nodiscard]] bool has(const filter::key_hash& key, steady_time now) const noexcept {
        return why(key, now).has_value();
    }
    /// What was noted; none: nothing but its size, or it holds no longer.
    [[nodiscard]] std::optional<http::storability> why(const filter::key_hash& key,
                                                       steady_time now) const noexcept;
    [[nodiscard]] bool was_too_large(const filter::key_hash& key, steady_time now) const noexcept;

private:
    void put(const filter::key_hash& key,
             std::uint64_t why,
             steady_time now,
             std::chrono::seconds for_long) noexcept;
    [[nodiscard]] std::optional<std::uint64_t> noted(const filter::key_hash& key,
                                                     steady_time now) const noexcept;

    static constexpr std::size_t slot_count = std::size_t{1} << 16;
    std::unique_ptr<std::atomic<std::uint64_t>[]> slots_;
};

}  // namespace reprise::proxy::cache
