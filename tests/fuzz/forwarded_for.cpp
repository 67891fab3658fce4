// Any bytes as X-Forwarded-For: the client is the connection's own address, or one that stands in the
// field; it is loopback only where the connection is.

#include "proxy/net/forwarded_for.hpp"

#include "proxy/net/access.hpp"
#include "tests/fuzz/require.hpp"

#include <string>
#include <vector>

using namespace reprise::fuzz;
using namespace reprise::proxy::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    const std::vector<reprise::config::network> trusted{
        {canonical(*parse_numeric_host("10.0.0.0")), 104},
        {canonical(*parse_numeric_host("127.0.0.0")), 104}};
    const forwarded_client connected{canonical(*parse_numeric_host("10.0.0.1")), 1};
    forwarded_path path{trusted, connected};
    const bool goes_on = path.follow(text);
    const auto& client = path.client();
    require(kind_of(client.at) != address_kind::loopback);
    require(!goes_on || is_in(trusted, client.at));
    // What a client writes in front of what its front wrote changes nothing.
    forwarded_path again{trusted, connected};
    const std::string behind = std::string{text} + ", 198.51.100.7";
    require(!again.follow(behind));
    require(again.client().at == canonical(*parse_numeric_host("198.51.100.7")));
    return 0;
}
