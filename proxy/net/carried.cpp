#include "proxy/net/carried.hpp"

#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <exception>
#include <memory>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::net {
namespace {

struct carriage {
    carriage(byte_stream to_parent, tcp_socket to_us, deadlines& timer)
        : outer{std::move(to_parent)},
          inner{std::move(to_us)},
          stalled{timer, [this] { end(); }} {}

    void end() noexcept {
        error_code ignored;
        inner.close(ignored);
        outer.close(ignored);
    }

    byte_stream outer;
    byte_stream inner;
    deadline stalled;
    std::array<char, 16 << 10> outwards, inwards;
};

awaitable<void> carry_outwards(std::shared_ptr<carriage> all) {
    for (;;) {
        const auto [error, count] = co_await read_some(all->inner, asio::buffer(all->outwards));
        if (error || count == 0 || !all->outer.is_open()) {
            break;
        }
        all->stalled.expire_after(carried_write_patience);
        const auto wrong = co_await write_all(all->outer,
                                              asio::buffer(all->outwards.data(), count));
        all->stalled.clear();
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
        const auto wrong = co_await write_all(all->inner, asio::buffer(all->inwards.data(), count));
        if (wrong || !all->outer.is_open()) {
            break;
        }
    }
    all->end();
}

}  // namespace

attempt<tcp_socket> carry(byte_stream outer, deadlines& timer) {
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
    const auto all = std::make_shared<carriage>(std::move(outer), std::move(far), timer);
    // Without memory one of them ends at once, and takes the other along.
    const auto at_end = [all](std::exception_ptr thrown) {
        if (thrown) {
            all->end();
        }
    };
    asio::co_spawn(timer.io(), carry_outwards(all), at_end);
    asio::co_spawn(timer.io(), carry_inwards(all), at_end);
    return near;
}

}  // namespace reprise::proxy::net
