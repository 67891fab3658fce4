#pragma once
// Who asks whom: a request for a digest is signed with the fleet's secret, by RFC 9421 (HTTP Message
// Signatures). Its signature has the tag "reprise-peer", whatever its label, and says
//
//     Reprise-Node: cache-a                       who asks: the signer's name in Via
//     Reprise-To: 192.0.2.7:3128                  whom: the far end of the signer's connection
//     Signature-Input: reprise=("@method" "@authority" "@path" "@query" "reprise-node"
//         "reprise-to");created=1763668089;expires=1763668149;nonce="<32 hex digits>";
//         alg="hmac-sha256";keyid="<32 hex digits>";tag="reprise-peer"
//     Signature: reprise=:<base64 of the HMAC-SHA256 (3.3.3)>:
//
// What it has to cover is all of the above (2.2.1, 2.2.3, 2.2.6, 2.2.7, 2.1), in any order, and may
// be more; all six parameters (2.3) must be there, expires at most a window behind created. keyid is
// the public name of the fleet's hash key, which digests carry too (filter/seed_id.hpp): it tells
// two secrets apart and tells nothing of either.
//
// A receiver takes what is signed for itself alone. What is overheard can be sent again only until
// it expires; then its nonce is known already where it was sent to, and anywhere else Reprise-To is
// not that of the connection it comes by. Where addresses are translated in between (NAT, a
// published port, a TLS terminator) a node can't tell by addresses that it was meant: there the
// request's Host must be the name that this node goes by (forwarding.pseudonym), with or without a
// port. A signer leaves the scheme's own port out of Host (2.2.3), so that a receiver behind a TLS
// terminator, which does not know the scheme, makes the same of it.
//
// Before RFC 9421 a request was signed by a field of our own, which is still taken and never sent:
//
//     Reprise-Signature: v=2;t=1763668089;n=<32 hex digits>;d=192.0.2.7:3128;s=<64 hex digits>
//
// It holds the HMAC-SHA256, by a key of its own, of version, method, target, Host, time, nonce and
// destination, each on a line. This release takes it from nodes that know nothing else: such a node
// is told our digest, and refuses our questions until it is upgraded. The next release takes RFC 9421
// alone: what has `old` in its name goes then, here and in secret.hpp.
//
// Nobody is talked into the old field. Where a signature by RFC 9421 is there, or a Signature-Input
// that can't be read, the old field is not looked at. Where RFC 9421's fields are taken away nothing
// is left, since a signer sends no other, after a refusal neither; and to make the old field takes
// the secret. An earlier node may send both with one nonce: they bind one request to one receiver and
// moment, and one memory of nonces serves both, so that each without the other is still that one
// request. What is lost with the better one is the signer's name: the
// old field does not cover Reprise-Node, by which a sibling's open questions are told apart.
//
// It shows who asked whom, and protects nothing of the answer: that is TLS's (TRUST.md).

#include "proxy/base/clock.hpp"
#include "proxy/http/message_signature.hpp"
#include "proxy/peer/secret.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace reprise::proxy::peer {

inline constexpr std::string_view signature_tag = "reprise-peer";
inline constexpr std::string_view to_field = "Reprise-To";
inline constexpr std::string_view old_signature_field = "Reprise-Signature";
/// The field that says which instance asks, or answers: one that finds itself by DNS knows it so.
inline constexpr std::string_view node_field = "Reprise-Node";

/// Who signs, and for whom.
struct parties {
    std::string_view from;  ///< the signer's name in Via
    std::string_view to;    ///< the other end of its connection (endpoint_text)
};

/// By what the receiver of a request knows that it was meant.
struct receiver {
    std::string_view endpoint;  ///< its end of the connection (endpoint_text)
    std::string_view name;      ///< what it goes by, where addresses are translated; empty: nothing
};

using nonce = std::array<std::byte, 16>;

/// One asker's nonces: no two are alike, nor like those of another, which begins at another random
/// number. They need not be unforeseeable: without the secret nobody can use one. Threads: one.
class nonces {
public:
    explicit nonces(const std::function<std::uint64_t()>& random)
        : next_{random()},
          own_{random()} {}
    [[nodiscard]] nonce take() noexcept;

private:
    std::uint64_t next_, own_;
};

