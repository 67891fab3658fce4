#pragma once
// The admin listener: a small HTTP server on a thread and an io_context of its own, so that drawing
// up /stats or serving a slow reader never delays a client of the proxy.
// It is a web server on loopback, which any page in the operator's browser can send requests to.
// Therefore it answers only to its own Host names (a rebound name gets 421), refuses what another
// site sends (403), and wants POST and a bearer token for whatever changes something.

#include "config/options.hpp"
#include "proxy/admin/stats.hpp"

#include <boost/beast/http/verb.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy {

struct admin_request {
    boost::beast::http::verb method;
    std::string_view path;
    std::string_view query;  ///< after the "?", not decoded
    std::string_view body;
};

struct admin_response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
};

/// One row of the route table. GET answers HEAD too. Handlers run on the admin thread, one at a
/// time; one that throws makes a 500 and a log line.
struct admin_route {
    boost::beast::http::verb method;
    std::string path;   ///< exact
    bool needs_token;   ///< whatever changes something; such a route must be a POST
    std::string about;  ///< one line for the index page
    std::function<admin_response(const admin_request&)> handler;
    /// What tells of single URLs: from anywhere but loopback it wants the token.
    bool token_from_afar = false;
};

/// What the server asks of the rest of the program; called on the admin thread.
struct admin_hooks {
    std::function<readiness()> ready;
    std::function<stats_inputs()> stats;
    /// Loads the settings again: no mistakes, or every one of them.
    std::function<std::vector<std::string>()> reload;
    /// About once a second (ratio_windows::tick). May be empty.
    std::function<void()> tick;
};

struct admin_limits {
    std::size_t head_bytes = 16 << 10;
    std::size_t body_bytes = 64 << 10;
    std::size_t connections = 64;
    std::chrono::milliseconds request{10'000};  ///< from its first byte, and again for the answer
    std::chrono::milliseconds idle{60'000};     ///< between requests
};

class admin_server {
public:
    /// Makes the route table: /, /healthz, /readyz, /stats, /metrics and POST /reload.
    explicit admin_server(admin_hooks hooks, admin_limits limits = {});
    /// Like stop().
    ~admin_server();
    admin_server(const admin_server&) = delete;
    admin_server& operator=(const admin_server&) = delete;

    /// Adds a row. @pre not started
    void add_route(admin_route route);

    /// Listens and starts the thread; gives the address bound (port 0: the one the system picked).
    /// Reads the token file: one that cannot be read, or is empty, is logged, and what needs a
    /// token is refused. @pre options.address has a value
    [[nodiscard]] boost::system::result<config::endpoint> start(
        const config::admin_options& options);

    /// After a reload: host names and token are read anew; the address stays. A handler may call it
    /// (POST /reload does, through its hook), and whoever calls start and stop.
    void reconfigure(const config::admin_options& options);

    /// Closes the listener and all connections, waits for the thread. Idempotent; not from a
    /// handler.
    void stop() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace reprise::proxy
