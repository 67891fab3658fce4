// A small origin server for the demonstration and for the tests with real clients.
// It answers what a cache needs to show itself (a lifetime, an ETag, conditions, ranges), serves a
// folder or a few pages of its own, over TLS if given a certificate, and logs one line a request,
// so that a test can count what got past the proxy. One thread, trusted clients.
//
//   /hello         a greeting that is fresh for --max-age seconds, with an ETag
//   /never         the same, with no-store
//   /bytes/N       N bytes
//   any, POST/PUT  answers with the body's length and SHA-256
//   --root DIR     GET and HEAD serve the folder's files instead
//   --delay-ms N   as far away as that
//
// Asio's TLS is compiled here (ssl/impl/src.hpp): no other program has a use for it.

#include "tools/demo_site.hpp"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <openssl/evp.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace reprise::tools;
namespace net = boost::asio;
namespace beast = boost::beast;
using tcp = net::ip::tcp;
using net::use_awaitable;

struct settings {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    site_options site;
    std::string log;
    std::string port_file;
    std::string certificate;
    std::string key;
    unsigned delay_ms = 0;
};

// Length and SHA-256 of a body, taken as it arrives.
class body_digest {
public:
    body_digest() { EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr); }
    void add(const void* data, std::size_t size) {
        EVP_DigestUpdate(state_.get(), data, size);
        bytes_ += size;
    }
    /// "LENGTH HEX" and a line end. Call once.
    std::string finish() {
        std::array<unsigned char, EVP_MAX_MD_SIZE> octets{};
        unsigned size = 0;
        EVP_DigestFinal_ex(state_.get(), octets.data(), &size);
        auto out = std::to_string(bytes_) + " ";
        for (unsigned i = 0; i < size; ++i) {
            constexpr std::string_view digits = "0123456789abcdef";
            out += digits[octets[i] >> 4];
            out += digits[octets[i] & 15];
        }
        return out + "\n";
    }

private:
    struct release {
        void operator()(EVP_MD_CTX* state) const { EVP_MD_CTX_free(state); }
    };
    std::unique_ptr<EVP_MD_CTX, release> state_{EVP_MD_CTX_new()};
    std::uint64_t bytes_ = 0;
};

// What every connection shares. One thread, so nothing is locked.
struct site {
    settings options;
    std::ofstream log;

    answer decide(const request& asked, body_digest& body) const {
        switch (asked.method()) {
        case http::verb::get:
        case http::verb::head: return answer_to(asked, options.site);
        case http::verb::post:
        case http::verb::put: return plain(http::status::ok, body.finish());
        default: return plain(http::status::method_not_allowed, "GET, HEAD, POST or PUT.\n");
        }
    }

    // Written before the answer is sent: who has the answer can count on the line.
    void note(const request& asked, const answer& made) {
        if (!log.is_open()) {
            return;
        }
        const auto range = asked[http::field::range];
        log << asked.method_string() << ' ' << asked.target() << ' '
            << static_cast<unsigned>(made.status) << ' '
            << (range.empty() ? std::string_view{"-"} : std::string_view{range}) << ' '
            << made.length() << std::endl;
    }
};

constexpr std::size_t piece_bytes = 64 * 1024;

template <class Stream>
net::awaitable<void> send(Stream& stream, const request& asked, answer& made) {
    const auto reason = http::obsolete_reason(made.status);
    auto head = "HTTP/1.1 " + std::to_string(static_cast<unsigned>(made.status)) + " " +
                std::string{reason.data(), reason.size()} + "\r\n" + made.fields +
                "Date: " + http_date(std::time(nullptr)) + "\r\n";
    if (made.status != http::status::not_modified) {
        head += "Content-Length: " + std::to_string(made.length()) + "\r\n";
    }
    head += asked.keep_alive() ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
    if (asked.method() == http::verb::head) {
        co_await net::async_write(stream, net::buffer(head), use_awaitable);
        co_return;
    }
    head += made.text;
    co_await net::async_write(stream, net::buffer(head), use_awaitable);
    std::string piece(piece_bytes, '.');
    while (made.made_up > 0) {
        const auto size = std::min<std::uint64_t>(made.made_up, piece.size());
        co_await net::async_write(stream, net::buffer(piece.data(), size), use_awaitable);
        made.made_up -= size;
    }
    while (made.from_file > 0) {
        const auto size = std::min<std::uint64_t>(made.from_file, piece.size());
        if (!made.file.read(piece.data(), static_cast<std::streamsize>(size))) {
            throw std::runtime_error("a file changed while it was being sent");
        }
        co_await net::async_write(stream, net::buffer(piece.data(), size), use_awaitable);
        made.from_file -= size;
    }
}