/// The field lines that sign a request, CRLFs included. `request`'s own fields are not looked at.
/// @pre secret.has_file(); `fresh` is used for no other request
[[nodiscard]] std::string sign(const fleet_secret& secret,
                               const http::signed_request& request,
                               const parties& who,
                               wall_time now,
                               const nonce& fresh);

enum class signature_verdict : std::uint8_t {
    good,
    missing,
    malformed,     ///< not as above, or it covers too little
    other_secret,  ///< its keyid is of another secret, if it says the truth
    wrong,         ///< another secret, or another request
    elsewhere,     ///< meant for another node
    out_of_time,  ///< signed too long ago, before this start, or in the future: clocks differ; or it may
                  ///< have been taken, by a clock that was set back since
    replayed,
    too_many,  ///< more good signatures within the window than are remembered
};
[[nodiscard]] std::string_view to_string(signature_verdict verdict) noexcept;

struct judged_signature {
    signature_verdict what = signature_verdict::missing;
    /// Who signed, a view of the request: told only by RFC 9421's, and only by one that is at least
    /// the secret's (`elsewhere` and behind it, and `good`).
    std::string_view signer{};
};

/// Clocks    times in signatures are wall time, which may be set. A nonce is remembered until wall time is past
///           its signature. A clock set back brings into time again what is forgotten: that is refused for
///           two windows of steady time since it was forgotten, and what was created before the start for
///           two since then; later no clock that went on brings either into time. So nothing is taken
///           twice where a clock is set back by two windows at most, and nothing of before the start
///           where it is by one. Where it is set back by more, what it took is taken once more when
///           it is in time again; and so is, of before the start, what a clock finds that was
///           behind then and is set right.
/// Memory    at most most_nonces nonces of the last two windows, and of those that lie ahead of a clock that
///           was set back, 80 bytes each. Filling it takes the secret: 256 siblings that ask eight times
///           a second fill half of it.
/// Threads   any number; a short lock for what is signed well.
class signature_checker {
public:
    static constexpr std::size_t most_nonces = 1 << 18;

    /// One moment by both clocks.
    struct moment {
        wall_time wall;
        steady_time steady;
    };

    /// `start`: nonces of what was signed before are not known; it is refused. None: nothing was.
    /// @pre secret.has_file()
    explicit signature_checker(fleet_secret secret,
                               std::optional<moment> start = {},
                               std::chrono::seconds window = std::chrono::seconds{60},
                               std::size_t most = most_nonces);

    /// Judges and, when good, remembers the nonce. The comparison takes the same time wherever two
    /// signatures differ. `now`, `steady`: the same moment; O(log nonces).
    [[nodiscard]] judged_signature check(const http::signed_request& request,
                                         const receiver& here,
                                         wall_time now,
                                         steady_time steady = steady_now());

private:
    struct hash_of_nonce {
        std::size_t operator()(const nonce& one) const noexcept;
    };
    struct remembered {
        std::int64_t created;  // seconds since 1970; until a window later, that second too
        nonce one;
    };
    struct created_later {
        [[nodiscard]] bool operator()(const remembered& a, const remembered& b) const noexcept {
            return a.created > b.created;
        }
    };
    struct claim;

    [[nodiscard]] signature_verdict read(const http::signed_request& request, claim& out) const;
    [[nodiscard]] signature_verdict read_old(const http::signed_request& request, claim& out) const;
    [[nodiscard]] signature_verdict judge(const claim& said,
                                          const receiver& here,
                                          wall_time now,
                                          steady_time steady);
    void forget_what_is_past(std::int64_t second, steady_time steady);
    [[nodiscard]] bool may_have_been_taken(const claim& said, steady_time steady) const;

    fleet_secret secret_;
    const std::string key_id_;
    std::int64_t window_;  // in seconds
    std::size_t most_;
    std::mutex guard_;
    std::unordered_set<nonce, hash_of_nonce> seen_;
    // The one that is created first on top: in a clock that is set back those of now go before those
    // that were there.
    std::priority_queue<remembered, std::vector<remembered>, created_later> order_;
    // Nonces of what was created by then are forgotten, or never were known. While the clock goes forward
    // nothing so old is in time; where it is set back that is refused until forgotten_until_.
    std::int64_t forgotten_ = 0;
    steady_time forgotten_until_ = steady_time::min();
};

}  // namespace reprise::proxy::peer
