#include "proxy/net/tls.hpp"

#include "proxy/net/dial.hpp"
#include "proxy/net/io.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <array>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reprise::proxy::net {
namespace {

constexpr std::size_t scratch_bytes = 32 << 10;  // two records
constexpr unsigned most_rounds = 16;             // blocks before the loop's other work has its turn
constexpr int pair_buffer = 64 << 10;            // the kernel doubles it

/// Filled and emptied between two suspensions only, so that all links of a thread can share it.
std::array<char, scratch_bytes>& scratch() {
    static thread_local std::array<char, scratch_bytes> block;
    return block;
}

/// OpenSSL's reason, without what it could quote of a message: errors of system calls have none.
std::string last_reason() {
    const auto code = ERR_peek_last_error();
    const auto* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
    ERR_clear_error();
    return reason != nullptr ? reason : "the connection ended";
}

std::uint64_t cookie_of(int descriptor) {
    std::uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    if (::getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) {
        return 0;
    }
    return cookie;
}

/// True when the other end of the pair is closed, not merely done with sending.
bool is_hung_up(tcp_socket& socket) {
    pollfd one{socket.native_handle(), 0, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLHUP | POLLERR)) != 0;
}

struct handshake {
    std::string why;  ///< empty: it is done
    bool late = false;
};

awaitable<handshake> shake_hands(ssl_st* ssl,
                                 tcp_socket& socket,
                                 deadlines& timer,
                                 steady_time until) {
    prepare_socket(socket);
    deadline limit{timer, [&socket] {
                       error_code ignored;
                       socket.close(ignored);
                   }};
    limit.expire_at(until);
    if (SSL_set_fd(ssl, socket.native_handle()) != 1) {
        co_return handshake{last_reason()};
    }
    for (;;) {
        ERR_clear_error();
        const int done = SSL_do_handshake(ssl);
        if (done == 1) {
            co_return handshake{};
        }
        tcp_socket::wait_type what{};
        switch (SSL_get_error(ssl, done)) {
        case SSL_ERROR_WANT_READ: what = tcp_socket::wait_read; break;
        case SSL_ERROR_WANT_WRITE: what = tcp_socket::wait_write; break;
        default: co_return handshake{last_reason()};
        }
        const auto [error] = co_await socket.async_wait(what, use_tuple);
        if (limit.expired()) {
            co_return handshake{"no handshake in time", true};
        }
        if (error) {
            co_return handshake{error.message()};
        }
    }
}

}  // namespace

tls_link::tls_link(ssl_ptr ssl, tcp_socket outer, tls_pace pace, deadlines& timer)
    : ssl_(std::move(ssl)),
      outer_(std::move(outer)),
      inner_(timer.io()),
      pace_(pace),
      stalled_(
          timer, [this] { return acknowledged(); }, [this] { break_off(); }),
      stopping_(timer, [this] { break_off(); }),
      done_(timer) {}

tls_link::~tls_link() = default;

tcp_socket tls_link::start(const std::shared_ptr<tls_link>& self) {
    auto& me = *self;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
        throw boost::system::system_error{errno, boost::system::system_category(), "socketpair"};
    }
    for (const int end : ends) {
        static_cast<void>(
            ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &pair_buffer, sizeof pair_buffer));
    }
    const auto io = me.outer_.get_executor();
    tcp_socket given{io};
    error_code error;
    // What Asio is told of the family matters to addresses alone, and nobody asks for these.
    given.assign(tcp::v4(), ends[1], error);
    if (error) {
        ::close(ends[0]);
        ::close(ends[1]);
        throw boost::system::system_error{error};
    }
    me.inner_.assign(tcp::v4(), ends[0], error);
    if (error) {
        ::close(ends[0]);
        throw boost::system::system_error{error};
    }
    prepare_socket(given);
    prepare_socket(me.inner_);
    set_reset_on_close(me.outer_, true);  // until say_end
    me.given_ = ends[1];
    me.given_cookie_ = cookie_of(ends[1]);
    if (me.given_cookie_ == 0) {  // without it a truncated end could not be told from a whole one
        throw boost::system::system_error{errno, boost::system::system_category(), "SO_COOKIE"};
    }
    me.stopping_.expire_at(steady_time::max());
    me.running_ = 2;
    // Out of memory is the one thing that may be thrown; then both ways end.
    const auto on_end = [self](std::exception_ptr thrown) {
        if (thrown) {
            self->cut_inner();
            self->break_off();
        }
        self->one_done();
    };
    asio::co_spawn(io, carry_out(self), on_end);
    asio::co_spawn(io, carry_in(self), on_end);
    return given;
}

void tls_link::one_done() {
    if (--running_ > 0) {
        return;
    }
    close();
    stopping_.clear();
    done_.notify();
}

