// Any text is a date or none; what is one is written and read again as the same moment.

#include "proxy/http/date.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void require(bool held) {
    if (!held) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::proxy;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
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
