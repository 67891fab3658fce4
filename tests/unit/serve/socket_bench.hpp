#pragma once
// A bench whose client is at the other end of a socket, for answers that take the connection over.

#include "tests/unit/net/loop.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace reprise::proxy::serve::test {

struct socket_bench : bench {
    explicit socket_bench(const reprise::config::options& options) : bench{options} {
        stream.socket() = net::byte_stream{std::move(here.ours)};
    }

    net::socket_pair here = net::connected_pair(at.w.io);

    /// The loop runs until that is so; it is asked no more then. False: not in time.
    template <class Condition>
    bool goes_on_until(Condition met) {
        const auto give_up = net::late();
        bool is_met = met();
        while (!is_met && steady_now() < give_up) {
            at.w.io.restart();
            at.w.io.run_one_for(std::chrono::milliseconds{20});
            is_met = met();
        }
        return is_met;
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
