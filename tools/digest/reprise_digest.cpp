// Prints what a digest says, tests URLs against it, compares it with another: ours or Squid's, from
// a file or from the proxy that serves it.
//
//     reprise-digest http://10.0.0.2:3128 --secret /etc/reprise/secret --url http://host/path
//     reprise-digest a.bin b.bin
//     reprise-digest --squid http://squid:3128
//
// Of https the certificate must be good for the host, as a sibling's must. --timeout bounds all of
// it, names, connection and answer. Asio's TLS is compiled here (ssl/impl/src.hpp), as in
// demo_origin.
//
// Exit status: 0; 1 when a URL that was asked for is not listed, or what is said can't be written; 2 when a
// digest can't be had.

#include "config/url.hpp"
#include "proxy/net/address.hpp"
#include "proxy/peer/any_digest.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/discovery.hpp"
#include "proxy/peer/resource.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace beast = boost::beast;
namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::use_awaitable;
using asio::ip::tcp;
namespace peer = reprise::proxy::peer;
using reprise::config::parse_peer_url;
using reprise::config::value_of;

struct wishes {
    std::vector<std::string> sources;
    std::vector<std::string> urls;
    std::string secret_file;
    bool squid = false;
    bool seen = false;
    unsigned seconds = 30;
};

std::vector<std::byte> bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span{text.data(), text.size()});
    return {bytes.begin(), bytes.end()};
}

template <class Stream>
asio::awaitable<std::vector<std::byte>> ask(Stream& stream, const std::string& request) {
    co_await asio::async_write(stream, asio::buffer(request), use_awaitable);
    beast::flat_buffer buffer;
    beast::http::response_parser<beast::http::string_body> answer;
    answer.body_limit(std::uint64_t{1} << 30);
    co_await beast::http::async_read(stream, buffer, answer, use_awaitable);
    if (answer.get().result_int() != 200) {
        throw std::runtime_error{"the answer is " + std::to_string(answer.get().result_int())};
    }
    co_return bytes_of(answer.get().body());
}

using request_maker = std::function<std::string(const asio::ip::address&)>;

// The request is made for the address that the connection leads to. Its maker is taken by value: a
// temporary of the caller's would have ended when the coroutine goes on.
asio::awaitable<std::vector<std::byte>> ask(const peer::followed& from, request_maker request_to) {
    const auto executor = co_await asio::this_coro::executor;
    tcp::resolver names{executor};
    const auto places = co_await names.async_resolve(
        from.host, std::to_string(from.port), use_awaitable);
    tcp::socket socket{executor};
    co_await asio::async_connect(socket, places, use_awaitable);
    const auto request = request_to(socket.remote_endpoint().address());
    if (!from.https) {
        co_return co_await ask(socket, request);
    }
    ssl::context trust{ssl::context::tls_client};
    trust.set_default_verify_paths();
    ssl::stream<tcp::socket> stream{std::move(socket), trust};
    boost::system::error_code is_name;
    (void)asio::ip::make_address(from.host, is_name);
    if (is_name) {
        SSL_set_tlsext_host_name(stream.native_handle(), from.host.c_str());
    }
    stream.set_verify_mode(ssl::verify_peer);
    stream.set_verify_callback(ssl::host_name_verification{from.host});
    co_await stream.async_handshake(ssl::stream_base::client, use_awaitable);
    co_return co_await ask(stream, request);
}

