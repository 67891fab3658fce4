// See seed_id.hpp.

#include "filter/seed_id.hpp"

#include <algorithm>
#include <new>
#include <openssl/evp.h>
#include <string_view>

namespace reprise::filter {

namespace {

// Keeps this use of SHA-256 over a seed apart from any other.
constexpr std::string_view label{"reprise digest seed, version 1"};

}  // namespace

seed_id identify(std::span<const std::byte, 32> seed) {
    std::array<std::byte, label.size() + 32> text{};
    const auto after = std::copy_n(
        reinterpret_cast<const std::byte*>(label.data()), label.size(), text.begin());
    std::copy(seed.begin(), seed.end(), after);

    std::array<std::byte, 32> hash{};
    auto* const out = reinterpret_cast<unsigned char*>(hash.data());
    // Every provider of libcrypto has SHA-256: what fails here is memory.
    if (EVP_Digest(text.data(), text.size(), out, nullptr, EVP_sha256(), nullptr) != 1) {
        throw std::bad_alloc{};
    }
    seed_id id{};
    std::copy_n(hash.begin(), id.size(), id.begin());
    return id;
}

}  // namespace reprise::filter
