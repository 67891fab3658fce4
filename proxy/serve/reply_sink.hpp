#pragma once
// The narrow face through which an answer leaves: all that whoever gives one knows of a connection.
//
//     send now          as far as it takes bytes without waiting
//     send              the rest, with back-pressure, at the pace that a client owes
//     wait              until a fetch, the disk or the store has more, while the client is there
//     whole, broken off what the client may take for all of the answer, and what it may not
//
// HTTP/1.1's connection implements it (http1_connection.hpp). A protocol that carries several
// requests at once on a connection implements it once more, for each of its streams.
//
// Threads   its worker's.

#include "proxy/base/clock.hpp"
#include "proxy/base/ended.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/wakeup.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace reprise::proxy::serve {

class reply_sink {
public:
    using pieces = std::vector<asio::const_buffer>;
    /// What a client owes while bytes wait for it.
    struct pace {
        std::uint64_t bytes_per_second = 0;
        std::chrono::milliseconds timeout{0};
        /// While it is true others wait for this client, and what it waits for its turn counts too
        /// (limits.client_rate); null: nobody does. Outlives the wait.
        const std::atomic<bool>* others_wait = nullptr;
    };

    reply_sink(const reply_sink&) = delete;
    reply_sink& operator=(const reply_sink&) = delete;

    /// Sends what it takes of `what`, which then holds only what was not sent. True: all has gone,
    /// or the sink has failed (then failed() is true).
    [[nodiscard]] virtual bool send_now(pieces& what) = 0;
    /// Sends the rest. `gone`: the client has left, or is too slow.
    [[nodiscard]] virtual awaitable<ended> send(pieces& what, pace owed) = 0;
    /// Says that nothing follows, while what the client sends is still read. `gone` as for send.
    [[nodiscard]] virtual awaitable<ended> end_sending(pace owed) = 0;
    /// Waits for `wakeup`, at most until then. `gone`: the client left, or the program ends.
    [[nodiscard]] virtual awaitable<ended> wait(steady_time until) = 0;
    /// What a fetch, the disk or the store notifies when there is something to go on with.
    net::wakeup wakeup;

    /// The reply that begins tells its client no length: its end is the connection's.
    virtual void ends_by_closing() noexcept = 0;
    /// What has gone out so far is whole messages.
    virtual void is_whole() noexcept = 0;
    /// Ends it so that the client can't take what it got for a whole answer.
    virtual void break_off() noexcept = 0;
    /// Something has gone out that is no whole message.
    [[nodiscard]] virtual bool under_way() const noexcept = 0;
    [[nodiscard]] virtual bool failed() const noexcept = 0;

    /// Bytes that went to the client, and that were taken from it, since it began.
    [[nodiscard]] virtual std::uint64_t bytes_out() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t bytes_in() const noexcept = 0;
    /// Our end of the client's connection.
    [[nodiscard]] virtual tcp::endpoint local_endpoint() = 0;

protected:
    explicit reply_sink(net::deadlines& timer) : wakeup{timer} {}
    ~reply_sink() = default;  // nobody owns one by this face
};

}  // namespace reprise::proxy::serve
