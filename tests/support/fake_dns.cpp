#include "tests/support/fake_dns.hpp"

#include "tests/support/message.hpp"

#include <arpa/inet.h>
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

void fake_dns::add(const std::string& name, const std::string& address, std::chrono::seconds ttl) {
    record one{type_a, std::string(4, '\0'), static_cast<std::uint32_t>(ttl.count())};
    if (::inet_pton(AF_INET, address.c_str(), one.bytes.data()) != 1) {
        one.type = type_aaaa;
        one.bytes.resize(16);
        if (::inet_pton(AF_INET6, address.c_str(), one.bytes.data()) != 1) {
            throw std::runtime_error("not an address: " + address);
        }
    }
    const std::lock_guard lock{mutex_};
    records_[name].push_back(one);
}

void fake_dns::forget(const std::string& name) {
    const std::lock_guard lock{mutex_};
    records_.erase(name);
}

unsigned fake_dns::queries(const std::string& name, std::uint16_t type) const {
    const std::lock_guard lock{mutex_};
    const auto found = queries_.find({name, type});
    return found == queries_.end() ? 0 : found->second;
}

std::string fake_dns::answer_to(const std::string& query) {
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
    name = lower(name);
    const auto type = static_cast<std::uint16_t>((static_cast<unsigned char>(query[at + 1]) << 8) |
                                                 static_cast<unsigned char>(query[at + 2]));
    const auto question = query.substr(header_size, at + 5 - header_size);

    const std::lock_guard lock{mutex_};
    ++queries_[{name, type}];
    const auto found = records_.find(name);
    const bool exists = found != records_.end();
    std::string answers;
    unsigned count = 0;
    if (exists) {
        for (const auto& one : found->second) {
            if (one.type == type) {
                append16(answers, 0xc00c);  // the name of the question
                append16(answers, type);
                append16(answers, 1);
                append32(answers, one.ttl);
                append16(answers, static_cast<std::uint32_t>(one.bytes.size()));
                answers += one.bytes;
                ++count;
            }
        }
    }
    std::string out = query.substr(0, 2);
    append16(out, exists ? 0x8580 : 0x8583);
    append16(out, 1);
    append16(out, count);
    append16(out, 0);
    append16(out, 0);
    return out + question + answers;
}

void fake_dns::serve() {
    while (!stopping_) {
        pollfd both[] = {{fd_, POLLIN, 0}, {tcp_, POLLIN, 0}};
        if (::poll(both, 2, 20) <= 0) {
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
    auto out = answer_to(query);
    if (out.size() > most_over_udp) {
        out = out.substr(0, query.size());  // header and question
        out[2] = static_cast<char>(out[2] | 0x02);
        out[6] = out[7] = 0;
    }
    if (!out.empty() && !silent_) {
        ::sendto(fd_, out.data(), out.size(), 0, reinterpret_cast<sockaddr*>(&from), size);
    }
}

// One question on a connection.
void fake_dns::serve_tcp() {
    const int connection = ::accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC);
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    unsigned char length[2];
    if (::recv(connection, length, 2, MSG_WAITALL) == 2) {
        std::string query(std::size_t{length[0]} << 8 | length[1], '\0');
        const auto got = ::recv(connection, query.data(), query.size(), MSG_WAITALL);
        if (got == static_cast<ssize_t>(query.size()) && !silent_) {
            const auto answer = answer_to(query);
            std::string out;
            append16(out, static_cast<std::uint32_t>(answer.size()));
            out += answer;
            ::send(connection, out.data(), out.size(), MSG_NOSIGNAL);
        }
    }
    ::close(connection);
}

}  // namespace reprise::tests
