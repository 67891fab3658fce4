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

#include "tools/sized_origin.hpp"

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace reprise::tools;
using namespace std::chrono_literals;
using nlohmann::json;
using clock_type = std::chrono::steady_clock;

void stay_on(unsigned processor) {
    if (std::thread::hardware_concurrency() > processor) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        (void)::sched_setaffinity(0, sizeof set, &set);
    }
}

int connect_to(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        throw std::runtime_error("nobody listens");
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/// The program, from construction to destruction.
class running_proxy {
public:
    running_proxy(const std::string& program, const std::string& directory, const json& settings) {
        std::filesystem::create_directories(directory);
        std::ofstream{directory + "/settings.json"} << settings.dump(2);
        const auto ports_file = directory + "/ports.json";
        const auto config = directory + "/settings.json";
        pid_ = ::fork();
        if (pid_ < 0) {
            throw std::runtime_error("no child");
        }
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            stay_on(0);
            ::execl(program.c_str(),
                    program.c_str(),
                    "--config",
                    config.c_str(),
                    "--ports-file",
                    ports_file.c_str(),
                    nullptr);
            std::_Exit(127);
        }
        for (int tries = 0; tries < 1000; ++tries) {
            std::ifstream in{ports_file};
            const auto ports = json::parse(in, nullptr, false);
            if (!ports.is_discarded()) {
                port_ = port_in(ports.at("listeners").at(0));
                admin_ = port_in(ports.at("admin"));
                return;
            }
            std::this_thread::sleep_for(10ms);
        }
        stop();
        throw std::runtime_error("the proxy did not start");
    }
    ~running_proxy() { stop(); }
    running_proxy(const running_proxy&) = delete;
    running_proxy& operator=(const running_proxy&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }

    [[nodiscard]] double cpu_seconds() const {
        clockid_t clock{};
        timespec used{};
        if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
            throw std::runtime_error("the proxy has ended");
        }
        return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
    }

    [[nodiscard]] json stats() const {
        const int fd = connect_to(admin_);
        const auto ask = "GET /stats HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(admin_) +
                         "\r\nConnection: close\r\n\r\n";
        (void)::send(fd, ask.data(), ask.size(), MSG_NOSIGNAL);
        std::string all;
        std::array<char, 16384> piece;
        for (ssize_t got = 0; (got = ::recv(fd, piece.data(), piece.size(), 0)) > 0;) {
            all.append(piece.data(), static_cast<std::size_t>(got));
        }
        ::close(fd);
        return json::parse(all.substr(all.find("\r\n\r\n") + 4));
    }

private:
    static std::uint16_t port_in(const std::string& endpoint) {
        return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
    }
    void stop() const {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }

    pid_t pid_ = -1;
    std::uint16_t port_ = 0, admin_ = 0;
};

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
        one.fd = connect_to(port);
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

json settings_for(std::uint16_t origin) {
    return json{{"listeners", json::array({json{{"address", "127.0.0.1:0"}}})},
                {"admin", {{"address", "127.0.0.1:0"}}},
                {"threads", 1},
                {"admission", "always"},
                {"access", {{"allow_destinations", {"127.0.0.1:" + std::to_string(origin)}}}},
                {"log", {{"access", "off"}, {"level", "warn"}}}};
}

struct bench_plan {
    std::string program = REPRISE_PROGRAM;
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
        out.requests.push_back("GET http://" + origin.authority() +
                               sized_origin::path(out.first_key + object, size) +
                               " HTTP/1.1\r\nHost: " + origin.authority() + "\r\n\r\n");
    }
    return out;
}

class contest {
public:
    explicit contest(const bench_plan& plan)
        : plan_{plan},
          memory_{plan.program, plan.directory + "/memory", in_memory()},
          disk_{plan.program, plan.directory + "/disk", on_disk()} {
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
                const auto cpu = proxies[i]->cpu_seconds();
                const auto got = ask_all(
                    proxies[i]->port(), load, plan_.connections, UINT64_MAX, a_while);
                const auto count = static_cast<double>(std::max<std::uint64_t>(got.right, 1));
                cost[i].push_back((proxies[i]->cpu_seconds() - cpu) * 1e6 / count);
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
        auto out = settings_for(origin_.port());
        out["memory"] = {{"size", "1GiB"}};
        return out;
    }
    [[nodiscard]] json on_disk() const {
        auto out = settings_for(origin_.port());
        // Nothing that is asked for here is small enough for this memory.
        out["memory"] = {{"size", "1MiB"}, {"max_object", "1KiB"}};
        out["disk"] = {{"path", plan_.directory + "/disk/store"}, {"size", "2GiB"}};
        return out;
    }

    static std::uint64_t disk_hits(const running_proxy& proxy) {
        const auto stats = proxy.stats();
        return stats.value(json::json_pointer{"/disk/lookups/hit"}, std::uint64_t{0});
    }
    /// What was stored is written a moment later: until its count rests.
    static void wait_until_quiet(const running_proxy& proxy) {
        const auto written = [&] {
            return proxy.stats().value(json::json_pointer{"/disk/written_bytes"}, std::uint64_t{0});
        };
        auto before = written();
        for (int tries = 0; tries < 60; ++tries) {
            std::this_thread::sleep_for(500ms);
            const auto now = written();
            if (now == before) {
                return;
            }
            before = now;
        }
    }

    const bench_plan& plan_;
    sized_origin origin_;
    running_proxy memory_, disk_;
};

}  // namespace

int main(int argc, char** argv) {
    bench_plan plan;
    CLI::App app{"Measures hits on disk beside hits in memory."};
    app.add_option("--reprise", plan.program, "the program")->check(CLI::ExistingFile);
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
    stay_on(1);
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
