#pragma once
// One client connection: read a head, exchange, again; in the order in which requests come.

#include "proxy/serve/exchange_space.hpp"
#include "proxy/serve/http1_connection.hpp"
#include "proxy/serve/lent.hpp"
#include "proxy/thread/client_connection.hpp"
#include "proxy/thread/worker.hpp"

#include <list>
#include <memory>

namespace reprise::proxy::serve {

/// A connection's place among those that limits.client_connections and connections_per_client
/// allow.
class connection_slot {
public:
    connection_slot() = default;
    /// Takes one, if there is one.
    connection_slot(thread::worker& w, const net::address_bytes& client);
    connection_slot(connection_slot&& other) noexcept;
    connection_slot& operator=(connection_slot&& other) noexcept;
    ~connection_slot();

    [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

private:
    thread::client_census* of_ = nullptr;
    net::address_bytes client_{};
};

/// Lives on its worker's thread, in a coroutine that serve_client begins; listed in
/// worker::connections.
class session final : public thread::client_connection {
public:
    /// @param place  the client's, if it has one already
    session(thread::worker& w,
            net::byte_stream stream,
            std::size_t listener,
            const tcp::endpoint& client,
            connection_slot place = {});
    ~session();

    [[nodiscard]] awaitable<void> run();
    /// After run(): a FIN waits for nothing, a close_notify for room behind what was sent. It
    /// counts as open meanwhile, so that a drain waits for it.
    [[nodiscard]] awaitable<void> say_end();

    void end_if_idle() override;
    void abort() override { connection_.abort(); }
    void look_at_client() override { connection_.look_at_client(); }

private:
    enum class head_state : std::uint8_t { whole, need_more, refused, end };
    [[nodiscard]] head_state look_for_head(bool first);
    [[nodiscard]] exchange_space& space();
    void put_space_away();
    [[nodiscard]] lent lend() {
        return {w_, client_, connection_, space().memory, connection_.stream};
    }
    [[nodiscard]] awaitable<ended> end_sending();
    [[nodiscard]] awaitable<void> linger();

    thread::worker& w_;
    http1_connection connection_;
    client_identity client_;
    exchange_space_ptr space_;  // null while nothing is asked
    std::list<thread::client_connection*>::iterator place_;
    tcp::endpoint from_;
    connection_slot place_among_clients_;
    bool idle_ = true;
    bool head_begun_ = false;
    std::size_t resume_ = 0;
};

/// Begins a session on `w`'s thread for a connection just accepted.
void serve_client(thread::worker& w, tcp_socket socket, std::size_t listener);

}  // namespace reprise::proxy::serve
