#pragma once
// Work that goes on for as long as its owner wants it, such as asking siblings once a second: a coroutine that returns
// when its owner has said that it is over, and is begun anew whenever it ends otherwise.
//
// Begun only once it would be lost by a single lack of memory. Where there is none for what it is about to wait for,
// nobody hears of that (coroutine.hpp): a name is looked up no more, a listener accepts nobody, until a reload or a
// restart.

#include "proxy/net/asio.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/operation_room.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <utility>

namespace reprise::proxy::net {

namespace detail {

/// What a standing_work consists of. It is held by the end of its coroutine, or of its pause: so by the loop alone.
class upheld {
public:
    virtual ~upheld() = default;
    upheld(const upheld&) = delete;
    upheld& operator=(const upheld&) = delete;

    /// What can't be begun now is begun behind a pause.
    static void begin(const std::shared_ptr<upheld>& one) noexcept;

protected:
    upheld(asio::io_context& io, std::chrono::milliseconds pause);
    /// As on_end of begin_coroutine.
    static void end(const std::shared_ptr<upheld>& one, const std::exception_ptr& broken);
    [[nodiscard]] asio::io_context& io() const noexcept { return io_; }

private:
    struct pause_end;

    /// @throws whatever kept it from beginning
    virtual void begin_once(const std::shared_ptr<upheld>& self) = 0;
    static void begin_anew(const std::shared_ptr<upheld>& one);
    static void begin_later(const std::shared_ptr<upheld>& one) noexcept;

    asio::io_context& io_;
    const std::chrono::milliseconds pause_;
    asio::steady_timer timer_;
    operation_room room_;  // for what ends a pause
};

template <class Make>
class upheld_by final : public upheld {
public:
    upheld_by(asio::io_context& io, Make make, std::chrono::milliseconds pause)
        : upheld{io, pause},
          make_{std::move(make)} {}

private:
    void begin_once(const std::shared_ptr<upheld>& self) override {
        auto on_end = [self](const std::exception_ptr& broken) { end(self, broken); };
        auto work = make_();
        net::begin_coroutine(io(), std::move(work), std::move(on_end));
    }

    Make make_;
};

}  // namespace detail

/// Made first, which may throw, and then begun, which can't: whoever has several begins all of them, or none.
///
/// Over      when its coroutine returns. That looks whether its owner still wants it before it does anything else, since
///           a pause may have been between. It is not begun again then, and what made it is freed.
/// Anew      it begins behind a pause where it has thrown, was lost for want of memory where it waits, or could not be
///           begun. What was left of it has been destroyed by then, so there are never two.
/// Owner     none is needed: from when it was begun it is the loop's, and ends with that at the latest. So what made it
///           holds whatever it refers to, or that outlives the loop's run.
/// Shutdown  a pause is not cut short: a loop that is to run dry runs until it has passed.
/// Errors    what it throws comes out of the loop's run(), and so does the std::bad_alloc by which it is lost.
/// Threads   the loop's, or any before that runs.
/// Cost      one block of memory where it is made, beside begin_coroutine's each time. A pause takes none, unless Asio's
///           array of timers has to grow: where it can't, there is no pause but a turn of the loop.
class [[nodiscard]] standing_work {
public:
    static constexpr std::chrono::milliseconds usual_pause{1'000};

    /// `make()` gives the coroutine, an asio::awaitable<void, ...>, each time that it begins, and outlives each that it
    /// gave.
    /// @throws std::bad_alloc
    template <class Make>
    standing_work(asio::io_context& io, Make make, std::chrono::milliseconds pause = usual_pause)
        : one_{std::make_shared<detail::upheld_by<Make>>(io, std::move(make), pause)} {}
    standing_work(standing_work&&) noexcept = default;
    standing_work& operator=(standing_work&&) noexcept = default;
    ~standing_work() = default;

    /// Gives it to the loop. Where that calls this, it runs within the call as far as its first wait.
    /// @pre it was not begun before, nor moved from
    void begin() && noexcept { detail::upheld::begin(std::exchange(one_, nullptr)); }

private:
    std::shared_ptr<detail::upheld> one_;
};

}  // namespace reprise::proxy::net