// One request, one answer; asked as a sibling asks.
std::vector<std::byte> fetch(const std::string& url,
                             const wishes& wanted,
                             const peer::fleet_secret& secret) {
    const auto parsed = parse_peer_url(url);
    const auto* const normal = value_of(parsed);
    if (normal == nullptr) {
        throw std::runtime_error{std::get<1>(parsed).right};
    }
    reprise::config::peer_options options;
    options.url = *normal;
    options.protocol = wanted.squid ? reprise::config::peer_protocol::squid
                                    : reprise::config::peer_protocol::reprise;
    const auto from = peer::configured_siblings(std::span{&options, 1}, false).front();
    const auto path = wanted.squid  ? peer::squid_digest_path
                      : wanted.seen ? peer::seen_path
                                    : peer::digest_path;
    std::random_device device;
    peer::nonces nonces{[&device] { return std::uint64_t{device()} << 32 | device(); }};
    // Without a node's name, and so without Via: it is nobody's to pass on (resource.hpp).
    const request_maker request_to = [&](const asio::ip::address& at) {
        const auto endpoint = reprise::proxy::net::endpoint_text(at, from.port);
        return peer::digest_request(
            from, endpoint, path, {}, secret, "", reprise::proxy::wall_now(), nonces.take());
    };
    std::optional<std::vector<std::byte>> answer;
    std::exception_ptr failed;
    asio::io_context io;
    asio::co_spawn(io,
                   ask(from, request_to),
                   [&](const std::exception_ptr& thrown, std::vector<std::byte> bytes) {
                       failed = thrown;
                       answer = std::move(bytes);
                   });
    io.run_for(std::chrono::seconds{wanted.seconds});
    if (failed) {
        std::rethrow_exception(failed);
    }
    if (!answer) {
        throw std::runtime_error{"no answer within " + std::to_string(wanted.seconds) +
                                 " s (--timeout)"};
    }
    return std::move(*answer);
}

std::vector<std::byte> from_file(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        throw std::runtime_error{"can't be read"};
    }
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return bytes_of(text);
}

void print(const std::vector<peer::digest_line>& lines) {
    for (const auto& line : lines) {
        std::printf("  %-26s %s\n", line.name.c_str(), line.value.c_str());
    }
}

int run(const wishes& wanted) {
    auto secret = peer::fleet_secret::none();
    if (!wanted.secret_file.empty()) {
        auto read = peer::load_secret(wanted.secret_file);
        if (read.has_error()) {
            std::fprintf(
                stderr, "%s: %s\n", wanted.secret_file.c_str(), read.error().message().c_str());
            return 2;
        }
        secret = *read;
    }
    std::vector<peer::any_digest> digests;
    for (const auto& source : wanted.sources) {
        try {
            const bool is_url = source.starts_with("http://") || source.starts_with("https://");
            const auto bytes = is_url ? fetch(source, wanted, secret) : from_file(source);
            auto read = peer::read_any(bytes);
            if (read.has_error()) {
                throw std::runtime_error{"no digest: " + read.error().message()};
            }
            std::printf("%s\n  %-26s %zu\n", source.c_str(), "bytes", bytes.size());
            print(peer::describe(*read, secret));
            digests.push_back(std::move(*read));
        } catch (const boost::system::system_error& error) {  // its what() names source files
            std::fprintf(stderr, "%s: %s\n", source.c_str(), error.code().message().c_str());
            return 2;
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s: %s\n", source.c_str(), error.what());
            return 2;
        }
    }
    int status = 0;
    for (const auto& url : wanted.urls) {
        for (std::size_t i = 0; i < digests.size(); ++i) {
            const auto there = peer::lists(digests[i], url, secret);
            const auto* const word = !there   ? "cannot be told: of another secret"
                                     : *there ? "listed"
                                              : "not listed";
            std::printf("%s: %s: %s\n", wanted.sources[i].c_str(), url.c_str(), word);
            status = there == true ? status : 1;
        }
    }
    if (digests.size() == 2) {
        if (const auto lines = peer::compare(digests[0], digests[1])) {
            std::printf("compared\n");
            print(*lines);
        } else {
            std::printf("compared: their bits say nothing of each other\n");
        }
    }
    return status;
}

}  // namespace

int main(int count, char** arguments) {
    wishes wanted;
    CLI::App app{"Prints a digest, ours or Squid's, tests URLs against it, compares two."};
    app.add_option("source", wanted.sources, "a file, or the http[s]://host:port of a proxy")
        ->required()
        ->expected(1, 2);
    app.add_option("--url", wanted.urls, "say whether it is listed; may be given again");
    app.add_option("--secret", wanted.secret_file, "the fleet's digest.secret_file");
    app.add_option("--timeout", wanted.seconds, "seconds until a proxy must have answered")
        ->capture_default_str()
        ->check(CLI::Range(1u, 3600u));
    app.add_flag("--squid", wanted.squid, "ask the proxy for Squid's form");
    app.add_flag("--seen", wanted.seen, "ask it for what it saw, in place of what it has");
    CLI11_PARSE(app, count, arguments);
    const int status = run(wanted);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        std::fprintf(stderr, "reprise-digest: cannot write to standard output\n");
        return status == 0 ? 1 : status;
    }
    return status;
}
