#include "proxy/cache/reservation.hpp"

#include "proxy/cache/store.hpp"

namespace reprise::proxy::cache {

namespace {
constexpr auto relaxed = std::memory_order_relaxed;
}  // namespace

reservation& reservation::operator=(reservation&& other) noexcept {
    if (this != &other) {
        reset();
        store_ = std::exchange(other.store_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}

bool reservation::grow_to(std::uint64_t bytes) {
    if (store_ == nullptr) {
        return false;
    }
    if (bytes <= bytes_) {
        return true;
    }
    // What is refused is counted at no moment: another thread would make room for it.
    const auto more = bytes - bytes_;
    const auto most = store_->capacity_.load(relaxed) / 4;
    auto promised = store_->reserved_.load(relaxed);
    do {
        if (promised > most || more > most - promised) {
            return false;
        }
    } while (!store_->reserved_.compare_exchange_weak(promised, promised + more, relaxed));
    bytes_ = bytes;
    store_->make_room();
    return true;
}

void reservation::reset() noexcept {
    if (store_ != nullptr && bytes_ != 0) {
        store_->reserved_.fetch_sub(bytes_, relaxed);
    }
    bytes_ = 0;
}

}  // namespace reprise::proxy::cache
