// Any bytes as a packed file: it is refused or comes to an end, what is taken and made lies within
// what was given, and the size of the pieces changes neither the text nor whether it is whole.

#include "tools/replay/unpacker.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using reprise::replay::unpacker;

constexpr std::size_t most_text = 1u << 20;

// None: refused, or cut off.
std::optional<std::string> unpacked(std::string_view text, std::size_t piece, std::size_t room) {
    const auto from = unpacker::for_stream(text.substr(0, unpacker::telling_bytes));
    std::string out, made(room, '\0');
    try {
        while (out.size() < most_text && !text.empty()) {
            const auto in = text.substr(0, piece);
            const auto done = from->unpack({in.data(), in.size()}, {made.data(), made.size()});
            require(done.taken <= in.size() && done.made <= made.size());
            require(done.taken + done.made != 0);
            text.remove_prefix(done.taken);
            out.append(made, 0, done.made);
        }
    } catch (const std::runtime_error&) {
        return std::nullopt;
    }
    if (out.size() < most_text && !from->may_end()) {
        return std::nullopt;
    }
    out.resize(std::min(out.size(), most_text));
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    if (!unpacker::for_stream(text.substr(0, unpacker::telling_bytes))) {
        return 0;
    }
    const auto whole = unpacked(text, std::max<std::size_t>(text.size(), 1), 1u << 16);
    require(unpacked(text, 1, 1u << 16) == whole);
    require(unpacked(text, 1u << 10, 7) == whole);
    return 0;
}
