#include "proxy/peer/sibling_table.hpp"

#include "filter/squid_key.hpp"

#include <algorithm>
#include <utility>

// find() takes a mask of who names the URL, keeps the members that may be asked, sorts them by
// cost, and leaves out those that are not worth asking now. How often a sibling was offered is
// counted in the reader and told in batches.

namespace reprise::proxy::peer {
namespace {

constexpr auto in_block = filter::sibling_index::capacity;
constexpr double origin_weight = 1.0 / 64;

filter::bloom_size size_of(const filter::digest& digest) noexcept {
    return {digest.shape().bits, digest.shape().probes};
}

}  // namespace

std::optional<unsigned> sibling_table::enrol(std::string_view name) {
    const std::scoped_lock lock{guard_};
    std::optional<unsigned> free;
    for (unsigned slot = 0; slot < most_slots; ++slot) {
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
    set_member(slot, false);
    const std::scoped_lock lock{guard_};
    names_[slot].clear();
}

std::string sibling_table::name_of(unsigned slot) const {
    const std::scoped_lock lock{guard_};
    return names_[slot];
}

bool sibling_table::put(unsigned slot, const filter::digest& digest) {
    auto& index = indexes_[slot / in_block];
    const auto others = squid_bytes(slot) + index_bytes(slot / in_block);
    const auto then = index.bytes_with(slot % in_block, size_of(digest));
    if (others > most_ || then > most_ - others) {
        return false;
    }
    index.put(slot % in_block, size_of(digest), digest.words());
    set_member(slot, true);
    return true;
}

bool sibling_table::flip(unsigned slot,
                         const filter::digest& digest,
                         std::span<const std::uint64_t> places) {
    return indexes_[slot / in_block].flip(slot % in_block, size_of(digest), places) ||
           put(slot, digest);
}

bool sibling_table::put(unsigned slot, std::shared_ptr<const filter::squid_digest> digest) {
    if (index_bytes(slot_blocks) + squid_bytes(slot) + digest->bytes() > most_) {
        return false;
    }
    change_squids(slot, std::move(digest));
    set_member(slot, true);
    return true;
}

void sibling_table::remove(unsigned slot) {
    set_member(slot, false);
    // Without memory where there is nothing to remove, as of most that leave there is not in one of them.
    auto& index = indexes_[slot / in_block];
    if ((index.siblings() >> slot % in_block & 1) != 0) {
        index.remove(slot % in_block);
    }
    change_squids(slot, nullptr);
}

void sibling_table::change_squids(unsigned slot,
                                  std::shared_ptr<const filter::squid_digest> digest) {
    const auto is_others = [slot](const squid_member& one) { return one.slot != slot; };
    const std::scoped_lock lock{guard_};
    if (!digest && (!squids_ || std::all_of(squids_->begin(), squids_->end(), is_others))) {
        return;  // it was none
    }
    auto next = std::make_shared<std::vector<squid_member>>();
    if (squids_) {
        std::copy_if(squids_->begin(), squids_->end(), std::back_inserter(*next), is_others);
    }
    if (digest) {
        next->push_back({slot, std::move(digest)});
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

// The bytes of all blocks but one.
std::uint64_t sibling_table::index_bytes(unsigned but) const {
    std::uint64_t total = 0;
    for (unsigned block = 0; block < slot_blocks; ++block) {
        total += block == but ? 0 : indexes_[block].bytes();
    }
    return total;
}

std::uint64_t sibling_table::bytes() const {
    return index_bytes(slot_blocks) + squid_bytes(most_slots);
}

slot_set sibling_table::members() const noexcept {
    slot_set out;
    for (unsigned block = 0; block < slot_blocks; ++block) {
        out.blocks[block] = members_[block].load(std::memory_order_relaxed);
    }
    return out;
}

void sibling_table::set_member(unsigned slot, bool is) noexcept {
    const auto bit = filter::sibling_mask{1} << (slot % in_block);
    auto& block = members_[slot / in_block];
    if (is) {
        block.fetch_or(bit, std::memory_order_relaxed);
    } else {
        block.fetch_and(~bit, std::memory_order_relaxed);
    }
}

sibling_table::reader::reader(sibling_table& table) : table_{table} {
    for (unsigned block = 0; block < slot_blocks; ++block) {
        reprises_[block].emplace(table.indexes_[block]);
    }
}

void sibling_table::reader::rest() noexcept {
    for (auto& one : reprises_) {
        one->rest();
    }
}

void sibling_table::reader::tell() noexcept {
    if (untold_ != 0) {
        offered_to_.for_each([this](unsigned slot) { table_.benefits_[slot].offered(untold_); });
        untold_ = 0;
    }
}

slot_set sibling_table::reader::named(std::string_view url, const filter::key_hash& key) {
    slot_set named;
    const auto members = table_.members();
    if (members.empty()) {
        return named;
    }
    for (unsigned block = 0; block < slot_blocks; ++block) {
        if (members.blocks[block] != 0) {
            named.blocks[block] = reprises_[block]->may_hold(key);
        }
    }
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
                named.add(one.slot);
            }
        }
    }
    return named & members;
}

candidates sibling_table::reader::find(std::string_view url,
                                       const filter::key_hash& key,
                                       steady_time now,
                                       const slot_set& among) {
    candidates out;
    const auto named = this->named(url, key);
    std::array<double, most_slots> costs;
    const auto whom = table_.members() & among;
    if (untold_ == most_untold || whom != offered_to_) {
        tell();
        offered_to_ = whom;
    }
    ++untold_;
    (named & whom).for_each([&](unsigned slot) {
        auto& its = table_.benefits_[slot];
        its.named();
        costs[slot] = its.cost(now);
        out.slots[out.count++] = static_cast<std::uint8_t>(slot);
    });
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
