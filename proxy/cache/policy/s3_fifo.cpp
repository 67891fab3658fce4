#include "proxy/cache/policy/s3_fifo.hpp"

namespace reprise::proxy::cache {

namespace {

constexpr std::uint64_t small_percent = 10;
constexpr std::uint8_t most_uses = 3;      // two bits in the paper
constexpr std::uint8_t uses_for_main = 2;  // "accessed more than once"

enum fifo : std::uint8_t { in_small, in_main };

}  // namespace

s3_fifo_policy::s3_fifo_policy(std::uint64_t capacity_bytes) {
    set_capacity(capacity_bytes);
}

void s3_fifo_policy::set_capacity(std::uint64_t bytes) {
    small_share_ = bytes / 100 * small_percent + bytes % 100 * small_percent / 100;
    ghosts_.set_budget(bytes - small_share_);
}

void s3_fifo_policy::inserted(evictable& entry) {
    entry.uses = 0;
    const bool was_here = ghosts_.take(entry.key);
    entry.queue = was_here ? in_main : in_small;
    (was_here ? main_ : small_).push(entry);
}

void s3_fifo_policy::used(evictable& entry) noexcept {
    if (entry.uses < most_uses) {
        ++entry.uses;
    }
}

void s3_fifo_policy::removed(evictable& entry) noexcept {
    (entry.queue == in_main ? main_ : small_).remove(entry);
}

evictable* s3_fifo_policy::evict() noexcept {
    // What has gone through enough of small has filled main.
    unsigned passed = 0;
    while (passed < most_passed && !small_.empty() &&
           (small_.bytes() + expected_ > small_share_ || main_.empty())) {
        if (auto* const gone = leave_small()) {
            return gone;
        }
        ++passed;
    }
    return leave_main(passed);
}

// Small's oldest goes: out, or to main (null).
evictable* s3_fifo_policy::leave_small() noexcept {
    auto* const oldest = small_.oldest();
    small_.remove(*oldest);
    if (oldest->uses < uses_for_main) {
        ghosts_.add(oldest->key, oldest->charge);
        return oldest;
    }
    oldest->uses = 0;
    oldest->queue = in_main;
    main_.push(*oldest);
    return nullptr;
}

// Main's oldest that is not in use, or that comes when `passed` are too many.
evictable* s3_fifo_policy::leave_main(unsigned passed) noexcept {
    auto* oldest = main_.oldest();
    for (; oldest != nullptr && oldest->uses != 0 && passed < most_passed; ++passed) {
        --oldest->uses;
        main_.make_newest(*oldest);
        oldest = main_.oldest();
    }
    if (oldest != nullptr) {
        main_.remove(*oldest);
    }
    return oldest;
}

}  // namespace reprise::proxy::cache
