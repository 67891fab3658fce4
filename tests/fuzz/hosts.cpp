// Any bytes as a hosts file: each name is in lower case and has addresses, each of them once, and no
// more of them than is said.

#include "proxy/net/hosts.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <set>

using namespace reprise::fuzz;
using namespace reprise::proxy::net;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    for (const auto& [name, addresses] : parse_hosts(text_of(data, size))) {
        require(!name.empty());
        require(std::none_of(name.begin(), name.end(), [](char c) {
            return (c >= 'A' && c <= 'Z') || c == ' ' || c == '\n' || c == '#';
        }));
        require(!addresses.empty() && addresses.size() <= most_addresses_of_name);
        require(std::set(addresses.begin(), addresses.end()).size() == addresses.size());
    }
    return 0;
}
