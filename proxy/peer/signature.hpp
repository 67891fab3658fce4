#pragma once
// Who asks whom: a request for a digest is signed with the fleet's secret.
//
// The field Reprise-Signature says when it was signed, a nonce, the address and port that its
// sender is connected to, and the HMAC-SHA256 of version, method, target, Host, time, nonce and
// that destination, each on a line:
//
//     Reprise-Signature: v=2;t=1763668089;n=<32 hex digits>;d=192.0.2.7:3128;s=<64 hex digits>
//
// None of the parts can hold a line end, so no two requests have one text. What is overheard can be
// sent again only within the window of time; then the nonce is known already where it was sent to,
// and anywhere else the destination is not that of the connection it comes by. Where addresses are
// translated in between (NAT, a published port, a TLS terminator) a node can't tell by addresses
// that it was meant: there the request's Host must be the name that this node goes by
// (forwarding.pseudonym), with or without a port.
//
// It shows who asked whom, and protects nothing of the answer: that is TLS's.

#include "proxy/base/clock.hpp"
#include "proxy/peer/secret.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>

namespace reprise::proxy::peer {

inline constexpr std::string_view signature_field = "Reprise-Signature";

/// As they stand on the wire.
struct signed_parts {
    std::string_view method, target, host;
};

/// By what the receiver of a request knows that it was meant.
struct receiver {
    std::string_view endpoint;  ///< its end of the connection (endpoint_text)
    std::string_view name;      ///< what it goes by, where addresses are translated; empty: nothing
};

using nonce = std::array<std::byte, 16>;

/// The field's value. `destination`: the other end of the connection (endpoint_text).
/// @pre secret.has_file(); `fresh` is random, used for no other request
[[nodiscard]] std::string sign(const fleet_secret& secret,
                               const signed_parts& parts,
                               std::string_view destination,
                               wall_time now,
                               const nonce& fresh);

enum class signature_verdict : std::uint8_t {
    good,
    missing,
    malformed,
    wrong,        ///< another secret, or another request
    elsewhere,    ///< meant for another node
    out_of_time,  ///< signed too long ago, before this start, or in the future: clocks differ
    replayed,
    too_many,  ///< more good signatures within the window than are remembered
};
[[nodiscard]] std::string_view to_string(signature_verdict verdict) noexcept;

/// Memory    at most most_nonces nonces of the last two windows, 80 bytes each. Filling it takes
///           the secret.
/// Threads   any number; a short lock for what is signed well.
class signature_checker {
public:
    static constexpr std::size_t most_nonces = 1 << 16;

    /// `since`: nonces of what was signed before are not known; it is refused.
    /// @pre secret.has_file()
    explicit signature_checker(fleet_secret secret,
                               wall_time since = {},
                               std::chrono::seconds window = std::chrono::seconds{60},
                               std::size_t most = most_nonces);

    /// Judges and, when good, remembers the nonce. `value` is the field's, empty for none. The
    /// comparison takes the same time wherever two signatures differ.
    [[nodiscard]] signature_verdict check(const signed_parts& parts,
                                          const receiver& here,
                                          std::string_view value,
                                          wall_time now);

private:
    struct hash_of_nonce {
        std::size_t operator()(const nonce& one) const noexcept;
    };
    struct remembered {
        wall_time until;
        nonce one;
    };

    fleet_secret secret_;
    wall_time since_;
    std::chrono::seconds window_;
    std::size_t most_;
    std::mutex guard_;
    std::unordered_set<nonce, hash_of_nonce> seen_;
    std::deque<remembered> order_;  // oldest first; one goes when it and all before it are past
};

}  // namespace reprise::proxy::peer
