#pragma once
// A node whose one client is a sibling of it, or another site, and what such a one asks and lends.

#include "proxy/peer/peer_book.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace reprise::proxy::serve::test {

/// The fields of a sibling's question.
inline const std::string for_siblings = "Cache-Control: only-if-cached\r\n";
/// Beside them: it waits behind a 102.
inline const std::string and_waits = "Connection: Reprise-Waits\r\nReprise-Waits: ?1\r\n";
/// And what it hears then.
inline const std::string at_work = "HTTP/1.1 102 Processing\r\n\r\n";
/// The fields of another site's question.
inline const std::string for_site = for_siblings +
                                    "Connection: Reprise-Site\r\nReprise-Site: ?1\r\n";

inline reprise::config::options with_a_sibling(std::uint64_t max_object = 1u << 20) {
    auto out = fetch::test::with_memory(max_object);
    reprise::config::peer_options other;
    other.name = "b";
    other.url = "http://127.0.0.1:9";
    out.peers.push_back(other);
    return out;
}

/// Another site may ask it for what its siblings hold.
inline reprise::config::options as_gateway() {
    auto out = with_a_sibling();
    reprise::config::network guests;
    guests.address = net::canonical(asio::ip::make_address("127.0.0.1"));
    guests.prefix_bits = 128;
    out.peering.gateway_for = {guests};
    return out;
}

struct sibling_bench : bench {
    explicit sibling_bench(const reprise::config::options& options = with_a_sibling())
        : bench{options} {
        auto book = std::make_shared<peer::peer_book>();
        book->addresses.push_back({who.ip(), false});
        at.w.peers->book = std::move(book);
    }
    /// Its client is nobody that is known.
    void knows_nobody() { at.w.peers->book = std::make_shared<peer::peer_book>(); }

    [[nodiscard]] std::uint64_t of_siblings(outcome how) const {
        return at.w.counts.requests_of_siblings[static_cast<std::size_t>(how)].read();
    }
    /// What stands behind the 102.
    [[nodiscard]] heard said_then() const {
        REQUIRE(sink.sent.starts_with(at_work));
        return heard{std::string_view{sink.sent}.substr(at_work.size())};
    }
};

/// The head of what a sibling had stored, and sends now.
inline void lend_head(arrival& to, const std::string& status_and_fields) {
    to.text = "HTTP/1.1 " + status_and_fields + "\r\n";
    auto& came = to.came;
    REQUIRE(http::parse_response_head(to.text, came.head, {}).state == http::head_state::done);
    came.framing = *http::response_framing(came.head, to.order->request->head.method);
    came.requested = came.came = wall_now();
    came.resident_requested = came.resident_came = resident_now();
    came.by = fetch::word_of::sibling;
    const auto made = fetch::head_for_readers(came, *to.order, "me");
    made->fed_by_sibling = made->from_sibling = true;
    to.kept.judge(*made, came);
    to.published = made;
    to.kept.is_known_to(made, to.order->into->producer_head(made));
}

}  // namespace reprise::proxy::serve::test
