#pragma once
// A loop with our side of TLS on it, and the other side as straight code on a thread.

#include "proxy/net/tls.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tls_peer.hpp"
#include "tests/unit/net/loop.hpp"

#include <cstdlib>
#include <functional>
#include <thread>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::net {

inline const tests::test_authority& known_authority() {
    static const tests::test_authority one;
    return one;
}

/// Trusts known_authority() alone: the system's store as OpenSSL finds it, moved by its variable.
inline tls_trust_ptr trust_of_the_test() {
    static const tests::temp_dir at;
    static const auto file = at.write("authority.pem", known_authority().certificate());
    ::setenv("SSL_CERT_FILE", file.c_str(), 1);
    ::setenv("SSL_CERT_DIR", at.file("nothing").c_str(), 1);
    return tls_trust::read({});
}

/// The same, but for what is on this list.
inline tls_trust_ptr heeding(const std::string& list) {
    const tests::temp_dir at;
    static_cast<void>(trust_of_the_test());  // moves the system's store
    config::origin_options options;
    options.crl_file = at.write("list", list);
    return tls_trust::read(options);
}

inline tls_identity_ptr identity_for(const tests::made_certificate& made) {
    const tests::temp_dir at;
    return tls_identity::read({at.write("c", made.certificate), at.write("k", made.key)}, "tls");
}

struct tls_bench : test_loop {
    socket_pair pair = connected_pair(io);
    std::thread other;

    ~tls_bench() {
        if (other.joinable()) {
            other.join();
        }
    }

    /// The other side's socket, its owner from now on; Asio forgets it.
    int far_socket() { return pair.theirs.release(); }

    /// Runs the other side to its end on a thread of its own.
    void on_thread(std::function<void()> far) { other = std::thread{std::move(far)}; }
    /// Runs the loop until that thread has ended.
    void join_running() { test_loop::join_running(other); }

    attempt<byte_stream> accepted(std::chrono::milliseconds within = test_patience) {
        return finish(accept_tls(std::move(pair.ours),
                                 identity_for(known_authority().issue("DNS:a.test")),
                                 timer,
                                 steady_now() + within));
    }
    attempt<byte_stream> connected(const std::string& host,
                                   std::chrono::milliseconds within = test_patience) {
        return connected({host}, trust_of_the_test(), within);
    }
    attempt<byte_stream> connected(tls_server to,
                                   tls_trust_ptr trust,
                                   std::chrono::milliseconds within = test_patience) {
        return finish(connect_tls(
            std::move(pair.ours), std::move(trust), std::move(to), timer, steady_now() + within));
    }
};

struct read_result {
    std::string bytes;
    error_code end;
};
inline awaitable<read_result> read_until_end(byte_stream& socket) {
    read_result all;
    for (;;) {
        char block[4096];
        const auto [error, count] = co_await read_some(socket, asio::buffer(block));
        all.bytes.append(block, count);
        if (error) {
            all.end = error;
            co_return all;
        }
    }
}

}  // namespace reprise::proxy::net
