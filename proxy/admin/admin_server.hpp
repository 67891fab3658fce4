#pragma once
// The admin listener: a small HTTP server on threads of its own, so that drawing up /stats or
// serving a slow reader never delays a client of the proxy.
//
// One thread has the sockets, and answers by itself only what can't have to wait (`at_once`):
// /healthz and /readyz come whatever else is under way, and / without its figures then. The other handlers run on a second thread,
// one at a time; one that hangs holds up these alone, and clients that wait for them are told so in
// time. What a handler can't know yet (is a purge on disk?) is waited for on neither.
//
// Where there are as many connections as may be, the one that has waited longest for its client
// makes room for the next: nobody keeps others out by opening connections and saying nothing.
//
// It is a web server on loopback, which any page in the operator's browser can send requests to.
// Therefore it answers only to its own Host names (a rebound name gets 421), refuses what another
// site sends (403), and wants POST and a bearer token for whatever changes something. None of that
// holds for whoever comes by the Unix socket (admin_socket): no web page can, and its permissions
// say who may.

#include "config/options.hpp"
#include "proxy/admin/admin_gate.hpp"
#include "proxy/admin/admin_socket.hpp"
#include "proxy/admin/stats.hpp"
#include "proxy/base/descriptor.hpp"

#include <boost/beast/http/verb.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

struct admin_request {
    boost::beast::http::verb method;
    std::string_view path;
    std::string_view query;  ///< after the "?", not decoded
    std::string_view body;
};

struct admin_wait;

/// A body without an end: text that is sent as it comes, until the client leaves.
class admin_stream {
public:
    admin_stream() = default;
    virtual ~admin_stream() = default;
    admin_stream(const admin_stream&) = delete;
    admin_stream& operator=(const admin_stream&) = delete;
    /// What has come since the last call; empty: nothing. Called four times a second on the sockets'
    /// thread, though never before the client has taken what came before: it waits for nothing but a
    /// short lock, and what it does not get to give must not pile up.
    [[nodiscard]] virtual std::string next() = 0;
};

struct admin_response {
    unsigned status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
    std::shared_ptr<const admin_wait> wait = {};  ///< before it may be sent; null: at once
    std::shared_ptr<admin_stream> stream = {};    ///< in the place of `body`; null: that is all
};

/// What has to happen before a response may be sent.
struct admin_wait {
    /// Called on the handlers' thread. Has its argument called when it has happened: once at most,
    /// on any thread, at any time, were it after the server's end.
    std::function<void(std::function<void()> happened)> begin;
    std::chrono::milliseconds most{0};  ///< so long is waited for it, and then
    admin_response otherwise;           ///< this is sent; also where too many wait already
};

/// One row of the route table. GET answers HEAD too. Handlers run on a thread of their own, one at
/// a time; one that throws makes a 500 and a log line.
struct admin_route {
    boost::beast::http::verb method;
    std::string path;   ///< exact
    bool needs_token;   ///< whatever changes something; such a route must be a POST
    std::string about;  ///< one line for the list of pages; empty: it is not listed
    std::function<admin_response(const admin_request&)> handler;
    /// It tells of single URLs: from anywhere but loopback it wants the token.
    bool token_from_afar = false;
    /// Answered between two reads of sockets: the handler waits for nothing, not even a lock.
    bool at_once = false;
    /// Sent where the handler's answer is not there within a second, or too many wait already; as for
    /// `at_once`. Empty: the asker is told so.
    std::function<admin_response()> meanwhile = {};
    /// So long its answer is waited for, before the asker is told that it takes long; 0: admin_limits.request.
    std::chrono::milliseconds most{0};
};

/// A reload reads lists of millions of names, and is answered when all of it is in force.
inline constexpr std::chrono::seconds most_for_reload{75};

/// What became of a reload: all of the settings was taken over, or nothing.
struct reload_outcome {
    std::vector<std::string> mistakes = {};  ///< every one; empty: taken over
    std::vector<std::string> remarks =
        {};  ///< of what was: what waits for the next start, what harms
};

/// What the server asks of the rest of the program; called on the handlers' thread.
struct admin_hooks {
    std::function<readiness()> ready;  ///< on the sockets' thread: as for `at_once`
    std::function<stats_inputs()> stats;
    std::function<std::string()> history = {};  ///< history_json
    std::function<reload_outcome()> reload;     ///< loads the settings again
    /// About once a second (ratio_windows::tick). May be empty.
    std::function<void()> tick;
};

struct admin_limits {
    std::size_t head_bytes = 16 << 10;
    std::size_t body_bytes = 64 << 10;
    std::size_t connections = 128;  ///< of all clients
    std::size_t calls = 12;         ///< of handlers, waiting or under way
    std::size_t waits = 12;         ///< of admin_wait, under way
    /// From the connection's first moment or a request's first byte; again for the handler, and
    /// again for sending its answer.
    std::chrono::milliseconds request{10'000};
    std::chrono::milliseconds idle{60'000};  ///< between requests
};

/// Where it answers beside options.address, or by a socket that is there already.
struct admin_places {
    descriptor address{};                  ///< listens at options.address; none: one is made
    std::optional<admin_socket> socket{};  ///< the Unix socket
};

class admin_server {
public:
    /// Makes the route table: add_standard_routes.
    explicit admin_server(admin_hooks hooks, admin_limits limits = {});
    /// Like stop().
    ~admin_server();
    admin_server(const admin_server&) = delete;
    admin_server& operator=(const admin_server&) = delete;

    /// Adds a row. @pre not started
    void add_route(admin_route route);

    /// Listens and starts the threads; gives the address bound (port 0: the one the system picked).
    /// Reads the token file: where that can't be used (obstacles.hpp tells of it), what needs a token is
    /// refused. `given` holds where it answers besides, or in place of a socket of its own.
    /// @pre options.address has a value, or there is a Unix socket; of the second alone the address
    /// that is told is an empty one
    [[nodiscard]] boost::system::result<config::endpoint> start(
        const config::admin_options& options, admin_places given = {});

    /// A copy of the listening socket of options.address, and of the Unix socket, for another process;
    /// none: there is none. Whoever calls start and stop.
    [[nodiscard]] descriptor listening() const;
    [[nodiscard]] descriptor socket_listening() const;
    /// The Unix socket was another process's, and its file is this one's from now on.
    void own_socket(std::string path);
    /// Another process accepts from now on; connections that are there are served.
    void leave();

    /// After a reload: `gate` is that of `options`; the address stays. A handler may call it (POST /reload
    /// does, through its hook), and whoever calls start and stop.
    void reconfigure(const config::admin_options& options, admin_gate gate);
    /// Whether there is a token that opens what needs one. Any thread.
    [[nodiscard]] bool has_token() const noexcept;

    /// Closes the listener and all connections, waits for the threads: for as long as a handler
    /// takes. Idempotent; not from a handler.
    void stop() noexcept;

private:
    class state;
    std::unique_ptr<state> state_;
};

}  // namespace reprise::proxy::admin
