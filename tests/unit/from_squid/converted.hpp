#pragma once
// A squid.conf as the converter has it, and the settings as they load.

#include "config/load.hpp"
#include "config/mistake.hpp"
#include "tools/from_squid/conversion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reprise::from_squid {

inline const std::string conf_folder = REPRISE_TEST_DATA "/squid_conf/";

inline std::optional<std::string> conf_text(const std::string& path) {
    std::ifstream in{path, std::ios::binary};
    return in ? std::optional{std::string{std::istreambuf_iterator<char>{in}, {}}} : std::nullopt;
}

struct conversion_result {
    converted made;
    config::options options;

    [[nodiscard]] bool says(fate what, std::string_view why) const {
        return std::any_of(made.told.begin(), made.told.end(), [&](const note& one) {
            return one.what == what && one.why.find(why) != std::string::npos;
        });
    }
    [[nodiscard]] std::size_t count(fate what) const {
        return static_cast<std::size_t>(std::count_if(
            made.told.begin(), made.told.end(), [&](const note& one) { return one.what == what; }));
    }
};

/// Of a configuration whose lists stand beside those of tests/data, and are named without a folder.
inline conversion_result settings_of(const std::string& text) {
    const file_source files{[&](const std::string& path) {
                                return path == "main" ? std::optional{text}
                                                      : conf_text(conf_folder + path);
                            },
                            [](const std::string& pattern) { return std::vector{pattern}; }};
    conversion_result out{convert(read_squid_conf("main", files), files), {}};
    const auto loaded = config::load(out.made.settings);
    CAPTURE(out.made.settings);
    if (const auto* wrong = std::get_if<std::vector<config::mistake>>(&loaded)) {
        CAPTURE(config::to_string(wrong->front()));
        REQUIRE(wrong == nullptr);
    }
    out.options = std::get<config::options>(loaded);
    return out;
}

}  // namespace reprise::from_squid
