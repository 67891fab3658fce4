#pragma once
// What the encoders of all kinds of record share: for the format's own files, nobody else's.

#include "proxy/cache/disk/record.hpp"

#include <cstdint>
#include <span>

namespace reprise::proxy::cache::disk {

/// Where the section by kind begins: behind header and block checksums.
[[nodiscard]] constexpr std::size_t section_at(const record_header& header) noexcept {
    return record_header_bytes + 8 * std::size_t{blocks_of(header)};
}

/// Milliseconds since 1970 that arithmetic on times can't overflow: some 69,000 years either way.
[[nodiscard]] constexpr bool is_plausible_time(std::int64_t milliseconds) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 51;
    return milliseconds > -most && milliseconds < most;
}

/// Pads the record to its end, and writes the checksums of the body's blocks.
/// @pre `into` is the whole record, the body in its place
void finish_body(const record_header& header,
                 std::uint64_t store_id,
                 std::span<char> into) noexcept;

/// Writes the header, and last the checksum of the front, whose other parts are there.
void seal(const record_header& header, std::uint64_t store_id, std::span<char> record) noexcept;

}  // namespace reprise::proxy::cache::disk
