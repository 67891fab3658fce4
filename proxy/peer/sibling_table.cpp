#include "proxy/peer/sibling_table.hpp"

#include "filter/squid_key.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace reprise::proxy::peer {
namespace {

constexpr auto capacity = filter::sibling_index::capacity;
constexpr double origin_weight = 1.0 / 64;

filter::bloom_size size_of(const filter::digest& digest) noexcept {
    return {digest.shape().bits, digest.shape().probes};
}

filter::sibling_mask bit_of(unsigned slot) noexcept {
    return filter::sibling_mask{1} << slot;
}

}  // namespace

std::optional<unsigned> sibling_table::enrol(std::string_view name) {
    const std::scoped_lock lock{guard_};
    std::optional<unsigned> free;
    for (unsigned slot = 0; slot < capacity; ++slot) {
        if (names_[slot] == name) {
            return slot;
        }
        if (names_[slot].empty() && !free) {
            free = slot;
        }
    }
    if (free) {
        names_[*free] = name;
        benefits_[*free].forget();
    }
    return free;
}

void sibling_table::dismiss(unsigned slot) {
    members_.fetch_and(~bit_of(slot), std::memory_order_relaxed);
    const std::scoped_lock lock{guard_};
    names_[slot].clear();
}

std::string sibling_table::name_of(unsigned slot) const {
    const std::scoped_lock lock{guard_};
    return names_[slot];
}

bool sibling_table::put(unsigned slot, const filter::digest& digest) {
    const auto others = squid_bytes(slot);
    if (others > most_ || index_.bytes_with(slot, size_of(digest)) > most_ - others) {
        return false;
    }
    index_.put(slot, size_of(digest), digest.words());
    members_.fetch_or(bit_of(slot), std::memory_order_relaxed);
    return true;
}

bool sibling_table::flip(unsigned slot,
                         const filter::digest& digest,
                         std::span<const std::uint64_t> places) {
    return index_.flip(slot, size_of(digest), places) || put(slot, digest);
}

bool sibling_table::put(unsigned slot, std::shared_ptr<const filter::squid_digest> digest) {
    if (index_.bytes() + squid_bytes(slot) + digest->bytes() > most_) {
        return false;
    }
    change_squids(slot, std::move(digest));
    members_.fetch_or(bit_of(slot), std::memory_order_relaxed);
    return true;
}

void sibling_table::remove(unsigned slot) {
    members_.fetch_and(~bit_of(slot), std::memory_order_relaxed);
    index_.remove(slot);
    change_squids(slot, nullptr);
}

void sibling_table::change_squids(unsigned slot,
                                  std::shared_ptr<const filter::squid_digest> digest) {
    const std::scoped_lock lock{guard_};
    auto next = std::make_shared<std::vector<squid_member>>();
    if (squids_) {
        std::copy_if(squids_->begin(),
                     squids_->end(),
                     std::back_inserter(*next),
                     [slot](const squid_member& one) { return one.slot != slot; });
    }
    if (digest) {
        next->push_back({slot, std::move(digest)});
    } else if (!squids_ || next->size() == squids_->size()) {
        return;  // it was none
    }
    squids_ = std::move(next);
    squid_version_.fetch_add(1, std::memory_order_release);
}

void sibling_table::note_origin(std::chrono::microseconds took) noexcept {
    const auto before = origin_us_.load(std::memory_order_relaxed);
    const auto us = static_cast<double>(took.count());
    const auto next = before == 0 ? us : before + origin_weight * (us - before);
    origin_us_.store(next, std::memory_order_relaxed);
}

void sibling_table::set_hit_worth(std::chrono::microseconds beside) noexcept {
    hit_worth_us_.store(beside.count(), std::memory_order_relaxed);
}

hit_value sibling_table::hit_gives() const noexcept {
    using std::chrono::microseconds;
    return {
        .time = microseconds{static_cast<std::int64_t>(origin_us_.load(std::memory_order_relaxed))},
        .beside = microseconds{hit_worth_us_.load(std::memory_order_relaxed)}};
}

std::uint64_t sibling_table::squid_bytes(unsigned but) const {
    const std::scoped_lock lock{guard_};
    std::uint64_t total = 0;
    if (squids_) {
        for (const auto& one : *squids_) {
            total += one.slot == but ? 0 : one.digest->bytes();
        }
    }
    return total;
}

std::uint64_t sibling_table::bytes() const {
    return index_.bytes() + squid_bytes(capacity);
}

sibling_table::reader::reader(sibling_table& table) : table_{table}, reprises_{table.index_} {}

filter::sibling_mask sibling_table::reader::named(std::string_view url,
                                                  const filter::key_hash& key) {
    const auto members = table_.members_.load(std::memory_order_relaxed);
    if (members == 0) {
        return 0;
    }
    auto named = reprises_.may_hold(key);
    const auto version = table_.squid_version_.load(std::memory_order_acquire);
    if (version != squid_version_) {
        const std::scoped_lock lock{table_.guard_};
        squids_ = table_.squids_;
        squid_version_ = table_.squid_version_.load(std::memory_order_relaxed);
    }
    if (squids_ && !squids_->empty()) {
        const auto squid_key = filter::squid_key_of(url);
        for (const auto& one : *squids_) {
            if (one.digest->may_contain(squid_key)) {
                named |= bit_of(one.slot);
            }
        }
    }
    return named & members;
}

candidates sibling_table::reader::find(std::string_view url,
                                       const filter::key_hash& key,
                                       steady_time now,
                                       filter::sibling_mask among) {
    candidates out;
    const auto named = this->named(url, key);
    std::array<double, capacity> costs;
    for (auto left = table_.members_.load(std::memory_order_relaxed) & among; left != 0;
         left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        const bool says_yes = (named & bit_of(slot)) != 0;
        auto& its = table_.benefits_[slot];
        its.offered(says_yes);
        if (says_yes) {
            costs[slot] = its.cost();
            out.slots[out.count++] = static_cast<std::uint8_t>(slot);
        }
    }
    std::sort(out.slots.begin(),
              out.slots.begin() + static_cast<std::ptrdiff_t>(out.count),
              [&costs](std::uint8_t a, std::uint8_t b) {
                  return costs[a] != costs[b] ? costs[a] < costs[b] : a < b;
              });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out.count; ++i) {
        const auto slot = out.slots[i];
        if (table_.benefits_[slot].may_ask(now, kept > 0)) {
            out.slots[kept++] = slot;
        }
    }
    out.count = kept;
    return out;
}

}  // namespace reprise::proxy::peer
