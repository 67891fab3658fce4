// See seed_id.hpp.

#include "filter/seed_id.hpp"

#include "filter/sha256.hpp"

#include <algorithm>
#include <string_view>

namespace reprise::filter {

namespace {

// Keeps this use of SHA-256 over a seed apart from any other.
constexpr std::string_view label{"reprise digest seed, version 1"};

}  // namespace

seed_id identify(std::span<const std::byte, 32> seed) noexcept {
    std::array<std::byte, label.size() + 32> text{};
    const auto after = std::copy_n(
        reinterpret_cast<const std::byte*>(label.data()), label.size(), text.begin());
    std::copy(seed.begin(), seed.end(), after);
    const auto hash = sha256(text);
    seed_id id{};
    std::copy_n(hash.begin(), id.size(), id.begin());
    return id;
}

}  // namespace reprise::filter
