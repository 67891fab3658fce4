#pragma once
// From a whole request to a whole response: the gate, the route table, the fields that every answer
// has. No socket, so that each rule can be tested by itself.

#include "proxy/admin/admin_gate.hpp"
#include "proxy/admin/admin_server.hpp"

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>

#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

using admin_http_request = boost::beast::http::request<boost::beast::http::string_body>;
using admin_http_response = boost::beast::http::response<boost::beast::http::string_body>;

/// How a request came.
struct arrival {
    boost::asio::ip::tcp::endpoint local;
    bool from_here = false;  ///< the client's address is a loopback one
    bool by_socket = false;  ///< the Unix socket: it was let in by whoever may open that
};

/// Threads: one.
class admin_answers {
public:
    /// @throws std::invalid_argument when a route needs a token and is no POST: our own mistake
    void add_route(admin_route route);
    [[nodiscard]] const std::vector<admin_route>& routes() const noexcept { return routes_; }

    void set_gate(admin_gate gate) { gate_ = std::move(gate); }

    /// Which handler is to answer, with what; or the answer, where none is.
    struct judged {
        const admin_route* route = nullptr;
        std::string_view path, query;  ///< of the request
        admin_http_response refusal;   ///< where there is no route
    };
    /// Never throws for what a request does.
    [[nodiscard]] judged judge(const admin_http_request& request, const arrival& how) const;
    /// Never throws for what a handler does.
    [[nodiscard]] static admin_response call(const admin_route& route, const admin_request& asked);
    /// The body is set for HEAD too: whoever sends it leaves it out.
    [[nodiscard]] static admin_http_response dressed(admin_response from);
    /// The three in turn, waiting for nothing: admin_response::wait is passed over.
    [[nodiscard]] admin_http_response answer(const admin_http_request& request,
                                             const arrival& how) const;

    /// A response of the server's own: for what could not be read as a request.
    [[nodiscard]] static admin_http_response plain(unsigned status, std::string_view text);

private:
    struct refusal_text {
        unsigned status = 0;  ///< 0: none
        std::string_view text;
    };
    [[nodiscard]] refusal_text why_not_from_network(
        const admin_http_request& request,
        std::string_view authority,
        const boost::asio::ip::tcp::endpoint& local) const;

    std::vector<admin_route> routes_;
    admin_gate gate_{config::admin_options{}};
};

}  // namespace reprise::proxy::admin
