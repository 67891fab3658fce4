#include "tests/framing/trial.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>

namespace reprise::framing {
namespace {

constexpr std::chrono::seconds longest_trial{8};
constexpr std::string_view mark = "X-F-";

sockaddr_in address_of(std::uint32_t host, std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(host);
    return out;
}

int new_socket() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        throw std::runtime_error{"no socket"};
    }
    return fd;
}

// The fields that the grammar marks, but for those that Connection takes away.
std::vector<field> marked(const message& of) {
    std::vector<field> out;
    for (const auto& one : of.fields) {
        if (same_text(std::string_view{one.name}.substr(0, mark.size()), mark) &&
            !of.has_token("Connection", one.name)) {
            out.push_back(one);
            for (auto& c : out.back().name) {
                c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
            }
        }
    }
    return out;
}

// Nothing behind it belongs to the connection's requests.
bool is_last(const message& request) {
    return request.method == "CONNECT" || request.has_token("Connection", "close") ||
           (request.minor == 0 && !request.has_token("Connection", "keep-alive"));
}

std::string shown(std::string_view bytes) {
    std::string out;
    for (const char c : bytes.substr(0, 1500)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\r') {
            out += "\\r";
        } else if (c == '\n') {
            out += "\\n\n        ";
        } else if (byte < 0x20 || byte >= 0x7f) {
            char hex[8];
            std::snprintf(hex, sizeof hex, "\\x%02x", byte);
            out += hex;
        } else {
            out += c;
        }
    }
    return out;
}

}  // namespace

slot::slot(std::uint16_t proxy_port, std::uint64_t seed, bool verbose, totals& sum)
    : proxy_port_{proxy_port},
      seed_{seed},
      verbose_{verbose},
      sum_{sum},
      listener_{new_socket()} {
    // Every address of 127.0.0.0/8: an origin that misbehaves is one of many.
    auto at = address_of(INADDR_ANY, 0);
    socklen_t size = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        throw std::runtime_error{"no listener"};
    }
    port_ = ntohs(at.sin_port);
}

slot::~slot() {
    drop(client_);
    for (auto& one : origins_) {
        drop(one);
    }
    ::close(listener_);
}

void slot::drop(end& one) {
    if (one.fd >= 0) {
        ::close(one.fd);
        one.fd = -1;
    }
}

void slot::push(end& one) {
    while (one.fd >= 0 && !one.out.empty()) {
        const auto sent = ::send(one.fd, one.out.data(), one.out.size(), MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                one.out.clear();
            }
            break;
        }
        one.out.erase(0, static_cast<std::size_t>(sent));
    }
    if (one.fd >= 0 && one.out.empty()) {
        if (one.reset_when_sent) {
            const linger hard{.l_onoff = 1, .l_linger = 0};
            ::setsockopt(one.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
            drop(one);
        } else if (one.close_when_sent) {
            ::shutdown(one.fd, SHUT_WR);
            one.close_when_sent = false;
        }
    }
}

void slot::pull(end& one) {
    char room[65536];
    while (one.fd >= 0 && !one.ended) {
        const auto got = ::recv(one.fd, room, sizeof room, 0);
        if (got > 0) {
            one.in.append(room, static_cast<std::size_t>(got));
        } else if (got == 0) {
            one.ended = true;
        } else if (errno == EAGAIN || errno == EINTR) {
            return;
        } else {
            one.ended = one.was_reset = true;
        }
    }
}

void slot::complain(std::string_view what, std::string_view detail) {
    ++sum_.violations;
    ++sum_.by_kind[std::string{what}];
    if (complained_ || sum_.by_kind[std::string{what}] > 3) {
        return;  // one a trial says it; the seed repeats the others
    }
    complained_ = true;
    std::printf("VIOLATION in trial %llu of seed %llu (%s): %s\n    %s\n",
                static_cast<unsigned long long>(trial_),
                static_cast<unsigned long long>(seed_),
                of_requests_ ? "requests" : "responses",
                std::string{what}.c_str(),
                shown(detail).c_str());
    std::printf("  the client said:\n        %s\n", shown(sent_).c_str());
    for (const auto& one : answers_) {
        std::printf("  the origin answered, to %s %s:\n        %s\n",
                    one.method.c_str(),
                    one.id.c_str(),
                    shown(one.bytes).c_str());
    }
    std::printf("  the client had heard:\n        %s\n", shown(heard_).c_str());
    std::fflush(stdout);
}

