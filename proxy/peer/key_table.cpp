#include "proxy/peer/key_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace reprise::proxy::peer {
namespace {

constexpr unsigned tag_bits = 40;
constexpr unsigned time_bits = 21;
constexpr std::uint32_t periods = (1u << time_bits) - 1;  // times are 1 to this, 0 is none
constexpr std::uint32_t listed_bit = 1u << 31;
constexpr std::size_t first_slots = 8;

std::uint32_t units_at(wall_time when) noexcept {
    const auto units = std::chrono::floor<std::chrono::seconds>(when).time_since_epoch() /
                       key_table::unit;
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(units) % periods);
}

// Units from now to a packed time; negative: it lies behind.
std::int64_t distance(std::uint32_t packed, wall_time now) noexcept {
    const auto ahead = (packed - 1 + periods - units_at(now)) % periods;
    return ahead <= periods / 2 ? std::int64_t{ahead} : std::int64_t{ahead} - periods;
}

}  // namespace

key_table::key_table(bool with_squid) : with_squid_{with_squid} {}

std::uint32_t key_table::pack_time(wall_time when, wall_time now) noexcept {
    const auto clamped = std::min(when, now + most_ahead);
    // Rounded down, it may be the unit that has begun already: worth nothing.
    if (clamped <= now || units_at(clamped) == units_at(now)) {
        return 0;
    }
    return units_at(clamped) + 1;
}

bool key_table::is_ahead(std::uint32_t packed, wall_time now) noexcept {
    return packed != 0 && distance(packed, now) > 0;
}

std::uint64_t key_table::tag_of(const filter::key_hash& key) noexcept {
    return key.high >> (64 - tag_bits);
}

std::uint64_t key_table::pack(std::uint64_t tag, const key_facts& facts) noexcept {
    return tag << 24 | std::uint64_t{facts.until[0]} << 3 | std::uint64_t{facts.holders};
}

std::uint32_t key_table::pack_disk(const key_facts& facts) noexcept {
    return facts.until[1] | (facts.listed ? listed_bit : 0);
}

key_facts key_table::unpack(const shard& in, std::size_t at) const noexcept {
    const auto& from = in.slots[at];
    return {.name = from.name,
            .holders = static_cast<std::uint8_t>(from.word & 7),
            .listed = (in.disk_until[at] & listed_bit) != 0,
            .until = {static_cast<std::uint32_t>(from.word >> 3 & periods),
                      in.disk_until[at] & periods},
            .squid = with_squid_ ? in.squid[at] : filter::squid_key{}};
}

// The order of homes is the order of tags, so that a table grows in one pass.
std::size_t key_table::home(std::uint64_t tag, std::size_t slots) noexcept {
    return static_cast<std::size_t>((tag * slots) >> tag_bits);
}

// Where the tag is, or the free slot where it would be. @pre not all slots are taken
std::size_t key_table::place_of(const shard& in, std::uint64_t tag) const noexcept {
    auto at = home(tag, in.slots.size());
    while (in.slots[at].word != 0 && in.slots[at].word >> 24 != tag) {
        at = at + 1 == in.slots.size() ? 0 : at + 1;
    }
    return at;
}

bool key_table::find(const filter::key_hash& key, key_facts& out) const noexcept {
    const auto& in = shards_[shard_of(key)];
    if (in.slots.empty()) {
        return false;
    }
    const auto at = place_of(in, tag_of(key));
    if (in.slots[at].word == 0) {
        return false;
    }
    out = unpack(in, at);
    return true;
}

void key_table::insert(shard& into, const shard& from, std::size_t source) const noexcept {
    const auto at = place_of(into, from.slots[source].word >> 24);
    into.slots[at] = from.slots[source];
    into.disk_until[at] = from.disk_until[source];
    if (with_squid_) {
        into.squid[at] = from.squid[source];
    }
}

void key_table::prefetch(const filter::key_hash& key) const noexcept {
    const auto& in = shards_[shard_of(key)];
    if (!in.slots.empty()) {
        const auto at = home(tag_of(key), in.slots.size());
        __builtin_prefetch(&in.slots[at], 1);
        __builtin_prefetch(&in.disk_until[at], 1);
    }
}

void key_table::grow(shard& which) {
    shard larger;
    larger.slots.resize(std::max(first_slots, which.slots.size() + which.slots.size() / 4));
    larger.disk_until.resize(larger.slots.size());
    larger.squid.resize(with_squid_ ? larger.slots.size() : 0);
    larger.used = which.used;
    for (std::size_t at = 0; at < which.slots.size(); ++at) {
        if (which.slots[at].word != 0) {
            insert(larger, which, at);
        }
    }
    which = std::move(larger);
}

void key_table::put(const filter::key_hash& key, const key_facts& facts) {
    assert(facts.holders != 0);
    auto& into = shards_[shard_of(key)];
    const auto tag = tag_of(key);
    const bool known = !into.slots.empty() && into.slots[place_of(into, tag)].word != 0;
    if (!known) {
        if (into.slots.empty() || (into.used + 1) * 8 > into.slots.size() * 7) {
            grow(into);
        }
        ++into.used;
        ++keys_;
    }
    const auto at = place_of(into, tag);
    into.slots[at] = {pack(tag, facts), facts.name};
    into.disk_until[at] = pack_disk(facts);
    if (with_squid_) {
        into.squid[at] = facts.squid;
    }
}

// Those behind move up as far as their homes allow, so that no search ends too early.
void key_table::erase_at(shard& from, std::size_t at) noexcept {
    const auto slots = from.slots.size();
    auto next = at;
    for (;;) {
        next = next + 1 == slots ? 0 : next + 1;
        if (from.slots[next].word == 0) {
            break;
        }
        const auto its_home = home(from.slots[next].word >> 24, slots);
        // It may stay where it is if its home lies behind the hole (the table taken as a ring).
        const bool stays = at < next ? (its_home > at && its_home <= next)
                                     : (its_home > at || its_home <= next);
        if (!stays) {
            from.slots[at] = from.slots[next];
            from.disk_until[at] = from.disk_until[next];
            if (with_squid_) {
                from.squid[at] = from.squid[next];
            }
            at = next;
        }
    }
    from.slots[at] = {};
    --from.used;
    --keys_;
}

void key_table::erase(const filter::key_hash& key) noexcept {
    auto& from = shards_[shard_of(key)];
    if (from.slots.empty()) {
        return;
    }
    const auto at = place_of(from, tag_of(key));
    if (from.slots[at].word != 0) {
        erase_at(from, at);
    }
}

std::uint64_t key_table::bytes() const noexcept {
    std::uint64_t total = 0;
    for (const auto& one : shards_) {
        total += one.slots.capacity() * sizeof(slot) +
                 one.disk_until.capacity() * sizeof(std::uint32_t) +
                 one.squid.capacity() * sizeof(filter::squid_key);
    }
    return total;
}

}  // namespace reprise::proxy::peer
