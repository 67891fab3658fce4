#include "proxy/net/distrusted_origins.hpp"

#include <functional>

namespace reprise::proxy::net {

std::uint64_t distrusted_origins::name_of(std::string_view host,
                                          std::uint16_t port,
                                          bool tls) noexcept {
    std::uint64_t name = std::hash<std::string_view>{}(host);
    name ^= (std::uint64_t{port} << 1 | (tls ? 1 : 0)) * 0x9e37'79b9'7f4a'7c15;
    name ^= name >> 29;
    return name * 0xbf58'476d'1ce4'e5b9;
}

bool distrusted_origins::note(std::uint64_t name, steady_time now) noexcept {
    const bool is_new = marks_.note(name, now + for_long, now);
    any_.store(true, std::memory_order_relaxed);
    return is_new;
}

}  // namespace reprise::proxy::net
