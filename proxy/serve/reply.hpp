#pragma once
// One request's reply: composed of pieces, which are views, and sent through a reply_sink; what
// goes out is told to the request's ledger.
//
// Threads   its worker's.
// Cost      nothing is allocated for a reply that fits the pieces and texts of the one before.

#include "proxy/base/counters.hpp"
#include "proxy/http/multipart.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/serve/reply_sink.hpp"
#include "proxy/thread/settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::serve {

class reply {
public:
    /// All four outlive it.
    reply(reply_sink& to, scratch& memory, const thread::settings& now, ledger& book) noexcept;

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
            pieces_.emplace_back(bytes.data(), bytes.size());
        }
    }
    /// What is added next is `bytes` of a body.
    void note_body(body_source from, std::uint64_t bytes) { book_.note_body(from, bytes, pieces_); }
    /// Text that lives as long as the exchange: a reply's own fields.
    [[nodiscard]] std::string& fields() noexcept { return fields_; }
    /// What the reply says of the connection.
    void append_connection(std::string& out) const;
    /// The reply's end will be the connection's: its client was told no length.
    void ends_by_closing();
    [[nodiscard]] bool has_pieces() const noexcept { return !pieces_.empty(); }
    /// Forgets what is composed and not sent.
    void drop_pieces() noexcept { pieces_.clear(); }

    /// As try_send, and then it has ended.
    [[nodiscard]] std::optional<ended> send_now();
    /// Sends what the kernel takes of what is composed. None: send() has to go on.
    [[nodiscard]] std::optional<ended> try_send();
    /// Sends what is composed. `gone`: the client took too little for too long, or left.
    /// @param others_wait  as reply_sink::pace's
    [[nodiscard]] awaitable<ended> send(const std::atomic<bool>* others_wait = nullptr);
    /// Behind a reply that ends with the connection: says that nothing follows, while the request's
    /// body is still read.
    [[nodiscard]] awaitable<ended> end_sending();
    /// Waits until a fetch, the disk or the store has more; at `until` none has.
    /// `gone`: the client left, or the program ends.
    [[nodiscard]] awaitable<ended> wait(steady_time until = steady_time::max()) {
        return to_.wait(until);
    }
    /// What ends such a wait.
    [[nodiscard]] net::wakeup& wakeup() noexcept { return to_.wakeup; }
    /// Everything has gone out: with what follows it the connection may go on, or end.
    ended end();
    /// Ends the reply so that the client can't take what it has for all of it.
    ended break_off(outcome how, std::string_view reason);
    /// Nobody waits for the answer any more.
    ended leave();

    /// Our end of the client's connection.
    [[nodiscard]] tcp::endpoint reached_at() { return to_.local_endpoint(); }
    /// Bytes of the reply have gone out, and it is not whole.
    [[nodiscard]] bool under_way() const noexcept { return to_.under_way(); }
    [[nodiscard]] bool failed() const noexcept { return to_.failed(); }

private:
    void note_sent_since(std::uint64_t bytes_out);
    ended sent(ended how);

    reply_sink& to_;
    reply_sink::pieces& pieces_;
    std::string& fields_;
    const thread::settings& now_;
    ledger& book_;
};

}  // namespace reprise::proxy::serve
