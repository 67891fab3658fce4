#include "tools/bench_proxy/origin.hpp"

#include "tools/bench_proxy/sockets.hpp"

#include <array>
#include <charconv>
#include <csignal>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string_view>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unordered_map>

namespace reprise::bench {

namespace {

constexpr std::size_t most_body = 16 << 20;

std::string head_of(std::size_t size, bool tagged, std::string_view date) {
    std::string out = "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: ";
    out += date;
    out += "\r\nContent-Type: text/html\r\nContent-Length: " + std::to_string(size) +
           "\r\nLast-Modified: Fri, 20 Nov 2026 11:00:00 GMT\r\nConnection: keep-alive\r\n"
           "ETag: \"655b3c30-400\"\r\nCache-Control: public, max-age=3600\r\n"
           "Accept-Ranges: bytes\r\n";
    out += tagged ? "Surrogate-Key: bench\r\n\r\n" : "\r\n";
    return out;
}

constexpr std::string_view any_date = "Fri, 20 Nov 2026 11:00:00 GMT";

class answering {
public:
    explicit answering(std::atomic<std::uint64_t>& answered)
        : answered_{answered},
          body_(most_body, 'x') {}

    /// False when the connection is over.
    bool read_from(int fd) {
        auto& held = held_[fd];
        static std::array<char, 65536> bytes;
        const auto got = ::read(fd, bytes.data(), bytes.size());
        if (got <= 0) {
            held_.erase(fd);
            return false;
        }
        held.append(bytes.data(), static_cast<std::size_t>(got));
        for (std::size_t end; (end = held.find("\r\n\r\n")) != std::string::npos;) {
            if (!answer(fd, held)) {
                held_.erase(fd);
                return false;
            }
            held.erase(0, end + 4);
        }
        return true;
    }

private:
    bool answer(int fd, std::string_view head) {
        answered_.fetch_add(1, std::memory_order_relaxed);  // first: who has the answer may look
        const auto path = head.substr(head.find(' ') + 1, head.find('\r'));
        std::size_t size = 0;
        std::from_chars(path.data() + 1, path.data() + path.size(), size);
        size = std::min(size, most_body);
        const bool tagged = path.find("/tagged/") != std::string_view::npos;
        const auto& fields = fields_of(size, tagged);
        iovec pieces[2]{{const_cast<char*>(fields.data()), fields.size()}, {body_.data(), size}};
        auto left = fields.size() + size;
        // The socket blocks; more than one call is only for a signal, or a large body's remainder.
        for (msghdr message{.msg_name = nullptr,
                    .msg_namelen = 0,
                    .msg_iov = pieces,
                    .msg_iovlen = 2,
                    .msg_control = nullptr,
                    .msg_controllen = 0,
                    .msg_flags = 0};
             left > 0;) {
            const auto sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            left -= static_cast<std::size_t>(sent);
            for (auto rest = static_cast<std::size_t>(sent); auto& piece : pieces) {
                const auto part = std::min(rest, piece.iov_len);
                piece.iov_base = static_cast<char*>(piece.iov_base) + part;
                piece.iov_len -= part;
                rest -= part;
            }
        }
        return true;
    }

    /// Composed once a second for each size.
    const std::string& fields_of(std::size_t size, bool tagged) {
        const auto now = std::time(nullptr);
        if (now != composed_at_) {
            composed_at_ = now;
            composed_.clear();
        }
        auto& out = composed_[2 * size + (tagged ? 1 : 0)];
        if (out.empty()) {
            std::array<char, 40> date{};
            std::tm parts{};
            ::gmtime_r(&now, &parts);
            const auto length = std::strftime(
                date.data(), date.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
            out = head_of(size, tagged, {date.data(), length});
        }
        return out;
    }

    std::atomic<std::uint64_t>& answered_;
    std::string body_;
    std::time_t composed_at_ = 0;
    std::unordered_map<std::size_t, std::string> composed_;
    std::unordered_map<int, std::string> held_;  ///< of each connection, the head that is not whole
};

void answer_requests(int listener, std::atomic<std::uint64_t>& answered) {
    answering all{answered};
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    const auto watch = [poll](int fd) {
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.fd = fd;
        ::epoll_ctl(poll, EPOLL_CTL_ADD, fd, &interest);
    };
    watch(listener);
    std::array<epoll_event, 256> ready;
    while (true) {
        const int count = ::epoll_wait(poll, ready.data(), ready.size(), -1);
        for (int i = 0; i < count; ++i) {
            const int fd = ready[static_cast<std::size_t>(i)].data.fd;
            if (fd == listener) {
                for (int client; (client = ::accept4(listener, nullptr, nullptr, 0)) >= 0;) {
                    const int one = 1;
                    ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    watch(client);
                }
            } else if (!all.read_from(fd)) {
                ::close(fd);
            }
        }
    }
}

}  // namespace

origin::origin() {
    void* const shared = ::mmap(
        nullptr, sizeof *answered_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        throw std::runtime_error("no shared memory");
    }
    answered_ = new (shared) std::atomic<std::uint64_t>{0};
    const auto at = listen_anywhere();
    port_ = at.port;
    process_ = child::of_work(processor::second,
                              [&] { answer_requests(at.socket.get(), *answered_); });
}

origin::~origin() {
    process_.stop();
    ::munmap(answered_, sizeof *answered_);
}

std::string origin::authority() const {
    return "127.0.0.1:" + std::to_string(port_);
}

std::uint64_t origin::requests() const noexcept {
    return answered_->load(std::memory_order_relaxed);
}

std::size_t origin::head_bytes(std::size_t size) {
    return head_of(size, false, any_date).size();
}

}  // namespace reprise::bench
