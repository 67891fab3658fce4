#pragma once
// How much one piece of news may turn.

#include <cstdint>

namespace reprise::filter {

/// Places listed, and as many as its names have: beyond that the whole is told. So a reader, which
/// remembers what it turned until that is verified, takes half a byte for each bit at most, or 8
/// KiB where that is more.
[[nodiscard]] constexpr std::uint64_t most_news_places(std::uint64_t bits) noexcept {
    return bits / 16 > 1024 ? bits / 16 : 1024;
}

}  // namespace reprise::filter
