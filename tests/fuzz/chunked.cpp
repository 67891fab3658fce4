// Any bytes as a chunked body: cut into pieces they decode as they do whole, and what came out,
// when encoded again, decodes to the same. The first byte is the size of the pieces.

#include "proxy/http/chunked.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

constexpr chunked_limits limits{.trailer_bytes = 512, .trailer_fields = 10};
constexpr chunked_limits wide{.trailer_bytes = 2048, .trailer_fields = 10};

struct outcome {
    std::string data;
    std::string trailers;
    std::size_t consumed = 0;
    bool done = false;
    const char* error = nullptr;
};

outcome decode(std::string_view bytes, std::size_t piece_size, const chunked_limits& within) {
    chunked_decoder decoder{within};
    outcome out;
    while (!bytes.empty() && !out.done && out.error == nullptr) {
        auto piece = bytes.substr(0, piece_size);
        bytes.remove_prefix(piece.size());
        while (!piece.empty() && !out.done && out.error == nullptr) {
            const auto step = decoder.feed(piece);
            require(step.consumed <= piece.size());
            require(step.consumed > 0 || step.error != nullptr);
            require(step.data.empty() ||
                    (step.data.data() >= piece.data() &&
                     step.data.data() + step.data.size() <= piece.data() + step.consumed));
            out.data += step.data;
            out.consumed += step.consumed;
            out.done = step.done;
            out.error = step.error;
            piece.remove_prefix(step.consumed);
        }
    }
    if (out.done) {
        append_last_chunk(out.trailers, decoder.trailers());
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = text_of(data, size);
    if (input.empty()) {
        return 0;
    }
    const auto bytes = input.substr(1);
    const auto whole = decode(bytes, bytes.size(), limits);
    const auto cut = decode(bytes, std::size_t{data[0]} + 1, limits);
    require(whole.done == cut.done && whole.error == cut.error && whole.data == cut.data);
    require(whole.trailers == cut.trailers);
    if (whole.done) {
        require(whole.consumed == cut.consumed);
        std::string wire;
        if (!whole.data.empty()) {
            append_chunk_header(wire, whole.data.size());
            wire += whole.data;
            wire += "\r\n";
        }
        wire += whole.trailers;
        const auto again = decode(wire, wire.size(), wide);
        require(again.done && again.data == whole.data && again.trailers == whole.trailers);
        require(again.consumed == wire.size());
    }
    return 0;
}
