// Any text is a date or none; what is one is written and read again as the same moment.

#include "proxy/http/date.hpp"

#include "tests/fuzz/require.hpp"

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::fuzz;
    using namespace reprise::proxy;
    const auto text = text_of(data, size);
    const wall_time now{std::chrono::seconds{784111777}};
    for (const auto clock : {now, wall_time::min(), wall_time::max(), wall_time{}}) {
        const auto when = http::parse_date(text, clock);
        if (!when) {
            continue;
        }
        const auto written = http::format_date(*when);
        const auto again = http::parse_date({written.data(), written.size()}, clock);
        require(again == when);
    }
    return 0;
}
