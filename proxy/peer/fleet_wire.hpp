#pragma once
// The fleet's figures as bytes: what nodes tell each other of themselves (FLEET.md). Pure.

#include <boost/system/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// What a node says of itself, since it began. Requests, and their bytes, are its clients': what
/// siblings asked it for is not among them. On the wire in this order.
struct node_figures {
    std::uint64_t up_ms = 0;
    std::uint64_t requests = 0;  ///< answered
    std::uint64_t hits = 0;      ///< of those, from its own store
    std::uint64_t siblings = 0;  ///< of those, from a sibling's store
    std::uint64_t joined = 0;  ///< from another request's fetch, here or, of those handed on, there
    std::uint64_t bytes = 0;   ///< of bodies, to clients
    std::uint64_t bytes_from_store = 0;
    std::uint64_t bytes_from_siblings = 0;
    std::uint64_t bytes_joined = 0;
    std::uint64_t objects = 0;      ///< keys that some tier holds
    std::uint64_t listed = 0;       ///< of those, in its digest
    std::uint64_t sights_told = 0;  ///< sights that siblings told of, where its own did not admit
    bool operator==(const node_figures&) const = default;
};

struct node_record {
    std::string name;
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;
    std::chrono::milliseconds age{0};  ///< at most so old
    node_figures figures;
    bool operator==(const node_record&) const = default;
};

inline constexpr std::size_t most_fleet_nodes = 256;
inline constexpr std::size_t longest_node_name = 64;
/// The bytes of a set as it is written, and as it is read: later releases' records may be longer.
inline constexpr std::size_t most_fleet_bytes_written = 8 + most_fleet_nodes * 183;
inline constexpr std::size_t most_fleet_bytes = std::size_t{256} << 10;

/// Whether records may have this name. O(1): longer ones may not.
[[nodiscard]] bool is_node_name(std::string_view name) noexcept;

/// Why a set is refused.
enum class fleet_fault : std::uint8_t {
    truncated,    ///< ends within the header or a record
    not_figures,  ///< begins with something else
    other_version,
    too_many,    ///< above most_fleet_nodes records
    bad_record,  ///< its length is less than its members' or more than may be
    bad_name,
    out_of_order,  ///< names do not rise
    trailing,      ///< bytes behind the last record
};
[[nodiscard]] std::string_view to_string(fleet_fault fault) noexcept;

/// Ages above 49 days are told as that. @pre names are good, rise, and are at most most_fleet_nodes
[[nodiscard]] std::vector<std::byte> encode_fleet(std::span<const node_record> records);

/// Every input yields a set or a reason; reads nothing past `wire`. O(wire), and allocates at most
/// what most_fleet_nodes records take. @throws std::bad_alloc
[[nodiscard]] boost::system::result<std::vector<node_record>, fleet_fault> decode_fleet(
    std::span<const std::byte> wire);

}  // namespace reprise::proxy::peer
