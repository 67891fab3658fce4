#pragma once
// The digests that a Squid 5.7 made and took, and what is known of them; tests/data/squid has their
// story (squid-peering.md).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace reprise::filter::test {

inline std::filesystem::path squid_file(const std::string& name) {
    return std::filesystem::path{REPRISE_TEST_DATA} / "squid" / name;
}

inline std::vector<std::byte> squid_bytes(const std::string& name) {
    std::ifstream in{squid_file(name), std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    const auto* const first = reinterpret_cast<const std::byte*>(text.data());
    return {first, first + text.size()};
}

/// A file's lines that are no comments.
inline std::vector<std::string> squid_lines(const std::string& name) {
    std::vector<std::string> lines;
    std::ifstream in{squid_file(name)};
    for (std::string line; std::getline(in, line);) {
        if (!line.empty() && !line.starts_with('#')) {
            lines.push_back(line);
        }
    }
    return lines;
}

/// A digest of which every URL is listed in NAME.urls.
struct squid_fixture {
    std::string name;
    std::uint32_t capacity;
    unsigned bits_per_entry;
    std::uint64_t entries;
};

inline std::vector<squid_fixture> squid_fixtures() {
    return {{"digest-small", 112, 5, 111},
            {"digest-1500", 1552, 5, 1551},
            {"digest-bpe8", 252, 8, 251},
            {"digest-icons-only", 51, 5, 51},
            {"handbuilt", 204, 5, 5}};
}

}  // namespace reprise::filter::test