awaitable<void> tls_link::ended() {
    while (running_ > 0) {
        const bool told = co_await done_.wait(steady_time::max());
        if (!told) {
            co_return;  // the thread is stopping, and everything ends
        }
    }
}

void tls_link::close() noexcept {
    closed_ = true;
    error_code ignored;
    outer_.close(ignored);
    inner_.close(ignored);
}

void tls_link::break_off() noexcept {
    close();
}

std::uint64_t tls_link::acknowledged() noexcept {
    const auto written = BIO_number_written(SSL_get_wbio(ssl_.get()));
    return closed_ ? written : written - not_acknowledged(outer_);
}

// The kernel tells one end of a pair of a reset when the other is closed with something unread. So
// that there is something, a byte is sent from the end that was given out, if it is still the same
// socket: its owner lives on this thread, so it can't be closed and another take its number
// meanwhile. No room for the byte means that there is something already.
void tls_link::cut_inner() noexcept {
    if (closed_ || cookie_of(given_) != given_cookie_) {
        return;
    }
    const char unread = 0;
    static_cast<void>(::send(given_, &unread, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    error_code ignored;
    inner_.close(ignored);
}

tls_link::step tls_link::failed(int result) const {
    switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return {step_end::want_read};
    case SSL_ERROR_WANT_WRITE: return {step_end::want_write};
    case SSL_ERROR_ZERO_RETURN: return {step_end::end};
    default: ERR_clear_error(); return {step_end::cut};
    }
}

tls_link::step tls_link::encrypt(std::string_view bytes) {
    std::size_t taken = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &taken);
    return result == 1 ? step{step_end::moved, taken} : failed(result);
}

tls_link::step tls_link::decrypt(char* into, std::size_t room) {
    std::size_t got = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_.get(), into, room, &got);
    return result == 1 ? step{step_end::moved, got} : failed(result);
}

awaitable<bool> tls_link::wait_outer(step_end what) {
    const auto type = what == step_end::want_read ? tcp_socket::wait_read : tcp_socket::wait_write;
    const auto [error] = co_await outer_.async_wait(type, use_tuple);
    co_return !error && !closed_;
}

awaitable<bool> tls_link::wait_inner() {
    const auto [error] = co_await inner_.async_wait(tcp_socket::wait_read, use_tuple);
    co_return !error && !closed_;
}

// What OpenSSL did not take at once. It wants the same bytes again, wherever they are now.
awaitable<bool> tls_link::send_rest(std::string_view bytes) {
    stalled_.begin(pace_.bytes_per_second, pace_.timeout);
    while (!bytes.empty()) {
        const auto done = encrypt(bytes);
        if (done.end == step_end::moved) {
            bytes.remove_prefix(done.bytes);
            continue;
        }
        if (done.end == step_end::end || done.end == step_end::cut) {
            co_return false;
        }
        const bool ready = co_await wait_outer(done.end);
        if (!ready) {
            co_return false;
        }
    }
    stalled_.end();
    co_return true;
}

awaitable<bool> tls_link::say_end() {
    stalled_.begin(pace_.bytes_per_second, pace_.timeout);
    for (;;) {
        ERR_clear_error();
        const int result = SSL_shutdown(ssl_.get());
        if (result >= 0) {  // ours is sent; theirs is carry_in's
            break;
        }
        const auto why = failed(result);
        if (why.end != step_end::want_write) {
            // want_read too: ours has gone, and it looks for theirs.
            if (why.end != step_end::want_read) {
                co_return false;
            }
            break;
        }
        const bool ready = co_await wait_outer(why.end);
        if (!ready) {
            co_return false;
        }
    }
    stalled_.end();
    set_reset_on_close(outer_, false);
    error_code ignored;
    outer_.shutdown(tcp_socket::shutdown_send, ignored);
    co_return true;
}

// From the plain end to the other side, until the plain end says that nothing follows.
awaitable<void> tls_link::carry_out(std::shared_ptr<tls_link> self) {
    auto& me = *self;
    for (unsigned rounds = 0; !me.closed_; ++rounds) {
        error_code error;
        const auto count = try_read(me.inner_, asio::buffer(scratch()), error);
        if (error == asio::error::eof) {
            break;
        }
        if (error) {  // its owner closed it with something unread, as a plain socket resets then
            me.break_off();
            co_return;
        }
        std::string_view left{scratch().data(), count};
        while (!left.empty()) {
            const auto done = me.encrypt(left);
            if (done.end != step_end::moved) {
                break;
            }
            left.remove_prefix(done.bytes);
        }
        if (!left.empty()) {
            const std::vector<char> rest(left.begin(), left.end());
            const bool sent = co_await me.send_rest({rest.data(), rest.size()});
            if (!sent) {
                me.cut_inner();
                me.break_off();
                co_return;
            }
            rounds = 0;
        }
        if (count == 0 || rounds >= most_rounds) {
            rounds = 0;
            const bool ready = co_await me.wait_inner();
            if (!ready) {
                co_return;
            }
        }
    }
    const bool said = !me.closed_ && co_await me.say_end();
    if (!said) {
        me.close();
        co_return;
    }
    me.out_ended_ = true;
    // The other direction goes on until it ends too, or its taker is gone.
    if (!me.in_ended_ && !is_hung_up(me.inner_)) {
        co_await me.inner_.async_wait(tcp_socket::wait_error, use_tuple);
    }
    me.close();
}

