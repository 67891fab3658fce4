#pragma once
// What there is to ask for: everything about an object follows from its path, and every byte of its
// body from path, version, flavour and place.
//
// A body is made of cells of 32 bytes that say whose they are and where they belong
// ("4f1c02a9b7d3 v0002a 0000001f400\n"), so that a piece which went astray tells by itself what it
// is, in a finding as in a debugger.

#include "tests/support/message.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::tests::judge {

using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class validator { none, weak, strong };

/// An object of an origin; made from its path and written into one.
struct object {
    std::string name{};
    std::uint64_t size = 1000;
    framing framed = framing::length;
    validator validated = validator::strong;
    int lifetime = 3600;  ///< max-age in seconds; below 0: no-store
    int while_revalidate = 0, if_error = 0;
    bool ranges = true;   ///< takes Range
    bool varies = false;  ///< by X-Flavour
    bool cookie = false;  ///< each answer sets one of its own

    /// "/name.s1000.chunked.weak.life60.swr5.ranges.vary.cookie"
    [[nodiscard]] std::string path() const;
    /// @throws std::runtime_error when it is no such path
    [[nodiscard]] static object of(std::string_view path);

    [[nodiscard]] std::string etag(unsigned version) const;  ///< quoted; empty without one
};

/// Of a path, for cells and X-Object: 48 bits.
[[nodiscard]] std::uint64_t identity_of(std::string_view path) noexcept;
[[nodiscard]] std::string identity_text(std::string_view path);

/// Which body: of whom, and in which state.
struct body_id {
    std::uint64_t whose = 0;
    unsigned version = 0;
    char flavour = 'a';
};

/// `count` bytes of it from `at` on.
[[nodiscard]] std::string body_piece(const body_id& of, std::uint64_t at, std::size_t count);
/// Where `bytes`, which should be this body's from `at` on, are not; npos when they are right.
[[nodiscard]] std::size_t first_wrong(std::string_view bytes, const body_id& of, std::uint64_t at);
/// A few bytes around a place, printable: cells tell whose they are.
[[nodiscard]] std::string excerpt(std::string_view bytes, std::size_t around);

}  // namespace reprise::tests::judge
