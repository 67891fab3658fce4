#pragma once
// Bodies that are made from a key, so that whoever receives one knows whether it is the right one.
// All are cut out of one noise, each from a place of its own: copying is quicker than making.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string_view>
#include <vector>

namespace reprise::tools {

/// Calls `piece(run, at)` for each run of noise that makes up these bytes of the body that belongs
/// to `key`. Two keys share a body with probability 2^-20 when it is longer than 16 bytes.
template <class Piece>
void for_each_run_of_body(std::uint64_t key,
                          std::uint64_t offset,
                          std::size_t size,
                          Piece&& piece) {
    static const std::vector<std::uint64_t> noise = [] {
        std::vector<std::uint64_t> out((std::size_t{1} << 20) / sizeof(std::uint64_t));
        std::generate(out.begin(), out.end(), std::mt19937_64{20151});
        return out;
    }();
    const std::string_view all{reinterpret_cast<const char*>(noise.data()), noise.size() * 8};
    const std::uint64_t start = key * 0x9e3779b97f4a7c15u >> 44;  // the upper 20 bits
    for (std::size_t at = 0; at < size;) {
        const auto run = all.substr((start + offset + at) % all.size(), size - at);
        piece(run, at);
        at += run.size();
    }
}

/// Writes the bytes from `offset` on of the body that belongs to `key`.
inline void fill_body(std::uint64_t key, std::uint64_t offset, std::span<char> into) {
    for_each_run_of_body(key, offset, into.size(), [&](std::string_view run, std::size_t at) {
        std::memcpy(into.data() + at, run.data(), run.size());
    });
}

/// True when `bytes` are what fill_body would write. O(length), no allocation.
[[nodiscard]] inline bool is_body(std::uint64_t key, std::uint64_t offset, std::string_view bytes) {
    bool same = true;
    for_each_run_of_body(key, offset, bytes.size(), [&](std::string_view run, std::size_t at) {
        same = same && bytes.substr(at, run.size()) == run;
    });
    return same;
}

}  // namespace reprise::tools
