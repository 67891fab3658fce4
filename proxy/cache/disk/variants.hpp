#pragma once
// Which variants a primary key has on disk: the record that its index entry leads to when its
// responses have Vary (RFC 9111 4.1). For each variant the names it varies by, the discriminator
// that its selecting values make, and its record's id, so that an older record under the same key
// is not taken for it.
//
// A response without Vary replaces a directory under the primary key, and a directory replaces such
// a response: the origin has changed its mind. Not where what is there is more recent (writer::meet).

#include "proxy/cache/disk/record.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/http/fields.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::disk {

struct listed_variant {
    std::string names;  ///< vary_spec::names
    std::uint64_t discriminator = 0;
    std::uint64_t id = 0;  ///< of its record
    wall_time response_time{};
    std::uint16_t expiry = 0;  ///< coarse
    bool operator==(const listed_variant&) const = default;
};

struct variant_directory {
    std::string url;
    std::vector<listed_variant> variants;  ///< least recently stored first

    /// Lists `added` as the last stored, in place of one with the same discriminator; the first
    /// goes when there are memory_tier::most_variants. Gives the one that went, if any.
    std::optional<listed_variant> add(listed_variant added);
    /// False if it was not there.
    bool remove(std::uint64_t discriminator);
};

/// The variant that the request selects; if several (origins may vary by this or that) the one that
/// arrived last, of equally new ones the last stored. Null: none. At most one text is made for each
/// list of names. `request` as forwarded (vary.hpp).
[[nodiscard]] const listed_variant* select(const variant_directory& from,
                                           const filter::key_hash& primary,
                                           http::field_list request);

struct directory_source {
    filter::key_hash primary{};
    const variant_directory& directory;
};

/// As for the other records. Its expiry is the latest of its variants'.
[[nodiscard]] result<std::size_t> sized(const directory_source& what) noexcept;
/// @pre into.size() == *sized(what)
record_header encode(const directory_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept;

/// @pre check_front(front, ...) succeeded, and the kind is variants
[[nodiscard]] result<variant_directory> read_variants(std::span<const char> front);
/// The URL alone, to be compared first.
[[nodiscard]] result<std::string_view> read_variants_url(std::span<const char> front) noexcept;

}  // namespace reprise::proxy::cache::disk
