#pragma once
// Where an answer goes: one request's reply on its client's connection, HTTP/1.1's.
//
// An answer is composed of pieces, which are views, and sent: at once as far as the kernel takes
// it, the rest with back-pressure. Whoever composes an answer learns from this whether the client
// still waits, and breaks off by this. Only what reads the client's bytes (uploads, tunnels) or
// asks for addresses (peer pages) uses the connection itself. One that carries several requests at
// once would need another of these.
//
// Threads   its worker's.
// Cost      nothing is allocated for a reply that fits the pieces and texts of the one before.

#include "proxy/base/counters.hpp"
#include "proxy/http/multipart.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/serve/session_state.hpp"
#include "proxy/thread/settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::serve {

/// How an answer ended, a part of it, or a wait.
enum class ended : std::uint8_t {
    keep,   ///< in order: what follows may go on
    close,  ///< in order, and the connection's last
    gone,   ///< the client has left or was broken off, or this process is ending
};

class reply {
public:
    /// All three outlive it.
    reply(session_state& on, const thread::settings& now, ledger& book) noexcept;

    bool keeps = false;         ///< the connection may go on behind this reply
    std::uint8_t version = 11;  ///< its client's, of HTTP
    /// The reply's own text, and what stands between the parts of a multipart: views of both are
    /// among the pieces.
    std::string text;
    std::optional<http::multipart_ranges> multipart;

    /// A reply begins, in place of what was composed before. Where something of that has gone out
    /// the connection is broken off: nobody may read a second head, or a body without one, as the
    /// answer to the next request.
    void begin();
    /// `bytes` stay as they are until they are sent.
    void add(std::string_view bytes) {
        if (!bytes.empty()) {
            on_.parts.emplace_back(bytes.data(), bytes.size());
        }
    }
    /// Text that lives as long as the session: a reply's own fields.
    [[nodiscard]] std::string& fields() noexcept { return on_.tail; }
    /// What the reply says of the connection.
    void append_connection(std::string& out) const;
    /// The reply's end will be the connection's: its client was told no length.
    void ends_by_closing();
    [[nodiscard]] bool has_pieces() const noexcept { return !on_.parts.empty(); }
    /// Forgets what is composed and not sent.
    void drop_pieces() noexcept { on_.parts.clear(); }

    /// Sends what the kernel takes. None: send() has to go on.
    [[nodiscard]] std::optional<ended> send_now();
    /// Sends what is composed. `gone`: the client took too little for too long, or left.
    [[nodiscard]] awaitable<ended> send();
    /// Waits for news of a fetch, of the disk or of the store; at `until` there is none.
    /// `gone`: the client left, or the program ends.
    [[nodiscard]] awaitable<ended> wait(steady_time until = steady_time::max());
    /// Everything has gone out: with what follows it the connection may go on, or end.
    ended end();
    /// Ends the reply so that the client can't take what it has for all of it.
    ended break_off(outcome how, std::string_view reason);
    /// Nobody waits for the answer any more.
    ended leave();

    /// Bytes of the reply have gone out, and it is not whole.
    [[nodiscard]] bool under_way() const noexcept { return on_.client.reply_under_way(); }
    [[nodiscard]] bool failed() const noexcept { return on_.client.failed(); }

private:
    session_state& on_;
    const thread::settings& now_;
    ledger& book_;
};

}  // namespace reprise::proxy::serve
