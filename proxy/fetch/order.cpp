#include "proxy/fetch/order.hpp"

namespace reprise::proxy::fetch {

cache::stored_ptr fetch_order::validating() const noexcept {
    const auto* one = as<wanted::validating>();
    return one != nullptr ? one->stored : nullptr;
}

cache::stored_ptr fetch_order::behind() const noexcept {
    if (const auto* one = as<wanted::validating>()) {
        return one->behind ? one->stored : nullptr;
    }
    const auto* one = as<wanted::whole>();
    return one != nullptr ? one->behind : nullptr;
}

cache::stored_ptr fetch_order::described() const noexcept {
    const auto* one = as<wanted::head>();
    return one != nullptr ? one->described : nullptr;
}

std::shared_ptr<upload> fetch_order::body() const noexcept {
    const auto* one = as<wanted::passed>();
    return one != nullptr ? one->body : nullptr;
}

void fetch_order::validate_nothing() noexcept {
    if (as<wanted::validating>() != nullptr) {
        what = wanted::whole{};
    }
}

}  // namespace reprise::proxy::fetch
