#pragma once
// The tags that origins give their responses (Surrogate-Key, Cache-Tag), for purges by tag.
// A stored response keeps hashes of its tags, on disk too: XXH3, without key or seed, whatever the
// process. A purge by tag compares the origin too (purges.hpp), so an origin that looks for
// collisions can only purge its own responses.
//
// Both fields go on to the client as they came: a forward proxy is nobody's delegate, and a cache
// behind it may want to purge by them.

#include "proxy/http/fields.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache {

/// A response that has more tags than this gets any_tag alone, which every purge by tag of its
/// origin meets: it may be purged for nothing, and is never missed.
inline constexpr std::size_t most_tags = 256;
inline constexpr std::uint64_t any_tag = ~std::uint64_t{0};

[[nodiscard]] std::uint64_t tag_hash(std::string_view tag) noexcept;

/// Surrogate-Key's tags, by white space, or Cache-Tag's, by commas: `each(tag)`; nothing for other
/// names. Every byte between separators is the tag's own, its case included.
template <class Each>
void for_each_tag(std::string_view name, std::string_view value, Each&& each) {
    const bool by_space = http::iequals(name, "Surrogate-Key");
    if (!by_space && !http::iequals(name, "Cache-Tag")) {
        return;
    }
    const std::string_view separators = by_space ? " \t" : ",";
    while (!value.empty()) {
        const auto end = value.find_first_of(separators);
        auto tag = value.substr(0, end);
        value.remove_prefix(end == std::string_view::npos ? value.size() : end + 1);
        while (!tag.empty() && (tag.front() == ' ' || tag.front() == '\t')) {
            tag.remove_prefix(1);
        }
        while (!tag.empty() && (tag.back() == ' ' || tag.back() == '\t')) {
            tag.remove_suffix(1);
        }
        if (!tag.empty()) {
            each(tag);
        }
    }
}

/// The tags in a head's field lines, in wire form: sorted hashes, each once. O(bytes); allocates
/// only where there are tags.
[[nodiscard]] std::vector<std::uint64_t> read_tags(std::string_view lines);

}  // namespace reprise::proxy::cache
