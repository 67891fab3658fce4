#pragma once
// From a whole request to a whole response: the gate, the route table, the fields that every answer
// has. No socket, so that each rule can be tested by itself.

#include "proxy/admin/admin_gate.hpp"
#include "proxy/admin/admin_server.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string_view>
#include <vector>

namespace reprise::proxy {

using admin_http_request = boost::beast::http::request<boost::beast::http::string_body>;
using admin_http_response = boost::beast::http::response<boost::beast::http::string_body>;

/// Threads: one.
class admin_answers {
public:
    /// @throws std::invalid_argument when a route needs a token and is no POST: our own mistake
    void add_route(admin_route route);
    [[nodiscard]] const std::vector<admin_route>& routes() const noexcept { return routes_; }

    void set_gate(admin_gate gate) { gate_ = std::move(gate); }

    /// Never throws for what a request or a handler does. The body is set for HEAD too: whoever
    /// sends it leaves it out. `from_here`: the client's address is a loopback one.
    [[nodiscard]] admin_http_response answer(const admin_http_request& request,
                                             const boost::asio::ip::tcp::endpoint& local,
                                             bool from_here = false) const;

    /// A response of the server's own: for what could not be read as a request.
    [[nodiscard]] static admin_http_response plain(unsigned status, std::string_view text);

private:
    std::vector<admin_route> routes_;
    admin_gate gate_{config::admin_options{}};
};

}  // namespace reprise::proxy
