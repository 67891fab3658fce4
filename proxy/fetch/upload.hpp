#pragma once
// A request's body on its way from the client to the origin.
// It runs beside the reading of the response, and on behind it, since an origin may answer before
// it has read everything and goes on reading (RFC 9112 9.3). Both ends can stop it: the producer
// when the origin is not to have the rest, the exchange when its client is gone. Bytes are taken
// from the client only as fast as the origin takes them.
//
// Each side is judged by its own clock. The client owes limits.body_rate while bytes of its are
// waited for, but nothing while it waits itself, for the 100 (Continue) that it asked for. The
// origin is judged by the owner of its connection: passed_on() is for that.

#include "config/options.hpp"
#include "proxy/base/ended.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/fetch/content_source.hpp"
#include "proxy/net/byte_stream.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/wakeup.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

namespace reprise::proxy::fetch {

/// Threads: its worker's. Shared by the exchange and the producer, so that neither need outlive the
/// other.
class upload {
public:
    enum class phase : std::uint8_t {
        untouched,  ///< nothing was taken from the client
        running,
        done,           ///< the whole body went out, and nothing of it is left at the client's side
        bad_framing,    ///< why() says how
        client_failed,  ///< left, or too slow
        origin_failed,
        stopped,
    };

    /// @param from        never null
    /// @param asks_first  the client awaits a 100 (Continue) before it sends
    upload(std::unique_ptr<content_source> from,
           const config::options& options,
           bool asks_first,
           net::deadlines& timer);

    /// Sends the body to `origin`; ends in one of the phases above. `self` keeps this alive.
    [[nodiscard]] static awaitable<void> run(std::shared_ptr<upload> self,
                                             net::byte_stream& origin);

    /// A 100 (Continue) is on its way to the client: its time begins.
    void go();
    /// The client awaits the origin's word, and has sent nothing.
    [[nodiscard]] bool awaits_word() const noexcept { return asks_first_; }

    /// Ends a run that waits for the client; one that waits for the origin ends when its socket is
    /// closed. What has been read is counted: drain() may go on behind it.
    void stop();
    /// The same, and the client is not touched any more: it may go now.
    void abandon();
    /// The same, of one that runs on beside nobody: memory ended under its producer. The connection that it writes
    /// to is closed, and lives until it ends.
    void outlive(net::origin_lease origin);
    /// Ends a run that threw.
    void give_up();
    enum class waiter : std::uint8_t { producer, exchange };
    /// Waits until nothing is running; each of the two sides may wait, for itself.
    [[nodiscard]] awaitable<void> over(waiter who);

    /// Reads and drops what is left of the body, at most `most` bytes: `keep`, if the connection
    /// can go on behind it, or `close`.
    [[nodiscard]] static awaitable<ended> drain(std::shared_ptr<upload> self, std::uint64_t most);

    [[nodiscard]] phase state() const noexcept { return phase_; }
    [[nodiscard]] bool stopping() const noexcept { return stopping_; }
    [[nodiscard]] bool broken_by_client() const noexcept {
        return phase_ == phase::bad_framing || phase_ == phase::client_failed;
    }
    [[nodiscard]] const failure& why() const noexcept { return why_; }
    /// Bytes given to the origin's socket, framing included, in whole pieces.
    [[nodiscard]] std::uint64_t passed_on() const noexcept { return passed_on_; }

private:
    // One step each. `running`: the body goes on; else how the upload ends.
    [[nodiscard]] awaitable<phase> fill();
    [[nodiscard]] awaitable<phase> pass_piece(net::byte_stream* origin);
    [[nodiscard]] awaitable<phase> send_chunk(net::byte_stream& origin, content_source::piece one);
    [[nodiscard]] awaitable<phase> send(net::byte_stream& origin,
                                        std::array<asio::const_buffer, 3> parts);
    [[nodiscard]] awaitable<void> pass(net::byte_stream* origin, std::uint64_t most);
    void begin_patience() { patience_.guard_rate(bytes_per_second_, timeout_); }
    void end(phase how) noexcept { phase_ = how; }
    void tell_ended();

    const std::unique_ptr<content_source> from_;  // left once this is abandoned
    net::origin_lease outlived_;
    executor executor_;
    std::uint64_t bytes_per_second_;
    std::chrono::milliseconds timeout_;
    asio::cancellation_signal cancel_;
    net::deadline patience_;
    net::wakeup over_for_producer_;
    net::wakeup over_for_exchange_;
    phase phase_ = phase::untouched;
    bool stopping_ = false;
    bool abandoned_ = false;
    bool threw_ = false;
    bool asks_first_;
    std::uint64_t taken_ = 0;  // in this pass
    std::uint64_t passed_on_ = 0;
    failure why_;
};

}  // namespace reprise::proxy::fetch
