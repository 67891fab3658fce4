#include "proxy/net/tls.hpp"

#include "proxy/net/watched.hpp"

#include <memory>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <utility>

namespace reprise::proxy::net {
namespace {

struct handshake_end {
    std::string why{};  ///< empty: it is done
    bool late = false;
    bool is_ours = false;  ///< the failure: OpenSSL had no memory, or some such
};

awaitable<handshake_end> shake_hands(tls_session& tls,
                                     tcp_socket& socket,
                                     deadlines& timer,
                                     steady_time until) {
    using handshake = tls_session::handshake;
    static_cast<void>(watch(socket));
    deadline limit{timer, [&socket] {
                       error_code ignored;
                       socket.close(ignored);
                   }};
    limit.expire_at(until);
    for (;;) {
        const auto step = tls.shake_hands();
        if (step == handshake::done) {
            co_return handshake_end{};
        }
        if (step == handshake::failed) {
            const bool is_ours = ERR_FATAL_ERROR(ERR_peek_last_error());
            handshake_end end{tls.why(), false, is_ours};
            co_return end;
        }
        const auto what = step == handshake::wants_to_read ? tcp_socket::wait_read
                                                           : tcp_socket::wait_write;
        const auto [error] = co_await socket.async_wait(what, use_tuple);
        if (limit.expired()) {
            co_return handshake_end{"no handshake in time", true};
        }
        if (error) {
            co_return handshake_end{error.message()};
        }
    }
}

// The code for a handshake that failed for another reason than what its certificates say.
failure_code failure_of(const tls_session& tls, std::string_view why) noexcept {
    if (tls.was_asked_for_certificate()) {
        return failure_code::tls_client_certificate;
    }
    // The one message that is bounded (tls_trust) is the certificates'.
    return why.find("excessive message size") != std::string_view::npos
               ? failure_code::tls_certificate
               : failure_code::tls_failed;
}

}  // namespace

awaitable<attempt<byte_stream>> accept_tls(tcp_socket socket,
                                           tls_identity_ptr identity,
                                           deadlines& timer,
                                           steady_time until,
                                           std::string first) {
    auto ssl = identity->begin();
    if (!ssl) {
        ERR_clear_error();
        co_return failure{failure_code::out_of_memory, "OpenSSL: no memory for a connection"};
    }
    auto tls = std::make_unique<tls_session>(
        std::move(ssl), socket.native_handle(), std::move(first));
    const auto end = co_await shake_hands(*tls, socket, timer, until);
    if (!end.why.empty()) {
        co_return failure{end.is_ours ? failure_code::internal : failure_code::tls_failed, end.why};
    }
    co_return byte_stream{std::move(socket), std::move(tls)};
}

awaitable<attempt<byte_stream>> accept_tls(tcp_socket socket,
                                           tls_identity_ptr identity,
                                           deadlines& timer,
                                           steady_time until) {
    return accept_tls(std::move(socket), std::move(identity), timer, until, std::string{});
}

awaitable<attempt<byte_stream>> connect_tls(tcp_socket socket,
                                            tls_trust_ptr trust,
                                            tls_server server,
                                            deadlines& timer,
                                            steady_time until) {
    auto host = server.host;
    if (host.ends_with('.')) {
        host.pop_back();  // no certificate has it, and no name is sent with it (RFC 6066 3)
    }
    if (host.empty() || host.starts_with('.')) {
        co_return failure{failure_code::tls_certificate,
                          "no certificate is valid for \"" + server.host + '"'};
    }
    auto ssl = trust ? trust->begin(host) : nullptr;
    if (!ssl) {
        ERR_clear_error();
        co_return failure{failure_code::internal, "TLS to " + host + ": not set up"};
    }
    if (server.sessions != nullptr) {
        server.sessions->offer(ssl.get(), host + ':' + std::to_string(server.port), steady_now());
    }
    auto tls = std::make_unique<tls_session>(std::move(ssl), socket.native_handle());
    const auto end = co_await shake_hands(*tls, socket, timer, until);
    if (end.late) {
        co_return failure{failure_code::connect_timeout, "TLS to " + host + ": " + end.why};
    }
    if (!end.why.empty()) {
        const auto verdict = SSL_get_verify_result(tls->ssl());
        if (verdict != X509_V_OK) {
            co_return failure{failure_code::tls_certificate,
                              "the certificate of " + host + ": " +
                                  X509_verify_cert_error_string(verdict)};
        }
        co_return failure{failure_of(*tls, end.why), "TLS to " + host + ": " + end.why};
    }
    co_return byte_stream{std::move(socket), std::move(tls)};
}

}  // namespace reprise::proxy::net
