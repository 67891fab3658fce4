// Any text is either options or at least one mistake, and no mistake can harm a terminal.

#include "config/load.hpp"
#include "tests/fuzz/require.hpp"

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::fuzz;
    using namespace reprise::config;
    const auto result = load(text_of(data, size));
    if (const auto* mistakes = std::get_if<std::vector<mistake>>(&result)) {
        require(!mistakes->empty() && mistakes->size() <= report::most + 1);
        for (const auto& wrong : *mistakes) {
            require(!wrong.right.empty() && wrong.value.size() <= 64);
            for (const char c : to_string(wrong)) {
                require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
            }
        }
    } else {
        const auto& wanted = std::get<options>(result);
        require(!wanted.listeners.empty());
        require(wanted.limits.head_size > 0 && wanted.memory.size > 0);
    }
    return 0;
}
