// XXH_INLINE_ALL makes XXH3 part of this file; see filter/key_hash.cpp.

#define XXH_INLINE_ALL
#include "proxy/cache/memory/tags.hpp"

#include <xxhash.h>

#include <algorithm>

namespace reprise::proxy::cache {

std::uint64_t tag_hash(std::string_view tag) noexcept {
    return XXH3_64bits(tag.data(), tag.size());
}

std::vector<std::uint64_t> read_tags(std::string_view lines) {
    std::vector<std::uint64_t> tags;
    bool too_many = false;
    while (!lines.empty()) {
        const auto end = lines.find("\r\n");
        const auto line = lines.substr(0, end);
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 2);
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) {
            continue;
        }
        for_each_tag(line.substr(0, colon), line.substr(colon + 1), [&](std::string_view tag) {
            if (tags.size() == most_tags) {
                too_many = true;
            } else {
                tags.push_back(tag_hash(tag));
            }
        });
    }
    if (too_many) {
        tags.assign(1, any_tag);
    }
    std::sort(tags.begin(), tags.end());
    tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
    tags.shrink_to_fit();
    return tags;
}

}  // namespace reprise::proxy::cache
