#pragma once
// What messages between caches weigh, so that digests and ICP can be held against each other.
//
// On the wire. ICP (RFC 2186): a query is a head of 20 bytes, 4 bytes of requester's address and
// the URL; a reply is taken to be as long; each in a UDP datagram of its own over IPv4. HTTP: head
// and body in segments of a connection that stays open, with IPv4 and TCP heads (timestamps on) and
// an acknowledgement for every two segments.
//
// As the paper counts. Fan, Cao, Almeida, Broder, "Summary Cache", IEEE/ACM ToN 8(3), 2000, V.D: a
// query or reply is 20 bytes and a URL of 50; an update is 32 bytes and what changed. No IP, no
// HTTP. A digest's pull is then its body and 32 bytes, with 20 and the URL's 50 for who asks;
// a question to a sibling that has not got the object, a query and a reply.
//
// Header only: arithmetic.

#include <cstdint>

namespace reprise::fleet {

inline constexpr std::uint64_t paper_url = 50;

struct wire_cost {
    std::uint64_t url = paper_url;  ///< bytes

    static constexpr std::uint64_t udp_ip = 28, tcp_ip = 52, segment = 1448;
    /// A forwarded request's fields beside its URL, Host included; a 504's head and page: as our
    /// proxy sends them for a browser's request, rounded.
    static constexpr std::uint64_t question_fields = 300, refusal = 350;
    /// What makes a question one for a gateway's members: Reprise-Site, and that in Connection.
    static constexpr std::uint64_t site_fields = 44;

    /// A query, or a reply.
    [[nodiscard]] constexpr std::uint64_t icp_message() const noexcept {
        return 20 + 4 + url + udp_ip;
    }
    [[nodiscard]] static constexpr std::uint64_t icp_message_of_paper() noexcept {
        return 20 + paper_url;
    }
    /// So many bytes of HTTP in one direction.
    [[nodiscard]] static constexpr std::uint64_t one_way(std::uint64_t bytes) noexcept {
        const auto segments = (bytes + segment - 1) / segment;
        return bytes + (segments + (segments + 1) / 2) * tcp_ip;
    }
    /// A question with only-if-cached and the 504 to it.
    [[nodiscard]] constexpr std::uint64_t false_hit() const noexcept {
        return one_way(url + question_fields) + one_way(refusal);
    }
    [[nodiscard]] static constexpr std::uint64_t false_hit_of_paper() noexcept {
        return 2 * icp_message_of_paper();
    }
    [[nodiscard]] static constexpr std::uint64_t pull_of_paper(std::uint64_t body) noexcept {
        return icp_message_of_paper() + update_of_paper(body);
    }
    [[nodiscard]] static constexpr std::uint64_t update_of_paper(std::uint64_t body) noexcept {
        return 32 + body;
    }
};

}  // namespace reprise::fleet
