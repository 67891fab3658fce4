#pragma once
// c-ares on an Asio loop: its sockets are watched by the loop, its retries ride on a deadline.
// Questions and answers only; what to ask and what to keep is the resolver's business.

#include "config/options.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct ares_channeldata;

namespace reprise::proxy::net {

/// What one question brought.
struct dns_answer {
    enum class kind : std::uint8_t {
        addresses,
        no_address,  ///< the name exists, but not in this family
        no_name,     ///< NXDOMAIN
        timed_out,
        failed,  ///< the servers failed, refused, or answered nonsense
        cancelled,
    };
    kind what = kind::failed;
    std::vector<asio::ip::address> addresses;
    std::chrono::seconds ttl{0};  ///< the least of all records that led here, aliases included
    std::string why;              ///< c-ares's own words when there are no addresses
};

/// Threads   the one of `timer`'s io_context.
/// Bounded   each question ends by c-ares's own tries: 3 rounds over the servers.
class dns_channel {
public:
    using answered = std::function<void(dns_answer)>;

    /// @param options  servers (none: the system's) and timeout
    /// @throws std::runtime_error when c-ares can't start or take the servers
    dns_channel(deadlines& timer, const config::dns_options& options);
    /// Questions under way are answered `cancelled`, here.
    ~dns_channel();
    dns_channel(const dns_channel&) = delete;
    dns_channel& operator=(const dns_channel&) = delete;

    /// Asks for A or AAAA records. `then` may run inside this call (no memory, no server). It must
    /// not destroy the channel, and a std::bad_alloc out of it goes no further.
    /// @pre `name` is a host name; it is asked as it is, no search list.
    /// @throws std::bad_alloc: it may have been asked nevertheless, and `then` be called
    void ask(const std::string& name, ip_family family, answered then);

    /// Questions without an answer yet.
    [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }

private:
    struct watch;
    struct question;
    static void on_socket_state(void* self, int fd, int readable, int writable);
    void watch_socket(int fd, bool readable, bool writable);
    void wait_for(const std::shared_ptr<watch>& each, bool to_write);
    void process(int readable_fd, int writable_fd);
    void schedule_retry();

    deadlines& timer_;
    ares_channeldata* channel_ = nullptr;
    std::map<int, std::shared_ptr<watch>> watches_;
    deadline retry_;
    std::size_t under_way_ = 0;
};

}  // namespace reprise::proxy::net
