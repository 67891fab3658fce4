#include "tools/bench_proxy/bare_exchange.hpp"

#include "tools/bench_proxy/child.hpp"
#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/sockets.hpp"
#include "tools/bench_proxy/tls_handles.hpp"

#include <array>
#include <ctime>
#include <stdexcept>
#include <sys/socket.h>

namespace reprise::bench {

namespace {

double thread_seconds() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

class asking_alone {
public:
    asking_alone(std::uint16_t port, const std::string& host, bool tls)
        : port_{port},
          host_{host},
          request_{get_request("/1024/bare", host)},
          context_{tls ? SSL_CTX_new(TLS_client_method()) : nullptr} {
        if (tls) {
            SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_CLIENT);
        }
    }

    void ask() {
        const auto socket = connect_to(port_);
        std::array<char, 16384> bytes;
        std::size_t all = 0;
        if (context_ == nullptr) {
            send_all(socket.get(), request_);
            for (ssize_t got; (got = ::recv(socket.get(), bytes.data(), bytes.size(), 0)) > 0;) {
                all += static_cast<std::size_t>(got);
            }
        } else {
            const tls_connection tls{SSL_new(context_.get())};
            SSL_set_fd(tls.get(), socket.get());
            SSL_set_tlsext_host_name(tls.get(), host_.c_str());
            if (last_ != nullptr) {
                SSL_set_session(tls.get(), last_.get());
            }
            if (SSL_connect(tls.get()) != 1 ||
                SSL_write(tls.get(), request_.data(), static_cast<int>(request_.size())) <= 0) {
                throw std::runtime_error("the https origin has no TLS");
            }
            for (int got; (got = SSL_read(tls.get(), bytes.data(), bytes.size())) > 0;) {
                all += static_cast<std::size_t>(got);
            }
            SSL_shutdown(tls.get());
            last_.reset(SSL_get1_session(tls.get()));
        }
        if (all < 1024) {
            throw std::runtime_error("the https origin does not answer");
        }
    }

private:
    std::uint16_t port_;
    std::string host_, request_;
    tls_context context_;
    tls_session last_;
};

}  // namespace

double bare_exchange_us(std::uint16_t port, const std::string& host, bool tls) {
    constexpr int count = 500;
    asking_alone one{port, host, tls};
    stay_on(processor::first);
    for (int i = 0; i < 50; ++i) {
        one.ask();
    }
    const auto before = thread_seconds();
    for (int i = 0; i < count; ++i) {
        one.ask();
    }
    const auto spent = thread_seconds() - before;
    stay_on(processor::second);
    return spent * 1e6 / count;
}

}  // namespace reprise::bench
