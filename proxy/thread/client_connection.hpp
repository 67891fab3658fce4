#pragma once
// A client's connection as its worker sees it: all that draining, aborting and looking for clients
// that left need. What speaks with the client lies above (serve/); a worker only lists connections.

#include "proxy/net/list_link.hpp"

namespace reprise::proxy::thread {

/// Threads: its worker's alone.
class client_connection : public net::list_link {  // in worker::connections
public:
    /// Ends it if it is between two requests.
    virtual void end_if_idle() = 0;
    /// Ends it now.
    virtual void abort() = 0;
    /// Looks whether the client has left while a fetch is awaited.
    virtual void look_at_client() = 0;

protected:
    client_connection() = default;
    ~client_connection() = default;  // nobody owns one by this face
    client_connection(const client_connection&) = delete;
    client_connection& operator=(const client_connection&) = delete;
};

}  // namespace reprise::proxy::thread