// From the other side to the plain end, until the other side says that nothing follows.
awaitable<void> tls_link::carry_in(std::shared_ptr<tls_link> self) {
    auto& me = *self;
    for (unsigned rounds = 0; !me.closed_; ++rounds) {
        const auto got = me.decrypt(scratch().data(), scratch().size());
        if (got.end == step_end::end) {
            error_code ignored;
            me.inner_.shutdown(tcp_socket::shutdown_send, ignored);
            break;
        }
        if (got.end == step_end::cut) {
            me.cut_inner();
            me.close();
            co_return;
        }
        if (got.end == step_end::moved) {
            error_code error;
            const asio::const_buffer block{scratch().data(), got.bytes};
            const auto taken = try_write(me.inner_, block, error);
            if (!error && taken < got.bytes) {
                const std::vector<char> rest(scratch().data() + taken,
                                             scratch().data() + got.bytes);
                error = co_await write_all(me.inner_, asio::buffer(rest));
                rounds = 0;
            }
            if (error) {  // nobody takes it; what was written before still goes out
                break;
            }
            if (rounds < most_rounds) {
                continue;
            }
            // There may be more in OpenSSL's buffer, of which the socket knows nothing.
            co_await asio::post(me.outer_.get_executor(), use_tuple);
            rounds = 0;
            continue;
        }
        rounds = 0;
        const bool ready = co_await me.wait_outer(got.end);
        if (!ready) {
            co_return;
        }
    }
    me.in_ended_ = true;
    if (me.out_ended_) {
        me.close();
    }
}

namespace {

failure not_linked(const boost::system::system_error& error) {
    return {nothing_left(error.code()) ? failure_code::out_of_memory : failure_code::internal,
            error.what()};
}

}  // namespace

awaitable<attempt<tls_connection>> accept_tls(tcp_socket socket,
                                              tls_identity_ptr identity,
                                              tls_pace pace,
                                              deadlines& timer,
                                              steady_time until) {
    auto ssl = identity->begin();
    if (!ssl) {
        co_return failure{failure_code::out_of_memory, "OpenSSL: " + last_reason()};
    }
    const auto end = co_await shake_hands(ssl.get(), socket, timer, until);
    if (!end.why.empty()) {
        co_return failure{failure_code::tls_failed, end.why};
    }
    try {
        const auto link = std::make_shared<tls_link>(
            std::move(ssl), std::move(socket), pace, timer);
        auto plain = tls_link::start(link);
        co_return tls_connection{std::move(plain), link};
    } catch (const boost::system::system_error& error) {
        co_return not_linked(error);
    }
}

awaitable<attempt<tcp_socket>> connect_tls(tcp_socket socket,
                                           tls_trust_ptr trust,
                                           std::string host,
                                           tls_pace pace,
                                           deadlines& timer,
                                           steady_time until) {
    auto ssl = trust ? trust->begin(host) : nullptr;
    if (!ssl) {
        ERR_clear_error();
        co_return failure{failure_code::internal, "TLS to " + host + ": not set up"};
    }
    const auto end = co_await shake_hands(ssl.get(), socket, timer, until);
    if (end.late) {
        co_return failure{failure_code::connect_timeout, "TLS to " + host + ": " + end.why};
    }
    if (!end.why.empty()) {
        const auto verdict = SSL_get_verify_result(ssl.get());
        if (verdict != X509_V_OK) {
            co_return failure{failure_code::tls_certificate,
                              "the certificate of " + host + ": " +
                                  X509_verify_cert_error_string(verdict)};
        }
        co_return failure{failure_code::tls_failed, "TLS to " + host + ": " + end.why};
    }
    try {
        const auto link = std::make_shared<tls_link>(
            std::move(ssl), std::move(socket), pace, timer);
        co_return tls_link::start(link);
    } catch (const boost::system::system_error& error) {
        co_return not_linked(error);
    }
}

}  // namespace reprise::proxy::net
