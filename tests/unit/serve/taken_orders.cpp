#include "tests/unit/serve/taken_orders.hpp"

#include "proxy/fetch/producer.hpp"

// The linker finds start_producer here, and so never takes the library's: no test of serve/ asks a
// name server, opens a socket or waits for either.

namespace reprise::proxy {

namespace {
serve::test::taken_orders* taking = nullptr;
}  // namespace

namespace serve::test {

taken_orders::taken_orders() : before_{std::exchange(taking, this)} {}
taken_orders::~taken_orders() {
    taking = before_;
}

}  // namespace serve::test

namespace fetch {

void start_producer(thread::worker&, std::shared_ptr<fetch_order> order) {
    REQUIRE(taking != nullptr);
    taking->take(std::move(order));
}

}  // namespace fetch

}  // namespace reprise::proxy
