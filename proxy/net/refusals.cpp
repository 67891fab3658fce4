#include "proxy/net/refusals.hpp"

namespace reprise::proxy::net {
namespace {

std::string_view bytes_as_text(const address_bytes& address) noexcept {
    return {reinterpret_cast<const char*>(address.data()), address.size()};
}

std::string_view bytes_of(const std::uint16_t& port) noexcept {
    return {reinterpret_cast<const char*>(&port), sizeof port};
}

}  // namespace

refusals::refusals() {
    secret_name::draw_secret();
}

bool refusals::note_client(const address_bytes& client,
                           std::string_view host,
                           steady_time until,
                           steady_time now) noexcept {
    return clients_.note(secret_name{bytes_as_text(client), host}, until, now);
}

bool refusals::has_client(const address_bytes& client,
                          std::string_view host,
                          steady_time now) const noexcept {
    return clients_.has(secret_name{bytes_as_text(client), host}, now);
}

void refusals::note_taken(const address_bytes& client,
                          std::string_view host,
                          steady_time now) noexcept {
    static_cast<void>(taken_.note(secret_name{bytes_as_text(client), host}, now + spare, now));
}

bool refusals::is_refusal(const address_bytes& client,
                          std::string_view host,
                          steady_time now) noexcept {
    const auto name = secret_name{bytes_as_text(client), host};
    if (!taken_.has(name, now)) {
        return true;
    }
    static_cast<void>(taken_.note(name, now, now));  // it ends here
    return false;
}

bool refusals::note_host(std::string_view host, std::uint16_t port, steady_time now) noexcept {
    return hosts_.note(secret_name{bytes_of(port), host}, now + for_a_host, now);
}

bool refusals::has_host(std::string_view host, std::uint16_t port, steady_time now) const noexcept {
    return hosts_.has(secret_name{bytes_of(port), host}, now);
}

}  // namespace reprise::proxy::net
