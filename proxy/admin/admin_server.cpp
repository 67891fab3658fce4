#include "proxy/admin/admin_server.hpp"

#include "proxy/admin/admin_answers.hpp"
#include "proxy/admin/admin_pages.hpp"
#include "proxy/admin/handlers_desk.hpp"
#include "proxy/admin/log_thrown.hpp"
#include "proxy/admin/mailbox.hpp"
#include "proxy/admin/visitors.hpp"
#include "proxy/admin/written_answer.hpp"
#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/coroutine.hpp"
#include "proxy/net/spare_descriptors.hpp"
#include "proxy/net/standing_work.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <atomic>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <pthread.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>

// Connections are coroutines on the sockets' thread: each reads a request, answers it at once or
// leaves it to the handlers' thread (desk_), and sends what comes back by the mailbox.

namespace reprise::proxy::admin {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;
using any_stream = visitor::protocol;
using boost::system::error_code;

// How much is still read from a client that we have already answered for good, and for how long.
constexpr std::size_t drained_most = 256 << 10;
constexpr std::chrono::seconds drained_for{1};

asio::redirect_error_t<asio::use_awaitable_t<>> into(error_code& error) {
    return asio::redirect_error(asio::use_awaitable, error);
}

// A client's address as it counts: the same whether it came by IPv4 or mapped into IPv6.
asio::ip::address address_of(const tcp::endpoint& peer) {
    auto from = peer.address();
    if (from.is_v6() && from.to_v6().is_v4_mapped()) {
        from = asio::ip::make_address_v4(asio::ip::v4_mapped, from.to_v6());
    }
    return from;
}

// None: gone already.
std::optional<caller> caller_at(const tcp::socket& socket) {
    error_code error;
    const auto peer = socket.remote_endpoint(error);
    const auto local = error ? tcp::endpoint{} : socket.local_endpoint(error);
    if (error) {
        return std::nullopt;
    }
    const auto from = address_of(peer);
    return caller{from, {.local = local, .from_here = from.is_loopback()}};
}

std::optional<caller> caller_at(const unix_stream::socket& /*socket*/) {
    return caller{{}, {.local = {}, .from_here = true, .by_socket = true}};
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

descriptor copy_of(const descriptor& one) {
    return one ? descriptor{::fcntl(one.get(), F_DUPFD_CLOEXEC, 0)} : descriptor{};
}

// Closing alone would leave it in the loop's epoll set where the socket lives on elsewhere.
template <class Acceptor>
void stop_accepting(std::optional<Acceptor>& at) {
    error_code not_open;
    const auto fd = at ? at->release(not_open) : -1;
    if (at && !not_open) {
        ::close(fd);
    }
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

    boost::system::result<config::endpoint> start(const config::admin_options& options,
                                                  admin_places given) {
        config::endpoint bound;
        if (options.address) {
            const auto done = listen(*options.address, std::move(given.address));
            if (!done) {
                return done.error();
            }
            bound = *done;
        }
        if (given.socket) {
            error_code error;
            unix_acceptor_.emplace(*io_);
            const auto fd = given.socket->take_descriptor();
            unix_listening_ = descriptor{::fcntl(fd, F_DUPFD_CLOEXEC, 0)};
            unix_acceptor_->assign(unix_stream{}, fd, error);
            if (error) {
                return error;
            }
            socket_.emplace(std::move(*given.socket));
            keep_up([this] { return accept(*unix_acceptor_); });
        }
        admin_gate gate{options};  // what is wrong with it was said before (obstacles.hpp)
        has_token_ = gate.token_problem().empty();
        adopt(std::move(gate), options);
        if (acceptor_) {
            keep_up([this] { return accept(*acceptor_); });
        }
        keep_up([this] { return tick(); });
        thread_ = std::thread{[this] { run(); }};
        return bound;
    }

    boost::system::result<config::endpoint> listen(const config::endpoint& where,
                                                   descriptor given) {
        error_code error;
        const auto address = asio::ip::make_address(where.host, error);
        if (error) {
            return error;
        }
        const tcp::endpoint wanted{address, where.port};
        tcp::acceptor acceptor{*io_};
        if (given) {
            acceptor.assign(wanted.protocol(), given.get(), error);
            if (!error) {
                (void)given.release();
            }
        } else {
            acceptor.open(wanted.protocol(), error);
            if (!error) {
                acceptor.set_option(tcp::acceptor::reuse_address{true}, error);
            }
            if (!error) {
                acceptor.bind(wanted, error);
            }
        }
        if (!error) {
            acceptor.listen(tcp::acceptor::max_listen_connections, error);
        }
        const auto bound = error ? tcp::endpoint{} : acceptor.local_endpoint(error);
        if (error) {
            return error;
        }
        listening_ = descriptor{::fcntl(acceptor.native_handle(), F_DUPFD_CLOEXEC, 0)};
        acceptor_.emplace(std::move(acceptor));
        return config::endpoint{bound.address().to_string(), bound.port()};
    }

    descriptor listening() const { return copy_of(listening_); }
    descriptor socket_listening() const { return copy_of(unix_listening_); }

    void own_socket(std::string path) {
        if (socket_) {
            (void)socket_->own(std::move(path));  // one without a file has none to remove
        }
    }

    // The file is given up here, and not by the loop, which may end before it comes to that. None but
    // this thread, stop()'s too, has to do with it.
    void leave() {
        listening_ = {};
        unix_listening_ = {};
        if (socket_) {
            socket_->leave_file();
        }
        box_->post([this] {
            stop_accepting(acceptor_);
            stop_accepting(unix_acceptor_);
        });
    }

    [[nodiscard]] bool has_token() const noexcept { return has_token_.load(); }

    void reconfigure(const config::admin_options& options, admin_gate gate) {
        has_token_ = gate.token_problem().empty();
        box_->post(
            [this, gate = std::move(gate), options]() mutable { adopt(std::move(gate), options); });
    }

    void stop() noexcept {
        if (!io_) {
            return;
        }
        desk_.stop();
        io_->stop();
        if (thread_.joinable()) {
            thread_.join();
        }
        box_->close();
        desk_.finish();
        socket_.reset();  // nobody is to find it any more
        acceptor_.reset();
        unix_acceptor_.reset();
        listening_ = {};
        unix_listening_ = {};
        io_.reset();  // ends the coroutines where they are, and their connections with them
    }

private:
    void adopt(admin_gate gate, const config::admin_options& options) {
        answers_.set_gate(std::move(gate));
        of_client_ = options.connections_per_client;
    }

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
                log_thrown(loop_threw_, "event loop", std::current_exception());
            }
        }
    }

    // What the thread does for as long as it lives. What ends it for a moment the loop throws.
    template <class Make>
    void keep_up(Make make) {
        net::standing_work work{*io_, std::move(make)};
        std::move(work).begin();
    }

    asio::awaitable<void> tick() {
        asio::steady_timer timer{*io_};
        while (true) {
            timer.expires_after(std::chrono::seconds{1});
            error_code error;
            co_await timer.async_wait(into(error));
            spare_.refill();
            try {
                tick_aside();
            } catch (...) {  // mostly for want of memory: it ticks again
                log_thrown(tick_threw_, "ticking", std::current_exception());
            }
        }
    }

    void tick_aside() {
        if (ticking_.exchange(true)) {
            return;  // the last one waits yet
        }
        try {
            desk_.post([this] {
                try {
                    if (hooks_.tick) {
                        hooks_.tick();
                    }
                } catch (...) {
                    log_thrown(tick_threw_, "ticking", std::current_exception());
                }
                ticking_ = false;
            });
        } catch (...) {
            ticking_ = false;
            throw;
        }
    }

    template <class Protocol>
    asio::awaitable<void> accept(asio::basic_socket_acceptor<Protocol>& at) {
        asio::steady_timer pause{*io_};
        while (true) {
            error_code error;
            typename Protocol::socket socket{*io_};
            co_await at.async_accept(socket, into(error));
            if (!at.is_open()) {
                co_return;
            }
            if (error) {
                // Out of descriptors, mostly: they come back when something else closes. Until then
                // whoever asks what is the matter is answered from those that were held for that.
                if ((error == asio::error::no_descriptors ||
                     error == boost::system::errc::too_many_files_open_in_system) &&
                    spare_.give()) {
                    continue;
                }
                if (const auto more = cannot_accept_.due()) {
                    log::warn("admin: cannot accept a connection: ", error.message(), *more);
                }
                pause.expires_after(std::chrono::seconds{1});
                co_await pause.async_wait(into(error));
                continue;
            }
            try {
                admit(std::move(socket));
            } catch (...) {  // for want of memory, mostly: the next is let in all the same
                log_thrown(connection_threw_, "a connection", std::current_exception());
            }
        }
    }

    template <class Socket>
    void admit(Socket socket) {
        const auto who = caller_at(socket);
        if (!who) {
            return;
        }
        if (!visitors_.make_room(who->from, of_client_)) {
            turn_away(socket);
            return;
        }
        auto serving = serve(visitors_.come_in(std::move(socket), *who));
        net::begin_coroutine(*io_, std::move(serving), [this](const std::exception_ptr& thrown) {
            log_thrown(ended_, "a connection", thrown);
        });
    }

    // One attempt at saying why, without waiting for it.
    template <class Socket>
    static void turn_away(Socket& socket) {
        constexpr std::string_view busy =
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
            "Content-Length: 26\r\n\r\ntoo many admin connections";
        error_code ignored;
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(busy), ignored);
    }

    asio::awaitable<void> serve(visitors::place own) {
        auto& stream = own->stream;
        beast::flat_buffer buffer{limits_.head_bytes + limits_.body_bytes};
        bool more = true;
        for (bool first = true; more; first = false) {
            more = co_await serve_one(*own, buffer, first);
        }
        if (own->sent_away) {
            spare_.refill();
            co_return;
        }
        // A FIN, and what was on its way to us is read: else the reset would overtake the answer.
        own->begin(visitor::stage::leaving);
        error_code error;
        stream.socket().shutdown(any_stream::socket::shutdown_send, error);
        stream.expires_after(drained_for);
        buffer.clear();
        for (std::size_t drained = 0; !error && drained < drained_most;) {
            drained += co_await stream.async_read_some(buffer.prepare(4096), into(error));
        }
    }

    // Reads a request and answers it; false when the connection has to close.
    asio::awaitable<bool> serve_one(visitor& own, beast::flat_buffer& buffer, bool first) {
        auto& stream = own.stream;
        error_code error;
        own.begin(visitor::stage::reading);
        if (buffer.size() == 0) {
            stream.expires_after(first ? limits_.request : limits_.idle);
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
        auto request = parser.release();
        own.begin(visitor::stage::answering);
        stream.expires_never();
        auto [response, body] = co_await answer(request, own.how);
        response.version(request.version());
        // Behind what asks for a tunnel or another protocol there may be anything but a request.
        const bool last = request.method() == beast_http::verb::connect ||
                          request.count(beast_http::field::upgrade) != 0;
        const bool keep = request.keep_alive() && !last;
        const bool head = request.method() == beast_http::verb::head;
        own.begin(visitor::stage::sending);
        stream.expires_after(limits_.request);
        if (body && !head) {
            co_await send_as_it_comes(stream, response, *body, limits_.request);
            co_return false;
        }
        const bool sent = co_await send(stream, response, keep, head);
        const bool goes_on = sent && keep;
        co_return goes_on;
    }

    struct answered {
        admin_http_response response;
        std::shared_ptr<admin_stream> stream{};
    };
    asio::awaitable<answered> answer(admin_http_request& request, const arrival& how) {
        auto judged = answers_.judge(request, how);
        if (judged.route == nullptr) {
            answered refused{std::move(judged.refusal)};
            co_return refused;
        }
        auto asked = std::make_shared<owned_request>();
        asked->method = request.method();
        asked->path = judged.path;
        asked->query = judged.query;
        asked->body = std::move(request.body());
        admin_response told;
        if (judged.route->at_once) {
            told = admin_answers::call(*judged.route, asked->view());
        } else {
            told = co_await desk_.call(*judged.route, std::move(asked));
        }
        auto stream = std::move(told.stream);
        answered out{admin_answers::dressed(std::move(told)), std::move(stream)};
        co_return out;
    }

    admin_hooks hooks_;
    const admin_limits limits_;
    admin_answers answers_;
    unsigned of_client_ = 0;
    visitors visitors_{limits_.connections};
    // One for a connection, others for what its handler opens.
    net::spare_descriptors spare_{16};
    std::atomic<bool> has_token_{false};
    log::seldom cannot_accept_, loop_threw_, ended_, tick_threw_, connection_threw_;
    std::atomic<bool> ticking_{false};
    std::thread thread_;
    std::optional<asio::io_context> io_{std::in_place,
                                        1};  // stop() ends its coroutines, before all of this goes
    const std::shared_ptr<mailbox> box_{std::make_shared<mailbox>(*io_)};
    handlers_desk desk_{*io_, box_, limits_};
    std::optional<tcp::acceptor> acceptor_;
    std::optional<unix_stream::acceptor> unix_acceptor_;
    std::optional<admin_socket> socket_;     // its file
    descriptor listening_, unix_listening_;  // copies: the acceptors are their thread's
};

admin_server::admin_server(admin_hooks hooks, admin_limits limits)
    : state_{std::make_unique<state>(std::move(hooks), limits)} {}

admin_server::~admin_server() = default;

void admin_server::add_route(admin_route route) {
    state_->add_route(std::move(route));
}

boost::system::result<config::endpoint> admin_server::start(const config::admin_options& options,
                                                            admin_places given) {
    return state_->start(options, std::move(given));
}

descriptor admin_server::listening() const {
    return state_->listening();
}

descriptor admin_server::socket_listening() const {
    return state_->socket_listening();
}

void admin_server::own_socket(std::string path) {
    state_->own_socket(std::move(path));
}

void admin_server::leave() {
    state_->leave();
}

void admin_server::reconfigure(const config::admin_options& options, admin_gate gate) {
    state_->reconfigure(options, std::move(gate));
}

bool admin_server::has_token() const noexcept {
    return state_->has_token();
}

void admin_server::stop() noexcept {
    state_->stop();
}

}  // namespace reprise::proxy::admin
