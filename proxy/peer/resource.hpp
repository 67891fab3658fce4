#pragma once
// The digests as HTTP resources of the proxy itself: a request's facts in, an answer out.
//
//     /.well-known/reprise/digest                what is stored here
//     /.well-known/reprise/seen                  what was asked for here lately
//     /.well-known/reprise/members               what this node's siblings hold, of a gateway
//     /.well-known/reprise/figures               what is known of the fleet's nodes (FLEET.md)
//     /squid-internal-periodic/store_digest      the first, in Squid's format
//     /squid-internal-dynamic/netdb              Squid asks; there is none
//
// All in origin-form, on forward listeners. The first four want a peer of the settings and, where
// there is a secret, its signature; Squid's wants a listed Squid. Everybody else gets 403, and in a
// line of text the address that it is seen by, or what is wrong with its signature: where a sibling
// is refused its log says why, and which address is missing in whose settings.
//
// A peer is also a proxy: what its clients ask comes from its address too. Its own question for a
// digest can be told from what it passes on. A Reprise's has no Via, no Forwarded and no
// X-Forwarded-For, and what any forward listener of ours passes on has a Via, whoever signed it:
// what was overheard and not yet delivered is not told to whoever sends it by way of the signer.
// Where there is a secret the other two are not looked at, since what takes TLS off in front of a
// node writes them. A Squid's has at most one Via, its own with "(squid" in its comment, and an
// X-Forwarded-For that names nobody ("::"). Bytes in a tunnel cannot be told: nobody's CONNECT leads
// to a peer (serve/far_end.cpp).
//
//     If-None-Match: "<generation>"   304 when that is the newest
//     ?since=<generation>             a delta, where it is known from there and shorter; else whole
//     ?since=<generation>&wait=<n>    news of what changed since, as soon as there is any, or 304 after
//                                     n seconds (30 at most); else the same. Such an answer has the
//                                     field Reprise-News. Where peering.news is 0 `wait` is nothing.
//     ?wait=<n>                       the whole, of a generation from which news goes on
//     ?since=…&seen=<generation>&wait=<n>   of the first: the same, and news of the second behind it in one
//                                     body, as soon as there is either. Where the digest itself must be waited
//                                     for, it is waited for. An answer has Reprise-Seen: how many bytes of the
//                                     body are of the second (0: none), or "ask" where no news leads from there,
//                                     and /seen is to be asked. So has one without `seen`, with `wait`, where
//                                     what was seen is shared.
//
// None of these is anything to the figures, which are new each time.
//
// Pure: no socket, no clock, no random number; but what is handed out is noted as fetched. An asker that has to wait is told so,
// and comes again. An answer holds the bytes that are sent, and nothing else of their generation, which is several times as
// much: it may be read slowly, while many generations come and go.

#include "proxy/base/clock.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/peer/news_shelf.hpp"
#include "proxy/peer/publication.hpp"
#include "proxy/peer/signature.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::peer {

inline constexpr std::string_view digest_path = "/.well-known/reprise/digest";
inline constexpr std::string_view seen_path = "/.well-known/reprise/seen";
inline constexpr std::string_view members_path = "/.well-known/reprise/members";
inline constexpr std::string_view figures_path = "/.well-known/reprise/figures";
inline constexpr std::string_view squid_digest_path = "/squid-internal-periodic/store_digest";
inline constexpr std::string_view squid_netdb_path = "/squid-internal-dynamic/netdb";
/// The field that says that this node answers to `wait`, and how many seconds it waits at most.
inline constexpr std::string_view news_field = "Reprise-News";
/// And how much of the answer is news of what was seen; or seen_ask.
inline constexpr std::string_view seen_field = "Reprise-Seen";
inline constexpr std::string_view seen_ask = "ask";
inline constexpr std::chrono::seconds longest_news_wait{30};

enum class resource : std::uint8_t {
    none,
    digest,
    seen,
    members,
    figures,
    squid_digest,
    squid_netdb
};
/// Which resource an origin-form target names; its query is not considered.
[[nodiscard]] resource resource_at(std::string_view target) noexcept;
/// Whether it is for Reprises alone, which sign for it where there is a secret.
[[nodiscard]] constexpr bool is_for_reprises(resource which) noexcept {
    return which == resource::digest || which == resource::seen || which == resource::members ||
           which == resource::figures;
}

