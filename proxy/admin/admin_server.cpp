#include "proxy/admin/admin_server.hpp"

#include "proxy/admin/admin_answers.hpp"
#include "proxy/admin/admin_pages.hpp"
#include "proxy/admin/log.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <csignal>
#include <exception>
#include <optional>
#include <pthread.h>
#include <thread>
#include <utility>

namespace reprise::proxy {

namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;

// What is still on its way from a client that we have already answered for good.
constexpr std::size_t drained_most = 256 << 10;
constexpr std::chrono::seconds drained_for{1};

net::redirect_error_t<net::use_awaitable_t<>> into(error_code& error) {
    return net::redirect_error(net::use_awaitable, error);
}

void log_exception(std::string_view where, const std::exception_ptr& thrown) noexcept {
    try {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    } catch (const std::exception& error) {
        log::error("admin: ", where, ": ", std::string_view{error.what()});
    } catch (...) {
        log::error("admin: ", where, ": an unknown exception");
    }
}

// The status for what could not be read as a request; 0 when there is nobody to tell.
unsigned status_of(const error_code& error) noexcept {
    if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow) {
        return 431;
    }
    if (error == beast_http::error::body_limit) {
        return 413;
    }
    if (error == beast_http::error::end_of_stream || error == beast_http::error::partial_message) {
        return 0;
    }
    const auto& beasts = beast_http::make_error_code(beast_http::error::end_of_stream).category();
    return error.category() == beasts ? 400 : 0;
}

}  // namespace

class admin_server::state {
public:
    state(admin_hooks hooks, admin_limits limits) : hooks_{std::move(hooks)}, limits_{limits} {
        add_standard_routes(answers_, hooks_);
    }
    ~state() { stop(); }
    state(const state&) = delete;
    state& operator=(const state&) = delete;

    void add_route(admin_route route) { answers_.add_route(std::move(route)); }

    boost::system::result<config::endpoint> start(const config::admin_options& options) {
        error_code error;
        const auto address = net::ip::make_address(options.address->host, error);
        if (error) {
            return error;
        }
        const tcp::endpoint wanted{address, options.address->port};
        tcp::acceptor acceptor{*io_};
        acceptor.open(wanted.protocol(), error);
        if (!error) {
            acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
        }
        if (!error) {
            acceptor.bind(wanted, error);
        }
        if (!error) {
            acceptor.listen(tcp::acceptor::max_listen_connections, error);
        }
        const auto bound = error ? tcp::endpoint{} : acceptor.local_endpoint(error);
        if (error) {
            return error;
        }
        adopt(admin_gate{options});  // what is wrong with it was said before (obstacles.hpp)
        acceptor_.emplace(std::move(acceptor));
        spawn("accepting", accept());
        if (hooks_.tick) {
            spawn("ticking", tick());
        }
        thread_ = std::thread{[this] { run(); }};
        return config::endpoint{bound.address().to_string(), bound.port()};
    }

    void reconfigure(const config::admin_options& options) {
        if (!io_) {
            return;
        }
        net::post(*io_, [this, gate = gate_from(options)]() mutable { adopt(std::move(gate)); });
    }

    void stop() noexcept {
        if (!io_) {
            return;
        }
        io_->stop();
        if (thread_.joinable()) {
            thread_.join();
        }
        acceptor_.reset();
        io_.reset();  // ends the coroutines where they are, and their connections with them
    }

private:
    static admin_gate gate_from(const config::admin_options& options) {
        admin_gate gate{options};
        if (!options.token_file.empty() && !gate.token_problem().empty()) {
            log::error(gate.token_problem());
        }
        return gate;
    }

    void adopt(admin_gate gate) { answers_.set_gate(std::move(gate)); }

