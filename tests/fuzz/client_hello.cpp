// Whatever a client sends first is a hello or a reason, and the same one whether it comes whole, in
// single bytes or in pieces, at the same byte. The first byte is the size of the pieces.

#include "proxy/net/client_hello.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using reprise::proxy::net::client_hello_reader;
using state = client_hello_reader::state;

client_hello_reader read_in_pieces(std::string_view bytes, std::size_t piece) {
    client_hello_reader reader;
    auto found = state::more;
    for (std::size_t size = 0; found == state::more && size < bytes.size();) {
        size = std::min(size + piece, bytes.size());
        found = reader.read(bytes.substr(0, size));
        require(found != state::done || size >= 5);
        require(found != state::more || size < client_hello_reader::most);
    }
    require(reader.read(bytes) == found);  // what was found stays
    return reader;
}

void require_same(client_hello_reader one, client_hello_reader other, std::string_view bytes) {
    const auto found = one.read(bytes);
    require(found == other.read(bytes));
    require(one.why().empty() == (found != state::other));
    const auto& hello = one.hello();
    const auto& again = other.hello();
    require(hello.host == again.host && hello.tls_1_2 == again.tls_1_2 &&
            hello.has_alpn == again.has_alpn && hello.http_1_1 == again.http_1_1 &&
            hello.outer_ech == again.outer_ech);
    require(hello.has_alpn || !hello.http_1_1);
    require(hello.host.size() <= 255 && hello.host.find('\0') == std::string_view::npos);
    require(found == state::done || (hello.host.empty() && !hello.tls_1_2 && !hello.has_alpn));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto bytes = text_of(data, size);
    if (bytes.empty()) {
        return 0;
    }
    const auto piece = std::size_t{data[0]} + 1;
    bytes.remove_prefix(1);
    const auto whole = read_in_pieces(bytes, bytes.size() + 1);
    require_same(whole, read_in_pieces(bytes, piece), bytes);
    require_same(whole, read_in_pieces(bytes, 1), bytes);
    return 0;
}
