#include "proxy/cache/policy/gdsf.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise::proxy::cache {

namespace {

constexpr std::size_t children = 4;
constexpr double sizes_remembered = 256;

}  // namespace

gdsf_policy::gdsf_policy(double exponent, const frequency_sketch* frequencies, bool by_wait)
    : exponent_{exponent},
      frequencies_{frequencies},
      by_wait_{by_wait} {}

void gdsf_policy::set_capacity(std::uint64_t) {}

double gdsf_policy::worth_of(const evictable& entry) const noexcept {
    const double here = 1.0 + entry.uses;
    const double lately = frequencies_ != nullptr ? frequencies_->estimate(entry.key) : here;
    // Where a request for one is worth that for a hundred others, more than the sketch counts to
    // makes a difference.
    const auto requests = by_wait_ ? std::max(lately, here) : lately;
    const auto bytes = static_cast<double>(std::max<std::uint64_t>(1, entry.charge));
    // pow is dear, and the ends are what most will choose.
    const auto room = exponent_ == 1 ? bytes : exponent_ == 0 ? 1.0 : std::pow(bytes, exponent_);
    const auto spared = by_wait_ ? requests * waits_.seconds_of(entry.wait()) : requests;
    return inflation_ + scale_ * spared / room;
}

void gdsf_policy::put(std::size_t place, evictable& entry) noexcept {
    heap_[place] = &entry;
    entry.by.place = static_cast<std::uint32_t>(place);
}

void gdsf_policy::rise(std::size_t place, evictable& entry) noexcept {
    while (place != 0) {
        const auto parent = (place - 1) / children;
        if (!(entry.by.worth < heap_[parent]->by.worth)) {
            break;
        }
        put(place, *heap_[parent]);
        place = parent;
    }
    put(place, entry);
}

void gdsf_policy::sink(std::size_t place, evictable& entry) noexcept {
    for (;;) {
        const auto first = children * place + 1;
        if (first >= heap_.size()) {
            break;
        }
        const auto last = std::min(first + children, heap_.size());
        auto least = first;
        for (auto child = first + 1; child < last; ++child) {
            if (heap_[child]->by.worth < heap_[least]->by.worth) {
                least = child;
            }
        }
        if (!(heap_[least]->by.worth < entry.by.worth)) {
            break;
        }
        put(place, *heap_[least]);
        place = least;
    }
    put(place, entry);
}

// Where an entry belongs that may be anywhere.
void gdsf_policy::settle(std::size_t place, evictable& entry) noexcept {
    if (place != 0 && entry.by.worth < heap_[(place - 1) / children]->by.worth) {
        rise(place, entry);
    } else {
        sink(place, entry);
    }
}

void gdsf_policy::inserted(evictable& entry) {
    entry.uses = 0;
    waits_.note(entry.wait());
    const auto bytes = static_cast<double>(entry.charge);
    mean_bytes_ += mean_bytes_ == 0 ? bytes : (bytes - mean_bytes_) / sizes_remembered;
    entry.by = {worth_of(entry), 0};
    heap_.push_back(&entry);
    rise(heap_.size() - 1, entry);
}

void gdsf_policy::used(evictable& entry) noexcept {
    if (entry.uses < std::numeric_limits<std::uint8_t>::max()) {
        ++entry.uses;
    }
    // Mostly more than it was, for inflation only rises; less when a sketch has aged meanwhile.
    entry.by.worth = worth_of(entry);
    settle(entry.by.place, entry);
}

void gdsf_policy::removed(evictable& entry) noexcept {
    take_out(entry.by.place);
}

void gdsf_policy::take_out(std::size_t place) noexcept {
    auto& last = *heap_[heap_.size() - 1];
    heap_.pop_back();
    if (place == heap_.size()) {
        return;
    }
    settle(place, last);
}

evictable* gdsf_policy::evict() noexcept {
    if (heap_.empty()) {
        return nullptr;
    }
    auto* const victim = heap_[0];
    inflation_ = victim->by.worth;
    take_out(0);
    return victim;
}

void gdsf_policy::set_exponent(double exponent) noexcept {
    scale_ *= std::pow(std::max(1.0, mean_bytes_), exponent - exponent_);
    exponent_ = exponent;
}

std::uint64_t gdsf_policy::overhead() const noexcept {
    return heap_.memory();
}

}  // namespace reprise::proxy::cache
