#include "proxy/cache/policy/w_tinylfu.hpp"

#include <algorithm>
#include <cmath>
#include <new>

// An entry knows which of the three queues it is in. fill_main() first moves on what needs no
// contest; evict() then holds one, and the loser leaves. Every request, hit or miss, counts towards
// the next step of the window's share (climb).

namespace reprise::proxy::cache {

namespace {

constexpr double first_window_share = 0.01;
constexpr double most_window_share = 0.8;
constexpr double protected_share = 0.8;  // of main
constexpr unsigned most_victims = 64;    // looked at in one contest
constexpr std::uint64_t first_sketch = 1'024;

// Hill climbing as in the paper's simulator (Caffeine's): a step of a sixteenth that shrinks while
// nothing dramatic happens, and starts anew when the hit ratio jumps.
constexpr double first_step = 0.0625;
constexpr double step_decay = 0.98;
constexpr double jump = 0.05;
constexpr std::uint64_t requests_a_key = 10;

enum queue : std::uint8_t { in_window, in_probation, in_protected };

std::uint64_t share_of(std::uint64_t bytes, double share) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

}  // namespace

w_tinylfu_policy::w_tinylfu_policy(std::uint64_t capacity_bytes, window moves)
    : capacity_{capacity_bytes},
      moves_{moves},
      window_share_{first_window_share},
      sketch_{first_sketch},
      step_{first_step} {}

void w_tinylfu_policy::set_capacity(std::uint64_t bytes) {
    capacity_ = bytes;
}

void w_tinylfu_policy::trim(std::uint64_t keys) {
    sketch_.shrink_to(
        std::max<std::uint64_t>(first_sketch, std::min<std::uint64_t>(keys, count())));
}

std::size_t w_tinylfu_policy::count() const noexcept {
    return window_.size() + probation_.size() + protected_.size();
}

entry_queue& w_tinylfu_policy::queue_of(const evictable& entry) noexcept {
    return entry.queue == in_window      ? window_
           : entry.queue == in_probation ? probation_
                                         : protected_;
}

std::uint64_t w_tinylfu_policy::window_bytes() const noexcept {
    return share_of(capacity_, window_share_);
}

bool w_tinylfu_policy::window_is_over() const noexcept {
    return window_.bytes() + expected_ > window_bytes();
}

std::uint64_t w_tinylfu_policy::main_bytes() const noexcept {
    return probation_.bytes() + protected_.bytes();
}

void w_tinylfu_policy::missed(const filter::key_hash& key) noexcept {
    sketch_.note(key);
    climb();
}

void w_tinylfu_policy::inserted(evictable& entry) {
    sketch_.grow_to(count() + 1);
    entry.queue = in_window;
    window_.push(entry);
}

void w_tinylfu_policy::used(evictable& entry) noexcept {
    sketch_.note(entry.key);
    ++hits_;
    climb();
    if (entry.queue != in_probation) {
        queue_of(entry).make_newest(entry);
        return;
    }
    probation_.remove(entry);
    entry.queue = in_protected;
    protected_.push(entry);
    const auto room = share_of(capacity_ - window_bytes(), protected_share);
    while (protected_.bytes() > room && protected_.oldest() != &entry) {
        auto& demoted = *protected_.oldest();
        protected_.remove(demoted);
        demoted.queue = in_probation;
        probation_.push(demoted);
    }
}

void w_tinylfu_policy::removed(evictable& entry) noexcept {
    take_out(entry);
}

void w_tinylfu_policy::take_out(evictable& entry) noexcept {
    queue_of(entry).remove(entry);
}

evictable* w_tinylfu_policy::main_victim() const noexcept {
    return probation_.empty() ? protected_.oldest() : probation_.oldest();
}

// The sum of frequencies of all that would leave main for `charge` more bytes; no further than
// `enough`, for then the newcomer has lost.
unsigned w_tinylfu_policy::victims_frequency(std::uint64_t charge, unsigned enough) const noexcept {
    const auto room = capacity_ - window_bytes();
    const auto wanted = main_bytes() + charge;
    unsigned sum = 0;
    unsigned looked_at = 0;
    std::uint64_t freed = 0;
    for (auto* victim = main_victim();
         victim != nullptr && wanted > room + freed && sum < enough && looked_at < most_victims;
         ++looked_at) {
        sum += sketch_.estimate(victim->key);
        freed += victim->charge;
        const bool last_on_probation = victim->queue == in_probation &&
                                       victim->next_to.newer == nullptr;
        victim = last_on_probation ? protected_.oldest() : victim->next_to.newer;
    }
    return sum;
}

// Whether main lets its victims go for the candidate. One that is larger than main has nothing to
// win.
bool w_tinylfu_policy::wins(const filter::key_hash& candidate, std::uint64_t charge) noexcept {
    auto* const victim = main_victim();
    const auto frequency = sketch_.estimate(candidate);
    if (victim != nullptr && charge <= capacity_ - window_bytes() &&
        frequency > victims_frequency(charge, frequency)) {
        return true;
    }
    if (victim != nullptr) {
        // It has proved itself: the next candidate meets another. Without this, one large frequent
        // object at the end keeps every stranger out, good ones too.
        queue_of(*victim).make_newest(*victim);
    }
    return false;
}

// What the window has no more room for goes to main, as long as that has some.
void w_tinylfu_policy::fill_main() noexcept {
    const auto room = capacity_ - window_bytes();
    for (auto* next = window_.oldest();
         next != nullptr && window_is_over() && main_bytes() + next->charge <= room;
         next = window_.oldest()) {
        window_.remove(*next);
        next->queue = in_probation;
        probation_.push(*next);
    }
}

bool w_tinylfu_policy::takes(const filter::key_hash& newcomer, std::uint64_t charge) noexcept {
    fill_main();
    return charge <= window_bytes() || main_bytes() + charge <= capacity_ - window_bytes() ||
           wins(newcomer, charge);
}

evictable* w_tinylfu_policy::evict() noexcept {
    fill_main();
    auto* const candidate = window_.oldest();
    auto* leaves = main_victim();
    const bool is_contest = candidate != nullptr && (leaves == nullptr || window_is_over());
    if (is_contest && !wins(candidate->key, candidate->charge)) {
        leaves = candidate;
    }
    if (leaves != nullptr) {
        take_out(*leaves);
    }
    return leaves;
}

double w_tinylfu_policy::preference(const filter::key_hash& newcomer,
                                    std::uint64_t charge) const noexcept {
    const auto room = capacity_ - window_bytes();
    if (main_bytes() + charge <= room) {
        return 2;
    }
    constexpr auto all = most_victims * frequency_sketch::most;
    return (1.0 + sketch_.estimate(newcomer)) / (1.0 + victims_frequency(charge, all));
}

void w_tinylfu_policy::climb() noexcept {
    ++requests_;
    if (moves_ == window::fixed || requests_ < requests_a_key * sketch_.keys()) {
        return;
    }
    const auto ratio = static_cast<double>(hits_) / static_cast<double>(requests_);
    const auto change = ratio - last_ratio_;
    const auto step = change >= 0 ? step_ : -step_;
    window_share_ = std::clamp(window_share_ + step, first_window_share, most_window_share);
    step_ = std::abs(change) >= jump ? std::copysign(first_step, step) : step_decay * step;
    last_ratio_ = ratio;
    requests_ = 0;
    hits_ = 0;
}

}  // namespace reprise::proxy::cache
