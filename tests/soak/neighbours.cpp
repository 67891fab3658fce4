// soak_neighbours: what one client's stalled requests, crawling uploads and slow readers leave to
// another client of the same origin.
//
//     soak_neighbours                                 the program of this tree, 8 s a part
//     soak_neighbours --program OLD --program NEW     several, one after the other
//     soak_neighbours --seconds 2 --scale 0.1         the short form
//
// The neighbour asks for 400 small objects a second, each its own, on eight connections. Prints for
// each part how many answers it had a second, how long they took, and what the proxy's memory grew
// by. Status 1 when the neighbour had a wrong answer, or none, from the last program.

#include "tests/support/client.hpp"
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests::soak_neighbours {

namespace {

using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t mib = std::size_t{1} << 20;
const std::string attacker = "127.0.0.1";
const std::string neighbour = "127.0.0.2";
constexpr unsigned neighbour_connections = 8;
constexpr milliseconds pace{20};

struct measured {
    std::vector<double> took;  // milliseconds
    unsigned failed = 0;
    double seconds = 0;

    [[nodiscard]] double at(double share) const {
        const auto last = static_cast<double>(took.size()) - 1;
        return took.empty() ? 0 : took[static_cast<std::size_t>(share * last)];
    }
};

/// The neighbour, for so long.
measured ask_as_neighbour(const fake_origin& origin,
                          const proxy_process& proxy,
                          std::chrono::seconds time,
                          const std::string& part) {
    measured all;
    std::mutex guard;
    const auto start = clock_type::now();
    const auto work = [&](unsigned number) {
        auto next = start + pace * number / neighbour_connections;
        std::optional<client> one;
        for (unsigned i = 0; clock_type::now() < start + time; ++i) {
            std::this_thread::sleep_until(next);  // the load is a rate, whatever answers take
            next = std::max(next + pace, clock_type::now());
            const auto url = origin.url("/small?" + part + std::to_string(number) + "." +
                                        std::to_string(i));
            const auto asked = clock_type::now();
            bool good = false;
            try {
                if (!one) {
                    one.emplace(proxy.port(), neighbour);
                }
                one->send(absolute_request("GET", url));
                const auto answer = one->read();
                good = answer.status == 200 && answer.complete() && answer.body.size() == 1024;
            } catch (const std::runtime_error&) {
            }
            const std::chrono::duration<double, std::milli> took = clock_type::now() - asked;
            const std::lock_guard lock{guard};
            all.failed += !good;
            if (good) {
                all.took.push_back(took.count());
            } else {
                one.reset();
            }
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < neighbour_connections; ++i) {
        threads.emplace_back(work, i);
    }
    threads.clear();
    all.seconds = std::chrono::duration<double>(clock_type::now() - start).count();
    std::sort(all.took.begin(), all.took.end());
    return all;
}

/// What the attacker does every second while the neighbour asks.
using tick = std::function<void(std::vector<client>&)>;

struct part {
    std::string name;
    unsigned connections;
    std::function<void(client&, unsigned)> begin;
    tick every_second;
};

unsigned run(const std::string& program, std::chrono::seconds time, double scale) {
    if (!program.empty()) {
        ::setenv("REPRISE_PROGRAM", program.c_str(), 1);
    }
    fake_origin origin;
    auto& go = origin.make_gate();
    origin.on("/small", ok("Cache-Control: no-store\r\n", std::string(1024, 's')));
    origin.on("/big", ok("Cache-Control: no-store\r\n", std::string(2 * mib, 'b')));
    origin.on("/up", ok("", "thanks"));
    origin.on("/stall", [&go](origin_request&, origin_connection& connection) {
        (void)go.wait(std::chrono::minutes{10});
        connection.close();
    });

    const auto each = [](std::vector<client>& all, auto&& what) {
        for (auto& one : all) {
            what(one);
        }
    };
    const std::vector<part> parts{
        {"nobody else", 0, {}, {}},
        {"400 stalled requests",
         400,
         [&](client& one, unsigned i) {
             one.send(absolute_request("GET", origin.url("/stall?" + std::to_string(i))));
         },
         {}},
        {"2000 crawling uploads",
         2000,
         [&](client& one, unsigned i) {
             one.send(absolute_request(
                 "POST", origin.url("/up?" + std::to_string(i)), "Content-Length: 1000000\r\n"));
         },
         [&](std::vector<client>& all) { each(all, [](client& one) { one.send("x"); }); }},
        {"500 slow readers",
         500,
         [&](client& one, unsigned i) {
             one.connection().shrink_receive_buffer(4096);
             one.send(absolute_request("GET", origin.url("/big?" + std::to_string(i))));
         },
         [&](std::vector<client>& all) {
             std::string read;
             each(all, [&](client& one) {
                 read.clear();
                 (void)one.connection().read_some(read, milliseconds{0}, 2048);
             });
         }},
    };

    std::printf("%s\n", program.empty() ? "this tree's program" : program.c_str());
    std::printf("  %-24s %10s %8s %8s %8s %8s %12s\n",
                "beside",
                "answers/s",
                "p50 ms",
                "p99 ms",
                "most ms",
                "failed",
                "memory MiB");
    unsigned failed = 0;
    for (const auto& one : parts) {
        auto settings = basic_settings();
        settings["limits"]["connections_per_client"] = 4000;
        settings["log"] = {{"access", "off"}, {"level", "error"}};
        proxy_process proxy{settings};
        (void)ask_as_neighbour(origin, proxy, std::chrono::seconds{1}, "warm");
        const auto before = proxy.resident_bytes();
        proxy.forget_peak();
        std::vector<client> attackers;
        const auto count = static_cast<unsigned>(one.connections * scale);
        for (unsigned i = 0; i < count; ++i) {
            attackers.emplace_back(proxy.port(), attacker);
            one.begin(attackers.back(), i);
        }
        std::atomic<bool> over{false};
        std::thread ticks{[&] {
            while (!over && one.every_second) {
                one.every_second(attackers);
                for (int i = 0; i < 10 && !over; ++i) {
                    std::this_thread::sleep_for(milliseconds{100});  // a rate of the load's
                }
            }
        }};
        const auto had = ask_as_neighbour(origin, proxy, time, one.name.substr(0, 3));
        over = true;
        ticks.join();
        const auto grown = static_cast<double>(proxy.peak_resident_bytes()) -
                           static_cast<double>(before);
        std::printf("  %-24s %10.0f %8.1f %8.1f %8.1f %8u %12.1f\n",
                    one.name.c_str(),
                    static_cast<double>(had.took.size()) / had.seconds,
                    had.at(0.5),
                    had.at(0.99),
                    had.at(1),
                    had.failed,
                    grown / static_cast<double>(mib));
        std::fflush(stdout);
        failed += had.failed;
    }
    origin.open_gates();
    return failed;
}

}  // namespace

int run(int argc, char** argv) {
    CLI::App app{"What one client leaves to another of the same origin."};
    std::vector<std::string> programs;
    int seconds = 8;
    double scale = 1;
    app.add_option("--program", programs, "programs to try, one after the other");
    app.add_option("--seconds", seconds, "for each part");
    app.add_option("--scale", scale, "of the attacker's connections");
    CLI11_PARSE(app, argc, argv);
    if (programs.empty()) {
        programs.emplace_back();
    }
    unsigned failed = 0;
    for (const auto& one : programs) {
        failed = run(one, std::chrono::seconds{seconds}, scale);
    }
    return failed == 0 ? 0 : 1;
}

}  // namespace reprise::tests::soak_neighbours
