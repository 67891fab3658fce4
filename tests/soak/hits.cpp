// What a hit on disk costs beside a hit in memory, through the whole proxy: CPU microseconds of its
// process a request, over keep-alive connections from one thread of this program, whose answers are
// checked byte by byte.
//
//   bench_hits                   objects of 1,100, 16,384 and 100,000 bytes
//   bench_hits --size 4096       of another size
//
// Two proxies stand side by side, alike but for where their hits come from: one holds all in
// memory, the other has a memory that takes no such object, and a disk whose files the page cache
// holds. Rounds of the two take turns. With two processors the proxies have one and the load and
// the origin the other.
//
// The figure is the processes' own user and system time, which stays steady where requests a second
// do not.

#include "tests/support/proxy_process.hpp"
#include "tests/support/sized_origin.hpp"
#include "tools/sized_body.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reprise::tests::bench_hits {

namespace {

using namespace std::chrono_literals;
using reprise::tools::is_body;
using clock_type = std::chrono::steady_clock;

void stay_on_the_second() {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(1, &set);
    (void)::sched_setaffinity(0, sizeof set, &set);
}

bool has_processors() {
    return std::thread::hardware_concurrency() > 1;
}

start_options on_the_first() {
    return {.run_by = has_processors() ? std::vector<std::string>{"taskset", "--cpu-list", "0"}
                                       : std::vector<std::string>{}};
}

double cpu_seconds(const proxy_process& proxy) {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(proxy.pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
        throw std::runtime_error("the proxy has ended");
    }
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// What is asked for: as many objects as `requests`, all of one size.
struct workload {
    std::vector<std::string> requests;  ///< object i's
    std::uint64_t size = 0;
    std::uint64_t first_key = 0;
};

/// One connection of the load: always one request under way.
struct asking {
    int fd = -1;
    std::uint64_t object = 0;
    std::string in;
    std::size_t head = 0;  ///< its size, once it is whole
};

struct answered {
    std::uint64_t right = 0, wrong = 0;
    double seconds = 0;
};

/// Objects are asked for in turn, by all connections together, until `count` or the time is over.
answered ask_all(std::uint16_t port,
                 const workload& load,
                 unsigned connections,
                 std::uint64_t count,
                 std::chrono::milliseconds time) {
    const int events = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<asking> all(connections);
    std::uint64_t next = 0;
    answered out;
    const auto ask = [&](asking& one) {
        one.object = next++ % load.requests.size();
        one.in.clear();
        one.head = 0;
        const auto& request = load.requests[one.object];
        if (::send(one.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(request.size())) {
            throw std::runtime_error("the proxy takes no request");
        }
    };
    const auto begin = clock_type::now();
    for (auto& one : all) {
        one.fd = stream::connect(port).release();
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.ptr = &one;
        ::epoll_ctl(events, EPOLL_CTL_ADD, one.fd, &interest);
        ask(one);
    }
    std::array<epoll_event, 64> ready;
    std::vector<char> piece(256 << 10);
    auto open = connections;
    while (open > 0) {
        const int some = ::epoll_wait(events, ready.data(), ready.size(), 10'000);
        if (some <= 0) {
            throw std::runtime_error("no answer came for ten seconds");
        }
        const bool over = clock_type::now() - begin > time;
        for (int i = 0; i < some; ++i) {
            auto& one = *static_cast<asking*>(ready[static_cast<std::size_t>(i)].data.ptr);
            const auto got = ::recv(one.fd, piece.data(), piece.size(), MSG_DONTWAIT);
            if (got <= 0) {
                throw std::runtime_error("the proxy ended a connection");
            }
            one.in.append(piece.data(), static_cast<std::size_t>(got));
            if (one.head == 0) {
                const auto end = one.in.find("\r\n\r\n");
                if (end == std::string::npos) {
                    continue;
                }
                one.head = end + 4;
            }
            if (one.in.size() < one.head + load.size) {
                continue;
            }
            const auto body = std::string_view{one.in}.substr(one.head);
            const bool right = body.size() == load.size &&
                               one.in.compare(0, 15, "HTTP/1.1 200 OK") == 0 &&
                               is_body(load.first_key + one.object, 0, body);
            (right ? out.right : out.wrong) += 1;
            if (over || next >= count) {
                ::close(one.fd);
                --open;
            } else {
                ask(one);
            }
        }
    }
    ::close(events);
    out.seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    return out;
}

json settings_on_one_thread() {
    auto out = storing_settings();
    out["threads"] = 1;
    out["log"] = {{"access", "off"}, {"level", "warn"}};
    return out;
}

struct bench_plan {
    std::string directory = ".";
    std::vector<std::uint64_t> sizes{1'100, 16'384, 100'000};
    std::uint64_t objects = 1000;
    unsigned rounds = 7, connections = 32;
    double seconds = 1.5;
};

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

workload workload_of(const sized_origin& origin, const bench_plan& plan, std::uint64_t size) {
    workload out;
    out.size = size;
    out.first_key = size * 1'000'000;
    for (std::uint64_t object = 0; object < plan.objects; ++object) {
        out.requests.push_back(absolute_request("GET", origin.url(out.first_key + object, size)));
    }
    return out;
}

class contest {
public:
    explicit contest(const bench_plan& plan)
        : plan_{plan},
          memory_{in_memory(), on_the_first()},
          disk_{on_disk(), on_the_first()} {
        std::printf(
            "| size | hits | CPU, us a request | least | most | requests/s | origin | "
            "disk hits a request | ratio |\n|---:|---|---:|---:|---:|---:|---:|---:|---:|\n");
    }

    /// True when all answers were right.
    [[nodiscard]] bool play(std::uint64_t size) {
        const auto load = workload_of(origin_, plan_, size);
        const auto a_while = std::chrono::milliseconds{static_cast<int>(plan_.seconds * 1e3)};
        const std::array proxies{&memory_, &disk_};
        for (const auto* proxy : proxies) {  // fills; then warms up
            (void)ask_all(proxy->port(), load, 4, plan_.objects, 1h);
            wait_until_quiet(*proxy);
            (void)ask_all(proxy->port(), load, plan_.connections, 2 * plan_.objects, 1h);
        }
        std::array<std::vector<double>, 2> cost, rate;
        std::array<std::uint64_t, 2> asked{}, fetched{}, from_disk{};
        bool right = true;
        for (unsigned round = 0; round < plan_.rounds; ++round) {
            for (std::size_t i = 0; i < proxies.size(); ++i) {
                const auto fetched_before = origin_.requests();
                const auto disk_before = disk_hits(*proxies[i]);
                const auto cpu = cpu_seconds(*proxies[i]);
                const auto got = ask_all(
                    proxies[i]->port(), load, plan_.connections, UINT64_MAX, a_while);
                const auto count = static_cast<double>(std::max<std::uint64_t>(got.right, 1));
                cost[i].push_back((cpu_seconds(*proxies[i]) - cpu) * 1e6 / count);
                rate[i].push_back(count / got.seconds);
                asked[i] += got.right + got.wrong;
                fetched[i] += origin_.requests() - fetched_before;
                from_disk[i] += disk_hits(*proxies[i]) - disk_before;
                right = right && got.wrong == 0;
            }
        }
        for (std::size_t i = 0; i < proxies.size(); ++i) {
            std::printf("| %llu | %s | %.2f | %.2f | %.2f | %.0f | %llu | %.3f | %.2f |\n",
                        static_cast<unsigned long long>(size),
                        i == 0 ? "memory" : "disk",
                        median(cost[i]),
                        *std::min_element(cost[i].begin(), cost[i].end()),
                        *std::max_element(cost[i].begin(), cost[i].end()),
                        median(rate[i]),
                        static_cast<unsigned long long>(fetched[i]),
                        static_cast<double>(from_disk[i]) / static_cast<double>(asked[i]),
                        median(cost[i]) / median(cost[0]));
        }
        std::fflush(stdout);
        return right;
    }

private:
    [[nodiscard]] json in_memory() const {
        auto out = settings_on_one_thread();
        out["memory"] = {{"size", "1GiB"}};
        return out;
    }
    [[nodiscard]] json on_disk() const {
        auto out = settings_on_one_thread();
        // Nothing that is asked for here is small enough for this memory.
        out["memory"] = {{"size", "1MiB"}, {"max_object", "1KiB"}};
        out["disk"] = {
            {"path", plan_.directory + "/store"}, {"size", "2GiB"}, {"write", "admission"}};
        return out;
    }

    static std::uint64_t disk_hits(const proxy_process& proxy) {
        const auto stats = proxy.stats();
        return stats.value(json::json_pointer{"/disk/lookups/hit"}, std::uint64_t{0});
    }
    /// What was stored is written a moment later.
    static void wait_until_quiet(const proxy_process& proxy) {
        (void)eventually([&] {
            return proxy.stats().value(json::json_pointer{"/disk/queued_bytes"},
                                       std::uint64_t{0}) == 0;
        });
    }

    const bench_plan& plan_;
    sized_origin origin_;
    proxy_process memory_, disk_;
};

}  // namespace

int run(int argc, char** argv) {
    bench_plan plan;
    CLI::App app{"Measures hits on disk beside hits in memory."};
    std::string program;
    app.add_option("--program", program, "default: of the same build")->check(CLI::ExistingFile);
    app.add_option("--dir", plan.directory, "a directory on the disk to be measured")
        ->check(CLI::ExistingDirectory);
    app.add_option("--size", plan.sizes, "bytes of body, above 1 KiB")
        ->delimiter(',')
        ->check(CLI::Range(std::uint64_t{1025}, std::uint64_t{1} << 24));
    app.add_option("--objects", plan.objects, "that are asked for in turn")
        ->check(CLI::PositiveNumber);
    app.add_option("--rounds", plan.rounds, "of each")->check(CLI::PositiveNumber);
    app.add_option("--seconds", plan.seconds, "a round")->check(CLI::PositiveNumber);
    app.add_option("--connections", plan.connections, "of the load")->check(CLI::PositiveNumber);
    CLI11_PARSE(app, argc, argv);

    plan.directory += "/bench_hits-" + std::to_string(::getpid());
    std::filesystem::create_directory(plan.directory);
    if (!program.empty()) {
        ::setenv("REPRISE_PROGRAM", program.c_str(), 1);
    }
    if (has_processors()) {
        stay_on_the_second();
    }
    int status = 0;
    try {
        contest both{plan};
        for (const auto size : plan.sizes) {
            if (!both.play(size)) {
                std::fprintf(stderr, "bench_hits: wrong answers\n");
                status = 1;
            }
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_hits: %s\n", error.what());
        status = 1;
    }
    std::filesystem::remove_all(plan.directory);
    return status;
}

}  // namespace reprise::tests::bench_hits
