#include "proxy/net/known_refusal.hpp"

namespace reprise::proxy::net {

std::optional<failure> known_refusal(const destination_guard& guard,
                                     resolver& names,
                                     std::string_view host,
                                     std::uint16_t port) {
    if (auto refused = judge_literal(guard, host, port)) {
        return refused;
    }
    std::optional<failure> first;
    if (const auto local = names.local(host)) {
        for (const auto& address : *local) {
            const auto verdict = guard.check(host, address, port);
            if (verdict == destination_verdict::allowed) {
                return std::nullopt;
            }
            if (!first) {
                first = refusal_of({address, port}, verdict);
            }
        }
        if (!first) {
            first = failure{failure_code::dns_not_found, std::string{host} + " is no host name"};
        }
    }
    return first;
}

}  // namespace reprise::proxy::net
