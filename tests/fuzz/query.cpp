// Any query string: what is read is no longer than what was written and holds no control
// character; what is read, written plainly, is read the same again.

#include "proxy/http/query.hpp"

#include "tests/fuzz/require.hpp"

#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;

void append_encoded(std::string& out, std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out.push_back('%');
        out.push_back(digits[byte / 16]);
        out.push_back(digits[byte % 16]);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::proxy::http;
    const auto text = text_of(data, size);
    const auto read = parse_query(text, 16);
    if (!read) {
        return 0;
    }
    std::size_t bytes = 0;
    std::string again;
    for (const auto& one : *read) {
        for (const auto& part : {one.name, one.value}) {
            bytes += part.size();
            for (const char c : part) {
                require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
            }
        }
        append_encoded(again, one.name);
        again.push_back('=');
        append_encoded(again, one.value);
        again.push_back('&');
    }
    require(bytes <= size && read->size() <= 16);
    require(parse_query(again, 16) == read);
    return 0;
}
