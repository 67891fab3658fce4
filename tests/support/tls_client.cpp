#include "tests/support/tls_client.hpp"

#include "tests/support/waiting.hpp"

#include <stdexcept>

namespace reprise::tests {

tls_client::tls_client(std::uint16_t port, const tls_peer::wishes& wanted)
    : tls_client{stream::connect(port), wanted} {}

tls_client::tls_client(stream over, const tls_peer::wishes& wanted) {
    auto peer = tls_peer::client(over.release(), wanted);
    if (!peer.shake_hands()) {
        throw std::runtime_error("TLS: " + peer.why());
    }
    serial_ = peer.certificate_serial();
    carrier_ = std::make_unique<tls_carrier>(std::move(peer));
    http_ = std::make_unique<client>(carrier_->plain_end());
}

tls_end tls_client::end() {
    (void)eventually([&] { return carrier_->end() != tls_end::timed_out; });
    return carrier_->end();
}

}  // namespace reprise::tests