void slot::begin(std::uint64_t trial) {
    trial_ = trial;
    running_ = true;
    complained_ = deaf_ = false;
    made_.emplace(seed_, trial);
    until_ = clock::now() + longest_trial;
    before_ = std::move(meant_);
    meant_.clear();
    forwarded_.clear();
    answers_.clear();
    next_meant_ = answered_ = asked_ = 0;
    sent_.clear();
    heard_.clear();
    drop(client_);
    client_ = {};
    client_.fd = new_socket();
    const int on = 1;
    ::setsockopt(client_.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    // From many addresses: of one there are too few ports for so many connections a minute.
    ::setsockopt(client_.fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const auto from = address_of(0x7f010001u + static_cast<std::uint32_t>(trial % 0xfff0), 0);
    const auto to = address_of(INADDR_LOOPBACK, proxy_port_);
    if (::bind(client_.fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
        throw std::runtime_error{"no address for a client"};
    }
    if (::connect(client_.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
        errno != EINPROGRESS) {
        throw std::runtime_error{"the proxy is not there"};
    }
    of_requests_ = trial % 2 == 0;
    in_addr at{};
    // The origins of odd responses are many, so that what the proxy learnt of one is not of all.
    at.s_addr = htonl(of_requests_
                          ? INADDR_LOOPBACK
                          : 0x7f000000u + 2 + static_cast<std::uint32_t>(made_->below(0xfffff0)));
    char text[INET_ADDRSTRLEN];
    ::inet_ntop(AF_INET, &at, text, sizeof text);
    authority_ = std::string{text} + ":" + std::to_string(port_);
    of_requests_ ? begin_requests() : begin_responses();
    sum_.plain += plain_;
    client_.out += sent_;
}

void slot::begin_requests() {
    plain_ = true;
    const auto count = 1 + made_->below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
        sent_ += made_->request(authority_, std::to_string(trial_) + "." + std::to_string(i));
        plain_ = plain_ && made_->was_plain();
    }
    sum_.messages += count;
    // Whatever came before, this ends it; unless it is in the body of what came before.
    sent_ += made_->plain_request(
        authority_, std::to_string(trial_) + ".end", "GET", "Connection: close\r\n");
    auto left = std::string_view{sent_};
    reading state = reading::whole;
    while (!left.empty()) {
        auto next = read_request(left, manner::strangers);
        state = next.what;
        if (state != reading::whole) {
            sum_.refused += state == reading::refused;
            break;
        }
        left.remove_prefix(next.read.bytes);
        const bool last = is_last(next.read);
        meant_.push_back(std::move(next.read));
        if (last) {
            break;
        }
    }
    plain_ = plain_ && state == reading::whole;
    client_.close_when_sent = state == reading::incomplete && made_->one_in(2);
}

void slot::begin_responses() {
    plain_ = true;
    const auto count = 1 + made_->below(3);
    sum_.messages += count;
    for (std::uint64_t i = 0; i < count; ++i) {
        answer one;
        one.id = std::to_string(trial_) + "." + std::to_string(i);
        const auto kind = made_->below(10);
        one.method = kind == 0 ? "HEAD" : kind == 1 ? "POST" : "GET";
        one.bytes = made_->response(one.method, one.id);
        one.plain = made_->was_plain();
        one.resets = !one.plain && made_->one_in(12);
        auto left = std::string_view{one.bytes};
        do {
            one.meant = read_response(left, one.method, !one.resets, manner::strangers);
            left.remove_prefix(one.meant.read.bytes);
        } while (one.meant.what == reading::whole && one.meant.read.status < 200 &&
                 one.meant.read.status != 101);
        if (one.meant.what == reading::whole && one.meant.read.status == 101) {
            one.meant.what = reading::refused;  // nobody asked for that
        }
        const bool definite = one.meant.what == reading::whole && !one.meant.read.until_close;
        one.closes = !definite || (!one.plain && made_->one_in(10));
        sum_.refused += one.meant.what == reading::refused;
        std::string fields = one.method == "POST" ? "Content-Length: 0\r\n" : "";
        if (i + 1 == count) {
            fields += "Connection: close\r\n";
        }
        auto request = made_->plain_request(authority_, one.id, one.method, fields);
        if (!one.plain && made_->one_in(8)) {
            request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
            one.minor = 0;
        }
        plain_ = plain_ && one.plain;
        answers_.push_back(std::move(one));
        sent_ += request;
    }
}

void slot::add_to(std::vector<pollfd>& watched) {
    watched.push_back({listener_, POLLIN, 0});
    const auto watch = [&](const end& one) {
        const short what = static_cast<short>(
            (one.ended ? 0 : POLLIN) | (one.out.empty() && !one.close_when_sent ? 0 : POLLOUT));
        watched.push_back({one.fd, what, 0});
    };
    watch(client_);
    for (const auto& one : origins_) {
        watch(one);
    }
}

void slot::go_on(const std::vector<pollfd>& watched, std::size_t from) {
    std::size_t at = from + 2;
    for (auto& one : origins_) {
        const auto came = watched[at++].revents;
        if ((came & POLLOUT) != 0) {
            push(one);
        }
        if ((came & (POLLIN | POLLHUP | POLLERR)) != 0) {
            pull(one);
            hear_origin(one);
        }
    }
    std::erase_if(origins_, [](end& one) {
        if (one.fd < 0 || one.ended) {
            drop(one);
            return true;
        }
        return false;
    });
    if ((watched[from].revents & POLLIN) != 0) {
        for (;;) {
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) {
                break;
            }
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            origins_.emplace_back().fd = fd;
        }
    }
    if (!running_) {
        return;
    }
    const auto came = watched[from + 1].revents;
    if ((came & POLLOUT) != 0) {
        push(client_);
    }
    if ((came & (POLLIN | POLLHUP | POLLERR)) != 0) {
        pull(client_);
        hear_client();
    }
    if (client_.ended || clock::now() > until_) {
        finish();
    }
}

void slot::hear_origin(end& one) {
    while (one.fd >= 0 && !one.in.empty()) {
        auto next = read_request(one.in, manner::canonical);
        if (next.what == reading::incomplete) {
            const auto& head = next.read;
            if (!one.continued && one.in.find("\r\n\r\n") != std::string::npos &&
                head.has_token("Expect", "100-continue")) {
                one.continued = true;
                one.out += "HTTP/1.1 100 Continue\r\n\r\n";
                push(one);
            }
            return;
        }
        if (next.what == reading::refused) {
            complain("what the origin heard is not canonical: " + next.why, one.in);
            drop(one);
            return;
        }
        one.in.erase(0, next.read.bytes);
        one.continued = false;
        judge_heard(next.read);
        respond(one, next.read);
    }
}

// One of what the client said, in its order.
void slot::judge_heard(const message& heard) {
    ++sum_.heard_whole;
    const auto is = [&](const message& meant) {
        constexpr std::string_view scheme = "http://";
        std::string_view target = meant.target;
        if (!same_text(target.substr(0, scheme.size()), scheme)) {
            return false;
        }
        target.remove_prefix(scheme.size());
        const auto path = target.find_first_of("/?#");
        auto path_and_query = path == target.npos ? std::string{}
                                                  : std::string{target.substr(path)};
        if (!path_and_query.starts_with('/') && heard.target.starts_with('/')) {
            path_and_query.insert(0, 1, '/');
        }
        return meant.method == heard.method && path_and_query == heard.target &&
               heard.get("Host") == target.substr(0, path) && meant.body == heard.body &&
               marked(meant) == marked(heard);
    };
    if (of_requests_) {
        for (auto i = next_meant_; i < meant_.size(); ++i) {
            if (is(meant_[i])) {
                next_meant_ = i + 1;
                forwarded_.push_back(i);
                return;
            }
        }
    } else {
        const auto id = heard.get("X-F-Id");
        if (std::any_of(answers_.begin(), answers_.end(), [&](const answer& one) {
                return one.id == id && one.method == heard.method;
            })) {
            return;
        }
    }
    // A request of a trial whose client has left may still have been under way.
    if (std::any_of(before_.begin(), before_.end(), is)) {
        return;
    }
    std::string detail = heard.method + " " + heard.target + "\r\n";
    for (const auto& one : heard.fields) {
        detail += one.name + ": " + one.value + "\r\n";
    }
    complain("the origin heard a request that nobody made", detail + "\r\n" + heard.body);
}

void slot::respond(end& to, const message& heard) {
    const auto id = heard.get("X-F-Id");
    if (!of_requests_) {
        const auto found = std::find_if(
            answers_.begin(), answers_.end(), [&](const answer& one) { return one.id == id; });
        if (found != answers_.end()) {
            to.out += found->bytes;
            to.close_when_sent = found->closes;
            to.reset_when_sent = found->resets;
            push(to);
            return;
        }
    }
    const auto body = "heard " + heard.target;
    to.out += "HTTP/1.1 200 OK\r\nX-F-Id: " + id + "\r\nX-F-Path: " + heard.target +
              "\r\nCache-Control: no-store\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + (heard.method == "HEAD" ? "" : body);
    push(to);
}

void slot::hear_client() {
    while (!client_.in.empty() && !deaf_) {
        std::string method = "GET";
        if (!of_requests_) {
            method = answered_ < answers_.size() ? answers_[answered_].method : "GET";
        } else if (answered_ < meant_.size()) {
            method = meant_[answered_].method;
        }
        auto next = read_response(
            client_.in, method, client_.ended && !client_.was_reset, manner::canonical);
        if (next.what == reading::refused) {
            complain("what the client heard is not canonical: " + next.why, client_.in);
            deaf_ = true;  // where the next answer begins nobody knows
            return;
        }
        if (next.what == reading::incomplete) {
            return;
        }
        if (next.read.status >= 200 || next.read.status == 101) {
            judge_answer(next.read);
            ++answered_;
        } else if (of_requests_ && next.read.status != 100) {
            complain("an interim response that nobody sent", client_.in);
        }
        heard_.append(client_.in, 0, next.read.bytes);
        client_.in.erase(0, next.read.bytes);
    }
}

void slot::judge_answer(const message& got) {
    if (!of_requests_ && answered_ < answers_.size()) {
        const auto& one = answers_[answered_].meant;
        if (one.what == reading::whole && got.status == one.read.status &&
            got.body == one.read.body && marked(got) == marked(one.read)) {
            return;
        }
    }
    const auto id = got.get("X-F-Id");
    const auto path = got.get("X-F-Path");
    if (of_requests_ ? path.empty() : id.empty()) {
        // The proxy's own: an error, or its answer to OPTIONS and TRACE.
        const bool local = of_requests_ && answered_ < meant_.size() &&
                           (meant_[answered_].method == "OPTIONS" ||
                            meant_[answered_].method == "TRACE");
        if ((got.status < 400 || !marked(got).empty()) && !local) {
            complain("an answer that nobody gave", client_.in);
        }
        return;
    }
    if (!of_requests_) {
        const auto* const why = answered_ >= answers_.size() ? "more answers than requests"
                                : answers_[answered_].meant.what == reading::whole
                                    ? "an answer that is not the origin's to this request"
                                : answers_[answered_].meant.what == reading::refused
                                    ? answers_[answered_].meant.why.c_str()
                                    : "an answer that never ended";
        complain(why, client_.in);
        return;
    }
    // Of the next request that the origin heard.
    if (std::find(forwarded_.begin(), forwarded_.end(), answered_) == forwarded_.end()) {
        complain("an answer to what the origin never heard", client_.in);
        return;
    }
    const auto& asked = meant_[answered_];
    if (asked.get("X-F-Id") != id ||
        asked.target.find(path == "/" ? "" : path) == std::string::npos) {
        complain("an answer to another request", client_.in);
    }
}

void slot::finish() {
    if (!client_.ended) {
        ++sum_.stalled;
        if (verbose_) {
            std::printf("stalled: trial %llu\n        %s\n",
                        static_cast<unsigned long long>(trial_),
                        shown(sent_).c_str());
        }
    }
    // What is on its way to the origin is there by now: both ends are on this machine.
    for (auto& one : origins_) {
        pull(one);
        hear_origin(one);
    }
    const auto expected = of_requests_ ? meant_.size() : answers_.size();
    sum_.plain_answered += plain_ && answered_ == expected;
    if (verbose_ && plain_ && answered_ != expected) {
        std::printf("plain and not answered: trial %llu (%zu of %zu)\n        %s\n    %s\n",
                    static_cast<unsigned long long>(trial_),
                    answered_,
                    expected,
                    shown(sent_).c_str(),
                    shown(client_.in).c_str());
    }
    drop(client_);
    running_ = false;
}

}  // namespace reprise::framing
