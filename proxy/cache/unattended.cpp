#include "proxy/cache/unattended.hpp"

#include <new>

namespace reprise::proxy::cache {

unattended_permit::~unattended_permit() {
    if (of_ != nullptr) {
        of_->leave(whose_);
    }
}

unattended_permit unattended_fetches::enter(const net::share_holder& whose,
                                            const unattended_bounds& most) noexcept {
    const std::lock_guard lock{guard_};
    if (all_ >= most.of_all || (whose && !count(*whose, most.of_one))) {
        return {};
    }
    ++all_;
    return {*this, whose};
}

bool unattended_fetches::count(const net::address_bytes& client, unsigned most) noexcept {
    const auto known = by_client_.find(client);
    const auto had = known == by_client_.end() ? 0 : known->second;
    if (had >= most) {
        return false;
    }
    try {
        by_client_.insert_or_assign(client, had + 1);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

void unattended_fetches::leave(const net::share_holder& whose) noexcept {
    const std::lock_guard lock{guard_};
    --all_;
    if (!whose) {
        return;
    }
    const auto known = by_client_.find(*whose);
    if (--known->second == 0) {
        by_client_.erase(known);
    }
}

std::size_t unattended_fetches::size() const {
    const std::lock_guard lock{guard_};
    return all_;
}

}  // namespace reprise::proxy::cache
