#pragma once
// A message between this program and the one that takes over from it (UPGRADE.md), as a value and as
// bytes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::server {

/// What follows must be understood by both: another version is refused.
inline constexpr std::uint64_t handover_version = 1;

/// Says to a new program that it is one, and by which descriptor: 3.
inline constexpr const char* handover_variable = "REPRISE_HANDOVER";

enum class handover_kind : char {
    hello = 'h',     ///< from the old: its version; its name in Via
    listener = 'l',  ///< from the old, with a socket: its address in the settings
    admin = 'd',     ///< likewise
    prepared = 'p',  ///< from the new: its version
    yours = 'y',     ///< from the old, with a file: the admission state
    history =
        'f',  ///< from the old, with a file: /history; when, in nanoseconds of CLOCK_MONOTONIC
    serving = 's',  ///< from the new
    purge = 'u',    ///< its number; the end of an order, or all of it
    more = 'm',     ///< an order's bytes before that
    heard = 'a',    ///< a purge's number: it is carried out, and kept
};

struct handover_message {
    handover_kind kind = handover_kind::hello;
    std::uint64_t number = 0;
    std::string bytes = {};
};

/// Bytes of one message at most, its kind and number not counted.
inline constexpr std::size_t handover_piece = 64u << 10;

[[nodiscard]] std::string encode(const handover_message& message);
/// None: it is too short, or of a kind that this release does not know. @pre at most handover_piece + 9
[[nodiscard]] std::optional<handover_message> decode_handover(std::string_view bytes);

}  // namespace reprise::proxy::server
