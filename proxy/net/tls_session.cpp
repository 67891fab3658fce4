#include "proxy/net/tls_session.hpp"

#include "proxy/base/let_go.hpp"
#include "proxy/net/client_certificate.hpp"
#include "proxy/net/socket_read.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

// Every call of OpenSSL that may read or write happens within a `gathering`, for whose time the
// thread's one BIO is this session's (tls_wire). While ciphertext is kept, write() reports one byte
// less than it has sealed (owes_a_byte_), so that its caller waits for room and comes again.

namespace reprise::proxy::net {
namespace {

constexpr std::size_t record = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t largest_sealed = SSL3_RT_MAX_ENCRYPTED_LENGTH + SSL3_RT_HEADER_LENGTH;
// What is kept beside a write: answers to whoever has us change keys and reads none of them.
constexpr std::size_t most_kept = tls_session::most_at_once + 2 * largest_sealed;

/// Where the sessions of a thread gather what is to be sent. Used within one call only.
struct outgoing_block {
    std::array<char, tls_session::most_at_once + largest_sealed> bytes;
    std::size_t used = 0;

    [[nodiscard]] std::string_view content() const noexcept { return {bytes.data(), used}; }
    [[nodiscard]] std::size_t room() const noexcept { return bytes.size() - used; }
};
outgoing_block& outgoing() noexcept {
    static thread_local outgoing_block block;
    return block;
}

// How much that is no data one call takes: without a bound a peer could keep the thread in that
// call by records that OpenSSL answers or drops by itself (KeyUpdate, RFC 8446 4.6.3).
constexpr std::size_t most_beside_data = 4 * largest_sealed;

/// The bytes of a list of buffers, a record at a time. Only what lies in pieces is copied.
class record_source {
public:
    explicit record_source(std::span<const asio::const_buffer> from) noexcept : rest_(from) {}

    void skip(std::size_t bytes) noexcept {
        while (!rest_.empty() && bytes >= rest_.front().size() - offset_) {
            bytes -= rest_.front().size() - offset_;
            rest_ = rest_.subspan(1);
            offset_ = 0;
        }
        offset_ += bytes;
    }

    [[nodiscard]] std::string_view next(std::size_t most) const noexcept {
        most = std::min(most, record);
        const auto piece = [this](std::size_t index) {
            const auto one = rest_[index] + (index == 0 ? offset_ : 0);
            return std::string_view{static_cast<const char*>(one.data()), one.size()};
        };
        if (rest_.empty() || piece(0).size() >= most) {
            return rest_.empty() ? std::string_view{} : piece(0).substr(0, most);
        }
        static thread_local std::array<char, record> block;
        std::size_t used = 0;
        for (std::size_t i = 0; i < rest_.size() && used < most; ++i) {
            used += piece(i).copy(block.data() + used, most - used);
        }
        return {block.data(), used};
    }

private:
    std::span<const asio::const_buffer> rest_;
    std::size_t offset_ = 0;  // into the first
};

}  // namespace

/// The BIO between OpenSSL and a session: both directions are one, and it owns nothing.
struct tls_wire {
    static tls_session& of(BIO* wire) noexcept {
        return *static_cast<tls_session*>(BIO_get_data(wire));
    }

    static int read(BIO* wire, char* into, int room) noexcept {
        auto& session = of(wire);
        BIO_clear_retry_flags(wire);
        const auto wanted = std::min(static_cast<std::size_t>(room), session.may_receive_);
        if (wanted == 0) {
            session.drained_ = session.saw_all_ = false;
            BIO_set_retry_read(wire);
            return -1;
        }
        if (!session.first_.empty()) {
            const auto count = session.take_first(into, wanted);
            session.may_receive_ -= count;
            return static_cast<int>(count);
        }
        const auto [got, saw_all] = read_socket(session.socket_, into, wanted);
        session.saw_all_ = saw_all;
        session.drained_ = saw_all || got < static_cast<std::ptrdiff_t>(wanted);
        session.saw_fin_ = got == 0;
        session.may_receive_ -= got > 0 ? static_cast<std::size_t>(got) : 0;
        if (got < 0 && saw_all) {
            BIO_set_retry_read(wire);
        }
        return static_cast<int>(got);
    }

