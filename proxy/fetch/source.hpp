#pragma once
// Whom a response comes from: the connection, the head that came on it, and who is at its far end.

#include "proxy/fetch/received.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/parents.hpp"
#include "proxy/peer/peer_book.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace reprise::proxy::fetch {

struct source {
    net::origin_lease lease;  ///< empty: none is in hand
    received came;
    bool any_byte = false;  ///< of the response has come

    /// The sibling whose answer it is; null: it is none's.
    std::shared_ptr<const peer::known_peer> sibling;
    unsigned sibling_slot = 0;
    std::chrono::microseconds sibling_took{0};
    std::uint64_t sibling_bytes = 0;  ///< sent and received before its body

    /// The sibling that the URL belongs to is asked in the origin's place, and must say by then that
    /// it is at work; none: it is another source.
    std::optional<steady_time> home_by;

    /// What the parent or home in hand is to find out of itself (way_out).
    peer::trial on_trial;

    /// A peer that may itself be waiting for what it passes on: the URL's home, or a sibling whose own
    /// fetch was joined. That it is silent may be its origin's doing, so it is asked whether it lives
    /// (upstream::far_end_lives). Null: who is silent is at fault.
    std::shared_ptr<const peer::known_peer> waits_too;
    unsigned waits_too_slot = 0;

    /// Where it breaks off another source may go on: what readers have of it is remembered.
    [[nodiscard]] bool may_be_replaced() const noexcept {
        return sibling != nullptr || home_by.has_value();
    }
    /// Something stands behind the first `answered` bytes: it is no answer to anything.
    [[nodiscard]] bool has_surplus(std::size_t answered) noexcept {
        return came.framing.kind != http::body_kind::until_close &&
               lease.buffer().size() > answered;
    }
};

}  // namespace reprise::proxy::fetch
