#pragma once
// A stored body that is not in memory: read piece by piece, from any offset.

#include "proxy/cache/body.hpp"
#include "proxy/net/wakeup.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace reprise::proxy::cache {

/// One reply's place in a body. Made and used on one event loop; destroyed at any time.
class disk_body_reader {
public:
    enum class read_result : std::uint8_t {
        data,     ///< `into` has the next bytes, at least one; they stay valid as long as kept
        waiting,  ///< the sleeper is notified when it is worth asking again
        lost,     ///< damaged or evicted from here on: the holder may forget it
        refused,  ///< can't be read now, by a failure or for want of time: it may be there yet
    };
    virtual ~disk_body_reader() = default;
    /// The next bytes before `end`, at most `most`, verified. @pre offset() < end
    [[nodiscard]] virtual read_result next(std::uint64_t end,
                                           std::size_t most,
                                           std::vector<slice>& into) = 0;
    /// The client does not take what next() gave: nothing is held for it but that, and from then on little is read at a
    /// time, until it has taken a good deal without this being said again. For one that holds nothing there is
    /// nothing to do.
    virtual void client_lags() noexcept {}
    [[nodiscard]] virtual std::uint64_t offset() const noexcept = 0;
};

/// Immutable; shared by the responses that were made of one look-up.
class disk_body {
public:
    virtual ~disk_body() = default;
    [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
    [[nodiscard]] virtual std::unique_ptr<disk_body_reader> read_from(
        std::uint64_t offset, net::wakeup::signal sleeper) const = 0;
};

}  // namespace reprise::proxy::cache
