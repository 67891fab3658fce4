#pragma once
// The one origin of all tests and tools, but for tools/bench_proxy, whose must cost less than what is
// measured: it does what it is told, byte by byte.
// Each connection has a thread of its own and each path a handler, which runs on that thread and
// may send, pause, reset, close or read on as it likes: whatever a real server can do wrong can be
// written down as straight code. It records every request and every connection it ever saw, unless
// it is to be asked millions of times.

#include "tests/support/certificates.hpp"
#include "tests/support/message.hpp"
#include "tests/support/stream.hpp"
#include "tests/support/tls_peer.hpp"
#include "tests/support/waiting.hpp"

#include <atomic>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::tests {

/// A request as the origin got it.
struct origin_request {
    std::string method, target, version;
    message_head head;
    field_lines fields;
    std::string body;
    field_lines trailers;
    framing framed_by = framing::none;
    bool body_complete = true;
    bool chunk_lines_are_canonical = true;
    unsigned connection = 0;  ///< counted from 0 in the order of their arrival
    unsigned number = 0;      ///< which request on that connection, from 0

    [[nodiscard]] std::string get(std::string_view name) const { return fields.get(name); }
    [[nodiscard]] bool has(std::string_view name) const { return fields.has(name); }
    [[nodiscard]] std::string_view path() const;  ///< of the target, without its query
};

class fake_origin;
class tls_carrier;

/// A handler's side of one connection.
class origin_connection {
public:
    origin_connection(origin_connection&&) noexcept;
    ~origin_connection();

    bool send(std::string_view bytes, std::chrono::milliseconds limit = patience);
    /// How much of it went out before the proxy stopped reading for so long.
    std::size_t send_until_stalled(std::string_view bytes, std::chrono::milliseconds stalled);
    /// Ends the connection with FIN once the handler returns.
    void close();
    /// Ends it with RST, now.
    void reset();
    /// Over TLS: ends it as anybody on the way could, without a close_notify. What was sent may not
    /// have gone out yet.
    void truncate();
    /// Reads the rest of the request's body (only for routes that are answered at the head).
    void read_body(origin_request& request);
    /// Any bytes, past the framing.
    [[nodiscard]] read_end read_some(std::string& into, std::chrono::milliseconds limit = patience);
    /// As slow as that: waits so long, but not for longer than the proxy stays. False: it has left.
    bool pause(std::chrono::milliseconds time) { return !is_closed_by_proxy(time); }
    /// True when the proxy ends this connection in time; what it still sends is dropped.
    [[nodiscard]] bool is_closed_by_proxy(std::chrono::milliseconds limit = patience);
    void finish_sending();
    /// True once the connection broke, or the proxy has closed it and sends no more.
    [[nodiscard]] bool has_ended() const;
    /// True while the origin is not being torn down.
    [[nodiscard]] bool goes_on() const;

private:
    friend class fake_origin;
    origin_connection(fake_origin& origin, stream connection, unsigned number);
    [[nodiscard]] bool shake_hands(const made_certificate& identity);

    fake_origin& origin_;
    stream stream_;
    std::unique_ptr<tls_carrier> tls_;  // what carries it, where that is TLS
    unsigned number_;
    std::string buffer_;
    body_reader body_;
    bool open_ = true;
    bool done_ = false;  // guarded by the origin's mutex
    std::thread thread_;
};

using origin_handler = std::function<void(origin_request& request, origin_connection& connection)>;

/// Sends one fixed answer, as it stands.
[[nodiscard]] origin_handler sends(std::string raw_answer);

struct origin_options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;                      ///< 0: the system picks
    bool remembers = true;                       ///< false: requests are counted and not kept
    std::optional<made_certificate> identity{};  ///< it speaks TLS
    tls_peer::server_wishes tls{};               ///< and so
};

/// Listens from construction to destruction. Every method may be called from any thread.
class fake_origin {
public:
    explicit fake_origin(origin_options options = {});
    fake_origin(const fake_origin&) = delete;
    fake_origin& operator=(const fake_origin&) = delete;
    ~fake_origin();

    [[nodiscard]] std::uint16_t port() const { return acceptor_.port(); }
    /// "127.0.0.1:41001"
    [[nodiscard]] std::string authority() const;
    /// "http://127.0.0.1:41001" + path
    [[nodiscard]] std::string url(std::string_view path) const;

    /// Answers requests for `path` (query excluded) once they are whole. Replaces an earlier one,
    /// which may still be running: what a handler holds by reference must outlive the origin.
    void on(const std::string& path, origin_handler handler);
    void on(const std::string& path, std::string raw_answer) {
        on(path, sends(std::move(raw_answer)));
    }
    /// Answers at the end of the head, body unread.
    void on_head(const std::string& path, origin_handler handler);
    /// Answers what has no handler; 404 at first.
    void otherwise(origin_handler handler);
    /// The same, body unread.
    void otherwise_at_head(origin_handler handler);

    [[nodiscard]] std::vector<origin_request> requests() const;
    /// Requests for `path`, with whatever query.
    [[nodiscard]] std::vector<origin_request> requests(std::string_view path) const;
    [[nodiscard]] std::size_t count(std::string_view path) const;
    /// How many there were of them all.
    [[nodiscard]] std::uint64_t asked() const noexcept { return asked_.load(); }
    [[nodiscard]] unsigned connections() const;
    /// Connections that are open now.
    [[nodiscard]] unsigned open_connections() const;

    /// A gate that is opened, if nobody did before, when the origin goes.
    [[nodiscard]] gate& make_gate();
    /// One fixed answer for `path` again, which is held back until this gate is opened.
    [[nodiscard]] gate& hold(const std::string& path, std::string raw_answer);
    void open_gates();

    /// Its certificate from the next connection on. It speaks TLS.
    void identify_as(made_certificate identity);

    /// No new connections from now on (they are refused), and the old ones end.
    void stop();

private:
    friend class origin_connection;
    struct route {
        origin_handler handler;
        bool at_head = false;
    };
    void accept_all();
    void serve(origin_connection& connection);
    bool serve_one(origin_connection& connection, unsigned number);
    [[nodiscard]] route route_of(const std::string& target) const;

    origin_options options_;
    acceptor acceptor_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> asked_{0};
    mutable std::mutex mutex_;
    std::map<std::string, route, std::less<>> routes_;
    route fallback_;
    std::vector<origin_request> requests_;
    std::list<origin_connection> connections_;
    unsigned accepted_ = 0;
    std::deque<gate> gates_;
    std::thread accepts_;
};

/// "HTTP/1.1 200 OK", these field lines (each ended by CRLF), Date, Content-Length and the body.
[[nodiscard]] std::string ok(std::string_view fields, std::string_view body);
[[nodiscard]] std::string answer(std::string_view status_line,
                                 std::string_view fields,
                                 std::string_view body);
/// An IMF-fixdate (RFC 9110 5.6.7): of a moment, or of so many seconds from now.
[[nodiscard]] std::string http_date_of(std::time_t when);
[[nodiscard]] std::string http_date(std::chrono::seconds from_now = std::chrono::seconds{0});

}  // namespace reprise::tests
