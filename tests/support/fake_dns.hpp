#pragma once
// A name server that knows what a test tells it, on loopback, and counts what it is asked. Unknown names do not exist
// (NXDOMAIN); a name without an address of the asked family has none (an empty answer). What does not fit 512 bytes is
// cut over UDP, and had over TCP.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::tests {

enum class dns_type : std::uint16_t { a = 1, aaaa = 28 };

struct dns_reply {
    unsigned rcode = 0;  ///< 2: server failure, 3: no such name
    std::vector<std::string> addresses{};
    std::uint32_t ttl = 60;
    bool silent = false;
    std::chrono::milliseconds delay{0};
};

/// Listens from construction to destruction. Every method may be called from any thread.
class fake_dns {
public:
    /// @throws std::runtime_error
    fake_dns();
    fake_dns(const fake_dns&) = delete;
    fake_dns& operator=(const fake_dns&) = delete;
    ~fake_dns();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// "127.0.0.1:5301"
    [[nodiscard]] std::string endpoint() const;

    /// What one question is answered from now on; names are in lower case.
    void set(const std::string& name, dns_type type, dns_reply reply);
    /// The name has this address alone.
    void set_v4(const std::string& name, const std::string& address, std::uint32_t ttl = 60);
    /// Adds an address, of either family, to a name.
    void add(const std::string& name, const std::string& address, std::chrono::seconds ttl);
    /// The name does not exist any more.
    void forget(const std::string& name);
    /// Answers nothing from now on.
    void be_silent() { silent_ = true; }
    /// How often this question was asked.
    [[nodiscard]] unsigned asked(const std::string& name, dns_type type) const;

private:
    using question = std::pair<std::string, dns_type>;
    struct message {
        std::string bytes;
        std::chrono::milliseconds delay{0};
    };
    void open_ports();
    void serve();
    void serve_udp();
    void serve_tcp();
    /// Empty: none.
    [[nodiscard]] message answer_to(const std::string& query);

    struct late_answer {
        std::chrono::steady_clock::time_point due;
        std::string bytes;
        std::uint16_t port;
    };
    void send_late();

    int fd_ = -1;   // UDP
    int tcp_ = -1;  // of the same number
    std::uint16_t port_ = 0;
    std::atomic<bool> silent_{false};
    std::atomic<bool> stopping_{false};
    mutable std::mutex mutex_;
    std::map<question, dns_reply> replies_;
    std::map<question, unsigned> asked_;
    std::vector<late_answer> late_;  // the thread's
    std::thread thread_;
};

}  // namespace reprise::tests
