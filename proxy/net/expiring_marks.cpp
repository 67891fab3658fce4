#include "proxy/net/expiring_marks.hpp"

#include <algorithm>

namespace reprise::proxy::net {

namespace {

constexpr unsigned time_bits = 32;
constexpr std::uint64_t time_mask = (std::uint64_t{1} << time_bits) - 1;

// Seconds are the steady clock's, which begins when the machine does. They must not wrap while the
// machine runs: nothing takes out what is over, and a word would come alive again.
std::uint64_t second_of(steady_time at) noexcept {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(at.time_since_epoch());
    return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0)),
                    time_mask);
}

// What a word has of its name; its place has the lowest bits.
std::uint64_t tag_of(secret_name name) noexcept {
    return name.bits() & ~time_mask;
}

// Seconds until the word's end; 0: it is over, or there never was one.
std::uint64_t left_of(std::uint64_t word, std::uint64_t second) noexcept {
    const auto end = word & time_mask;
    return end > second ? end - second : 0;
}

}  // namespace

expiring_marks::expiring_marks(std::size_t buckets)
    : mask_{buckets - 1},
      buckets_{std::make_unique<bucket[]>(buckets)} {}

bool expiring_marks::note(secret_name name, steady_time until, steady_time now) noexcept {
    const auto second = second_of(now);
    const auto tag = tag_of(name);
    auto& home = bucket_of(name);
    auto* place = &home.words[0];
    auto least = ~std::uint64_t{0};
    bool known = false;
    for (auto& word : home.words) {
        const auto seen = word.load(std::memory_order_relaxed);
        const auto left = left_of(seen, second);
        if (left != 0 && (seen & ~time_mask) == tag) {
            place = &word;
            known = true;
            break;
        }
        if (left < least) {
            least = left;
            place = &word;
        }
    }
    const auto end = std::min(until, now + furthest);
    place->store(tag | second_of(end), std::memory_order_relaxed);
    return !known;
}

bool expiring_marks::has(secret_name name, steady_time now) const noexcept {
    const auto second = second_of(now);
    const auto tag = tag_of(name);
    for (const auto& word : bucket_of(name).words) {
        const auto seen = word.load(std::memory_order_relaxed);
        if ((seen & ~time_mask) == tag && left_of(seen, second) != 0) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise::proxy::net
