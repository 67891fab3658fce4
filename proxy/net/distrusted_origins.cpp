#include "proxy/net/distrusted_origins.hpp"

#include <array>

namespace reprise::proxy::net {

secret_name distrusted_origins::name_of(std::string_view host, std::uint16_t port, bool tls) {
    const std::array where{
        static_cast<char>(port >> 8), static_cast<char>(port), tls ? '\1' : '\0'};
    return {host, {where.data(), where.size()}};
}

bool distrusted_origins::note(secret_name name, steady_time now) noexcept {
    const bool is_new = marks_.note(name, now + for_long, now);
    any_.store(true, std::memory_order_relaxed);
    return is_new;
}

}  // namespace reprise::proxy::net