    void run() noexcept {
        sigset_t all;
        sigfillset(&all);  // signals are the main thread's
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "admin");
        while (true) {
            try {
                io_->run();
                return;
            } catch (...) {
                log_exception("event loop", std::current_exception());
            }
        }
    }

    void spawn(std::string_view what, net::awaitable<void> work) {
        net::co_spawn(*io_, std::move(work), [what](const std::exception_ptr& thrown) {
            log_exception(what, thrown);
        });
    }

    net::awaitable<void> tick() {
        net::steady_timer timer{*io_};
        while (true) {
            timer.expires_after(std::chrono::seconds{1});
            error_code error;
            co_await timer.async_wait(into(error));
            try {
                hooks_.tick();
            } catch (...) {
                log_exception("ticking", std::current_exception());
            }
        }
    }

    net::awaitable<void> accept() {
        net::steady_timer pause{*io_};
        while (true) {
            error_code error;
            tcp::socket socket{*io_};
            co_await acceptor_->async_accept(socket, into(error));
            if (error) {
                // Out of descriptors, mostly: they come back when something else closes.
                log::warn("admin: cannot accept a connection: ", error.message());
                pause.expires_after(std::chrono::seconds{1});
                co_await pause.async_wait(into(error));
                continue;
            }
            if (open_ >= limits_.connections) {
                turn_away(socket);
                continue;
            }
            ++open_;
            spawn("a connection", serve(std::move(socket)));
        }
    }

    // One attempt at saying why, without waiting for it.
    static void turn_away(tcp::socket& socket) {
        constexpr std::string_view busy =
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
            "Content-Length: 26\r\n\r\ntoo many admin connections";
        error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(net::buffer(busy), ignored);
    }

    struct counted {
        std::size_t& open;
        ~counted() { --open; }
    };

    net::awaitable<void> serve(tcp::socket accepted) {
        const counted count{open_};
        error_code error;
        const auto local = accepted.local_endpoint(error);
        const auto peer = error ? tcp::endpoint{} : accepted.remote_endpoint(error);
        auto from = peer.address();
        if (from.is_v6() && from.to_v6().is_v4_mapped()) {
            from = net::ip::make_address_v4(net::ip::v4_mapped, from.to_v6());
        }
        const bool from_here = from.is_loopback();
        beast::tcp_stream stream{std::move(accepted)};
        beast::flat_buffer buffer{limits_.head_bytes + limits_.body_bytes};
        bool more = !error;
        while (more) {
            more = co_await serve_one(stream, buffer, local, from_here);
        }
        // A FIN, and what was on its way to us is read: else the reset would overtake the answer.
        stream.socket().shutdown(tcp::socket::shutdown_send, error);
        stream.expires_after(drained_for);
        buffer.clear();
        for (std::size_t drained = 0; !error && drained < drained_most;) {
            drained += co_await stream.async_read_some(buffer.prepare(4096), into(error));
        }
    }

    // Reads a request and answers it; false when the connection has to close.
    net::awaitable<bool> serve_one(beast::tcp_stream& stream,
                                   beast::flat_buffer& buffer,
                                   const tcp::endpoint& local,
                                   bool from_here) {
        error_code error;
        if (buffer.size() == 0) {
            stream.expires_after(limits_.idle);
            const auto room = buffer.prepare(4096);
            const auto bytes = co_await stream.async_read_some(room, into(error));
            if (error) {
                co_return false;
            }
            buffer.commit(bytes);
        }
        stream.expires_after(limits_.request);
        beast_http::request_parser<beast_http::string_body> parser;
        parser.header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
        parser.body_limit(limits_.body_bytes);
        co_await beast_http::async_read(stream, buffer, parser, into(error));
        if (error) {
            if (const auto status = status_of(error); status != 0) {
                auto refusal = admin_answers::plain(status, "not read: " + error.message());
                co_await send(stream, refusal, false, false);
            }
            co_return false;
        }
        const auto& request = parser.get();
        auto response = answers_.answer(request, local, from_here);
        response.version(request.version());
        // Behind what asks for a tunnel or another protocol there may be anything but a request.
        const bool last = request.method() == beast_http::verb::connect ||
                          request.count(beast_http::field::upgrade) != 0;
        const bool keep = request.keep_alive() && !last;
        const bool head = request.method() == beast_http::verb::head;
        stream.expires_after(limits_.request);
        co_return co_await send(stream, response, keep, head) && keep;
    }

    // True when all of it was written.
    static net::awaitable<bool> send(beast::tcp_stream& stream,
                                     admin_http_response& response,
                                     bool keep,
                                     bool head) {
        response.keep_alive(keep);
        response.prepare_payload();
        error_code error;
        beast_http::response_serializer<beast_http::string_body> serializer{response};
        if (head) {
            co_await beast_http::async_write_header(stream, serializer, into(error));
        } else {
            co_await beast_http::async_write(stream, serializer, into(error));
        }
        co_return !error;
    }

    admin_hooks hooks_;
    const admin_limits limits_;
    admin_answers answers_;
    std::size_t open_ = 0;
    std::thread thread_;
    std::optional<net::io_context> io_{std::in_place, 1};  // after what its coroutines use
    std::optional<tcp::acceptor> acceptor_;
};

admin_server::admin_server(admin_hooks hooks, admin_limits limits)
    : state_{std::make_unique<state>(std::move(hooks), limits)} {}

admin_server::~admin_server() = default;

void admin_server::add_route(admin_route route) {
    state_->add_route(std::move(route));
}

boost::system::result<config::endpoint> admin_server::start(const config::admin_options& options) {
    return state_->start(options);
}

void admin_server::reconfigure(const config::admin_options& options) {
    state_->reconfigure(options);
}

void admin_server::stop() noexcept {
    state_->stop();
}

}  // namespace reprise::proxy
