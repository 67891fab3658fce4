#pragma once
// A name server on a loopback UDP port: answers what the test told it, counts what it was asked.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy {

enum class dns_type : std::uint16_t { a = 1, aaaa = 28 };

struct dns_reply {
    unsigned rcode = 0;  // 2: server failure, 3: no such name
    std::vector<net::ip::address> addresses{};
    std::uint32_t ttl = 60;
    bool silent = false;
    std::chrono::milliseconds delay{0};
};

/// Names it was not told of do not exist.
class fake_dns {
public:
    explicit fake_dns(net::io_context& io)
        : io_(io),
          socket_(io, {net::ip::address_v4::loopback(), 0}) {
        receive();
    }

    void set(const std::string& name, dns_type type, dns_reply reply) {
        replies_[{name, type}] = std::move(reply);
    }
    void set_v4(const std::string& name, const std::string& address, std::uint32_t ttl = 60) {
        set(name, dns_type::a, {0, {net::ip::make_address(address)}, ttl});
        set(name, dns_type::aaaa, {});
    }
    unsigned asked(const std::string& name, dns_type type) { return asked_[{name, type}]; }

    config::dns_options options() const {
        config::dns_options options;
        options.servers = {{"127.0.0.1", socket_.local_endpoint().port()}};
        options.hosts_file = "";
        return options;
    }

private:
    using question = std::pair<std::string, dns_type>;

    void receive() {
        socket_.async_receive_from(
            net::buffer(wire_), from_, [this](const error_code& error, std::size_t bytes) {
                if (!error) {
                    answer(bytes);
                    receive();
                }
            });
    }

    void answer(std::size_t bytes) {
        std::string name;
        std::size_t at = 12;
        while (at < bytes && wire_[at] != 0) {
            if (!name.empty()) {
                name += '.';
            }
            name.append(reinterpret_cast<const char*>(&wire_[at + 1]), wire_[at]);
            at += wire_[at] + 1u;
        }
        const auto type = static_cast<dns_type>(wire_[at + 1] << 8 | wire_[at + 2]);
        const question asked{name, type};
        ++asked_[asked];
        const auto found = replies_.find(asked);
        const dns_reply reply = found != replies_.end() ? found->second : dns_reply{3, {}};
        if (reply.silent) {
            return;
        }
        std::vector<std::uint8_t> out(wire_.begin(), wire_.begin() + static_cast<long>(at) + 5);
        out[2] = 0x81;
        out[3] = static_cast<std::uint8_t>(0x80 | reply.rcode);
        out[7] = static_cast<std::uint8_t>(reply.addresses.size());
        out[9] = out[11] = 0;
        for (const auto& each : reply.addresses) {
            add_record(out, type, each, reply.ttl);
        }
        send(std::move(out), reply.delay);
    }

    static void add_record(std::vector<std::uint8_t>& out,
                           dns_type type,
                           const net::ip::address& address,
                           std::uint32_t ttl) {
        const auto add16 = [&](unsigned value) {
            out.push_back(static_cast<std::uint8_t>(value >> 8));
            out.push_back(static_cast<std::uint8_t>(value));
        };
        add16(0xc00c);  // the name of the question
        add16(static_cast<unsigned>(type));
        add16(1);
        add16(ttl >> 16);
        add16(ttl & 0xffff);
        if (address.is_v4()) {
            const auto four = address.to_v4().to_bytes();
            add16(4);
            out.insert(out.end(), four.begin(), four.end());
        } else {
            const auto six = address.to_v6().to_bytes();
            add16(16);
            out.insert(out.end(), six.begin(), six.end());
        }
    }

    void send(std::vector<std::uint8_t> out, std::chrono::milliseconds delay) {
        const auto to = from_;
        if (delay.count() == 0) {
            socket_.send_to(net::buffer(out), to);
            return;
        }
        auto timer = std::make_shared<net::steady_timer>(io_, delay);
        timer->async_wait([this, timer, to, out = std::move(out)](const error_code& error) {
            if (!error) {
                socket_.send_to(net::buffer(out), to);
            }
        });
    }

    net::io_context& io_;
    net::ip::udp::socket socket_;
    net::ip::udp::endpoint from_;
    std::array<std::uint8_t, 2048> wire_{};
    std::map<question, dns_reply> replies_;
    std::map<question, unsigned> asked_;
};

}  // namespace reprise::proxy
