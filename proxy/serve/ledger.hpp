#pragma once
// What one request is to the counters, the access log, the advisor and the hosts' figures.
//
// It is filled in while the request is answered, and closed exactly once: by exchange's destructor,
// by parted_request's where a tunnel has taken it over (sequel), or by refuse_head() where a head
// could not be read and there is no exchange. So no way of answering, and no exception, leaves a
// request uncounted or counts it twice. Whoever finds out how an answer went says so in `how`,
// `status` and `reason`, and closes nothing.
//
// Bytes are counted when they are sent, not when they are composed: `note_body` says what a body's
// bytes are, and `settle` asks the connection how many of them have gone.
//
// Threads   the worker's own.
// Cost      nothing is allocated before close(), and there only where the access log is on.

#include "filter/key_hash.hpp"
#include "proxy/base/access_line.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/base/tunnel_hosts.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/known_logins.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/serve/sent_body.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::cache {
struct answered;
struct stored_response;
}  // namespace reprise::proxy::cache

namespace reprise::proxy::serve {

class ledger {
public:
    /// All three outlive it.
    ledger(thread::worker& w,
           const client_identity& client,
           const reply_sink& to,
           steady_time started) noexcept;
    /// It goes on here, and `from` closes nothing.
    ledger(ledger&& from) noexcept;
    ledger(const ledger&) = delete;
    ledger& operator=(const ledger&) = delete;

    outcome how = outcome::error;
    unsigned status = 0;           ///< of the answer; 0: there was none
    std::string_view reason{};     ///< static text
    std::string error{};           ///< what the reason leaves out
    net::user_ptr user{};          ///< who has said to be asking, and is believed; null: nobody
    std::string origin{}, peer{};  ///< who was asked; empty: nobody
    std::string content_type{};    ///< of what was fetched, where the log wants it
    std::optional<std::chrono::nanoseconds> origin_time{};
    bool of_sibling = false;  ///< a sibling asks, for a request that it counts itself
    bool handed_on = false;   ///< of those, for what belongs here

    [[nodiscard]] steady_time started() const noexcept { return started_; }

    /// Somebody has answered what was asked for this request.
    void note_answer(const cache::answered& by);

    /// Something of the answer has gone out: the first time counts.
    void note_first_byte();
    /// What went out was an interim answer: the first byte is still to come.
    void forget_first_byte() noexcept { first_byte_.reset(); }

    /// `bytes` of a body go out behind `before`.
    void note_body(body_source from, std::uint64_t bytes, const reply_sink::pieces& before);
    /// A send is over: counts how many of the noted bytes have gone.
    void settle();

    /// The request that is closed.
    struct request {
        const http::request_head* head = nullptr;  ///< null: it could not be read
        std::string_view url{};      ///< where the head does not say it; empty: it does
        std::size_t unconsumed = 0;  ///< bytes of it that still stand in the client's input
        filter::key_hash key{};
        const cache::stored_response* sent = nullptr;  ///< what was stored and sent
        inside_counts* inside = nullptr;  ///< of the opened tunnel that it came in; null: of none
        asked_over over = asked_over::nothing;
    };
    /// The answer is over: what is left of the request's body is none of its time.
    void note_answered() {
        if (!took_) {
            took_ = steady_now() - started_;
        }
    }
    /// Counts and logs. Later calls do nothing. Without memory for the line it is lost.
    void close(const request& asked) noexcept;

private:
    void tell_advisor(const request& asked, std::uint64_t sent, steady_time now) const;
    void tell_hosts(const request& asked, std::uint64_t stands_for) const;
    void log(const request& asked, std::uint64_t in, std::uint64_t out, unsigned weight) const;

    thread::worker& w_;
    const client_identity& client_;
    const reply_sink& to_;
    steady_time started_;
    std::uint64_t out_before_;
    std::uint64_t in_before_;
    std::optional<std::chrono::nanoseconds> first_byte_;
    std::optional<std::chrono::nanoseconds> took_;
    sent_body body_;
    bool closed_ = false;
};

/// The Content-Type of a head in wire form; empty: it has none. O(head).
[[nodiscard]] std::string_view content_type_of(std::string_view head) noexcept;

}  // namespace reprise::proxy::serve
