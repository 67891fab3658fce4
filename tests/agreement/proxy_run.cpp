#include "tests/agreement/proxy_run.hpp"

#include "tests/support/sized_origin.hpp"
#include "tools/sized_body.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace reprise::tests {

namespace {

using namespace std::chrono_literals;

struct io_counters {
    std::uint64_t handed = 0, written_back = 0;
};

io_counters io_of(pid_t pid) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/io"};
    io_counters out;
    std::string name;
    for (std::uint64_t value = 0; in >> name >> value;) {
        if (name == "wchar:") {
            out.handed = value;
        } else if (name == "write_bytes:") {
            out.written_back = value;
        }
    }
    return out;
}

/// A trace comes here a thousand times as fast as it was. What is admitted can be found on disk
/// only when it is written, so whoever plays waits now and then until the disk has caught up, as it
/// would have by itself.
void let_the_disk_follow(const proxy_process& proxy) {
    const json::json_pointer queued{"/disk/queued_bytes"};
    (void)eventually([&] { return proxy.stats().value(queued, std::uint64_t{0}) == 0; });
}
constexpr std::uint64_t requests_at_once = 200;

std::string request_for(const sized_origin& origin, std::uint64_t object, std::uint64_t bytes) {
    return absolute_request("GET", origin.url(object, bytes));
}

}  // namespace

proxy_outcome play(const played_trace& trace, json settings) {
    const sized_origin origin;
    settings["access"]["allow_destinations"] = json::array({origin.authority()});
    proxy_process proxy{settings};
    const auto before = io_of(proxy.pid());
    auto connection = proxy.connect();
    proxy_outcome out;
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& one : trace.requests) {
        const auto answer = connection.ask(request_for(origin, one.object, one.bytes));
        if (++out.requests % requests_at_once == 0 && settings.contains("disk")) {
            let_the_disk_follow(proxy);
        }
        const bool right = answer.complete() && answer.status == 200 &&
                           answer.body.size() == one.bytes &&
                           tools::is_body(one.object, 0, answer.body);
        if (!right) {
            ++out.wrong;
            if (!proxy.is_running()) {
                throw std::runtime_error("the proxy ended:\n" + proxy.errors());
            }
            connection = proxy.connect();
        }
    }
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    let_the_disk_follow(proxy);
    out.stats = proxy.stats();
    const auto after = io_of(proxy.pid());
    out.io_written = after.handed - before.handed;
    out.io_written_back = after.written_back - before.written_back;
    out.reached_origin = origin.requests();
    out.origin_bytes = origin.bytes();
    return out;
}

memory_charge memory_charge::measured(std::uint32_t largest) {
    const sized_origin origin;
    auto settings = storing_settings();
    settings["threads"] = 1;
    settings["memory"] = {{"size", "4GiB"}, {"max_object", "1GiB"}};
    settings["access"]["allow_destinations"] = json::array({origin.authority()});
    const proxy_process proxy{settings};
    auto connection = proxy.connect();
    const auto bytes_now = [&] {
        return proxy.stats().at("store").at("bytes").get<std::uint64_t>();
    };
    memory_charge out;
    std::uint64_t object = 0;
    auto had = bytes_now();
    const auto ask = [&](std::uint32_t bytes) {
        (void)connection.ask(request_for(origin, object++, bytes));
        std::uint64_t now = had;
        // The reply may be whole a moment before the response is stored.
        if (!eventually([&] { return (now = bytes_now()) != had; })) {
            throw std::runtime_error("nothing was stored");
        }
        out.known_.emplace_back(bytes, now - had);
        had = now;
    };
    // The first of all makes the table of its stripe.
    ask(1);
    out.known_.clear();
    for (double bytes = 1; bytes < largest; bytes = std::max(bytes + 16, bytes * 1.05)) {
        ask(static_cast<std::uint32_t>(bytes));
    }
    ask(largest);
    return out;
}

std::uint64_t memory_charge::operator()(std::uint32_t bytes) const {
    const auto above = std::lower_bound(
        known_.begin(), known_.end(), std::pair{bytes, std::uint64_t{0}});
    if (above == known_.end()) {
        return known_.back().second;
    }
    if (above == known_.begin()) {
        return above->second;
    }
    const auto& below = *(above - 1);
    const double part = static_cast<double>(bytes - below.first) /
                        static_cast<double>(above->first - below.first);
    const auto low = static_cast<double>(below.second);
    return static_cast<std::uint64_t>(low + part * (static_cast<double>(above->second) - low));
}

}  // namespace reprise::tests
