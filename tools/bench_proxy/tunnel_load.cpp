#include "tools/bench_proxy/tunnel_load.hpp"

#include "tools/bench_proxy/sockets.hpp"
#include "tools/bench_proxy/tls_handles.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <vector>

namespace reprise::bench {

namespace {

using clock_type = std::chrono::steady_clock;

struct tunnelled {
    enum class phase { tunnel, handshake, answer, over };
    socket_handle socket;
    tls_connection tls;
    std::string host;
    phase now = phase::over;
    std::string head;           // of an answer, until it is whole
    std::size_t body_left = 0;  // once it is
    bool in_body = false;
};

class tunnelling {
public:
    explicit tunnelling(const tunnel_load& plan)
        : plan_{plan},
          context_{plan.tls ? SSL_CTX_new(TLS_client_method()) : nullptr},
          poll_{::epoll_create1(EPOLL_CLOEXEC)},
          all_(plan.connections),
          begin_{clock_type::now()} {
        if (context_ != nullptr) {
            SSL_CTX_set_read_ahead(context_.get(), 1);  // one call of recv for a record, not two
        }
    }

    std::uint64_t run() {
        for (auto& one : all_) {
            begin(one);
        }
        while (open_ > 0) {
            std::array<epoll_event, 128> ready;
            const int count = ::epoll_wait(poll_.get(), ready.data(), ready.size(), 10'000);
            if (count <= 0) {
                throw std::runtime_error("no answer came for ten seconds");
            }
            for (int i = 0; i < count; ++i) {
                go_on(*static_cast<tunnelled*>(ready[static_cast<std::size_t>(i)].data.ptr));
            }
        }
        return done_;
    }

private:
    using phase = tunnelled::phase;

    [[nodiscard]] bool wants_more() const {
        return begun_ < plan_.count &&
               std::chrono::duration<double>(clock_type::now() - begin_).count() < plan_.seconds;
    }

    void begin(tunnelled& one) {
        if (!wants_more()) {
            return;
        }
        one.socket = connect_to(plan_.port);
        const int fd = one.socket.get();
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.ptr = &one;
        ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &interest);
        ++open_;
        const auto authority = plan_.connect ? plan_.connect(connected_++) : std::string{};
        one.host = authority.substr(0, authority.rfind(':'));
        if (authority.empty()) {
            enter(one);
            return;
        }
        one.now = phase::tunnel;
        send_all(fd, "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    }

    void enter(tunnelled& one) {
        if (!plan_.tls) {
            ask(one);
            return;
        }
        one.now = phase::handshake;
        one.tls.reset(SSL_new(context_.get()));
        SSL_set_fd(one.tls.get(), one.socket.get());
        if (!one.host.empty()) {
            SSL_set_tlsext_host_name(one.tls.get(), one.host.c_str());
        }
        shake_hands(one);
    }

    void shake_hands(tunnelled& one) {
        const int result = SSL_connect(one.tls.get());
        if (result == 1) {
            ask(one);
        } else if (SSL_get_error(one.tls.get(), result) != SSL_ERROR_WANT_READ) {
            throw std::runtime_error("no TLS");
        }
    }

    void ask(tunnelled& one) {
        const auto number = begun_++;
        if (!plan_.request) {
            ++done_;
            end(one);
            return;
        }
        const auto text = plan_.request(number);
        one.now = phase::answer;
        one.head.clear();
        one.in_body = false;
        if (!plan_.tls) {
            send_all(one.socket.get(), text);
        } else if (SSL_write(one.tls.get(), text.data(), static_cast<int>(text.size())) <= 0) {
            throw std::runtime_error("a connection takes no bytes");
        }
    }

    void end(tunnelled& one) {
        if (one.tls != nullptr) {
            SSL_shutdown(one.tls.get());  // close_notify; the other's is not waited for
            one.tls.reset();
        }
        one.socket.close();
        one.now = phase::over;
        --open_;
        begin(one);
    }

    void go_on(tunnelled& one) {
        switch (one.now) {
        case phase::tunnel: read_tunnel(one); break;
        case phase::handshake: shake_hands(one); break;
        case phase::answer: read_answer(one); break;
        case phase::over: break;
        }
    }

    void read_tunnel(tunnelled& one) {
        one.head += read(one);
        if (!one.head.ends_with("\r\n\r\n")) {
            return;
        }
        if (one.head.rfind("HTTP/1.1 200 ", 0) != 0) {
            throw std::runtime_error("no tunnel: " + one.head.substr(0, 40));
        }
        enter(one);
    }

    // A blocking socket's read would wait here for what TLS still holds: one piece after the other.
    void read_answer(tunnelled& one) {
        for (auto piece = read(one); !piece.empty(); piece = read(one)) {
            if (!one.in_body) {
                one.head += piece;
                const auto end = one.head.find("\r\n\r\n");
                if (end == std::string::npos) {
                    continue;
                }
                if (one.head.rfind("HTTP/1.1 200 ", 0) != 0) {
                    throw std::runtime_error("a wrong answer: " + one.head.substr(0, 200));
                }
                piece.remove_prefix(piece.size() - (one.head.size() - end - 4));
                one.body_left = plan_.body;
                one.in_body = true;
            }
            if (piece.size() > one.body_left) {
                throw std::runtime_error("an answer is too long");
            }
            one.body_left -= piece.size();
            if (one.body_left == 0) {
                ++done_;
                if (plan_.closes || !wants_more()) {
                    end(one);
                } else {
                    ask(one);
                }
                return;
            }
        }
    }

    /// What there is now; nothing when there is nothing yet.
    std::string_view read(tunnelled& one) {
        static std::array<char, 16384> bytes;
        ssize_t got = 0;
        bool waits = false;
        if (one.tls != nullptr) {
            got = SSL_read(one.tls.get(), bytes.data(), bytes.size());
            waits = SSL_get_error(one.tls.get(), static_cast<int>(got)) == SSL_ERROR_WANT_READ;
        } else {
            got = ::recv(one.socket.get(), bytes.data(), bytes.size(), 0);
            waits = got < 0 && errno == EAGAIN;
        }
        if (got <= 0 && !waits) {
            throw std::runtime_error("a connection was ended before its answer");
        }
        return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
    }

    const tunnel_load& plan_;
    tls_context context_;
    socket_handle poll_;
    std::vector<tunnelled> all_;
    clock_type::time_point begin_;
    std::uint64_t connected_ = 0, begun_ = 0, done_ = 0, open_ = 0;
};

}  // namespace

std::uint64_t run_tunnel_load(const tunnel_load& plan) {
    return tunnelling{plan}.run();
}

}  // namespace reprise::bench
