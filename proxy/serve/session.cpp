#include "proxy/serve/session.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/access.hpp"
#include "proxy/net/tls.hpp"
#include "proxy/serve/own_reply.hpp"

#include <boost/asio/co_spawn.hpp>

// A connection from its place in the census to its lingering end. Between two requests it holds
// little, and no buffer.

namespace reprise::proxy::serve {

namespace {

constinit log::seldom ended_by_exception;
constexpr std::size_t read_size = 16u << 10;
constexpr std::size_t smallest_read = 4u << 10;
constexpr std::uint64_t linger_most = 256u << 10;
}  // namespace

connection_slot::connection_slot(thread::worker& w, const net::address_bytes& client)
    : client_{client} {
    const auto& limits = w.current->options.limits;
    const auto most = w.speaks_for_many(client) ? limits.client_connections
                                                : limits.connections_per_client;
    if (w.common.clients.enter(client, most, limits.client_connections)) {
        of_ = &w.common.clients;
    }
}

connection_slot::connection_slot(connection_slot&& other) noexcept
    : of_{std::exchange(other.of_, nullptr)},
      client_{other.client_} {}

connection_slot& connection_slot::operator=(connection_slot&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(client_, other.client_);
    return *this;
}

connection_slot::~connection_slot() {
    if (of_ != nullptr) {
        of_->leave(client_);
    }
}

session::session(thread::worker& w,
                 net::byte_stream stream,
                 std::size_t listener,
                 const tcp::endpoint& client,
                 connection_slot place)
    : w_{w},
      connection_{w, std::move(stream)},
      place_{w.connections.insert(w.connections.end(), this)},
      from_{client},
      place_among_clients_{std::move(place)} {
    client_.listener = listener;
    w.counts.client_open.add();
}

session::~session() {
    w_.connections.erase(place_);
    w_.counts.client_open.subtract();
}

void session::end_if_idle() {
    if (!idle_) {
        return;
    }
    if (auto& stream = connection_.stream.socket(); stream.is_encrypted()) {
        error_code ignored;
        stream.cancel(ignored);  // wakes it to say close_notify, for which there may be no room yet
        return;
    }
    abort();
}

exchange_space& session::space() {
    if (!space_) {
        space_ = take_space();
    }
    return *space_;
}

// The buffer goes with it: of a connection that says nothing there is nothing to hold.
void session::put_space_away() {
    auto& input = connection_.stream.input();
    if (space_) {
        space_->input = std::move(input);
    }
    input.release();
    space_.reset();
}

// Looks for a whole head at the front of the input; arms the deadline of what is waited for when
// there is none yet.
session::head_state session::look_for_head(bool first) {
    auto& client = connection_.stream;
    const auto& current = *w_.current;
    const auto& timeouts = current.options.timeouts;
    idle_ = client.input().empty();
    if (idle_) {
        resume_ = 0;
        head_begun_ = false;
        put_space_away();
        client.patience().expire_after(first ? timeouts.client_head : timeouts.client_idle);
        const bool draining = w_.common.draining.load(std::memory_order_relaxed);
        return draining && !first ? head_state::end : head_state::need_more;
    }
    auto& into = space().memory.head;
    const auto parsed = http::parse_request_head(
        client.input().data(), into, current.request_limits, resume_);
    if (parsed.state == http::head_state::done) {
        client.patience().clear();
        resume_ = 0;
        head_begun_ = false;
        return head_state::whole;
    }
    if (parsed.state == http::head_state::bad) {
        refuse_head(lend(), failure{parsed.code, parsed.why}, steady_now());
        return head_state::refused;
    }
    space_.reset();  // half a head holds its bytes alone
    resume_ = parsed.resume;
    if (!head_begun_) {
        head_begun_ = true;
        client.patience().expire_after(timeouts.client_head);
    }
    return head_state::need_more;
}

awaitable<ended> session::end_sending() {
    const auto& options = w_.current->options;
    return connection_.stream.end_sending(options.limits.body_rate, options.timeouts.client_body);
}

awaitable<void> session::say_end() {
    auto& client = connection_.stream;
    idle_ = false;
    if (!client.failed() && !client.reply_under_way() && client.socket().is_open()) {
        static_cast<void>(co_await end_sending());
    }
}

// Lets the last answer arrive: closing with unread input would reset the connection and take the
// answer with it.
awaitable<void> session::linger() {
    auto& client = connection_.stream;
    if (client.failed() || !client.socket().is_open()) {
        co_return;
    }
    if (client.reply_under_way()) {
        client.break_off();
        co_return;
    }
    const auto said = co_await end_sending();
    if (said == ended::gone) {
        co_return;
    }
    client.patience().expire_after(std::chrono::seconds{2});
    std::uint64_t dropped = 0;
    while (dropped < linger_most) {
        dropped += client.input().size();
        client.input().clear();
        const auto end = co_await client.read(read_size);
        if (end != net::client_stream::read_end::some) {
            break;
        }
    }
    client.patience().clear();
}

awaitable<void> session::run() {
    auto& w = w_;
    auto& client = connection_.stream;
    client_.at = net::canonical(from_.address());
    client_.address = client_.ip().to_string();
    client_.port = from_.port();
    const auto current = w.current;
    client_.refused = !net::client_allowed(current->options.access.clients, from_.address());
    if (!place_among_clients_) {
        place_among_clients_ = connection_slot{w, client_.at};
    }
    if (!place_among_clients_ || client_.refused) {
        w.counts.client_refused.add();
    }
    if (!place_among_clients_) {
        refuse_head(
            lend(), failure{failure_code::too_many_connections, client_.address}, steady_now());
        co_return;
    }
    // A hit runs through this loop and nothing else: no coroutine is begun between two reads.
    bool first = true;
    bool keep = true;
    while (keep) {
        const auto found = look_for_head(first);
        if (found == head_state::end) {
            co_return;
        }
        if (found == head_state::refused) {
            break;
        }
        if (found == head_state::need_more) {
            if (client.patience().expired()) {
                co_return;
            }
            std::size_t got = 0;
            error_code over;
            while (got == 0 && !over && !client.patience().expired()) {
                const auto [waited] = co_await client.socket().wait_readable(use_tuple);
                over = waited;
                if (!waited) {
                    if (idle_) {
                        client.input() = std::move(space().input);
                    }
                    const auto room = client.input().prepare(smallest_read);
                    got = client.socket().try_read(
                        asio::buffer(room.data(), std::min(room.size(), read_size)), over);
                }
                if (got == 0 && idle_) {
                    put_space_away();
                    if (w.common.draining.load(std::memory_order_relaxed)) {
                        co_return;  // drain() woke it, but some of TLS alone had come just then
                    }
                }
            }
            if (got > 0) {
                client.note_read(got);
                continue;
            }
            if (client.patience().expired() && !client.input().empty()) {
                const failure late{failure_code::request_timeout,
                                   "the request's head did not arrive in time"};
                refuse_head(lend(), late, steady_now());
            }
            co_return;
        }
        first = false;
        auto& one = space_->one.emplace(lend(), steady_now());
        auto how = one.begin();
        if (!how) {
            how = co_await one.run();
        }
        space_->one.reset();
        keep = how == ended::keep && !client.reply_under_way();
    }
    space_.reset();
    co_await linger();
}

namespace {
awaitable<void> run_session(thread::worker& w,
                            tcp_socket socket,
                            std::size_t listener,
                            tcp::endpoint client) {
    session one{w, std::move(socket), listener, client};
    co_await one.run();
}

// A handshake takes memory and time before anything is asked: only a client with a place may begin
// one.
awaitable<void> run_tls_session(thread::worker& w,
                                tcp_socket socket,
                                std::size_t listener,
                                tcp::endpoint client,
                                net::tls_identity_ptr identity) {
    connection_slot place{w, net::canonical(client.address())};
    if (!place) {
        w.counts.client_refused.add();
        co_return;
    }
    const auto until = steady_now() + w.current->options.timeouts.client_head;
    auto secured = co_await net::accept_tls(std::move(socket), std::move(identity), w.timer, until);
    if (!secured) {
        log::debug("TLS with ",
                   client.address().to_string(),
                   " on listeners[",
                   listener,
                   "]: ",
                   secured.error().detail);
        co_return;
    }
    session one{w, std::move(*secured), listener, client, std::move(place)};
    co_await one.run();
    co_await one.say_end();
}
}  // namespace

void serve_client(thread::worker& w, tcp_socket socket, std::size_t listener) {
    w.counts.client_accepted.add();
    error_code gone;
    const auto client = socket.remote_endpoint(gone);
    if (gone) {
        return;
    }
    net::prepare_socket(socket);
    auto on_end = [](std::exception_ptr broken) {
        if (!broken) {
            return;
        }
        try {
            std::rethrow_exception(broken);
        } catch (const std::exception& what) {
            if (const auto more = ended_by_exception.due()) {
                log::error(
                    "a connection ended by an exception: ", std::string_view{what.what()}, *more);
            }
        } catch (...) {
            if (const auto more = ended_by_exception.due()) {
                log::error("a connection ended by an exception", *more);
            }
        }
    };
    if (const auto& identity = w.current->identities[listener]) {
        asio::co_spawn(w.io,
                       run_tls_session(w, std::move(socket), listener, client, identity),
                       std::move(on_end));
        return;
    }
    asio::co_spawn(w.io, run_session(w, std::move(socket), listener, client), std::move(on_end));
}

}  // namespace reprise::proxy::serve
