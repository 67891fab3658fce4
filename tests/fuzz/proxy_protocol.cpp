// Any bytes as what a front says of a connection: read in bounds, and the address is where it stands.

#include "proxy/net/proxy_protocol.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>

using namespace reprise::fuzz;
using namespace reprise::proxy::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    const auto rest = proxy_rest(text.substr(0, proxy_head_bytes));
    require(!rest || *rest <= most_proxy_rest);
    const auto said = read_proxy_header(text);
    require(!said || (rest && size == proxy_head_bytes + *rest));
    if (rest && size >= proxy_head_bytes + *rest) {
        const auto whole = text.substr(0, proxy_head_bytes + *rest);
        if (const auto of = read_proxy_header(whole); of && of->client) {
            const auto& client = *of->client;
            require(*rest >= (client.address().is_v4() ? 12u : 36u));
            if (client.address().is_v4()) {
                const auto bytes = client.address().to_v4().to_bytes();
                require(std::equal(bytes.begin(), bytes.end(), data + proxy_head_bytes));
            }
        }
    }
    return 0;
}
