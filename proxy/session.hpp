#pragma once
// One client connection: read a head, exchange, again; in the order in which requests come.

#include "proxy/exchange.hpp"
#include "proxy/net/tls.hpp"
#include "proxy/worker.hpp"

#include <list>
#include <memory>

namespace reprise::proxy {

/// A connection's place among those that limits.client_connections and connections_per_client
/// allow.
class census_place {
public:
    census_place() = default;
    /// Takes one, if there is one.
    census_place(worker& w, const address_bytes& client);
    census_place(census_place&& other) noexcept;
    census_place& operator=(census_place&& other) noexcept;
    ~census_place();

    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    client_census* of_ = nullptr;
    address_bytes client_{};
};

/// Lives on its worker's thread, in a coroutine that serve_client begins; listed in
/// worker::sessions.
class session {
public:
    session(worker& w, tcp_socket socket, std::size_t listener, const tcp::endpoint& client);
    ~session();
    session(const session&) = delete;
    session& operator=(const session&) = delete;

    /// Before run(): `socket` is the plain end of `link`, the client reached `here`, and it has its
    /// place already.
    void is_behind(std::shared_ptr<tls_link> link, const tcp::endpoint& here, census_place place);

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
    tcp::endpoint client_;
    census_place place_among_clients_;
    bool idle_ = true;
    bool head_begun_ = false;
    std::size_t resume_ = 0;
};

/// Begins a session on `w`'s thread for a connection just accepted.
void serve_client(worker& w, tcp_socket socket, std::size_t listener);

}  // namespace reprise::proxy
