#pragma once
// The bench's own load: GETs over kept connections, in plain HTTP, either as fast as answers come
// or at a fixed rate.
//
// At a fixed rate each request has a time at which it is to be sent, whatever became of the ones
// before it, and its latency counts from that time. A server that stops for a second is charged
// with all the requests that wanted to be sent in it, not with one a connection ("coordinated
// omission"). Where all connections are busy, requests wait for one, and that counts too.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reprise::bench {

struct load_plan {
    std::uint16_t port = 0;
    std::size_t connections = 16;
    /// The whole of the n-th request.
    std::function<std::string(std::uint64_t)> request;
    std::uint64_t count = UINT64_MAX;
    double seconds = 1e9;
    double rate = 0;  ///< requests a second; 0: as fast as answers come
    const std::atomic<bool>* stop = nullptr;
    /// Goes before everything else on its processor, where the system allows it: what is to be sent
    /// at a time is then sent at that time, and what comes late is the server's delay.
    bool goes_first = false;
};

struct load_outcome {
    std::uint64_t right = 0;  ///< 200, and the whole body
    std::uint64_t wrong = 0;
    double seconds = 0;
    std::vector<double> latencies;  ///< milliseconds, of a load at a fixed rate

    /// Milliseconds.
    [[nodiscard]] double latency(double quantile) const;
};

/// @throws std::runtime_error when a connection ends, or nothing comes for ten seconds
[[nodiscard]] load_outcome run_load(const load_plan& plan);

/// "GET url" and the Host that it names, for a forward proxy; `authority` where the URL is a path.
[[nodiscard]] std::string get_request(const std::string& url, const std::string& authority);

struct simple_answer {
    int status = 0;
    std::string body;
};

/// One exchange on a connection of its own, "Connection: close". @throws std::runtime_error
[[nodiscard]] simple_answer exchange_once(std::uint16_t port,
                                          const std::string& method,
                                          const std::string& target,
                                          const std::string& fields = {});

}  // namespace reprise::bench
