#pragma once
// A port at which connections are neither accepted nor refused, and whether anything is left of them.

#include "proxy/net/asio.hpp"
#include "tests/unit/net/loop.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <sys/socket.h>
#include <vector>

namespace reprise::proxy::net {

/// An address of this machine where connections are neither accepted nor refused: the backlog is
/// full, so that the first packet of a connection is dropped.
struct silent_port {
    /// @throws where `port` is not free there
    explicit silent_port(asio::io_context& io, const asio::ip::address& at, std::uint16_t port = 0)
        : acceptor(io) {
        acceptor.open(at.is_v6() ? tcp::v6() : tcp::v4());
        acceptor.bind({at, port});
        acceptor.listen(0);
        for (int i = 0; i < 4; ++i) {
            auto& each = *fill.emplace_back(std::make_unique<tcp_socket>(io));
            each.open(acceptor.local_endpoint().protocol());
            each.non_blocking(true);
            // Asio's own connect would wait for the outcome.
            const auto to = acceptor.local_endpoint();
            static_cast<void>(
                ::connect(each.native_handle(), to.data(), static_cast<socklen_t>(to.size())));
        }
    }
    std::uint16_t port() const { return acceptor.local_endpoint().port(); }
    tcp_acceptor acceptor;
    std::vector<std::unique_ptr<tcp_socket>> fill;
};

/// How many descriptors this process has, and one more with which it looks.
inline std::ptrdiff_t descriptors() {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

}  // namespace reprise::proxy::net
