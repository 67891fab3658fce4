#pragma once
// What a session lends to each of its exchanges, and its memory for the next one.

#include "proxy/cache/fetch.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/thread/worker.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::proxy::serve {

struct session_state {
    session_state(thread::worker& in, net::byte_stream stream, std::size_t listener_index);

    thread::worker& w;
    net::client_stream client;
    net::wakeup arrived;  ///< news from a fetch, or the client's leaving
    std::size_t listener;
    std::string client_address;      ///< numeric
    net::address_bytes client_at{};  ///< the same
    std::uint16_t client_port = 0;
    bool client_refused = false;  ///< by access.clients
    bool client_gone = false;     ///< seen by the watch
    bool waiting = false;         ///< the watch looks at this session

    // Scratch that lives from request to request, so that a hit allocates nothing.
    http::request_head head;
    std::string url;
    std::string tail;
    std::vector<asio::const_buffer> parts;
    cache::fetch_reader::report report;
};

}  // namespace reprise::proxy::serve
