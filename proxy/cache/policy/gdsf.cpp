#include "proxy/cache/policy/gdsf.hpp"

#include <algorithm>
#include <limits>

namespace reprise::proxy::cache {

namespace {

constexpr std::size_t children = 4;

}  // namespace

gdsf_policy::gdsf_policy(value counted) : counted_{counted} {}

void gdsf_policy::set_capacity(std::uint64_t) {}

double gdsf_policy::worth_of(const evictable& entry) const noexcept {
    const auto requests = 1.0 + entry.uses;
    switch (counted_) {
    case value::of_a_byte:
        return inflation_ +
               requests / static_cast<double>(std::max<std::uint64_t>(1, entry.charge));
    case value::of_an_object: return inflation_ + requests;
    }
    return inflation_;
}

void gdsf_policy::put(std::size_t place, evictable& entry) noexcept {
    heap_[place] = &entry;
    entry.place = static_cast<std::uint32_t>(place);
}

void gdsf_policy::rise(std::size_t place, evictable& entry) noexcept {
    while (place != 0) {
        const auto parent = (place - 1) / children;
        if (!(entry.worth < heap_[parent]->worth)) {
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
            if (heap_[child]->worth < heap_[least]->worth) {
                least = child;
            }
        }
        if (!(heap_[least]->worth < entry.worth)) {
            break;
        }
        put(place, *heap_[least]);
        place = least;
    }
    put(place, entry);
}

void gdsf_policy::inserted(evictable& entry) {
    entry.uses = 0;
    entry.worth = worth_of(entry);
    heap_.push_back(&entry);
    rise(heap_.size() - 1, entry);
}

void gdsf_policy::used(evictable& entry) noexcept {
    if (entry.uses < std::numeric_limits<std::uint8_t>::max()) {
        ++entry.uses;
    }
    entry.worth = worth_of(entry);  // never less than it was: inflation only rises
    sink(entry.place, entry);
}

void gdsf_policy::removed(evictable& entry) noexcept {
    take_out(entry.place);
}

void gdsf_policy::take_out(std::size_t place) noexcept {
    auto& last = *heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) {
        return;
    }
    if (place != 0 && last.worth < heap_[(place - 1) / children]->worth) {
        rise(place, last);
    } else {
        sink(place, last);
    }
}

evictable* gdsf_policy::evict() noexcept {
    if (heap_.empty()) {
        return nullptr;
    }
    auto* const victim = heap_.front();
    inflation_ = victim->worth;
    take_out(0);
    return victim;
}

std::uint64_t gdsf_policy::overhead() const noexcept {
    return heap_.capacity() * sizeof(heap_[0]);
}

}  // namespace reprise::proxy::cache
