#include "config/options.hpp"

namespace reprise::config {

std::vector<network> private_networks() {
    const auto mapped = [](std::uint8_t a, std::uint8_t b, unsigned bits) {
        return network{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, 0, 0}, 96 + bits};
    };
    network loopback6{{}, 128};
    loopback6.address[15] = 1;
    const network unique_local{{0xfc}, 7};
    const network link_local{{0xfe, 0x80}, 10};
    return {mapped(127, 0, 8),
            mapped(10, 0, 8),
            mapped(172, 16, 12),
            mapped(192, 168, 16),
            loopback6,
            unique_local,
            link_local};
}

}  // namespace reprise::config
