#pragma once
// Orders for origins that nobody carries out: this program has no producer (taken_orders.cpp), so
// whatever serve/ orders comes here, and the test is the origin.

#include "proxy/fetch/order.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <utility>

namespace reprise::proxy::serve::test {

/// What has been ordered since this is there. The youngest of several has it.
class taken_orders {
public:
    taken_orders();
    ~taken_orders();
    taken_orders(const taken_orders&) = delete;
    taken_orders& operator=(const taken_orders&) = delete;

    void take(std::shared_ptr<fetch::fetch_order> order) { waiting_.push_back(std::move(order)); }
    [[nodiscard]] std::size_t size() const { return waiting_.size(); }
    /// The first that has not been asked for yet.
    [[nodiscard]] std::shared_ptr<fetch::fetch_order> next() {
        REQUIRE(!waiting_.empty());
        auto first = std::move(waiting_.front());
        waiting_.pop_front();
        return first;
    }

private:
    taken_orders* before_;
    std::deque<std::shared_ptr<fetch::fetch_order>> waiting_;
};

}  // namespace reprise::proxy::serve::test