    // All or nothing: what does not fit (a handshake with a long chain) is sent first.
    static int write(BIO* wire, const char* bytes, int size) noexcept {
        auto& block = outgoing();
        const auto count = static_cast<std::size_t>(size);
        BIO_clear_retry_flags(wire);
        if (count > block.room()) {
            BIO_set_retry_write(wire);
            return -1;
        }
        std::memcpy(block.bytes.data() + block.used, bytes, count);
        block.used += count;
        return size;
    }

    static long control(BIO* wire, int what, long, void*) noexcept {
        switch (what) {
        case BIO_CTRL_FLUSH: return 1;
        case BIO_CTRL_EOF: return of(wire).saw_fin_ ? 1 : 0;
        default: return 0;
        }
    }

    static const BIO_METHOD* method() {
        static BIO_METHOD* const made = [] {
            auto* const one = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "reprise");
            if (one == nullptr || BIO_meth_set_read(one, read) != 1 ||
                BIO_meth_set_write(one, write) != 1 || BIO_meth_set_ctrl(one, control) != 1) {
                throw std::bad_alloc{};
            }
            return one;
        }();
        return made;
    }

    /// One for all sessions of a thread, which OpenSSL counts: it is used within calls only.
    static BIO* of_the_thread() {
        struct free_bio {
            void operator()(BIO* bio) const noexcept { BIO_free(bio); }
        };
        static thread_local const std::unique_ptr<BIO, free_bio> made = [] {
            std::unique_ptr<BIO, free_bio> one{BIO_new(method())};
            if (!one) {
                throw std::bad_alloc{};
            }
            BIO_set_init(one.get(), 1);
            return one;
        }();
        return made.get();
    }
};

namespace {

/// A call that gathers: the thread's BIO is the session's for its time. However it ends, what it
/// leaves in the block is nobody else's.
class gathering {
public:
    gathering(tls_session& caller, SSL* ssl) noexcept {
        ERR_clear_error();
        BIO_set_data(SSL_get_rbio(ssl), &caller);
    }
    ~gathering() { outgoing().used = 0; }
    gathering(const gathering&) = delete;
    gathering& operator=(const gathering&) = delete;
};

// Both sides' halves of the key exchange, which OpenSSL holds on to: nothing is derived from them
// any more, and whoever gets hold of this memory later shall not be able to.
void forget_exchanged_keys(SSL* ssl) noexcept {
    for (const bool own : {true, false}) {
        EVP_PKEY* key = nullptr;
        if ((own ? SSL_get_tmp_key(ssl, &key) : SSL_get_peer_tmp_key(ssl, &key)) == 1) {
            EVP_PKEY_set_type(key, EVP_PKEY_get_id(key));  // an empty one of its kind
            EVP_PKEY_free(key);
        }
    }
    ERR_clear_error();
}

struct free_shared_session {
    void operator()(SSL_SESSION* one) const noexcept { SSL_SESSION_free(one); }
};

// What a server's half of TLS 1.3 needs of a session once hands are shaken and the ticket is written
// is the cipher's name: so all connections of a thread under one cipher share one, without a secret in
// it. Null: there is no memory.
SSL_SESSION* session_under(const SSL_CIPHER* cipher) noexcept {
    static thread_local std::array<std::unique_ptr<SSL_SESSION, free_shared_session>, 5> all;
    for (auto& one : all) {
        if (one == nullptr) {
            one.reset(SSL_SESSION_new());
            if (one && (SSL_SESSION_set_protocol_version(one.get(), TLS1_3_VERSION) != 1 ||
                        SSL_SESSION_set_cipher(one.get(), cipher) != 1)) {
                one.reset();
            }
            return one.get();
        }
        if (SSL_SESSION_get0_cipher(one.get()) == cipher) {
            return one.get();
        }
    }
    return nullptr;  // TLS 1.3 has five
}

// The connection's own takes a kilobyte, and could still make tickets. A client's half is left alone:
// its tickets come later.
//
// SSL_set_session would begin anew where a context speaks more versions than its connection has come
// to speak; so that comes under a context of this version first, which lets go of the certificate too.
void forget_session(SSL* ssl) noexcept {
    const auto* const own = SSL_get_session(ssl);
    if (SSL_is_server(ssl) != 1 || SSL_version(ssl) != TLS1_3_VERSION || own == nullptr ||
        SSL_SESSION_get_max_fragment_length(own) != TLSEXT_max_fragment_length_DISABLED) {
        return;
    }
    const auto* const spoken = SSL_get_ssl_method(ssl);
    static thread_local ssl_ctx_ptr of_this_version;
    if (!of_this_version) {
        of_this_version.reset(SSL_CTX_new(spoken));
    }
    auto* const shared = session_under(SSL_get_current_cipher(ssl));
    if (of_this_version && SSL_CTX_get_ssl_method(of_this_version.get()) == spoken &&
        shared != nullptr && SSL_set_SSL_CTX(ssl, of_this_version.get()) != nullptr) {
        SSL_set_session(ssl, shared);
    }
    ERR_clear_error();
}

}  // namespace

