// Any squid.conf, with itself as every file that it names: what is made of it are settings that load.

#include "tools/from_squid/squid_conf.hpp"

#include "config/load.hpp"
#include "tests/fuzz/require.hpp"
#include "tools/from_squid/conversion.hpp"

#include <variant>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::fuzz;
    using namespace reprise::from_squid;
    const std::string text{text_of(data, size)};
    const file_source files{[&](const std::string&) { return std::optional{text}; },
                            [](const std::string& pattern) { return std::vector{pattern}; }};
    const auto conf = read_squid_conf("main", files, {.bytes = 1 << 16, .depth = 3});
    for (const auto& each : conf.statements) {
        require(!each.words.empty());
    }
    const auto made = convert(conf, files);
    require(std::holds_alternative<reprise::config::options>(reprise::config::load(made.settings)));
    return 0;
}
