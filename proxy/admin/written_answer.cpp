#include "proxy/admin/written_answer.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <string>
#include <string_view>

namespace reprise::proxy::admin {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::chrono::milliseconds between_looks{250};  // at an admin_stream

// A response but for its body. Beast would write whatever a message may be, each in buffers of a kind of its own: that
// was half of this batch's code, and a third of its compiler's time.
std::string head_of(const admin_http_response& response) {
    std::string text = response.version() == 10 ? "HTTP/1.0 " : "HTTP/1.1 ";
    text += std::to_string(response.result_int());
    text.append(1, ' ').append(response.reason()).append("\r\n");
    for (const auto& field : response) {
        text.append(field.name_string()).append(": ").append(field.value()).append("\r\n");
    }
    return text.append("\r\n");
}

// True when all of it was written. Head and body go at once, else the second would wait for what
// the client's kernel says of the first.
asio::awaitable<bool> write(client_stream& to, std::string_view head, std::string_view body) {
    const std::array<asio::const_buffer, 2> both{asio::buffer(head), asio::buffer(body)};
    error_code error;
    co_await asio::async_write(to, both, asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
}

}  // namespace

asio::awaitable<bool> send(client_stream& to, admin_http_response& response, bool keep, bool head) {
    response.keep_alive(keep);
    response.prepare_payload();
    const auto text = head_of(response);
    co_return co_await write(to, text, head ? std::string_view{} : response.body());
}

asio::awaitable<void> send_as_it_comes(client_stream& to,
                                       admin_http_response& response,
                                       admin_stream& body,
                                       std::chrono::milliseconds most) {
    response.keep_alive(false);  // its end is the connection's
    const auto head = head_of(response);
    bool is_there = co_await write(to, head, {});
    asio::steady_timer pause{to.get_executor()};
    while (is_there) {
        const auto text = body.next();
        if (!text.empty()) {
            to.expires_after(most);
            is_there = co_await write(to, text, {});
        }
        to.expires_never();
        pause.expires_after(between_looks);
        error_code ignored;
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

}  // namespace reprise::proxy::admin
