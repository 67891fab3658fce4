#include "proxy/cache/memory/reservation.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/cache/memory/memory_tier.hpp"

namespace reprise::proxy::cache {

namespace {

// True if `bytes` in all may be promised to a holder of `own`, with `promised` already promised.
bool may_have(std::uint64_t capacity,
              std::uint64_t promised,
              std::uint64_t own,
              std::uint64_t bytes) noexcept {
    const auto most = reservation::most_of(capacity);
    const auto more = bytes - own;
    if (promised > most || more > most - promised) {
        return false;
    }
    return bytes / reservation::share <= most - promised - more;
}
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
    // Only what is granted is counted: a refusal must not make another thread evict.
    const auto more = bytes - bytes_;
    const auto capacity = store_->capacity_.load(relaxed);
    auto promised = store_->reserved_.load(relaxed);
    do {
        if (!may_have(capacity, promised, bytes_, bytes)) {
            return false;
        }
    } while (!store_->reserved_.compare_exchange_weak(promised, promised + more, relaxed));
    bytes_ = bytes;
    store_->make_room(more);
    return true;
}

bool reservation::could_grow_to(std::uint64_t bytes) const noexcept {
    return store_ != nullptr &&
           (bytes <= bytes_ ||
            may_have(
                store_->capacity_.load(relaxed), store_->reserved_.load(relaxed), bytes_, bytes));
}

void reservation::reset() noexcept {
    if (store_ != nullptr && bytes_ != 0) {
        store_->reserved_.fetch_sub(bytes_, relaxed);
    }
    bytes_ = 0;
}

}  // namespace reprise::proxy::cache
