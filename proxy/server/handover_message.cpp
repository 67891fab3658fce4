#include "proxy/server/handover_message.hpp"

namespace reprise::proxy::server {

namespace {

constexpr std::string_view known = "hldpyfsuma";
constexpr std::size_t front = 9;

}  // namespace

std::string encode(const handover_message& message) {
    std::string out(1, static_cast<char>(message.kind));
    for (unsigned byte = 0; byte < 8; ++byte) {
        out += static_cast<char>(message.number >> (8 * byte) & 0xff);
    }
    return out + message.bytes;
}

std::optional<handover_message> decode_handover(std::string_view bytes) {
    if (bytes.size() < front || known.find(bytes[0]) == std::string_view::npos) {
        return std::nullopt;
    }
    handover_message out;
    out.kind = static_cast<handover_kind>(bytes[0]);
    for (unsigned byte = 0; byte < 8; ++byte) {
        out.number |= std::uint64_t{static_cast<std::uint8_t>(bytes[1 + byte])} << (8 * byte);
    }
    out.bytes = bytes.substr(front);
    return out;
}

}  // namespace reprise::proxy::server