/// How a peer's own question looks.
enum class asks_as : std::uint8_t { reprise, signing_reprise, squid };
/// Whether a forward proxy passed `request` on for a client, or may have: false only if it looks as
/// a Reprise, or a Squid, asks for itself (above).
[[nodiscard]] bool was_passed_on(const http::request_head& request, asks_as whom) noexcept;

/// Who asks, as the caller knows it.
struct asker {
    bool is_reprise = false;  ///< its address is that of a peer with protocol "reprise"
    bool is_squid = false;    ///< or "squid"
    bool signing = false;     ///< a secret is set: `signature` must be good
    signature_verdict signature = signature_verdict::missing;
    std::string signer{};   ///< the name that it signed with; empty: not known for sure
    std::string address{};  ///< as text
};

/// What there is to hand out; null: not served, or not yet.
struct offered {
    std::shared_ptr<const published> digest;
    std::shared_ptr<const published> seen;
    std::shared_ptr<const published> members{};
    bool serves_members = false;  ///< it is a gateway
    wire_bytes squid;
    wall_time squid_at{};                ///< when it came to be these bytes, in whole seconds
    std::chrono::seconds squid_for{30};  ///< and for how long they count
    bool serves_squid = false;
    std::string_view node;  ///< this instance's pseudonym
    /// News of what changes in them; null: `wait` is not heeded.
    news_shelf* digest_news = nullptr;
    news_shelf* seen_news = nullptr;
    news_shelf* members_news = nullptr;
    bool waited = false;  ///< for as long as it may: the answer is what there is
    /// The fleet's figures, made for whoever may have them; empty: not served.
    std::function<wire_bytes()> figures{};
};

/// Why there is no digest in an answer, and what is in it, as counted.
enum class answered : std::uint8_t {
    whole,
    delta,
    not_modified,
    not_a_peer,    ///< 403: not an address of the settings
    not_signed,    ///< 403: no good signature
    no_resource,   ///< 404: not served here; netdb
    not_ready,     ///< 503: the index is still loading, or nothing was published yet
    wrong_method,  ///< 405
    news,
    bad_question,  ///< 400: a `wait` that is no number
    waiting,       ///< no answer yet: to be asked again when there is something new
};
inline constexpr std::size_t answered_count = 10;  // those that are answers
[[nodiscard]] std::string_view to_string(answered what) noexcept;

/// Why `who` is refused, for people; empty: it is not.
[[nodiscard]] std::string refusal_of(answered what, const asker& who);

struct resource_answer {
    answered what = answered::no_resource;
    unsigned status = 404;
    std::string head;  ///< whole, empty line included
    std::string text;  ///< the body of a refusal, and then there is no other
    wire_bytes body;   ///< null: none
    wire_bytes seen;   ///< behind it: news of what was seen; null: none
    /// Squids up to at least 7.6 garble a mask that comes in one read with its control block: send
    /// head and so many bytes of the body, wait, then the rest. 0: all at once.
    std::size_t first = 0;
    std::chrono::milliseconds pause{0};
    /// waiting: for how long at most, and what it holds (none: it wants the whole).
    std::chrono::seconds wait{0};
    std::optional<filter::digest_generation> since;
    std::optional<filter::digest_generation> seen_since;  ///< none: it does not wait for that

    [[nodiscard]] std::size_t bytes() const noexcept {
        return head.size() + text.size() + (body ? body->size() : 0) + (seen ? seen->size() : 0);
    }
};

/// The answer to a GET or HEAD of one of the resources. Total. O(head), no copy of a digest. To wait
/// is for a GET with `wait` alone. What the peer will hold once it is sent is `fetched` from now on.
[[nodiscard]] resource_answer answer(const http::request_head& request,
                                     const asker& who,
                                     const offered& what,
                                     bool close,
                                     wall_time now);

}  // namespace reprise::proxy::peer
