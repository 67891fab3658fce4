#include "proxy/net/dns_channel.hpp"

#include "proxy/net/address.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <algorithm>
#include <ares.h>
#include <limits>
#include <mutex>
#include <netinet/in.h>
#include <new>
#include <stdexcept>

// c-ares calls back from within its own functions, so nothing is thrown through it. Its sockets are
// its own: a watch lets go of a descriptor and never closes it. What can't be watched for want of
// memory ends by c-ares's timeouts.

namespace reprise::proxy::net {

// A socket of c-ares's. The handlers of pending waits share it; `channel` is null from the moment
// c-ares is done with the socket, which it closes itself.
struct dns_channel::watch {
    watch(asio::io_context& io, dns_channel& of) : descriptor(io), channel(&of) {}

    void let_go() {
        channel = nullptr;
        if (descriptor.is_open()) {
            descriptor.release();
        }
    }

    asio::posix::stream_descriptor descriptor;
    dns_channel* channel;
    bool wanted[2] = {false, false};   // to read, to write
    bool waiting[2] = {false, false};  // likewise
};

struct dns_channel::question {
    dns_channel& channel;
    answered then;
};

namespace {

// Tries double their patience each round: 1 + 2 + 4 such parts, of which the last is usually cut
// off by the resolver's own timeout.
constexpr int rounds = 3;
constexpr int parts = 5;

void start_library() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (const int status = ares_library_init(ARES_LIB_INIT_ALL); status != ARES_SUCCESS) {
            throw std::runtime_error{std::string{"c-ares: "} + ares_strerror(status)};
        }
    });
}

std::string as_csv(const std::vector<config::endpoint>& servers) {
    std::string csv;
    for (const auto& each : servers) {
        const bool v6 = each.host.find(':') != std::string::npos;
        const auto port = each.port != 0 ? each.port : std::uint16_t{53};
        csv += csv.empty() ? "" : ",";
        csv += v6 ? '[' + each.host + ']' : each.host;
        csv += ':' + std::to_string(port);
    }
    return csv;
}

dns_answer::kind kind_by_status(int status) {
    switch (status) {
    case ARES_ENODATA: return dns_answer::kind::no_address;
    case ARES_ENOTFOUND: return dns_answer::kind::no_name;
    case ARES_ETIMEOUT: return dns_answer::kind::timed_out;
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION: return dns_answer::kind::cancelled;
    default: return dns_answer::kind::failed;
    }
}

dns_answer read_answer(int status, const ares_addrinfo* info) {
    dns_answer answer;
    if (status != ARES_SUCCESS || info == nullptr) {
        answer.what = kind_by_status(status);
        answer.why = ares_strerror(status);
        return answer;
    }
    auto ttl = std::numeric_limits<int>::max();
    for (const auto* each = info->cnames; each != nullptr; each = each->next) {
        ttl = std::min(ttl, each->ttl);
    }
    for (const auto* each = info->nodes; each != nullptr; each = each->ai_next) {
        if (each->ai_family == AF_INET) {
            const auto& four = *reinterpret_cast<const sockaddr_in*>(each->ai_addr);
            answer.addresses.emplace_back(asio::ip::address_v4{ntohl(four.sin_addr.s_addr)});
        } else if (each->ai_family == AF_INET6) {
            const auto& six = *reinterpret_cast<const sockaddr_in6*>(each->ai_addr);
            address_bytes bytes;
            std::copy(
                std::begin(six.sin6_addr.s6_addr), std::end(six.sin6_addr.s6_addr), bytes.begin());
            answer.addresses.emplace_back(to_address(bytes));
        } else {
            continue;
        }
        ttl = std::min(ttl, each->ai_ttl);
    }
    answer.what = answer.addresses.empty() ? dns_answer::kind::no_address
                                           : dns_answer::kind::addresses;
    answer.ttl = std::chrono::seconds{std::max(ttl, 0)};
    return answer;
}

