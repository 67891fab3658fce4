#pragma once
// What the tests of config/ say of a file in one line.

#include "config/load.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::config {

/// The options of a text that must load.
inline options good(std::string_view text) {
    auto result = load(text);
    if (const auto* mistakes = std::get_if<std::vector<mistake>>(&result)) {
        for (const auto& wrong : *mistakes) {
            FAIL_CHECK(to_string(wrong));
        }
        return {};
    }
    return std::get<options>(std::move(result));
}

/// The mistakes of a text, as an operator reads them; none when it loads.
inline std::vector<std::string> mistakes_of(std::string_view text) {
    std::vector<std::string> told;
    const auto result = load(text);
    if (const auto* mistakes = std::get_if<std::vector<mistake>>(&result)) {
        for (const auto& wrong : *mistakes) {
            told.push_back(to_string(wrong));
        }
    }
    return told;
}

/// The only mistake of a text that has one.
inline std::string mistake_of(std::string_view text) {
    const auto told = mistakes_of(text);
    CHECK(told.size() == 1);
    return told.empty() ? "" : told.front();
}

inline std::string text_of(const std::string& path_in_source) {
    std::ifstream file{std::string{REPRISE_SOURCE_DIR "/"} + path_in_source, std::ios::binary};
    REQUIRE(file);
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace reprise::config
