// Any bytes from the other program of an upgrade: what is read as a message or an order, written
// again, is the same bytes.

#include "proxy/server/handover_message.hpp"
#include "proxy/thread/purge_order.hpp"
#include "tests/fuzz/require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace reprise::fuzz;
    using namespace reprise::proxy;
    const auto bytes = text_of(data, size);
    if (const auto message = server::decode_handover(bytes)) {
        require(server::encode(*message) == bytes);
    }
    if (const auto order = thread::decode_purge(bytes)) {
        require(thread::encode(*order) == bytes);
    }
    return 0;
}
