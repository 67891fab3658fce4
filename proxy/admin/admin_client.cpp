#include "proxy/admin/admin_client.hpp"

#include "proxy/admin/admin_socket.hpp"
#include "proxy/net/listening.hpp"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint64_t most_bytes = 64u << 20;

// What listens everywhere is asked here.
asio::ip::address reachable(asio::ip::address host) {
    if (!host.is_unspecified()) {
        return host;
    }
    return host.is_v6() ? asio::ip::address{asio::ip::address_v6::loopback()}
                        : asio::ip::address{asio::ip::address_v4::loopback()};
}

// As the far end's gate knows it: by no name of all addresses.
std::string host_named(const admin_door& at) {
    if (!at.socket.empty()) {
        return "localhost";
    }
    error_code error;
    const auto host = asio::ip::make_address(at.address.host, error);
    return error || !host.is_unspecified() ? net::to_text(at.address)
                                           : "localhost:" + std::to_string(at.address.port);
}

std::string sentence(const admin_door& at, const error_code& error) {
    const auto where = at.to_text();
    if (error == boost::system::errc::permission_denied) {
        return where +
               ": permission denied; ask as root, as the user that the proxy runs as, or see "
               "admin.socket_for";
    }
    if (error == boost::system::errc::no_such_file_or_directory ||
        error == boost::system::errc::connection_refused) {
        return where + ": nobody listens there: no proxy runs, or with other settings (--config)";
    }
    if (error == beast::error::timeout) {
        return where + ": no answer in time";
    }
    return where + ": " + error.message();
}

// Whoever has the port while no proxy runs hears what is sent there: the token goes only with what is refused
// without it (admin_route).
bool wants_token(const admin_door& at, beast_http::verb method, std::string_view target) {
    if (at.token.empty()) {
        return false;
    }
    error_code error;
    const bool is_near = reachable(asio::ip::make_address(at.address.host, error)).is_loopback();
    return method == beast_http::verb::post || (!is_near && target.starts_with("/explain"));
}

// One request and its answer, as callbacks on a loop of their own.
class asking {
public:
    asking(const admin_door& at, beast_http::verb method, std::string_view target) {
        request_.append(beast_http::to_string(method)).append(1, ' ').append(target);
        request_ += " HTTP/1.1\r\nHost: ";
        request_ += host_named(at);
        request_ += "\r\nConnection: close\r\n";
        if (wants_token(at, method, target)) {
            request_ += "Authorization: Bearer " + at.token + "\r\n";
        }
        request_ += method == beast_http::verb::post ? "Content-Length: 0\r\n\r\n" : "\r\n";
        answer_.body_limit(most_bytes);
    }

    error_code run(const asio::generic::stream_protocol::endpoint& to,
                   std::chrono::milliseconds most) {
        stream_.expires_after(most);
        stream_.async_connect(to, [this](error_code error) { connected(error); });
        io_.run();
        return result_;
    }

    admin_told told() { return {answer_.get().result_int(), std::move(answer_.get().body())}; }

private:
    void connected(error_code error) {
        result_ = error;
        if (!error) {
            asio::async_write(stream_,
                              asio::buffer(request_),
                              [this](error_code failed, std::size_t) { sent(failed); });
        }
    }
    void sent(error_code error) {
        result_ = error;
        if (!error) {
            beast_http::async_read(stream_,
                                   buffer_,
                                   answer_,
                                   [this](error_code failed, std::size_t) { result_ = failed; });
        }
    }

    asio::io_context io_{1};
    beast::basic_stream<asio::generic::stream_protocol> stream_{io_};
    std::string request_;
    beast_http::response_parser<beast_http::string_body> answer_;
    beast::flat_buffer buffer_;
    error_code result_;
};

}  // namespace

std::string token_in(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    std::string text(4097, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    constexpr std::string_view space = " \t\r\n";
    const auto begin = text.find_first_not_of(space);
    if (begin == std::string::npos) {
        return {};
    }
    text = text.substr(begin, text.find_last_not_of(space) + 1 - begin);
    return text.find_first_of("\r\n") == std::string::npos ? text : std::string{};
}

std::string admin_door::to_text() const {
    return socket.empty() ? net::to_text(address) : socket;
}

std::optional<admin_door> find_door(const config::admin_options& options,
                                    std::string_view runtime_directory) {
    if (options.socket == "auto") {
        const auto path = socket_path(options, runtime_directory);
        // One that may not be looked at is there, as far as we know.
        if (!path.empty() && (::access(path.c_str(), F_OK) == 0 || errno == EACCES)) {
            return admin_door{path, {}, {}};
        }
    } else if (options.socket != "off") {
        return admin_door{options.socket, {}, {}};
    }
    if (!options.address) {
        return std::nullopt;
    }
    return admin_door{{},
                      *options.address,
                      options.token_file.empty() ? std::string{} : token_in(options.token_file)};
}

std::variant<admin_told, not_reached> ask(const admin_door& at,
                                          boost::beast::http::verb method,
                                          std::string_view target,
                                          std::chrono::milliseconds most) {
    asio::generic::stream_protocol::endpoint to;
    if (at.socket.empty()) {
        error_code error;
        const auto host = asio::ip::make_address(at.address.host, error);
        if (error) {
            return not_reached{at.to_text() + ": " + error.message()};
        }
        to = asio::ip::tcp::endpoint{reachable(host), at.address.port};
    } else if (at.socket.size() >= sizeof(sockaddr_un::sun_path)) {
        return not_reached{at.socket + ": a socket's path is shorter"};
    } else {
        to = asio::local::stream_protocol::endpoint{at.socket};
    }
    asking one{at, method, target};
    if (const auto error = one.run(to, most)) {
        return not_reached{sentence(at, error)};
    }
    return one.told();
}

}  // namespace reprise::proxy::admin