tls_session::tls_session(ssl_ptr ssl, int socket, std::string first)
    : socket_(socket),
      first_(std::move(first)),
      ssl_(std::move(ssl)) {
    auto* const wire = tls_wire::of_the_thread();
    BIO_up_ref(wire);
    SSL_set_bio(ssl_.get(), wire, wire);
}

tls_session::~tls_session() = default;

tls_session::handshake tls_session::shake_hands() noexcept {
    const gathering call{*this, ssl_.get()};
    may_receive_ = most_beside_data;
    for (;;) {
        if (!flush_kept()) {
            return mute_ ? handshake::failed : handshake::wants_to_write;
        }
        const int result = SSL_do_handshake(ssl_.get());
        const auto end = SSL_get_error(ssl_.get(), result);
        flush();
        const bool goes_on = end == SSL_ERROR_NONE || end == SSL_ERROR_WANT_READ ||
                             end == SSL_ERROR_WANT_WRITE;
        if (!goes_on || mute_ || cut_) {
            return handshake::failed;
        }
        if (kept() > 0) {
            return handshake::wants_to_write;
        }
        if (end == SSL_ERROR_NONE) {
            forget_exchanged_keys(ssl_.get());
            forget_session(ssl_.get());
            return handshake::done;
        }
        if (end == SSL_ERROR_WANT_READ) {
            return handshake::wants_to_read;
        }
    }
}

std::string tls_session::why() {
    const auto code = ERR_peek_last_error();
    const auto* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
    ERR_clear_error();
    return reason != nullptr ? reason : "the connection ended";
}

std::size_t tls_session::read(asio::mutable_buffer into, error_code& error) noexcept {
    error.clear();
    saw_all_ = false;  // whatever is given out without asking the socket, it may have more by now
    const gathering call{*this, ssl_.get()};
    may_receive_ = into.size() + most_beside_data;
    std::size_t got = 0;
    while (got < into.size() && !cut_ && !ended_) {
        std::size_t count = 0;
        const int result = SSL_read_ex(
            ssl_.get(), static_cast<char*>(into.data()) + got, into.size() - got, &count);
        starved_ = false;
        if (result == 1) {
            got += count;
            if (must_wait()) {
                break;
            }
            continue;
        }
        const auto end = SSL_get_error(ssl_.get(), result);
        starved_ = end == SSL_ERROR_WANT_READ;
        ended_ = end == SSL_ERROR_ZERO_RETURN;
        cut_ = !starved_ && !ended_;
        if (starved_) {
            break;
        }
    }
    flush();  // it may have answered something, an alert for the last
    if (got == 0 && into.size() > 0 && (ended_ || cut_)) {
        error = ended_ ? error_code{asio::error::eof} : error_code{asio::error::connection_reset};
    }
    return got;
}

bool tls_session::must_wait() const noexcept {
    return !cut_ && !ended_ && drained_ && (starved_ || SSL_has_pending(ssl_.get()) == 0);
}

stream_look tls_session::look() noexcept {
    if (cut_ || ended_) {
        return stream_look::end;
    }
    const gathering call{*this, ssl_.get()};
    may_receive_ = most_beside_data;
    char byte = 0;
    std::size_t count = 0;
    const int result = SSL_peek_ex(ssl_.get(), &byte, 1, &count);
    const auto end = SSL_get_error(ssl_.get(), result);
    starved_ = end == SSL_ERROR_WANT_READ;
    ended_ = end == SSL_ERROR_ZERO_RETURN;
    cut_ = result != 1 && !starved_ && !ended_;
    flush();
    return result == 1 ? stream_look::bytes : starved_ ? stream_look::nothing : stream_look::end;
}

