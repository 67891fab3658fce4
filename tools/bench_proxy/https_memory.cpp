#include "tools/bench_proxy/https_lab.hpp"
#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/tls_handles.hpp"
#include "tools/bench_proxy/tunnel_load.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>

namespace reprise::bench {

namespace {

constexpr double a_mib = 1048576;
constexpr std::size_t large_object = 16 << 20;
/// The room of a slow reader's socket: what the kernel holds for it is nobody's memory, but its
/// answer.
constexpr int little_room = 64 << 10;

/// After its 200.
socket_handle tunnel_to(const server& at, const std::string& authority) {
    auto out = connect_to(at.port);
    send_all(out.get(), "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    std::string head;
    std::array<char, 512> bytes;
    while (!head.ends_with("\r\n\r\n")) {
        const auto got = ::recv(out.get(), bytes.data(), bytes.size(), 0);
        if (got <= 0) {
            throw std::runtime_error("no tunnel");
        }
        head.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return out;
}

/// What a client of OpenSSL says first.
std::string client_hello(const std::string& host) {
    const tls_context context{SSL_CTX_new(TLS_client_method())};
    const tls_connection tls{SSL_new(context.get())};
    auto* const out = BIO_new(BIO_s_mem());
    SSL_set_bio(tls.get(), BIO_new(BIO_s_mem()), out);  // its own now
    SSL_set_tlsext_host_name(tls.get(), host.c_str());
    SSL_connect(tls.get());
    char* text = nullptr;
    const auto size = BIO_get_mem_data(out, &text);
    return {text, static_cast<std::size_t>(size)};
}

class https_measuring {
public:
    explicit https_measuring(const lab& of) : of_{of} {}

    found_rows run() {
        if (!of_.wanted.wants_any("https", {"stalled", "hosts asked", "slow TLS"})) {
            return {};
        }
        if (const auto why = https_lab::obstacle(of_); !why.empty()) {
            out_.skipped.push_back("https, memory: " + why);
            return std::move(out_);
        }
        const https_lab lab{of_};
        lab_ = &lab;
        const auto hello = client_hello(https_lab::host());
        stalled("stalled handshakes: half a hello", hello.substr(0, hello.size() / 2), 40);
        stalled("stalled handshakes: nothing", "", 40);
        stalled("stalled handshakes: after the hello", hello, 40);
        hosts_asked_once();
        slow_readers();
        return std::move(out_);
    }

private:
    [[nodiscard]] bool wants(const std::string& name) const {
        return of_.wanted.wants("https", name);
    }

    /// Behind the 200 each says `what` and no more. The most that it takes within three seconds of
    /// the first: a second is given to a hello, then they are tunnels.
    void stalled(const std::string& name, const std::string& what, double goal) {
        if (!wants(name)) {
            return;
        }
        row one{.name = name, .unit = "MiB", .rounds = {}, .goal = goal, .grain = 2};
        for (unsigned round = 0; round < of_.wanted.memory_rounds; ++round) {
            const auto to = lab_->start_opening();
            const auto authority = https_lab::host() + ':' + std::to_string(of_.origin.port());
            for (int i = 0; i < 64; ++i) {
                send_all(tunnel_to(*to, authority).get(), what);  // warms up
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
            const auto before = resident_bytes(to->process.pid());
            std::vector<socket_handle> all;
            auto most = before;
            for (std::size_t i = 0; i < of_.wanted.half_heads; ++i) {
                all.push_back(tunnel_to(*to, authority));
                send_all(all.back().get(), what);
                if (i % 500 == 0) {
                    most = std::max(most, resident_bytes(to->process.pid()));
                }
            }
            for (int i = 0; i < 30; ++i) {
                most = std::max(most, resident_bytes(to->process.pid()));
                std::this_thread::sleep_for(std::chrono::milliseconds{100});
            }
            one.rounds.push_back((most - before) / a_mib);
        }
        add(std::move(one));
    }

    void hosts_asked_once() {
        if (!wants("hosts asked once")) {
            return;
        }
        const auto to = lab_->start_opening();
        const auto ask = [&](std::uint64_t first, std::uint64_t count) {
            tunnel_load load;
            load.port = to->port;
            load.tls = true;
            load.closes = true;
            load.count = count;
            load.connect = [first](std::uint64_t n) { return https_lab::host(first + n) + ":443"; };
            (void)run_tunnel_load(load);
            std::this_thread::sleep_for(std::chrono::seconds{1});
        };
        ask(0, 64);
        const auto before = resident_bytes(to->process.pid());
        ask(1000, of_.wanted.asked_once);
        add({.name = "hosts asked once",
             .unit = "MiB",
             .rounds = {(resident_bytes(to->process.pid()) - before) / a_mib},
             .goal = 16,
             .grain = 1});
    }

    /// One object, in memory, that each asks for and reads a little of.
    void slow_readers() {
        if (!wants("slow TLS readers")) {
            return;
        }
        row one{.name = "slow TLS readers", .unit = "MiB", .rounds = {}, .goal = 32, .grain = 1};
        for (unsigned round = 0; round < of_.wanted.memory_rounds; ++round) {
            one.rounds.push_back(with_slow_readers());
        }
        add(std::move(one));
    }

    double with_slow_readers() {
        const auto to = lab_->start_opening();
        const auto authority = https_lab::host() + ':' + std::to_string(lab_->origin().tls);
        const auto request = get_request("/" + std::to_string(large_object) + "/one", authority);
        {
            tunnel_load load;
            load.port = to->port;
            load.tls = true;
            load.closes = true;
            load.connections = 1;
            load.body = large_object;
            load.connect = [&](std::uint64_t) { return authority; };
            load.request = [&](std::uint64_t) { return request; };
            load.count = 20;  // stored, and what one reader needs is there
            (void)run_tunnel_load(load);
        }
        struct reader {
            socket_handle socket;
            tls_connection tls;
        };
        const tls_context context{SSL_CTX_new(TLS_client_method())};
        std::this_thread::sleep_for(std::chrono::seconds{1});
        const auto before = resident_bytes(to->process.pid());
        std::vector<reader> all;
        for (std::size_t i = 0; i < of_.wanted.slow_readers; ++i) {
            reader one{tunnel_to(*to, authority), tls_connection{SSL_new(context.get())}};
            ::setsockopt(one.socket.get(), SOL_SOCKET, SO_RCVBUF, &little_room, sizeof little_room);
            SSL_set_fd(one.tls.get(), one.socket.get());
            SSL_set_tlsext_host_name(one.tls.get(), https_lab::host().c_str());
            if (SSL_connect(one.tls.get()) != 1 ||
                SSL_write(one.tls.get(), request.data(), static_cast<int>(request.size())) <= 0) {
                throw std::runtime_error("no TLS");
            }
            all.push_back(std::move(one));
        }
        auto most = before;
        for (int step = 0; step < 20; ++step) {
            for (auto& one : all) {
                std::array<char, 16384> bytes;
                if (SSL_read(one.tls.get(), bytes.data(), bytes.size()) <= 0) {
                    throw std::runtime_error("a slow reader was sent away");
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
            most = std::max(most, resident_bytes(to->process.pid()));
        }
        return (most - before) / a_mib;
    }

    void add(row one) {
        std::fprintf(stderr, "bench: %s\n", one.name.c_str());
        out_.rows.push_back(std::move(one));
    }

    const lab& of_;
    const https_lab* lab_ = nullptr;
    found_rows out_;
};

}  // namespace

found_rows measure_https_memory(const lab& of) {
    return https_measuring{of}.run();
}

}  // namespace reprise::bench
