// framing: messages by a grammar, both ways through the program, against a strict reader.
//
//     framing                              10^6 messages, some minutes
//     framing --messages 20000             the short form
//     framing --seed 7 --first 41 --messages 4    one trial again
//     framing --sabotage                   a relay that reads nothing stands in for the program:
//                                          the reader must find that it does
//
// In a network namespace of its own, in which nothing but loopback is: whatever a bent message
// makes the program do, no packet goes further. Where none is to be had it says so and ends with
// status
// 77. Status 1: a promise of trial.hpp was broken; each of the first twenty is printed, with its
// trial.

#include "tests/framing/trial.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/stream.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace reprise;

// True when this process, and what it starts, sees nothing but a loopback that is up.
bool leave_the_network() {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    const bool up = fd >= 0 && ::ioctl(fd, SIOCGIFFLAGS, &loopback) == 0 &&
                    (loopback.ifr_flags |= IFF_UP, ::ioctl(fd, SIOCSIFFLAGS, &loopback) == 0);
    const auto* const all = ::if_nameindex();
    const bool alone = all != nullptr && std::string_view{all[0].if_name} == "lo" &&
                       all[1].if_index == 0;
    ::close(fd);
    return up && alone;
}

/// What a proxy must not be: it passes bytes on as they come, to whom the first request names.
class sabotage {
public:
    sabotage() : thread_{[this] { run(); }} {}
    ~sabotage() {
        listener_.stop();
        thread_.join();
    }
    [[nodiscard]] std::uint16_t port() const { return listener_.port(); }

private:
    void run() {
        for (;;) {
            auto client = listener_.accept(std::chrono::hours{1});
            if (!client.is_open()) {
                return;
            }
            pass(client);
        }
    }
    static void pass(tests::stream& client) {
        constexpr std::chrono::milliseconds patience{50};
        std::string said;
        (void)client.read_some(said, patience);
        const auto end = said.find("/f/");
        const auto colon = said.rfind(':', end);
        if (end == said.npos || colon == said.npos) {
            return;
        }
        try {
            auto origin = tests::stream::connect(
                static_cast<std::uint16_t>(std::atoi(said.c_str() + colon + 1)));
            // Origin-form at least, so that it is what bytes mean that is found.
            for (auto at = said.find(" http://"); at != said.npos;
                 at = said.find(" http://", at + 1)) {
                const auto path = said.find("/f/", at);
                if (path != said.npos) {
                    said.erase(at + 1, path - at - 1);
                }
            }
            origin.send(said);
            for (std::string back; origin.read_some(back, patience) == tests::read_end::data;
                 back.clear()) {
                client.send(back);
            }
        } catch (const std::runtime_error&) {  // nobody is there
        }
    }

    tests::acceptor listener_;
    std::thread thread_;
};

tests::json settings() {
    auto out = tests::basic_settings();
    // What waits for the rest of a message is not waited for long.
    out["timeouts"]["client_head"] = "1s";
    out["timeouts"]["client_body"] = "1s";
    out["timeouts"]["client_idle"] = "1s";
    out["timeouts"]["origin_head"] = "2s";
    out["limits"]["connections_per_client"] = 4096;
    return out;
}

framing::totals run(std::uint16_t port,
                    std::uint64_t seed,
                    std::uint64_t first,
                    std::uint64_t messages,
                    unsigned at_once,
                    bool verbose) {
    framing::totals sum;
    std::deque<framing::slot> slots;
    for (unsigned i = 0; i < at_once; ++i) {
        slots.emplace_back(port, seed, verbose, sum);
    }
    std::vector<pollfd> watched;
    std::vector<std::size_t> places;
    auto trial = first;
    for (bool running = true; running;) {
        running = false;
        watched.clear();
        places.clear();
        for (auto& one : slots) {
            if (one.is_idle() && sum.messages < messages) {
                one.begin(trial++);
            }
            running = running || !one.is_idle();
            places.push_back(watched.size());
            one.add_to(watched);
        }
        if (running && ::poll(watched.data(), watched.size(), 200) < 0 && errno != EINTR) {
            throw std::runtime_error{"poll"};
        }
        for (std::size_t i = 0; i < slots.size(); ++i) {
            slots[i].go_on(watched, places[i]);
        }
    }
    return sum;
}

}  // namespace

int main(int count, char** arguments) {
    std::uint64_t seed = 1, first = 0, messages = 1'000'000;
    unsigned at_once = 32;
    bool is_sabotage = false, verbose = false;
    CLI::App app{"messages by a grammar, both ways, against a strict reader"};
    app.add_option("--seed", seed);
    app.add_option("--first", first, "the trial to begin with");
    app.add_option("--messages", messages);
    app.add_option("--at-once", at_once, "connections");
    app.add_flag("--sabotage", is_sabotage, "no proxy: all must be found");
    app.add_flag("--verbose", verbose);
    CLI11_PARSE(app, count, arguments);
    if (!leave_the_network()) {
        std::printf("skipped: no network namespace of its own here\n");
        return 77;
    }
    framing::totals sum;
    if (is_sabotage) {
        const sabotage relay;
        sum = run(relay.port(), seed, first, messages, 1, verbose);
        std::printf("%llu violations seen\n", static_cast<unsigned long long>(sum.violations));
        return sum.violations > messages / 100 ? 0 : 1;
    }
    {
        const tests::proxy_process proxy{settings()};
        sum = run(proxy.port(), seed, first, messages, at_once, verbose);
    }
    const auto number = [](std::uint64_t of) { return static_cast<unsigned long long>(of); };
    std::printf(
        "seed %llu: %llu messages, %llu heard by origins, %llu refused by the strict reader,\n"
        "%llu of %llu plain connections answered whole, %llu stalled, %llu violations\n",
        number(seed),
        number(sum.messages),
        number(sum.heard_whole),
        number(sum.refused),
        number(sum.plain_answered),
        number(sum.plain),
        number(sum.stalled),
        number(sum.violations));
    for (const auto& [kind, times] : sum.by_kind) {
        std::printf("    %llu: %s\n", number(times), kind.c_str());
    }
    // What refuses everything would break no promise.
    const bool served = sum.plain_answered * 100 >= sum.plain * 95;
    return sum.violations == 0 && served ? 0 : 1;
}