bool tls_session::takes_more() const noexcept {
    pollfd one{socket_, POLLOUT, 0};
    return ::poll(&one, 1, 0) > 0;
}

// The socket has not been asked by then, so nobody takes it for empty (drained_).
std::size_t tls_session::take_first(char* into, std::size_t most) noexcept {
    const auto count = first_.copy(into, most, first_taken_);
    first_taken_ += count;
    if (first_taken_ == first_.size()) {
        let_go(first_);
        first_taken_ = 0;
    }
    drained_ = saw_all_ = false;
    return count;
}

// Gives the kernel what it takes of it.
std::size_t tls_session::give(std::string_view ciphertext) noexcept {
    ssize_t sent = 0;
    do {
        sent = ::send(socket_, ciphertext.data(), ciphertext.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        mute_ = mute_ || (errno != EAGAIN && errno != EWOULDBLOCK);
        return 0;
    }
    return static_cast<std::size_t>(sent);
}

// True: nothing is kept.
bool tls_session::flush_kept() noexcept {
    if (kept() == 0) {
        return true;
    }
    kept_sent_ += static_cast<std::uint32_t>(give({kept_.data() + kept_sent_, kept()}));
    if (kept() > 0) {
        return false;
    }
    let_go(kept_);
    kept_sent_ = 0;
    return true;
}

// Sends what was gathered, behind what is kept, and keeps what is not taken.
void tls_session::flush() noexcept {
    auto& block = outgoing();
    auto left = block.content();
    if (left.empty()) {
        return;
    }
    if (flush_kept()) {
        left.remove_prefix(give(left));
    }
    if (!left.empty() && !mute_) {
        const bool too_much = kept() + left.size() > most_kept;
        try {
            if (kept_sent_ >= most_at_once) {
                kept_.erase(kept_.begin(), kept_.begin() + kept_sent_);
                kept_sent_ = 0;
            }
            kept_.insert(kept_.end(), left.begin(), left.end());
        } catch (const std::bad_alloc&) {
            mute_ = true;  // without what is lost here nothing can follow
        }
        cut_ = cut_ || too_much;
    }
    block.used = 0;
}

std::size_t tls_session::write(std::span<const asio::const_buffer> from,
                               error_code& error) noexcept {
    error.clear();
    const auto total = asio::buffer_size(from);
    record_source source{from};
    std::size_t done = 0;
    while (done < total && !is_over() && flush_kept()) {
        if (owes_a_byte_) {
            owes_a_byte_ = false;
            source.skip(1);
            ++done;
            continue;
        }
        if (total - done > record && !takes_more()) {
            break;
        }
        const gathering call{*this, ssl_.get()};
        may_receive_ = most_beside_data;
        const auto most = std::min<std::size_t>(total - done, at_once_);
        std::size_t sealed = 0;
        while (sealed < most && outgoing().room() >= largest_sealed && !cut_) {
            const auto piece = source.next(most - sealed);
            std::size_t taken = 0;
            const int result = SSL_write_ex(ssl_.get(), piece.data(), piece.size(), &taken);
            cut_ = result != 1;  // never for want of room, which there is
            source.skip(taken);
            sealed += taken;
        }
        flush();
        done += sealed;
        if (kept() > 0 && sealed > 0) {
            owes_a_byte_ = true;
            at_once_ = record;
            return done - 1;
        }
        at_once_ = std::min<std::uint32_t>(2 * at_once_, most_at_once);
    }
    if (is_over()) {
        error = asio::error::connection_reset;
    }
    return done;
}

bool tls_session::say_end(error_code& error) noexcept {
    error.clear();
    if (!said_end_ && !is_over() && !owes_a_byte_ && SSL_is_init_finished(ssl_.get()) == 1) {
        const gathering call{*this, ssl_.get()};
        may_receive_ = most_beside_data;
        said_end_ = SSL_shutdown(ssl_.get()) >= 0;
        flush();
    }
    if (said_end_ && flush_kept()) {
        return true;
    }
    if (!said_end_ || is_over()) {
        error = asio::error::connection_reset;
    }
    return false;
}

std::string_view tls_session::protocol() const noexcept {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
}

bool tls_session::was_asked_for_certificate() const noexcept {
    return net::was_asked_for_certificate(ssl_.get());
}

}  // namespace reprise::proxy::net
