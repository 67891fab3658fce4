#pragma once
// A digest as it is handed out: the newest generation whole, and as the change from the few
// generations before it that some peer holds.
//
// All wire forms are made when a generation is published, so that an answer is a pointer to bytes
// that are there. Kept for deltas are the last generations that somebody fetched, since a peer can
// only hold one of those; one that nobody fetched is dropped when the next comes.

#include "filter/digest.hpp"
#include "proxy/base/clock.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

using wire_bytes = std::shared_ptr<const std::vector<std::byte>>;

/// From one publication to the next at least, whatever changes and whoever wishes for a whole, but for the pace
/// of publish_after and a first one: a second more for each 2^24 bits, so that making wire forms stays below some per cent of one processor, and nobody who makes bits turn
/// can have wholes sent as fast as they can be made.
inline constexpr std::chrono::milliseconds least_publish_gap{1000};
[[nodiscard]] constexpr std::chrono::milliseconds publish_gap(
    std::uint64_t bits, std::chrono::milliseconds least = least_publish_gap) noexcept {
    return least + std::chrono::seconds{bits >> 24};
}

/// "<epoch>-<counter>", both in hexadecimal: what entity-tags hold and `since` asks for.
[[nodiscard]] std::string to_text(const filter::digest_generation& generation);
[[nodiscard]] std::optional<filter::digest_generation> parse_generation(std::string_view text);

/// One generation. Immutable but for `fetched`: any thread.
struct published {
    std::shared_ptr<const filter::digest> bits;
    wire_bytes whole;
    struct delta {
        std::uint64_t base = 0;  ///< counter, of the same epoch
        wire_bytes wire;
    };
    std::vector<delta> deltas;  ///< only such as are shorter than the whole
    std::string etag;           ///< quotes included
    wall_time at{};
    mutable std::atomic<bool> fetched{false};  ///< somebody holds it now: set when it is handed out

    /// The delta from `base`; null: none, send the whole.
    [[nodiscard]] wire_bytes since(const filter::digest_generation& base) const;
};

/// Memory    the bits of `keep` + 1 generations (2.4 bytes per key each at 1 %), the newest's whole
///           wire form (1.1 bytes per key), and its deltas.
/// Threads   publish: one at a time; now: any number, a short lock.
class publication {
public:
    explicit publication(std::size_t keep = 4) : keep_{keep} {}

    /// Makes the wire forms and puts them in place of the last. O(bits) for each generation kept:
    /// some 20 ms with a million keys at 1 %. Not on an event loop.
    /// @pre its counter is above that of the last one, or its epoch is another
    /// @throws std::bad_alloc, and then the last one stays
    void publish(filter::digest next, wall_time now);

    /// The newest; null before the first.
    [[nodiscard]] std::shared_ptr<const published> now() const;

    /// Publisher's thread only.
    [[nodiscard]] std::uint64_t bytes() const;

private:
    std::size_t keep_;
    std::deque<std::shared_ptr<const filter::digest>> bases_;  // somebody fetched, oldest first
    mutable std::mutex guard_;                                 // guards newest_ alone
    std::shared_ptr<const published> newest_;
};

}  // namespace reprise::proxy::peer
