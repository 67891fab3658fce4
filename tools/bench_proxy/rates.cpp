// Whether limits.client_rate is what a client gets: hits from memory and a tunnel, at 1, 10 and 100
// MiB a second, on one connection and on four that share.
//
// What is counted is what came, heads included, from the request on: what a bucket gives at once (an
// eighth of a second's worth) is in it, and so is whatever the machine held up.

#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/sockets.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>

namespace reprise::bench {

namespace {

constexpr std::uint64_t rate_unit = 1u << 20;
constexpr std::size_t rated_body = 1u << 20;

struct rated {
    const char* name;
    bool tunnel;
    std::size_t connections;
};
// The origin answers one connection at a time, so several tunnels would wait for each other there.
constexpr std::array<rated, 3> rated_kinds{
    {{"hits", false, 1}, {"hits on 4 connections", false, 4}, {"tunnel", true, 1}}};

/// A connection on which more is asked for than can come, and what came of it.
class taker {
public:
    taker(const lab& of, const server& from, const rated& kind, std::uint64_t answers)
        : to_{connect_to(from.port)} {
        std::string asked;
        const auto url = (kind.tunnel ? std::string{} : of.origin.base()) + "/" +
                         std::to_string(rated_body) + "/rated";
        if (kind.tunnel) {
            open_tunnel(of.origin.authority());
        }
        for (std::uint64_t i = 0; i < answers; ++i) {
            asked += get_request(url, of.origin.authority());
        }
        asks_ = std::thread{[this, asked = std::move(asked)] {
            try {
                send_all(to_.get(), asked);
            } catch (const std::runtime_error&) {
                // It has been ended with more asked for than came.
            }
        }};
        takes_ = std::thread{[this] { take(); }};
    }
    taker(const taker&) = delete;
    taker& operator=(const taker&) = delete;
    ~taker() {
        ::shutdown(to_.get(), SHUT_RDWR);
        asks_.join();
        takes_.join();
    }
    [[nodiscard]] std::uint64_t came() const { return came_.load(); }

private:
    void open_tunnel(const std::string& authority) {
        send_all(to_.get(),
                 "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
        std::string head;
        char byte = 0;
        while (head.find("\r\n\r\n") == std::string::npos && ::recv(to_.get(), &byte, 1, 0) == 1) {
            head += byte;
        }
        if (head.find(" 200 ") == std::string::npos) {
            throw std::runtime_error("no tunnel: " + head);
        }
    }
    void take() {
        std::array<char, 256u << 10> room;
        for (ssize_t got = 0; (got = ::recv(to_.get(), room.data(), room.size(), 0)) > 0;) {
            came_ += static_cast<std::uint64_t>(got);
        }
    }

    socket_handle to_;
    std::atomic<std::uint64_t> came_{0};
    std::thread asks_, takes_;
};

/// What came of what was to come.
double share_of_rate(const lab& of, const server& from, const rated& kind, std::uint64_t rate) {
    const auto seconds = of.wanted.rate_seconds;
    const auto answers = 4 + static_cast<std::uint64_t>(2 * seconds * static_cast<double>(rate)) /
                                 rated_body / kind.connections;
    const auto begun = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<taker>> all;
    for (std::size_t i = 0; i < kind.connections; ++i) {
        all.push_back(std::make_unique<taker>(of, from, kind, answers));
    }
    std::this_thread::sleep_until(begun + std::chrono::duration<double>{seconds});
    std::uint64_t came = 0;
    for (const auto& one : all) {
        came += one->came();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    return static_cast<double>(came) / (static_cast<double>(rate) * took.count());
}

/// Until the bucket is full again, and the object is there.
void have_it_stored(const lab& of, const server& from) {
    load_plan load;
    load.port = from.port;
    load.connections = 1;
    load.count = 1;
    load.request = [&of](std::uint64_t) {
        return get_request(of.origin.base() + "/" + std::to_string(rated_body) + "/rated",
                           of.origin.authority());
    };
    if (run_load(load).wrong > 0) {
        throw std::runtime_error("wrong answers while a store was filled");
    }
}

}  // namespace

found_rows measure_rates(const lab& of) {
    found_rows out;
    for (const std::uint64_t rate : {1u, 10u, 100u}) {
        const auto name = "rate " + std::to_string(rate) + " MiB";
        if (!of.wanted.wants("rates", name)) {
            continue;
        }
        const auto ours = start_reprise(
            of,
            {.program = of.wanted.program,
             .settings = {{"admission", "always"},
                          {"limits", {{"client_rate", std::to_string(rate) + "MiB"}}},
                          {"access", {{"connect_ports", {of.origin.port()}}}}},
             .where = processor::any});
        have_it_stored(of, *ours);
        for (const auto& kind : rated_kinds) {
            row off{.name = name + ": " + kind.name + ": off by", .unit = "%", .goal = 5};
            off.grain = 5;  // that it is met is what counts
            std::string shares;
            for (unsigned round = 0; round < of.wanted.rate_rounds; ++round) {
                std::this_thread::sleep_for(std::chrono::milliseconds{300});
                const auto share = share_of_rate(of, *ours, kind, rate * rate_unit);
                off.rounds.push_back(100 * std::abs(share - 1));
                std::array<char, 16> text{};
                std::snprintf(text.data(), text.size(), " %.4f", share);
                shares += text.data();
            }
            out.notes.push_back(name + ": " + kind.name + ": of the rate came" + shares);
            out.rows.push_back(std::move(off));
        }
        std::fprintf(stderr, "bench: %s\n", name.c_str());
    }
    return out;
}

}  // namespace reprise::bench
