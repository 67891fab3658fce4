#pragma once
// A name server that knows what a test tells it, on loopback, and counts what it is asked. Unknown
// names do not exist (NXDOMAIN); a name without an address of the asked family has none (an empty
// answer). What does not fit 512 bytes is cut over UDP, and had over TCP.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests {

/// Listens from construction to destruction. Every method may be called from any thread.
class fake_dns {
public:
    static constexpr std::uint16_t type_a = 1;
    static constexpr std::uint16_t type_aaaa = 28;

    /// @throws std::runtime_error
    fake_dns();
    fake_dns(const fake_dns&) = delete;
    fake_dns& operator=(const fake_dns&) = delete;
    ~fake_dns();

    /// "127.0.0.1:5301"
    [[nodiscard]] std::string endpoint() const;

    /// Adds an address, of either family, to a name in lower case.
    void add(const std::string& name, const std::string& address, std::chrono::seconds ttl);
    /// The name does not exist any more.
    void forget(const std::string& name);
    /// Answers nothing from now on.
    void be_silent() { silent_ = true; }
    /// How often this name was asked for.
    [[nodiscard]] unsigned queries(const std::string& name, std::uint16_t type) const;

private:
    struct record {
        std::uint16_t type;
        std::string bytes;
        std::uint32_t ttl;
    };
    void open_ports();
    void serve();
    void serve_udp();
    void serve_tcp();
    [[nodiscard]] std::string answer_to(const std::string& query);

    int fd_ = -1;   // UDP
    int tcp_ = -1;  // of the same number
    std::uint16_t port_ = 0;
    std::atomic<bool> silent_{false};
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;
    std::map<std::string, std::vector<record>> records_;
    std::map<std::pair<std::string, std::uint16_t>, unsigned> queries_;
    std::thread thread_;
};

}  // namespace reprise::tests
