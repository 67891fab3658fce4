#include "tools/bench_proxy/held_connections.hpp"

#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/tls_handles.hpp"

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace reprise::bench {

namespace {

struct held {
    socket_handle socket;
    tls_connection tls;
};

/// What is read until the answer is whole: its head says how long that is.
template <class Read>
void read_answer(std::size_t body, Read read) {
    std::string all;
    std::array<char, 16384> bytes;
    for (std::size_t whole = SIZE_MAX; all.size() < whole;) {
        const auto got = read(bytes.data(), bytes.size());
        if (got <= 0) {
            throw std::runtime_error("a connection was ended before its answer");
        }
        all.append(bytes.data(), static_cast<std::size_t>(got));
        const auto end = all.find("\r\n\r\n");
        whole = end == std::string::npos ? SIZE_MAX : end + 4 + body;
    }
    if (all.rfind("HTTP/1.1 200 ", 0) != 0) {
        throw std::runtime_error("a wrong answer: " + all.substr(0, 40));
    }
}

held used_once(std::uint16_t port, SSL_CTX* context, const std::string& request) {
    held out{connect_to(port), nullptr};
    const int fd = out.socket.get();
    if (context == nullptr) {
        send_all(fd, request);
        read_answer(1024, [&](char* to, std::size_t most) { return ::recv(fd, to, most, 0); });
        return out;
    }
    out.tls.reset(SSL_new(context));
    SSL_set_fd(out.tls.get(), fd);
    if (SSL_connect(out.tls.get()) != 1 ||
        SSL_write(out.tls.get(), request.data(), static_cast<int>(request.size())) <= 0) {
        throw std::runtime_error("no TLS");
    }
    read_answer(1024, [&](char* to, std::size_t most) {
        return SSL_read(out.tls.get(), to, static_cast<int>(most));
    });
    return out;
}

}  // namespace

double bytes_per_idle_connection(const lab& of, const server& at, bool tls, std::size_t count) {
    const tls_context context{tls ? SSL_CTX_new(TLS_client_method()) : nullptr};
    const auto request = get_request(at.url(of, "/1024/one"), of.origin.authority());
    const auto port = tls ? at.tls_port : at.port;
    // What the first ones need for ever is not the others' price.
    for (int i = 0; i < 64; ++i) {
        (void)used_once(port, context.get(), request);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{300});
    const auto before = resident_bytes(at.process.pid());
    std::vector<held> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(used_once(port, context.get(), request));
    }
    std::this_thread::sleep_for(std::chrono::seconds{1});
    return (resident_bytes(at.process.pid()) - before) / static_cast<double>(count);
}

double resident_with_half_heads(const server& at, std::size_t count) {
    const auto half = "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Filler: " +
                      std::string(3000, 'x');
    std::vector<socket_handle> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.push_back(connect_to(at.port));
        send_all(all.back().get(), half);
    }
    std::this_thread::sleep_for(std::chrono::seconds{1});
    return resident_bytes(at.process.pid());
}

}  // namespace reprise::bench
