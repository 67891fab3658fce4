#include "proxy/net/tls_resumption.hpp"

#include "proxy/net/client_certificate.hpp"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <new>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdexcept>

// OpenSSL tells of a session when its server has sent the ticket: with TLS 1.3 that is behind the
// handshake, when the first answer is read. So a connection carries a link to the table, which may
// have gone by then.

namespace reprise::proxy::net {

namespace {
struct free_session {
    void operator()(SSL_SESSION* one) const noexcept { SSL_SESSION_free(one); }
};
using session_ptr = std::unique_ptr<SSL_SESSION, free_session>;
}  // namespace

struct tls_resumption::table {
    struct entry {
        std::string server;
        session_ptr session;
        steady_time until;
    };
    using entries = std::list<entry>;
    using index = std::multimap<std::string_view, entries::iterator>;
    entries oldest_first;
    index by_server;         // those of one server as they came: the oldest first, too
    unsigned forgotten = 0;  // how often

    void erase(index::iterator at) {
        const auto gone = at->second;
        by_server.erase(at);
        oldest_first.erase(gone);
    }

    void keep(const std::string& server, session_ptr session, steady_time until) {
        if (by_server.count(server) >= most_of_server) {
            erase(by_server.lower_bound(server));
        } else if (oldest_first.size() >= most) {
            erase(by_server.lower_bound(oldest_first.front().server));
        }
        oldest_first.push_back({server, std::move(session), until});
        const auto added = std::prev(oldest_first.end());
        try {
            by_server.emplace(added->server, added);
        } catch (...) {
            oldest_first.erase(added);
            throw;
        }
    }

    // The newest: a server that has changed its keys since takes no older one.
    session_ptr take(std::string_view server, steady_time now, steady_time& until) {
        for (;;) {
            const auto [first, last] = by_server.equal_range(server);
            if (first == last) {
                return nullptr;
            }
            const auto found = std::prev(last);
            auto& one = *found->second;
            until = one.until;
            const bool usable = now < one.until && SSL_SESSION_is_resumable(one.session.get()) == 1;
            if (usable && SSL_SESSION_get_protocol_version(one.session.get()) < TLS1_3_VERSION) {
                SSL_SESSION_up_ref(one.session.get());
                return session_ptr{one.session.get()};
            }
            auto taken = std::move(one.session);
            erase(found);
            if (usable) {
                return taken;
            }
        }
    }
};

struct tls_resumption::link {
    std::weak_ptr<table> to;
    std::string server;
    unsigned forgotten;  // as the table had it: what is brought after the next time began before it
    steady_time until{};  // of the session that was offered, if one was
};

namespace {
// What a server can make large: its certificates and its ticket.
std::size_t size_of(const SSL* connection, const SSL_SESSION* session) {
    const unsigned char* ticket = nullptr;
    std::size_t size = 0;
    SSL_SESSION_get0_ticket(session, &ticket, &size);
    const auto* chain = SSL_get_peer_cert_chain(connection);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        size += static_cast<std::size_t>(std::max(i2d_X509(sk_X509_value(chain, i), nullptr), 0));
    }
    return size;
}

// For how long nothing needs to be verified again: until the first certificate that led here expires.
// What is resumed was verified when its first session began, and is good for no longer than that one.
steady_time end_of(SSL* connection, steady_time offered_until, steady_time now) {
    if (SSL_session_reused(connection) == 1) {
        return offered_until;
    }
    auto until = now + tls_resumption::longest;
    const auto* chain = SSL_get0_verified_chain(connection);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        int days = 0, seconds = 0;
        const auto* end = X509_get0_notAfter(sk_X509_value(chain, i));
        if (ASN1_TIME_diff(&days, &seconds, nullptr, end) != 1 || days < 0) {
            return now;
        }
        // A day is longer than all of it, and a root may be good for more years than a time can be ahead.
        static_assert(tls_resumption::longest < std::chrono::hours{24});
        if (days == 0) {
            until = std::min(until, now + std::chrono::seconds{seconds});
        }
    }
    return until;
}
}  // namespace

struct tls_resumption_hooks {
    static int index() {
        static const int mine = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, unlink);
        return mine;
    }
    static void unlink(void*, void* held, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<tls_resumption::link*>(held);
    }
    // As SSL_CTX_sess_set_new_cb wants it: 0 leaves the caller its own reference.
    static int remember(SSL* connection, SSL_SESSION* session) noexcept {
        const auto* from = static_cast<tls_resumption::link*>(SSL_get_ex_data(connection, index()));
        const auto to = from != nullptr ? from->to.lock() : nullptr;
        if (!to || to->forgotten != from->forgotten || was_asked_for_certificate(connection) ||
            size_of(connection, session) > tls_resumption::largest) {
            return 0;
        }
        try {
            SSL_SESSION_up_ref(session);
            session_ptr own{session};
            to->keep(from->server, std::move(own), end_of(connection, from->until, steady_now()));
        } catch (const std::bad_alloc&) {
            // A new connection shakes hands in full.
        }
        return 0;
    }
};

tls_resumption::tls_resumption() : table_{std::make_shared<table>()} {}
tls_resumption::~tls_resumption() = default;

void tls_resumption::offer(ssl_st* connection, std::string_view server, steady_time now) {
    try {
        auto to = std::make_unique<link>(link{table_, std::string{server}, table_->forgotten});
        const auto known = table_->take(server, now, to->until);
        if (SSL_set_ex_data(connection, tls_resumption_hooks::index(), to.get()) == 1) {
            static_cast<void>(to.release());  // the connection's now
        }
        if (known) {
            SSL_set_session(connection, known.get());
            ERR_clear_error();
        }
    } catch (const std::bad_alloc&) {
        return;
    }
}

void tls_resumption::forget() noexcept {
    table_->by_server.clear();
    table_->oldest_first.clear();
    ++table_->forgotten;
}

std::size_t tls_resumption::size() const noexcept {
    return table_->oldest_first.size();
}

void tls_resumption::enable(ssl_ctx_st* context) {
    if (tls_resumption_hooks::index() < 0) {
        throw std::runtime_error{"TLS: cannot set the resumption of sessions up"};
    }
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, tls_resumption_hooks::remember);
}

}  // namespace reprise::proxy::net