// What can't be read for want of memory has failed: whoever asked must hear of it.
dns_answer answer_from(int status, const ares_addrinfo* info) {
    try {
        return read_answer(status, info);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

}  // namespace

dns_channel::dns_channel(deadlines& timer, const config::dns_options& options)
    : timer_(timer),
      retry_(timer, [this] { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); }) {
    start_library();
    ares_options wanted{};
    char lookups[] = "b";  // name servers only: the hosts file is ours (hosts.hpp)
    wanted.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES;
    wanted.timeout = static_cast<int>(
        std::clamp<std::int64_t>(options.timeout.count() / parts, 50, 60'000));
    wanted.tries = rounds;
    wanted.lookups = lookups;
    wanted.sock_state_cb = &dns_channel::on_socket_state;
    wanted.sock_state_cb_data = this;
    int status = ares_init_options(&channel_,
                                   &wanted,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                                       ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) {
        throw std::runtime_error{std::string{"c-ares can't start: "} + ares_strerror(status)};
    }
    if (!options.servers.empty()) {
        const auto csv = as_csv(options.servers);
        status = ares_set_servers_ports_csv(channel_, csv.c_str());
        if (status != ARES_SUCCESS) {
            ares_destroy(channel_);
            throw std::runtime_error{"dns.servers: c-ares does not take \"" + csv +
                                     "\": " + ares_strerror(status)};
        }
    }
}

dns_channel::~dns_channel() {
    ares_destroy(channel_);  // answers what is under way, and lets go of its sockets
    for (auto& [fd, each] : watches_) {
        each->let_go();
    }
}

void dns_channel::ask(const std::string& name, ip_family family, answered then) {
    ares_addrinfo_hints hints{};
    hints.ai_family = family == ip_family::v4 ? AF_INET : AF_INET6;
    hints.ai_flags = ARES_AI_NOSORT;  // sorting would open a socket for each address
    auto* asked = new question{*this, std::move(then)};
    ++under_way_;
    ares_getaddrinfo(
        channel_,
        name.c_str(),
        nullptr,
        &hints,
        [](void* context, int status, int, ares_addrinfo* info) {
            const std::unique_ptr<question> mine{static_cast<question*>(context)};
            auto answer = answer_from(status, info);
            ares_freeaddrinfo(info);
            --mine->channel.under_way_;
            try {
                mine->then(std::move(answer));
            } catch (const std::bad_alloc&) {
                // Nothing is thrown through c-ares; whoever waits has a deadline.
            }
        },
        asked);
    schedule_retry();
}

void dns_channel::on_socket_state(void* self, int fd, int readable, int writable) {
    try {
        static_cast<dns_channel*>(self)->watch_socket(fd, readable != 0, writable != 0);
    } catch (const std::bad_alloc&) {
        // Nothing is thrown through c-ares. Not watched: its questions end by c-ares's timeouts.
    }
}

void dns_channel::watch_socket(int fd, bool readable, bool writable) {
    auto found = watches_.find(fd);
    if (!readable && !writable) {
        if (found != watches_.end()) {
            found->second->let_go();
            watches_.erase(found);
        }
        return;
    }
    if (found == watches_.end()) {
        // Listed first: what has the descriptor and is dropped would close what is c-ares's.
        found = watches_.emplace(fd, std::make_shared<watch>(timer_.io(), *this)).first;
    }
    if (!found->second->descriptor.is_open()) {
        error_code error;
        found->second->descriptor.assign(fd, error);
        if (error) {
            return;  // not watched: its questions end by c-ares's timeouts
        }
    }
    const auto each = found->second;
    each->wanted[0] = readable;
    each->wanted[1] = writable;
    wait_for(each, false);
    wait_for(each, true);
}

void dns_channel::wait_for(const std::shared_ptr<watch>& each, bool to_write) {
    if (each->channel == nullptr || !each->descriptor.is_open() || !each->wanted[to_write] ||
        each->waiting[to_write]) {
        return;
    }
    each->descriptor.async_wait(to_write ? asio::posix::stream_descriptor::wait_write
                                         : asio::posix::stream_descriptor::wait_read,
                                [each, to_write](const error_code& error) {
                                    each->waiting[to_write] = false;
                                    if (error || each->channel == nullptr) {
                                        return;
                                    }
                                    const int fd = each->descriptor.native_handle();
                                    each->channel->process(to_write ? ARES_SOCKET_BAD : fd,
                                                           to_write ? fd : ARES_SOCKET_BAD);
                                    // Unless that ended the socket or the channel, look again.
                                    if (each->channel != nullptr) {
                                        each->channel->wait_for(each, to_write);
                                    }
                                });
    each->waiting[to_write] = true;  // not before: the wait itself takes memory
}

void dns_channel::process(int readable_fd, int writable_fd) {
    if (timer_.stopped()) {
        ares_cancel(channel_);  // nothing may be left behind, and no retry can be waited for
        return;
    }
    ares_process_fd(channel_, readable_fd, writable_fd);
    schedule_retry();
}

void dns_channel::schedule_retry() {
    // A wait that could not begin for want of memory begins now: c-ares speaks of a socket once.
    for (const auto& [fd, each] : watches_) {
        wait_for(each, false);
        wait_for(each, true);
    }
    timeval wait{};
    if (ares_timeout(channel_, nullptr, &wait) == nullptr) {
        retry_.clear();
        return;
    }
    retry_.expire_after(std::chrono::seconds{wait.tv_sec} +
                        std::chrono::microseconds{wait.tv_usec});
}

}  // namespace reprise::proxy::net
