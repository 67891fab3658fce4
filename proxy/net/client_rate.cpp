#include "proxy/net/client_rate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

// A bucket changes by compare-and-swap of its one word; only the table of buckets has a lock. One
// that is full and that no connection holds says no more than a new one would: those are forgotten,
// and no others.

namespace reprise::proxy::net {

namespace {

// A full bucket: a page comes at once, and a thread that is held up for so long loses nothing. It
// is 2.5 % of a transfer of five seconds.
constexpr std::uint64_t bursts_a_second = 8;
constexpr std::uint64_t smallest_burst = 64u << 10;
// What one connection pays for ahead, while the others wait for it.
constexpr std::uint64_t pieces_a_second = 32;
constexpr std::uint64_t smallest_piece = 4u << 10;
constexpr std::uint64_t largest_piece = 256u << 10;

constexpr double nanoseconds_a_second = 1e9;
// At high rates a piece takes less than a timer: what comes together meanwhile goes out with it.
constexpr std::chrono::milliseconds shortest_nap{4};
constexpr std::chrono::milliseconds longest_nap{1000};  // a reload is heard of

std::int64_t nanoseconds_of(steady_time at) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

steady_time steady_time_of(std::int64_t nanoseconds) noexcept {
    return steady_time{
        std::chrono::duration_cast<steady_time::duration>(std::chrono::nanoseconds{nanoseconds})};
}

// Never too little: what is rounded is rounded in the others' favour.
std::int64_t cost_of(std::uint64_t bytes, std::uint64_t rate) noexcept {
    return static_cast<std::int64_t>(
        std::ceil(static_cast<double>(bytes) * nanoseconds_a_second / static_cast<double>(rate)));
}

}  // namespace

client_name::client_name(const address_bytes& at, std::string_view user) noexcept
    : at_{user.empty() ? place_of_client(at) : address_bytes{}},
      user_{user} {}

std::uint64_t burst_of(std::uint64_t rate) noexcept {
    return std::max(smallest_burst, rate / bursts_a_second);
}

std::uint64_t piece_of(std::uint64_t rate) noexcept {
    return std::clamp(rate / pieces_a_second, smallest_piece, largest_piece);
}

client_bucket::client_bucket(const rate& now_set, const client_name& whose)
    : rate_{now_set},
      at_{whose.at()},
      user_{whose.user()},
      paid_until_{std::numeric_limits<std::int64_t>::min()},
      settled_{now_set.changes.load(relaxed)} {}

// Whoever is first after a change forgives the debt; what others pay in that moment is lost with it.
std::uint64_t client_bucket::settle(steady_time now) noexcept {
    const auto changes = rate_.changes.load(relaxed);
    if (settled_.load(relaxed) != changes) [[unlikely]] {
        if (settled_.exchange(changes) != changes) {
            const auto latest = nanoseconds_of(now);
            auto paid = paid_until_.load(relaxed);
            while (paid > latest && !paid_until_.compare_exchange_weak(paid, latest, relaxed)) {
            }
        }
    }
    return rate_.bytes.load(relaxed);
}

bool client_bucket::is_free_before(steady_time due) const noexcept {
    return paid_until_.load(relaxed) < nanoseconds_of(due);
}

// A full bucket was paid for until a burst ago, whatever it was before.
std::int64_t client_bucket::beginning(std::int64_t paid,
                                      steady_time now,
                                      std::uint64_t at) const noexcept {
    return std::max(paid, nanoseconds_of(now) - cost_of(burst_of(at), at));
}

std::uint64_t client_bucket::take(std::uint64_t most, steady_time now) noexcept {
    const auto at = settle(now);
    if (at == 0) {
        return most;
    }
    auto paid = paid_until_.load(relaxed);
    for (;;) {
        const auto from = beginning(paid, now, at);
        const auto left = nanoseconds_of(now) - from;
        if (left <= 0) {
            return 0;
        }
        const auto has = static_cast<std::uint64_t>(static_cast<double>(left) *
                                                    static_cast<double>(at) / nanoseconds_a_second);
        if (has < most && has < piece_of(at)) {
            return 0;
        }
        const auto taken = std::min(has, most);
        if (paid_until_.compare_exchange_weak(paid, from + cost_of(taken, at), relaxed)) {
            return taken;
        }
    }
}

client_bucket::reservation client_bucket::reserve(std::uint64_t most, steady_time now) noexcept {
    const auto at = settle(now);
    if (at == 0) {
        return {most, now};
    }
    const auto bytes = std::min(most, piece_of(at));
    auto paid = paid_until_.load(relaxed);
    for (;;) {
        const auto until = beginning(paid, now, at) + cost_of(bytes, at);
        if (paid_until_.compare_exchange_weak(paid, until, relaxed)) {
            return {bytes, steady_time_of(until)};
        }
    }
}

void client_bucket::give_back(std::uint64_t bytes) noexcept {
    if (const auto at = rate_.bytes.load(relaxed); at != 0) {
        paid_until_.fetch_sub(cost_of(bytes, at), relaxed);
    }
}

bool client_bucket::is_full(steady_time now) const noexcept {
    const auto at = rate_.bytes.load(relaxed);
    const auto paid = paid_until_.load(relaxed);
    return at == 0 || settled_.load(relaxed) != changes() ||
           paid <= nanoseconds_of(now) - cost_of(burst_of(at), at);
}

client_bucket_ptr client_rates::bucket_of(const client_name& whose, steady_time now) {
    const std::lock_guard lock{guard_};
    if (const auto known = buckets_.find(whose); known != buckets_.end()) {
        return known->second;
    }
    if (buckets_.size() >= forgets_at_ && now >= next_forget_) {
        forget_full(now);
        forgets_at_ = std::clamp<std::size_t>(2 * buckets_.size(), 1024, most_clients);
    }
    auto made = std::make_shared<client_bucket>(rate_, whose);
    if (buckets_.size() < most_clients) {
        buckets_.emplace(made->whose(), made);
    }
    return made;
}

std::size_t client_rates::known(steady_time now) {
    const std::lock_guard lock{guard_};
    if (now >= next_forget_) {
        forget_full(now);
    }
    return buckets_.size();
}

// Nobody comes to share one meanwhile: that takes the lock.
void client_rates::forget_full(steady_time now) {
    next_forget_ = now + std::chrono::seconds{1};
    for (auto at = buckets_.begin(); at != buckets_.end();) {
        const auto& bucket = at->second;
        at = bucket.use_count() == 1 && bucket->is_full(now) ? buckets_.erase(at) : std::next(at);
    }
}

void rate_share::limit_to(client_bucket_ptr whose) noexcept {
    give_back();
    is_waiting_ = false;
    bucket_ = std::move(whose);
}

// What was paid at another rate has been forgotten already.
void rate_share::give_back() noexcept {
    if (bucket_ && paid_ > 0 && bucket_->changes() == changes_) {
        bucket_->give_back(paid_);
    }
    paid_ = 0;
}

std::size_t rate_share::may_send(std::size_t wanted, steady_time now) noexcept {
    if (!bucket_ || !bucket_->is_limited()) {
        paid_ = 0;
        is_waiting_ = false;
        return wanted;
    }
    // Nothing of it was offered yet: it may wait for another time.
    if (paid_ > 0 && now < due_ &&
        (bucket_->changes() != changes_ || bucket_->is_free_before(due_))) {
        give_back();
    }
    if (paid_ == 0) {
        changes_ = bucket_->changes();
        paid_ = bucket_->take(wanted, now);
        due_ = now;
    }
    if (paid_ == 0) {
        const auto ahead = bucket_->reserve(wanted, now);
        paid_ = ahead.bytes;
        due_ = ahead.due;
        if (!is_waiting_) {
            waits_.add();
        }
    }
    is_waiting_ = now < due_;
    return is_waiting_ ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(paid_, wanted));
}

void rate_share::note_sent(std::size_t bytes) noexcept {
    paid_ -= std::min<std::uint64_t>(paid_, bytes);  // of what was not limited nothing was paid
}

steady_time rate_share::next_look(steady_time now) const noexcept {
    return std::clamp(due_, now + shortest_nap, now + longest_nap);
}

void rate_share::end_wait() noexcept {
    timer_.cancel();
}

}  // namespace reprise::proxy::net
