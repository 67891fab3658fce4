#include "proxy/net/refusals.hpp"

#include <xxhash.h>

#include <openssl/rand.h>
#include <stdexcept>

namespace reprise::proxy::net {
namespace {

static_assert(XXH3_SECRET_SIZE_MIN <= 192);

std::string_view bytes_as_text(const address_bytes& address) noexcept {
    return {reinterpret_cast<const char*>(address.data()), address.size()};
}

std::string_view bytes_of(const std::uint16_t& port) noexcept {
    return {reinterpret_cast<const char*>(&port), sizeof port};
}

}  // namespace

refusals::refusals() : secret_{} {
    if (RAND_bytes(secret_.data(), static_cast<int>(secret_.size())) != 1) {
        throw std::runtime_error{"OpenSSL has no random bytes"};
    }
}

// Two hashes under the secret, so that the parts' lengths say where one ends.
std::uint64_t refusals::name_of(std::string_view client, std::string_view host) const noexcept {
    const std::uint64_t both[] = {
        XXH3_64bits_withSecret(client.data(), client.size(), secret_.data(), secret_.size()),
        XXH3_64bits_withSecret(host.data(), host.size(), secret_.data(), secret_.size())};
    return XXH3_64bits_withSecret(both, sizeof both, secret_.data(), secret_.size());
}

bool refusals::note_client(const address_bytes& client,
                           std::string_view host,
                           steady_time until,
                           steady_time now) noexcept {
    return clients_.note(name_of(bytes_as_text(client), host), until, now);
}

bool refusals::has_client(const address_bytes& client,
                          std::string_view host,
                          steady_time now) const noexcept {
    return clients_.has(name_of(bytes_as_text(client), host), now);
}

void refusals::note_taken(const address_bytes& client,
                          std::string_view host,
                          steady_time now) noexcept {
    static_cast<void>(taken_.note(name_of(bytes_as_text(client), host), now + spare, now));
}

bool refusals::is_refusal(const address_bytes& client,
                          std::string_view host,
                          steady_time now) noexcept {
    const auto name = name_of(bytes_as_text(client), host);
    if (!taken_.has(name, now)) {
        return true;
    }
    static_cast<void>(taken_.note(name, now, now));  // it ends here
    return false;
}

bool refusals::note_host(std::string_view host, std::uint16_t port, steady_time now) noexcept {
    return hosts_.note(name_of(bytes_of(port), host), now + for_a_host, now);
}

bool refusals::has_host(std::string_view host,
                        std::uint16_t port,
                        steady_time now) const noexcept {
    return hosts_.has(name_of(bytes_of(port), host), now);
}

}  // namespace reprise::proxy::net
