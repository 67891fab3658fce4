#pragma once
// A sibling as unit tests know it: on loopback, on the test's own loop.

#include "proxy/http/message_head.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::peer::test {

/// A sibling on loopback: what it says to each request is `reply`'s business.
struct sibling_server {
    using replier = std::function<std::string(const http::request_head&)>;
    /// In place of an answer: the question stays open.
    static constexpr std::string_view says_nothing = "(nothing)";

    sibling_server(net::test_loop& on, replier with, net::tls_identity_ptr tls = nullptr)
        : loop{on},
          identity{std::move(tls)},
          acceptor{net::listen_on_loopback(on.io)},
          port{acceptor.local_endpoint().port()},
          reply{std::move(with)} {
        accept();
    }
    sibling_server(const sibling_server&) = delete;
    sibling_server& operator=(const sibling_server&) = delete;
    // What it has begun with a client that may outlive it ends first.
    ~sibling_server() {
        error_code ignored;
        acceptor.close(ignored);
        for (int turns = 0; *serving > 0 && turns < 1000; ++turns) {
            for (const auto& one : sockets) {
                one->close(ignored);
            }
            loop.run_for(std::chrono::milliseconds{10});
        }
    }
    void accept() {
        acceptor.async_accept([this](const error_code& error, tcp_socket socket) {
            if (!error) {
                net::prepare_socket(socket);
                loop.start(serve_one(std::move(socket)));
                accept();
            }
        });
    }
    [[gnu::noinline]] awaitable<void> serve_one(tcp_socket accepted) {
        const auto counted = serving;
        ++*counted;
        if (identity) {
            co_await serve_tls(std::move(accepted));
        } else {
            co_await serve(net::byte_stream{std::move(accepted)});
        }
        --*counted;
    }
    [[gnu::noinline]] awaitable<void> serve_tls(tcp_socket accepted) {
        auto secured = co_await net::accept_tls(
            std::move(accepted), identity, loop.timer, steady_now() + net::test_patience);
        if (secured) {
            co_await serve(std::move(*secured));
        }
    }
    // Inlined into the handler above, GCC 12 sees a frame's operator delete without its new.
    [[gnu::noinline]] awaitable<void> serve(net::byte_stream accepted) {
        sockets.push_back(std::make_unique<net::byte_stream>(std::move(accepted)));
        auto& socket = *sockets.back();
        std::string bytes;
        for (;;) {
            char block[4096];
            const auto [error, got] = co_await net::read_some(socket, asio::buffer(block));
            if (error) {
                co_return;
            }
            bytes.append(block, got);
            http::request_head head;
            const auto read = http::parse_request_head(bytes, head, {});
            if (read.state == http::head_state::need_more) {
                continue;
            }
            if (read.state != http::head_state::done) {
                error_code ignored;
                socket.close(ignored);
                co_return;
            }
            ++requests;
            const auto answer = reply(head);
            bytes.erase(0, head.bytes);
            if (answer == says_nothing) {
                continue;
            }
            const auto failed = co_await net::write_all(socket, asio::buffer(answer));
            if (failed || answer.empty() || answer.find("close\r\n") != answer.npos) {
                error_code ignored;
                socket.close(ignored);
                co_return;
            }
        }
    }

    net::test_loop& loop;
    net::tls_identity_ptr identity;
    net::tcp_acceptor acceptor;
    std::uint16_t port;
    replier reply;
    unsigned requests = 0;
    std::shared_ptr<unsigned> serving = std::make_shared<unsigned>(0);
    std::vector<std::unique_ptr<net::byte_stream>> sockets;
};

}  // namespace reprise::proxy::peer::test