template <class Stream>
net::awaitable<void> converse(Stream& stream, site& here) {
    beast::flat_buffer buffer;
    std::string piece(piece_bytes, '\0');
    for (;;) {
        http::request_parser<http::buffer_body> parser;
        parser.body_limit(boost::none);
        co_await http::async_read_header(stream, buffer, parser, use_awaitable);
        if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
            constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
            co_await net::async_write(stream, net::buffer(go_on), use_awaitable);
        }
        body_digest body;
        while (!parser.is_done()) {
            parser.get().body().data = piece.data();
            parser.get().body().size = piece.size();
            boost::system::error_code failed;
            auto token = net::redirect_error(use_awaitable, failed);
            co_await http::async_read(stream, buffer, parser, token);
            if (failed && failed != http::error::need_buffer) {
                throw boost::system::system_error(failed);
            }
            body.add(piece.data(), piece.size() - parser.get().body().size);
        }
        auto made = here.decide(parser.get(), body);
        here.note(parser.get(), made);
        if (here.options.delay_ms > 0) {
            net::steady_timer far{stream.get_executor()};
            far.expires_after(std::chrono::milliseconds{here.options.delay_ms});
            co_await far.async_wait(use_awaitable);
        }
        co_await send(stream, parser.get(), made);
        if (!parser.get().keep_alive()) {
            co_return;
        }
    }
}

// A client that leaves is the usual end of a conversation: there is nobody to tell.
net::awaitable<void> attend(tcp::socket socket, net::ssl::context* tls, site& here) {
    try {
        socket.set_option(tcp::no_delay{true});
        if (tls == nullptr) {
            co_await converse(socket, here);
            socket.shutdown(tcp::socket::shutdown_send);
        } else {
            net::ssl::stream<tcp::socket> stream{std::move(socket), *tls};
            co_await stream.async_handshake(net::ssl::stream_base::server, use_awaitable);
            co_await converse(stream, here);
            co_await stream.async_shutdown(use_awaitable);
        }
    } catch (const std::exception&) {
    }
}

net::awaitable<void> accept_all(tcp::acceptor& acceptor, net::ssl::context* tls, site& here) {
    for (;;) {
        auto socket = co_await acceptor.async_accept(use_awaitable);
        net::co_spawn(acceptor.get_executor(), attend(std::move(socket), tls, here), net::detached);
    }
}

int serve(const settings& options) {
    site here{options, {}};
    if (!options.log.empty()) {
        here.log.open(options.log, std::ios::app);
    }
    net::io_context io{1};
    std::optional<net::ssl::context> tls;
    if (!options.certificate.empty()) {
        tls.emplace(net::ssl::context::tls_server);
        tls->use_certificate_chain_file(options.certificate);
        tls->use_private_key_file(options.key, net::ssl::context::pem);
    }
    tcp::acceptor acceptor{io, {net::ip::make_address(options.address), options.port}};
    const auto port = acceptor.local_endpoint().port();
    if (!options.port_file.empty()) {
        // Renamed into place, so that whoever sees the file sees all of it.
        const auto unfinished = options.port_file + ".new";
        std::ofstream{unfinished} << port << '\n';
        std::filesystem::rename(unfinished, options.port_file);
    } else {
        std::cout << "port " << port << std::endl;
    }
    net::signal_set stop{io, SIGINT, SIGTERM};
    stop.async_wait([&](auto, auto) { io.stop(); });
    net::co_spawn(io, accept_all(acceptor, tls ? &*tls : nullptr, here), net::detached);
    io.run();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    settings options;
    CLI::App app{"A small origin server for demonstrations and tests."};
    app.add_option("--address", options.address, "numeric address to listen on");
    app.add_option("--port", options.port, "port to listen on; 0: the system picks");
    app.add_option("--port-file", options.port_file, "file to write the port to, when it listens");
    app.add_option("--root", options.site.root, "folder to serve")->check(CLI::ExistingDirectory);
    app.add_option("--max-age", options.site.max_age, "lifetime of answers, in seconds");
    app.add_option("--log", options.log, "file to append a line a request to");
    app.add_option(
        "--delay-ms", options.delay_ms, "milliseconds that an answer takes, as from afar");
    auto* certificate = app.add_option("--certificate", options.certificate, "PEM file: serve TLS");
    auto* key = app.add_option("--key", options.key, "PEM file of the certificate's key");
    certificate->needs(key);
    CLI11_PARSE(app, argc, argv);
    try {
        return serve(options);
    } catch (const std::exception& failed) {
        std::cerr << "demo_origin: " << failed.what() << '\n';
        return 1;
    }
}
