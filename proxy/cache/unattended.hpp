#pragma once
// How many fetches go on though no client waits for them: one client's, and all together.
//
// A fetch that somebody waits for costs its client a connection here, and those are bounded. One that nobody
// waits for (what was sent stale is validated behind its client's back; what is left of a body that its client
// has already, or left) costs its client nothing: it asks for the next at once. But it holds a descriptor for
// as long as its origin lets it wait, and what bounds connections to one origin is none to a client that
// names one after another. So each has a permit, from when it has no reader to its end, whoever may join it
// meanwhile. Where there is none left it is not begun, or given up.

#include "proxy/base/recycled.hpp"
#include "proxy/net/address.hpp"

#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace reprise::proxy::cache {

/// In fetches, over all threads.
struct unattended_bounds {
    unsigned of_one = 128;    ///< client's
    unsigned of_all = 2'500;  ///< clients', and of those who speak for many
};

class unattended_fetches;

/// One fetch's place among them, given back when this ends. Empty: it has none.
class unattended_permit {
public:
    unattended_permit() = default;
    unattended_permit(unattended_permit&& other) noexcept
        : of_{std::exchange(other.of_, nullptr)},
          whose_{other.whose_} {}
    unattended_permit& operator=(unattended_permit&& other) noexcept {
        std::swap(of_, other.of_);
        std::swap(whose_, other.whose_);
        return *this;
    }
    ~unattended_permit();

    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    friend class unattended_fetches;
    unattended_permit(unattended_fetches& of, const net::share_holder& whose) noexcept
        : of_{&of},
          whose_{whose} {}

    unattended_fetches* of_ = nullptr;
    net::share_holder whose_;
};

/// Outlives its permits.
///
/// Threads   any: one short lock, with which no other is taken.
/// Memory    a count for each client that has some now.
class unattended_fetches {
public:
    /// One more for `whose`; none: it counts among all alone. Empty, and nothing is counted, where either
    /// bound is reached, or there is no memory to count it in. O(1).
    [[nodiscard]] unattended_permit enter(const net::share_holder& whose,
                                          const unattended_bounds& most) noexcept;
    /// There are so many now.
    [[nodiscard]] std::size_t size() const;

private:
    friend class unattended_permit;
    // With guard_ held.
    [[nodiscard]] bool count(const net::address_bytes& client, unsigned most) noexcept;
    void leave(const net::share_holder& whose) noexcept;

    using entry = std::pair<const net::address_bytes, unsigned>;
    mutable std::mutex guard_;
    std::unordered_map<net::address_bytes,
                       unsigned,
                       net::address_hash,
                       std::equal_to<>,
                       recycled<entry>>
        by_client_;  // no count in it is 0
    std::size_t all_ = 0;
};

}  // namespace reprise::proxy::cache
