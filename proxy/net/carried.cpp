#include "proxy/net/carried.hpp"

#include "proxy/net/coroutine.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/pace.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::net {
namespace {

// To the near end's owner all that lies between the two ends counts as taken: so it is little. Of
// the pair and of the outer connection's socket each holds a piece, or two.
constexpr int piece = 16 << 10;

struct carriage {
    carriage(byte_stream to_peer,
             tcp_socket to_us,
             deadlines& timer,
             std::shared_ptr<void> as_long_as_this)
        : held{std::move(as_long_as_this)},
          outer{std::move(to_peer)},
          inner{std::move(to_us)},
          taking{timer, [this] { return taken(); }, [this] { break_off(); }} {}

    [[nodiscard]] bool near_is_closed() noexcept {
        pollfd one{inner.native_handle(), 0, 0};
        return ::poll(&one, 1, 0) > 0 && (one.revents & POLLHUP) != 0;
    }

    // What was acknowledged. Behind a near end that is closed none of it is progress: the rest has
    // one period in all, and not one for each of its pieces.
    [[nodiscard]] std::uint64_t taken() noexcept {
        return near_is_closed() ? 0 : given - not_acknowledged(outer);
    }

    void end() noexcept {
        error_code ignored;
        inner.close(ignored);
        outer.close(ignored);
    }

    void break_off() noexcept {
        error_code ignored;
        inner.close(ignored);
        outer.reset();
    }

    const std::shared_ptr<void> held;  // until the outer connection has been closed
    byte_stream outer;
    tcp_socket inner;
    pace_guard taking;        // of what goes outwards
    std::uint64_t given = 0;  // to the outer connection
    std::array<char, piece> outwards, inwards;
};

// Writes all, counting what the kernel has taken: a piece may be long in going.
awaitable<error_code> give(std::shared_ptr<carriage> all, asio::const_buffer rest) {
    error_code error;
    auto count = all->outer.try_write(rest, error);
    for (;;) {
        all->given += count;
        rest += count;
        if (error || rest.size() == 0) {
            co_return error;
        }
        const auto [late_error, more] = co_await all->outer.async_write_some(rest, use_tuple);
        error = late_error;
        count = more;
    }
}

// The near end has said that it sends nothing more: what comes inwards goes on until it is closed,
// which beside a silent peer nothing else would show.
awaitable<void> pass_end_on(std::shared_ptr<carriage> all, std::chrono::milliseconds patience) {
    all->taking.begin(0, patience);
    const bool said = co_await end_sending(all->outer, all->taking);
    all->taking.end();
    if (said) {
        static_cast<void>(co_await all->inner.async_wait(tcp_socket::wait_error, use_tuple));
    }
}

awaitable<void> carry_outwards(std::shared_ptr<carriage> all, std::chrono::milliseconds patience) {
    for (;;) {
        const auto room = asio::buffer(all->outwards);
        const auto [error, count] = co_await all->inner.async_read_some(room, use_tuple);
        if (error == asio::error::eof && all->outer.is_open()) {
            co_await pass_end_on(all, patience);
            break;
        }
        if (error || !all->outer.is_open()) {
            break;
        }
        all->taking.begin(0, patience);
        const auto wrong = co_await give(all, asio::buffer(all->outwards.data(), count));
        all->taking.end();
        if (wrong || !all->outer.is_open()) {
            break;
        }
    }
    all->end();
}

awaitable<void> carry_inwards(std::shared_ptr<carriage> all) {
    for (;;) {
        const auto [error, count] = co_await read_some(all->outer, asio::buffer(all->inwards));
        if (error || count == 0 || !all->inner.is_open()) {
            break;
        }
        const auto bytes = asio::buffer(all->inwards.data(), count);
        const auto [wrong, written] = co_await asio::async_write(all->inner, bytes, use_tuple);
        if (wrong || !all->outer.is_open()) {
            break;
        }
    }
    all->end();
}

}  // namespace

attempt<tcp_socket> carry(byte_stream outer,
                          deadlines& timer,
                          std::chrono::milliseconds patience,
                          std::shared_ptr<void> held) {
    const failure none{failure_code::out_of_memory, "no descriptors for TLS inside TLS"};
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return none;
    }
    // Asio is told of a TCP socket, which this one is but for its addresses.
    tcp_socket near{timer.io()}, far{timer.io()};
    error_code wrong, wrong_too;
    near.assign(tcp::v4(), ends[0], wrong);
    far.assign(tcp::v4(), ends[1], wrong_too);
    if (wrong || wrong_too) {
        if (wrong) {
            ::close(ends[0]);
        }
        if (wrong_too) {
            ::close(ends[1]);
        }
        return none;
    }
    prepare_socket(near);
    prepare_socket(far);
    error_code ignored;
    near.set_option(tcp_socket::send_buffer_size{piece}, ignored);
    keep_little_unsent(outer.native_handle(), piece);
    const auto all = std::make_shared<carriage>(
        std::move(outer), std::move(far), timer, std::move(held));
    // Without memory one of them ends at once, and takes the other along.
    const auto at_end = [all](std::exception_ptr thrown) {
        if (thrown) {
            all->end();
        }
    };
    begin_coroutine(timer.io(), carry_outwards(all, patience), at_end);
    begin_coroutine(timer.io(), carry_inwards(all), at_end);
    return near;
}

}  // namespace reprise::proxy::net
