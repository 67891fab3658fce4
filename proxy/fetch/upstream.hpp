#pragma once
// The connection in hand: a request's head and body sent on it, a response's head and bytes read
// from it. Whoever may end the reading (the clients' leaving, a sibling's answer, a body that the
// client broke off, patience) does so here, and here it is found out which of them it was.
//
// Threads   its fetch's.

#include "proxy/base/failure.hpp"
#include "proxy/base/recycled.hpp"
#include "proxy/fetch/order.hpp"
#include "proxy/fetch/sibling_query.hpp"
#include "proxy/fetch/source.hpp"
#include "proxy/fetch/upload_watch.hpp"
#include "proxy/net/operation_room.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/thread/worker.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace reprise::proxy::fetch {

/// Why a step did not succeed; none: it did.
using trouble = std::optional<failure>;

/// How the wait for a response's head ended.
struct head_end {
    enum class kind : std::uint8_t {
        got,
        retry,      ///< a kept connection was dead: once more, on a new one
        failed,     ///< `why`
        overtaken,  ///< a sibling has answered meanwhile
    };
    kind what = kind::got;
    failure why{failure_code::internal, ""};
};

/// Lets another thread stop the reading: the socket that is read now, if any.
struct stop_control {
    net::byte_stream* reading = nullptr;
    net::room_of<80> for_stop;  // for the one operation that another thread posts (producer.cpp)

    void interrupt() const {
        if (reading != nullptr) {
            error_code ignored;
            reading->cancel(ignored);
        }
    }
};

/// Whether a peer lives: its own loop says something, whatever that is, in so long (`OPTIONS *`). One that
/// can't be asked, by our own lack, does as far as anybody knows.
[[nodiscard]] awaitable<bool> answers(thread::worker& w,
                                      std::shared_ptr<const peer::known_peer> one,
                                      steady_time::duration in_so_long);

class upstream {
public:
    static constexpr std::size_t read_size = 16u << 10;

    /// @pre w outlives it
    upstream(thread::worker& w, std::shared_ptr<fetch_order> order);
    ~upstream();
    upstream(const upstream&) = delete;
    upstream& operator=(const upstream&) = delete;

    source from;  ///< the connection in hand
    /// Siblings that are asked meanwhile: an answer of theirs ends what is read from another.
    std::shared_ptr<sibling_query> rivals;
    /// Notified when a fetch has room again or is abandoned, a sibling has answered, or a connection was made.
    net::wakeup ready;
    net::deadline patience;
    const std::shared_ptr<stop_control> control = std::allocate_shared<stop_control>(
        recycled<stop_control>{});

    [[nodiscard]] bool is_overtaken() const noexcept { return rivals && rivals->has_answer(); }
    /// The connection in `from` is read from now on.
    void begin_reading() {
        control->reading = &from.lease.socket();
        note_heard();
    }
    /// Sends a head, and begins to send the body behind it. What the kernel does not take now is
    /// left for send(). That it can't be written is no failure yet: an origin may have answered and
    /// closed, and reading tells.
    [[nodiscard]] std::string_view send_now(std::string_view wire);
    [[nodiscard]] awaitable<void> send(std::string_view left);
    /// A final head, or 101's, into from.came.head; 1xx are passed on.
    [[nodiscard]] awaitable<head_end> read_head();
    /// Reads once. Nothing, with an error: it ended, or one of those above ended it.
    [[nodiscard]] awaitable<std::size_t> read_into(char* at, std::size_t room, error_code& error);
    /// A peer that waits as we do is doubted after so long a silence.
    [[nodiscard]] steady_time::duration doubt_after() const;
    /// Behind one: whether it lives. It is asked, in its timeout, unless another has just asked it
    /// (peer/pulse.hpp). False as well where it has sent nothing for `most`. @pre from.waits_too
    [[nodiscard]] awaitable<bool> far_end_lives(steady_time::duration most);
    /// What was not read was not waited for: from here on silence counts.
    void note_heard() noexcept { heard_ = steady_now(); }
    /// Nothing more of a body comes: why. `detail` where nobody ended it.
    [[nodiscard]] failure cut_short(std::string detail) const;

    /// The connection goes back to the pool, if another request may go on it.
    void give_back();
    /// It is used no more.
    void let_go();

    /// The request's body is not out yet.
    [[nodiscard]] bool body_is_pending() const noexcept;
    /// The request's body has begun to go out.
    [[nodiscard]] bool uploads() const noexcept { return upload_started_; }
    /// Behind a whole response: until the body has gone out, or the origin or the client ends it.
    [[nodiscard]] awaitable<void> finish_upload();
    /// Ends the upload.
    [[nodiscard]] awaitable<void> settle_upload();

    bool answered_early = false;  ///< the response came before the request's body was out

private:
    void head_is_out();
    [[nodiscard]] head_end no_head();
    [[nodiscard]] trouble pass_interim(unsigned count);
    void begin_upload();
    void await_head_anew();
    void begin_patience_behind_upload();
    void wait_for_home();
    void run_out_of_patience();
    [[nodiscard]] bool may_have_rest() const noexcept;

    thread::worker& w_;
    const std::shared_ptr<fetch_order> order_;
    cache::fetch& into_;
    const std::shared_ptr<upload> body_;  // of the request; null: there is none
    upload_watch watch_;
    bool upload_started_ = false;
    bool awaits_head_ = false;  // patience is for the response's head
    steady_time heard_{};       // something of the far end, at last
    std::optional<steady_time>
        head_by_;  // a home has said that it is at work, and has so long in all
};

}  // namespace reprise::proxy::fetch
