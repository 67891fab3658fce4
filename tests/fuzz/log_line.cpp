// Any line, in every format: what is found lies within the line, a request has a key, and a line
// that says what another says is read alike.

#include "tools/replay/log_line.hpp"

#include "tests/fuzz/require.hpp"

#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::fuzz;
    using namespace reprise::replay;
    const auto text = text_of(data, size);
    for (const auto format : every_format) {
        const auto read = parse_line(format, text);
        if (read.kind != line_kind::request) {
            continue;
        }
        require(!read.key.empty());
        require(read.key.data() >= text.data());
        require(read.key.data() + read.key.size() <= text.data() + text.size());
        // What is in a file ends with a newline, and may have a carriage return before it.
        const auto again = parse_line(format, std::string{text} + '\r');
        require(text.ends_with('\r') || (again.kind == read.kind && again.bytes == read.bytes &&
                                         again.seconds == read.seconds));
        const std::string_view lines[] = {text};
        require(detect_format(lines).has_value());
        require(format_of(to_string(format)) == format);
    }
    return 0;
}
