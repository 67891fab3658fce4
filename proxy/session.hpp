#pragma once
// One client connection: read a head, exchange, again; in the order in which requests come.

#include "proxy/exchange.hpp"
#include "proxy/worker.hpp"

#include <list>

namespace reprise::proxy {

/// Lives on its worker's thread, in a coroutine that serve_client begins; listed in
/// worker::sessions.
class session {
public:
    session(worker& w, tcp_socket socket, std::size_t listener);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    [[nodiscard]] awaitable<void> run();

    /// Ends it if it is between two requests.
    void end_if_idle();
    /// Ends it now.
    void abort();
    /// Looks whether the client has left while a fetch is awaited.
    void look_at_client();

private:
    enum class head_state : std::uint8_t { whole, need_more, refused, end };
    [[nodiscard]] head_state look_for_head(bool first);
    [[nodiscard]] awaitable<void> linger();

    session_state state_;
    std::list<session*>::iterator place_;
    address_bytes client_{};
    bool counted_ = false;
    bool idle_ = true;
    bool head_begun_ = false;
    std::size_t resume_ = 0;
};

/// Begins a session on `w`'s thread for a connection just accepted.
void serve_client(worker& w, tcp_socket socket, std::size_t listener);

}  // namespace reprise::proxy
