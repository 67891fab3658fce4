#include "proxy/net/secret_name.hpp"

#include <xxhash.h>

#include <array>
#include <openssl/rand.h>
#include <stdexcept>

namespace reprise::proxy::net {
namespace {

using secret_bytes = std::array<unsigned char, 192>;
static_assert(XXH3_SECRET_SIZE_MIN <= sizeof(secret_bytes));

secret_bytes drawn() {
    secret_bytes out{};
    if (RAND_bytes(out.data(), static_cast<int>(out.size())) != 1) {
        throw std::runtime_error{"OpenSSL has no random bytes"};
    }
    return out;
}

}  // namespace

secret_name::secret_name(std::string_view first, std::string_view second) {
    static const auto secret = drawn();
    const auto hash = [](const void* bytes, std::size_t size) {
        return XXH3_64bits_withSecret(bytes, size, secret.data(), secret.size());
    };
    const std::uint64_t both[] = {hash(first.data(), first.size()),
                                  hash(second.data(), second.size())};
    bits_ = hash(both, sizeof both);
}

}  // namespace reprise::proxy::net
