#pragma once
// A bench whose client is at the other end of a socket, for answers that take the connection over.

#include "tests/unit/net/loop.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

namespace reprise::proxy::serve::test {

/// The loop runs until that is so; it is asked no more then. False: not in time.
template <class Condition>
bool run_until(asio::io_context& io, Condition met) {
    const auto give_up = net::late();
    bool is_met = met();
    while (!is_met && steady_now() < give_up) {
        io.restart();
        io.run_one_for(std::chrono::milliseconds{20});
        is_met = met();
    }
    return is_met;
}

/// `side` runs to its end on a thread of its own, and the loop meanwhile.
template <class Side>
void run_beside(asio::io_context& io, Side side) {
    std::atomic<bool> done{false};
    std::thread other{[&] {
        side();
        done = true;
    }};
    (void)run_until(io, [&] { return done.load(); });
    other.join();
}

struct socket_bench : bench {
    explicit socket_bench(const reprise::config::options& options) : bench{options} {
        stream.socket() = net::byte_stream{std::move(here.ours)};
    }

    net::socket_pair here = net::connected_pair(at.w.io);

    template <class Condition>
    bool goes_on_until(Condition met) {
        return run_until(at.w.io, std::move(met));
    }
    /// So many bytes that come there, or what comes before its end.
    std::string read(tcp_socket& from, std::size_t bytes) {
        std::string out(bytes, '\0');
        std::size_t got = 0;
        from.non_blocking(true);
        (void)goes_on_until([&] {
            error_code none;
            got += from.read_some(asio::buffer(out.data() + got, bytes - got), none);
            return got == bytes || (none && none != asio::error::would_block);
        });
        return out.substr(0, got);
    }
};

}  // namespace reprise::proxy::serve::test
