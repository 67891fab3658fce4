#include "tests/support/fake_dns.hpp"

#include "tests/support/message.hpp"
#include "tests/support/waiting.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::tests {

namespace {

constexpr std::size_t header_size = 12;
constexpr std::size_t most_over_udp = 512;

void append16(std::string& out, std::uint32_t value) {
    out.push_back(static_cast<char>(value >> 8));
    out.push_back(static_cast<char>(value));
}

void append32(std::string& out, std::uint32_t value) {
    append16(out, value >> 16);
    append16(out, value & 0xffff);
}

}  // namespace

fake_dns::fake_dns() {
    open_ports();
    thread_ = std::thread{[this] { serve(); }};
}

// The port that the system picks for TCP, which everybody uses, may be another's over UDP: then
// another is picked.
void fake_dns::open_ports() {
    for (int attempt = 0; attempt < 20; ++attempt) {
        fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        tcp_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in local{};
        local.sin_family = AF_INET;
        local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof local;
        auto* const at = reinterpret_cast<sockaddr*>(&local);
        if (fd_ >= 0 && tcp_ >= 0 && ::bind(tcp_, at, size) == 0 &&
            ::getsockname(tcp_, at, &size) == 0 && ::bind(fd_, at, size) == 0 &&
            ::listen(tcp_, 16) == 0) {
            port_ = ntohs(local.sin_port);
            return;
        }
        ::close(fd_);
        ::close(tcp_);
    }
    throw std::runtime_error("cannot open a port for UDP and TCP");
}

fake_dns::~fake_dns() {
    stopping_ = true;
    thread_.join();
    ::close(fd_);
    ::close(tcp_);
}

std::string fake_dns::endpoint() const {
    return "127.0.0.1:" + std::to_string(port_);
}

void fake_dns::set(const std::string& name, dns_type type, dns_reply reply) {
    const std::lock_guard lock{mutex_};
    replies_[{name, type}] = std::move(reply);
}

void fake_dns::set_v4(const std::string& name, const std::string& address, std::uint32_t ttl) {
    set(name, dns_type::a, {.addresses = {address}, .ttl = ttl});
    set(name, dns_type::aaaa, {});
}

void fake_dns::add(const std::string& name, const std::string& address, std::chrono::seconds ttl) {
    const std::lock_guard lock{mutex_};
    (void)replies_[{name, dns_type::a}];
    (void)replies_[{name, dns_type::aaaa}];
    const bool v6 = address.find(':') != std::string::npos;
    auto& reply = replies_[{name, v6 ? dns_type::aaaa : dns_type::a}];
    reply.addresses.push_back(address);
    reply.ttl = static_cast<std::uint32_t>(ttl.count());
}

void fake_dns::forget(const std::string& name) {
    const std::lock_guard lock{mutex_};
    replies_.erase({name, dns_type::a});
    replies_.erase({name, dns_type::aaaa});
}

unsigned fake_dns::asked(const std::string& name, dns_type type) const {
    const std::lock_guard lock{mutex_};
    const auto found = asked_.find({name, type});
    return found == asked_.end() ? 0 : found->second;
}

fake_dns::message fake_dns::answer_to(const std::string& query) {
    if (query.size() < header_size) {
        return {};
    }
    std::string name;
    std::size_t at = header_size;
    while (at < query.size() && query[at] != 0) {
        const auto length = static_cast<unsigned char>(query[at]);
        if (length > 63 || at + 1 + length >= query.size()) {
            return {};
        }
        name += (name.empty() ? "" : ".") + query.substr(at + 1, length);
        at += 1 + length;
    }
    if (at + 5 > query.size()) {
        return {};
    }
    const auto type = static_cast<std::uint16_t>((static_cast<unsigned char>(query[at + 1]) << 8) |
                                                 static_cast<unsigned char>(query[at + 2]));
    const question wanted{lower(name), dns_type{type}};

    const std::lock_guard lock{mutex_};
    ++asked_[wanted];
    const auto found = replies_.find(wanted);
    const auto reply = found != replies_.end() ? found->second : dns_reply{.rcode = 3};
    if (reply.silent || silent_) {
        return {};
    }
    std::string out = query.substr(0, 2);
    append16(out, 0x8580 | reply.rcode);
    append16(out, 1);
    append16(out, static_cast<std::uint32_t>(reply.addresses.size()));
    append32(out, 0);
    out.append(query, header_size, at + 5 - header_size);  // the question
    for (const auto& address : reply.addresses) {
        std::string bytes(wanted.second == dns_type::a ? 4 : 16, '\0');
        if (::inet_pton(bytes.size() == 4 ? AF_INET : AF_INET6, address.c_str(), bytes.data()) !=
            1) {
            throw std::runtime_error("not such an address: " + address);
        }
        append16(out, 0xc00c);  // the name of the question
        append16(out, type);
        append16(out, 1);
        append32(out, reply.ttl);
        append16(out, static_cast<std::uint32_t>(bytes.size()));
        out += bytes;
    }
    return {std::move(out), reply.delay};
}

void fake_dns::serve() {
    while (!stopping_) {
        pollfd both[] = {{fd_, POLLIN, 0}, {tcp_, POLLIN, 0}};
        const bool came = ::poll(both, 2, late_.empty() ? 20 : 1) > 0;
        send_late();
        if (!came) {
            continue;
        }
        if (both[0].revents != 0) {
            serve_udp();
        }
        if (both[1].revents != 0) {
            serve_tcp();
        }
    }
}

void fake_dns::serve_udp() {
    std::string query(2048, '\0');
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const auto got = ::recvfrom(
        fd_, query.data(), query.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) {
        return;
    }
    query.resize(static_cast<std::size_t>(got));
    auto [out, delay] = answer_to(query);
    if (out.size() > most_over_udp) {
        out = out.substr(0, query.size());  // header and question
        out[2] = static_cast<char>(out[2] | 0x02);
        out[6] = out[7] = 0;
    }
    if (!out.empty()) {
        late_.push_back({std::chrono::steady_clock::now() + delay, std::move(out), from.sin_port});
        send_late();
    }
}

void fake_dns::send_late() {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(late_, [&](const late_answer& one) {
        if (one.due > now) {
            return false;
        }
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = one.port;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ::sendto(fd_,
                 one.bytes.data(),
                 one.bytes.size(),
                 0,
                 reinterpret_cast<sockaddr*>(&to),
                 sizeof to);
        return true;
    });
}

// One question on a connection, however long whoever connected takes to ask it.
void fake_dns::serve_tcp() {
    const int connection = ::accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC);
    const timeval look_up{.tv_sec = 0, .tv_usec = 20'000};
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &look_up, sizeof look_up);
    const auto until = std::chrono::steady_clock::now() + patience;
    const auto take = [&](char* into, std::size_t size) {
        while (size > 0 && !stopping_ && std::chrono::steady_clock::now() < until) {
            const auto got = ::recv(connection, into, size, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
                return false;
            }
            const auto came = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
            into += came;
            size -= came;
        }
        return size == 0;
    };
    char length[2];
    if (take(length, sizeof length)) {
        std::string query(std::size_t{static_cast<unsigned char>(length[0])} << 8 |
                              static_cast<unsigned char>(length[1]),
                          '\0');
        const auto answer = take(query.data(), query.size()) ? answer_to(query) : message{};
        if (!answer.bytes.empty()) {
            std::string out;
            append16(out, static_cast<std::uint32_t>(answer.bytes.size()));
            out += answer.bytes;
            ::send(connection, out.data(), out.size(), MSG_NOSIGNAL);
        }
    }
    ::close(connection);
}

}  // namespace reprise::tests
