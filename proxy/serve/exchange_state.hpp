#pragma once
// What the answers to one request share: the request, what the store has for it, and the reply.

#include "proxy/cache/verdict.hpp"
#include "proxy/fetch/request.hpp"
#include "proxy/fetch/upload.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/serve/answer.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/serve/reply.hpp"
#include "proxy/serve/request.hpp"
#include "proxy/serve/sequel.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>
#include <string_view>

namespace reprise::proxy::serve {

/// How much of a body is handed to the kernel at once.
inline constexpr std::size_t body_batch = 128u << 10;

struct exchange_state {
    /// `by.memory.head` is parsed from the first head.bytes of the client's input.
    exchange_state(const lent& by, steady_time begun_at);
    exchange_state(const exchange_state&) = delete;
    exchange_state& operator=(const exchange_state&) = delete;

    thread::worker& w;
    const client_identity& client;
    net::client_stream& stream;  ///< for what reads the client's bytes; the rest sends by `out`
    scratch& memory;
    const thread::settings_ptr settings;
    const steady_time started;
    const request& asked = asked_;  ///< judged by read_request(), and then as it is
    cache::lookup_result stored;    ///< what the store has for it
    cache::verdict verdict;         ///< what that is good for
    wall_time judged_at{};          ///< when that was judged, resident time
    cache::stored_ptr sending;      ///< the stored response that is the answer
    ledger book;
    reply out;
    std::shared_ptr<fetch::upload> upload;  ///< once somebody takes its body
    std::unique_ptr<sequel>& becomes;       ///< the connection, behind this request

    [[nodiscard]] const config::listener& listener() const {
        return settings->options.listeners[client.listener];
    }
    /// A Squid asks with only-if-cached: told 504 it asks the origin itself, any other refusal it
    /// hands on to its client.
    [[nodiscard]] bool is_squids_question() const noexcept;
    /// Another Reprise asks with only-if-cached, by the address that it comes from.
    [[nodiscard]] bool is_siblings_question() const noexcept;
    /// Another site asks, with only-if-cached, for what this gateway's siblings hold (peer/reach.hpp).
    [[nodiscard]] bool is_sites_question() const noexcept;
    /// A sibling asks for what belongs here (peer/homes.hpp): its client waits, and no other home is
    /// asked.
    [[nodiscard]] bool is_handed_on() const noexcept;
    /// Its connection is one client's, which asks by a proxy, and knows it: what it logs in at an origin is
    /// its own (connection_logins.hpp).
    [[nodiscard]] bool keeps_logins_apart() const;
    /// What the client sends is seen by nobody between: by TLS, or from this machine (which nothing shows
    /// of what came by a front).
    [[nodiscard]] bool is_unseen() const;
    /// The client's connection has TLS, whatever its listener is set to since.
    [[nodiscard]] bool is_encrypted() const { return stream.socket().is_encrypted(); }
    /// Until then nothing is known of `asked` but its head, which loses its hop-by-hop fields.
    void read_request();
    /// The bytes of the head leave the client's input, which is free for the body or the next
    /// request.
    void consume_head();
    [[nodiscard]] std::size_t unconsumed() const noexcept { return head_bytes_.size(); }
    /// What goes to the client from now on is its share of limits.client_rate: by the name in `book`, else
    /// by address. Peers and fronts, which are no one client, have none.
    /// @pre limits.client_rate is set, and nothing of the answer has been sent
    void limit_client();
    /// A copy of the request that outlives the exchange, made once; `asked` views it from then on.
    [[nodiscard]] const std::shared_ptr<const fetch::request_copy>& copy();
    /// copy(), and what parsing took is given back: before waits that are long and many.
    void copy_and_shrink();
    /// The request goes on without its exchange, whose ledger is closed by what this gives.
    [[nodiscard]] parted_request_ptr part();

private:
    [[nodiscard]] bool is_one_clients() const;
    void note_login();

    client_identity& client_;
    reply_sink& sink_;
    request asked_;
    std::string_view head_bytes_;  // in the client's input; empty: consumed
    std::shared_ptr<const fetch::request_copy> copy_;
};

}  // namespace reprise::proxy::serve
