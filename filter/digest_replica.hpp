#pragma once
// A digest that is kept up by news: its bits turn where they lie, so that a piece of news costs what
// it says and not all bits.

#include "filter/digest.hpp"
#include "filter/digest_wire.hpp"
#include "filter/news_wire.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace reprise::filter {

/// Memory    the digest's.
/// Threads   one is its owner's, which alone calls what is not const, and now(). read: any, which
///           waits while the owner changes something, and changes nothing itself. The words of
///           now() may be read by any thread, each as an atomic (digest_set does): bits turn one
///           by one.
class digest_replica {
public:
    explicit digest_replica(digest whole) : now_{std::move(whole)} {}
    digest_replica(const digest_replica&) = delete;
    digest_replica& operator=(const digest_replica&) = delete;

    /// As it is. Its checksum, and if blocked its rate, are those before the last news.
    [[nodiscard]] const digest& now() const noexcept { return now_; }

    /// What `look` makes of now(), whose bits stay as they are meanwhile.
    template <class Look>
    auto read(Look&& look) const {
        const std::scoped_lock lock{guard_};
        return look(now_);
    }

    /// now(), with the checksum and the rate of its bits. O(bits) after news.
    [[nodiscard]] const digest& settled();

    /// place_sum of its bits. O(bits on) the first time.
    [[nodiscard]] std::uint64_t sum();

    /// What whoever reads waits for, taken without waiting for them, for apply(). Empty: somebody reads, or
    /// apply() would first look at all bits.
    using hold = std::unique_lock<std::mutex>;
    [[nodiscard]] hold try_hold() { return summed_ ? hold{guard_, std::try_to_lock} : hold{}; }

    /// Turns what `news` says, and tells which places that were, in its order. Otherwise
    /// nothing has changed, whatever the bytes; the reasons are digest_wire's, and `corrupt` where
    /// both sides had come to differ: ask for the whole. O(news), but for the first sum(). Waits for those
    /// who read, unless it is given try_hold()'s.
    /// @throws std::bad_alloc, and then nothing has changed
    [[nodiscard]] boost::system::result<std::vector<std::uint64_t>> apply(
        std::span<const std::byte> news,
        const key_by_name& key_of,
        const digest_limits& limits = {},
        hold held = {});

private:
    [[nodiscard]] boost::system::error_code turn_all(std::span<const std::byte> body,
                                                     const digest_head& head,
                                                     const key_by_name& key_of,
                                                     std::vector<std::uint64_t>& turned);
    void turn(std::uint64_t place) noexcept;
    [[nodiscard]] bool is_on(std::uint64_t place) const noexcept;

    mutable std::mutex guard_;
    digest now_;
    bool settled_ = true;
    bool summed_ = false;
    std::uint64_t sum_ = 0;
};

}  // namespace reprise::filter
