#include "proxy/net/way_through.hpp"

#include "proxy/http/message_head.hpp"
#include "proxy/net/carried.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/dial.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/tls.hpp"

#include <utility>

namespace reprise::proxy::net {
namespace {

constexpr std::size_t connect_read_size = 4u << 10;
constexpr http::head_limits connect_limits{.bytes = most_connect_head, .fields = 100, .target = 0};

std::string connect_head(const way_through& way, const far_end& to) {
    const bool v6 = to.host.find(':') != std::string::npos;
    const auto authority = (v6 ? '[' + to.host + ']' : to.host) + ':' + std::to_string(to.port);
    std::string head = "CONNECT " + authority + " HTTP/1.1\r\n";
    http::append_field_line(head, "Host", authority);
    http::append_field_line(head, "Via", to.via.empty() ? way.via : to.via);
    if (!way.credentials.empty()) {
        http::append_field_line(head, "Proxy-Authorization", way.credentials);
    }
    return head + "\r\n";
}

failure refused(const way_through& way, unsigned status) {
    auto why = way.name + " answered CONNECT with " + std::to_string(status);
    if (status == 407) {
        why += way.credentials.empty() ? ": it wants credentials (peers[].credentials_file)"
                                       : ": it does not take what is in its credentials_file";
    }
    const auto code = status == facts_of(failure_code::loop_detected).status
                          ? failure_code::loop_detected
                          : failure_code::parent_refused;
    return {code, std::move(why)};
}

failure not_http(const way_through& way, std::string_view why) {
    return {failure_code::no_parent, way.name + ": in answer to CONNECT: " + std::string{why}};
}

}  // namespace

failure parent_not_reached(std::string_view parent, failure why) {
    const auto told_as = why.code == failure_code::tls_certificate
                             ? failure_code::parent_certificate
                             : failure_code::no_parent;
    switch (why.code) {
    case failure_code::dns_not_found:
    case failure_code::dns_error:
    case failure_code::dns_timeout:
    case failure_code::connect_refused:
    case failure_code::connect_unreachable:
    case failure_code::connect_timeout:
    case failure_code::tls_certificate:
    case failure_code::tls_client_certificate:
    case failure_code::tls_failed:
    case failure_code::origin_closed:
    case failure_code::origin_head_timeout: break;
    default: return why;
    }
    std::string told{parent};
    told.append(": ").append(facts_of(why.code).name);
    if (!why.detail.empty()) {
        told.append(": ").append(why.detail);
    }
    return {told_as, std::move(told)};
}

awaitable<attempt<passage>> ask_to_connect(
    byte_stream parent, way_ptr way, far_end to, deadlines& timer, steady_time until) {
    deadline limit{timer, [&parent] { parent.reset(); }};
    limit.expire_at(until);
    const failure late{failure_code::connect_timeout,
                       way->name + " did not answer CONNECT in time"};
    const auto head = connect_head(*way, to);
    // That it can't be written is told by what is read.
    (void)co_await write_all(parent, asio::buffer(head));
    read_buffer buffer;
    http::response_head answer;
    std::size_t resume = 0;
    for (unsigned interim = 0;;) {
        http::head_result read;
        if (!buffer.empty()) {
            read = http::parse_response_head(buffer.data(), answer, connect_limits, resume);
        }
        if (read.state == http::head_state::bad) {
            co_return not_http(*way, read.why);
        }
        if (read.state == http::head_state::done) {
            if (answer.status / 100 == 2) {
                break;
            }
            if (answer.status >= 200 || answer.status == 101) {
                co_return refused(*way, answer.status);
            }
            if (++interim > most_connect_interim) {
                co_return not_http(*way, "too many 1xx responses");
            }
            buffer.consume(answer.bytes);
            resume = 0;
            continue;
        }
        resume = read.resume;
        if (limit.expired()) {
            co_return late;
        }
        const auto room = buffer.prepare(connect_read_size);
        const auto into = asio::buffer(room.data(), room.size());
        const auto [error, got] = co_await read_some(parent, into);
        buffer.commit(got);
        if (limit.expired()) {
            co_return late;
        }
        if (error || got == 0) {
            co_return not_http(*way, "the connection ended");
        }
    }
    // Nothing of a 2xx to CONNECT is a body, whatever its fields say (RFC 9110 9.3.6).
    buffer.consume(answer.bytes);
    limit.clear();
    if (limit.expired()) {
        co_return late;
    }
    co_return passage{std::move(parent), std::move(buffer)};
}

awaitable<attempt<passage>> connect_through(resolver& names,
                                            std::shared_ptr<const destination_guard> guard,
                                            trust_of_the_day trust,
                                            way_ptr way,
                                            far_end to,
                                            steady_time until) {
    auto socket = co_await dial(names, std::move(guard), way->host, way->port, true, until);
    if (socket.has_error()) {
        co_return parent_not_reached(way->name, std::move(socket.error()));
    }
    if (!way->tls) {
        byte_stream plain{std::move(*socket)};
        co_return co_await ask_to_connect(
            std::move(plain), std::move(way), std::move(to), names.timer(), until);
    }
    tls_server server{way->host, way->port, nullptr};
    auto believed_by = trust();
    auto secured = co_await connect_tls(
        std::move(*socket), believed_by, std::move(server), names.timer(), until);
    if (secured.has_error()) {
        co_return parent_not_reached(way->name, std::move(secured.error()));
    }
    auto passed = co_await ask_to_connect(
        std::move(*secured), std::move(way), std::move(to), names.timer(), until);
    if (passed) {
        passed->believed_by = std::move(believed_by);
    }
    co_return std::move(passed);
}

awaitable<attempt<byte_stream>> secure_passage(
    passage by, tls_trust_ptr trust, tls_server server, deadlines& timer, steady_time until) {
    if (!by.behind.empty()) {
        co_return failure{failure_code::tls_failed,
                          "TLS to " + server.host + ": it spoke before the handshake"};
    }
    if (!by.stream.is_encrypted()) {
        co_return co_await connect_tls(
            by.stream.take_socket(), std::move(trust), std::move(server), timer, until);
    }
    auto near = carry(std::move(by.stream), timer);
    if (near.has_error()) {
        co_return std::move(near.error());
    }
    co_return co_await connect_tls(
        std::move(*near), std::move(trust), std::move(server), timer, until);
}

}  // namespace reprise::proxy::net
