#pragma once
// An io_context with deadlines for one test, and sockets on loopback that the system numbers.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/io.hpp"
#include "tests/support/fake_dns.hpp"

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <thread>

namespace reprise::proxy::net {

/// Longer than anything here takes, also under a sanitizer on a busy machine.
inline constexpr std::chrono::seconds test_patience{20};

/// Later than that: the test has failed.
inline steady_time late() {
    return steady_now() + test_patience;
}

using tcp_acceptor = asio::basic_socket_acceptor<tcp, executor>;

struct test_loop {
    asio::io_context io{1};
    deadlines timer{io, std::chrono::milliseconds{5}};

    /// Starts a coroutine, the result of which nobody wants.
    void start(awaitable<void> work) {
        asio::co_spawn(io, std::move(work), [](std::exception_ptr thrown) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
        });
    }

    /// Runs the loop until the coroutine is done.
    template <class T>
    T finish(awaitable<T> work) {
        std::optional<T> result;
        start(put_into(std::move(work), result));
        run_until([&] { return result.has_value(); });
        REQUIRE(result.has_value());
        return std::move(*result);
    }

    template <class T>
    static awaitable<void> put_into(awaitable<T> work, std::optional<T>& result) {
        result.emplace(co_await std::move(work));
    }

    template <class Condition>
    void run_until(Condition met) {
        const auto give_up = steady_now() + test_patience;
        while (!met() && steady_now() < give_up) {
            io.restart();
            io.run_one_for(std::chrono::milliseconds{20});
        }
    }

    /// Runs until that thread has ended, which may wait for what the loop is yet to do.
    void join_running(std::thread& other) {
        std::atomic<bool> joined{false};
        std::thread waiter{[&] {
            other.join();
            joined = true;
        }};
        run_until([&] { return joined.load(); });
        waiter.join();
    }

    /// Runs for so long, and then what is ready has its turn, though this thread had none in that time.
    void run_for(std::chrono::milliseconds time) {
        io.restart();
        io.run_for(time);
        io.restart();
        for (int turns = 0; turns < 1'000 && io.poll_one() > 0; ++turns) {
        }
    }
};

using tests::dns_type;
using tests::fake_dns;

/// How to ask this name server, and nobody else.
inline config::dns_options asking(const tests::fake_dns& server) {
    config::dns_options options;
    options.servers = {{"127.0.0.1", server.port()}};
    options.hosts_file = "";
    return options;
}

struct socket_pair {
    tcp_socket ours;
    tcp_socket theirs;
};

inline tcp_acceptor listen_on_loopback(asio::io_context& io, int backlog = 16) {
    tcp_acceptor acceptor{io};
    acceptor.open(tcp::v4());
    acceptor.bind({asio::ip::address_v4::loopback(), 0});
    acceptor.listen(backlog);
    return acceptor;
}

inline socket_pair connected_pair(asio::io_context& io) {
    auto acceptor = listen_on_loopback(io);
    tcp_socket ours{io};
    ours.connect(acceptor.local_endpoint());
    auto theirs = acceptor.accept();
    prepare_socket(ours);
    prepare_socket(theirs);
    return {std::move(ours), std::move(theirs)};
}

/// A port on which nobody listens: bound, so that nobody else gets it either.
struct closed_port {
    explicit closed_port(asio::io_context& io) : holder(io) {
        holder.open(tcp::v4());
        holder.bind({asio::ip::address_v4::loopback(), 0});
        port = holder.local_endpoint().port();
    }
    tcp_socket holder;
    std::uint16_t port = 0;
};

// Of a socket or a byte_stream.
template <class Stream>
awaitable<std::string> read_to_end(Stream& from) {
    std::string all;
    for (;;) {
        char block[4096];
        const auto [error, count] = co_await from.async_read_some(asio::buffer(block), use_tuple);
        all.append(block, count);
        if (error) {
            co_return all;
        }
    }
}

template <class Stream>
awaitable<std::string> read_exactly(Stream& from, std::size_t bytes) {
    std::string all(bytes, '\0');
    std::size_t got = 0;
    while (got < bytes) {
        const auto room = asio::buffer(all.data() + got, bytes - got);
        const auto [error, count] = co_await from.async_read_some(room, use_tuple);
        got += count;
        if (error) {
            break;
        }
    }
    all.resize(got);
    co_return all;
}

template <class Stream>
awaitable<error_code> write_text(Stream& to, std::string text) {
    const auto [error, count] = co_await asio::async_write(to, asio::buffer(text), use_tuple);
    co_return error;
}

/// A text in which no two stretches look alike.
inline std::string pattern(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) {
        text[i] = static_cast<char>((i * 2654435761u) >> 13);
    }
    return text;
}

}  // namespace reprise::proxy::net
