#include "proxy/serve/open_connection.hpp"

#include <utility>

namespace reprise::proxy::serve {

connection_slot::connection_slot(thread::worker& w, const net::address_bytes& client)
    : client_{client} {
    const auto& limits = w.current->options.limits;
    const auto share = w.share_of(client);
    const auto most = share ? limits.connections_per_client : limits.client_connections;
    // Whoever speaks for many is not counted with the clients of its network.
    client_ = share.value_or(client);
    is_stranger_ = w.is_stranger(client);
    if (w.common.clients.enter(client_, most, limits.client_connections, is_stranger_)) {
        of_ = &w.common.clients;
    } else if (!is_stranger_) {
        w.counts.client_over_limit.add();  // strangers have a small share, which scanners use up
    }
}

connection_slot::connection_slot(connection_slot&& other) noexcept
    : of_{std::exchange(other.of_, nullptr)},
      client_{other.client_},
      is_stranger_{other.is_stranger_} {}

connection_slot& connection_slot::operator=(connection_slot&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(client_, other.client_);
    std::swap(is_stranger_, other.is_stranger_);
    return *this;
}

connection_slot::~connection_slot() {
    if (of_ != nullptr) {
        of_->leave(client_, is_stranger_);
    }
}

open_connection::open_connection(thread::worker& w) noexcept : counts_{&w.counts} {
    counts_->client_open.add();
}

open_connection::open_connection(open_connection&& other) noexcept
    : place{std::move(other.place)},
      counts_{std::exchange(other.counts_, nullptr)} {}

open_connection::~open_connection() {
    if (counts_ != nullptr) {
        counts_->client_open.subtract();
    }
}

}  // namespace reprise::proxy::serve
