#include "proxy/cache/disk/index.hpp"

#include "proxy/cache/body.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <utility>

// A record's home grows with its tag, and a cluster is in the order of homes. So look() ends at the
// first record that is nearer to its home than the one looked for would be, remove() moves back
// what follows and leaves no gap, and resize() needs the tags alone.

namespace reprise::proxy::cache::disk {

namespace {

/// Two words, from the highest bit down:
///     tag 48 | expiry 16
///     kind 3 | uses 3 | bytes/16 18 | offset/16 24 | segment 16
/// No kind is 0, so an empty slot is one whose second word is 0.
struct slot {
    std::uint64_t tag_expiry = 0;
    std::uint64_t rest = 0;

    [[nodiscard]] bool is_empty() const noexcept { return rest == 0; }
    [[nodiscard]] std::uint64_t tag() const noexcept { return tag_expiry >> 16; }
};
static_assert(sizeof(slot) == 16);

constexpr unsigned offset_at = 16, bytes_at = 40, uses_at = 58, kind_at = 61;
constexpr std::uint64_t offset_mask = (1u << 24) - 1, bytes_mask = (1u << 18) - 1, uses_mask = 7;
constexpr std::uint64_t place_mask = (std::uint64_t{1} << bytes_at) - 1;

std::uint64_t packed(const record_place& place) noexcept {
    return place.segment | ((place.offset / alignment) & offset_mask) << offset_at;
}

slot packed(std::uint64_t tag, const index_entry& entry) noexcept {
    const std::uint64_t uses = std::min<unsigned>(entry.uses, record_index::most_uses);
    return {tag << 16 | entry.expiry,
            packed(entry.place) | ((entry.bytes / alignment) & bytes_mask) << bytes_at |
                uses << uses_at | std::uint64_t{static_cast<std::uint8_t>(entry.kind)} << kind_at};
}

unsigned uses_of(const slot& one) noexcept {
    return static_cast<unsigned>((one.rest >> uses_at) & uses_mask);
}

index_entry unpacked(const slot& one) noexcept {
    return {.place = {.segment = static_cast<std::uint16_t>(one.rest),
                      .offset = ((one.rest >> offset_at) & offset_mask) * alignment},
            .bytes = ((one.rest >> bytes_at) & bytes_mask) * alignment,
            .kind = static_cast<record_kind>(one.rest >> kind_at),
            .uses = static_cast<std::uint8_t>(uses_of(one)),
            .expiry = static_cast<std::uint16_t>(one.tag_expiry)};
}

std::uint64_t tag_of(const filter::key_hash& key) noexcept {
    return key.high >> (64 - record_index::tag_bits);
}

std::size_t shard_number(const filter::key_hash& key) noexcept {
    return key.low & (record_index::shards - 1);
}

// Loads between which a shard keeps its size. A step is a factor of 1.2, so that either leads well
// between the two.
constexpr double most_load = 0.9, least_load = 0.68;
constexpr double smallest_table = 16, step_factor = 1.2;

/// Slots of a shard that has grown so many steps; shards are staggered over one step.
std::uint32_t slots_at(unsigned steps, std::size_t shard) noexcept {
    const double stagger = static_cast<double>(shard) / static_cast<double>(record_index::shards);
    return static_cast<std::uint32_t>(smallest_table * std::pow(step_factor, steps + stagger));
}

}  // namespace

struct alignas(64) record_index::shard {
    mutable std::mutex guard;
    std::uint32_t slots = 0;
    std::uint32_t records = 0;
    std::unique_ptr<slot[]> table;
    std::uint8_t steps = 0;
    std::uint8_t number = 0;

    /// Where a tag would like to be: monotone in the tag.
    [[nodiscard]] std::uint32_t home(std::uint64_t tag) const noexcept {
        return static_cast<std::uint32_t>(((tag >> 16) * slots) >> 32);
    }
    [[nodiscard]] std::uint32_t after(std::uint32_t at) const noexcept {
        return at + 1 == slots ? 0 : at + 1;
    }
    /// How far the record in slot `at` is from its home.
    [[nodiscard]] std::uint32_t distance(std::uint32_t at) const noexcept {
        const auto wanted = home(table[at].tag());
        return at >= wanted ? at - wanted : at + slots - wanted;
    }

    struct place_found {
        std::uint32_t at;
        bool present;
    };
    /// The slot of a tag, or the one it would get. @pre a slot is empty
    [[nodiscard]] place_found look(std::uint64_t tag) const noexcept {
        auto at = home(tag);
        for (std::uint32_t away = 0;; ++away, at = after(at)) {
            if (table[at].is_empty()) {
                return {at, false};
            }
            if (table[at].tag() == tag) {
                return {at, true};
            }
            if (distance(at) < away) {
                return {at, false};
            }
        }
    }

    /// @pre a slot is empty, `at` is where look() says
    void insert(std::uint32_t at, slot added) noexcept {
        while (!table[at].is_empty()) {
            std::swap(table[at], added);
            at = after(at);
        }
        table[at] = added;
        ++records;
    }

    void remove(std::uint32_t at) noexcept {
        for (auto next = after(at); !table[next].is_empty() && distance(next) != 0;
             at = next, next = after(next)) {
            table[at] = table[next];
        }
        table[at] = {};
        --records;
    }

    [[nodiscard]] bool is_full_with(std::uint32_t count) const noexcept {
        return count > most_load * slots;
    }

    /// @throws std::bad_alloc, nothing changed
    void resize(std::uint8_t to_steps) {
        const auto larger = slots_at(to_steps, number);
        auto old = std::make_unique<slot[]>(larger);
        old.swap(table);
        const auto old_slots = std::exchange(slots, larger);
        steps = to_steps;
        records = 0;
        for (std::uint32_t i = 0; i < old_slots; ++i) {
            if (!old[i].is_empty()) {
                insert(look(old[i].tag()).at, old[i]);
            }
        }
    }

    /// Room for one more. @throws std::bad_alloc, nothing changed
    void make_room() {
        if (is_full_with(records + 1)) {
            resize(static_cast<std::uint8_t>(steps + 1));
        }
    }

    void give_back() noexcept {
        if (steps == 0 || records >= least_load * slots) {
            return;
        }
        try {
            resize(static_cast<std::uint8_t>(steps - 1));
        } catch (const std::bad_alloc&) {
            // It stays large until the next one goes.
        }
    }
};

record_index::record_index() : shards_{std::make_unique<shard[]>(shards)} {
    for (std::size_t i = 0; i < shards; ++i) {
        shards_[i].number = static_cast<std::uint8_t>(i);
        shards_[i].slots = slots_at(0, i);
        shards_[i].table = std::make_unique<slot[]>(shards_[i].slots);
    }
}

record_index::~record_index() = default;

record_index::shard& record_index::shard_of(const filter::key_hash& key) const noexcept {
    return shards_[shard_number(key)];
}

filter::key_hash record_index::partial(const filter::key_hash& key) noexcept {
    return {.low = shard_number(key), .high = tag_of(key) << (64 - tag_bits)};
}

std::optional<index_entry> record_index::find(const filter::key_hash& key) const noexcept {
    const auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    return present ? std::optional{unpacked(in.table[at])} : std::nullopt;
}

std::optional<index_entry> record_index::put(const filter::key_hash& key,
                                             const index_entry& entry) {
    auto& in = shard_of(key);
    const auto tag = tag_of(key);
    const std::scoped_lock lock{in.guard};
    if (const auto [at, present] = in.look(tag); present) {
        return unpacked(std::exchange(in.table[at], packed(tag, entry)));
    }
    in.make_room();
    in.insert(in.look(tag).at, packed(tag, entry));
    return std::nullopt;
}

bool record_index::put_if_absent(const filter::key_hash& key, const index_entry& entry) {
    auto& in = shard_of(key);
    const auto tag = tag_of(key);
    const std::scoped_lock lock{in.guard};
    if (in.look(tag).present) {
        return false;
    }
    in.make_room();
    in.insert(in.look(tag).at, packed(tag, entry));
    return true;
}

bool record_index::replace(const filter::key_hash& key,
                           const record_place& expected,
                           const index_entry& entry) noexcept {
    auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    if (!present || (in.table[at].rest & place_mask) != packed(expected)) {
        return false;
    }
    in.table[at] = packed(tag_of(key), entry);
    return true;
}

std::optional<index_entry> record_index::erase(const filter::key_hash& key) noexcept {
    auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    if (!present) {
        return std::nullopt;
    }
    const auto gone = unpacked(in.table[at]);
    in.remove(at);
    in.give_back();
    return gone;
}

bool record_index::erase(const filter::key_hash& key, const record_place& place) noexcept {
    auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    if (!present || (in.table[at].rest & place_mask) != packed(place)) {
        return false;
    }
    in.remove(at);
    in.give_back();
    return true;
}

unsigned record_index::count_use(const filter::key_hash& key, const record_place& place) noexcept {
    auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    if (!present || (in.table[at].rest & place_mask) != packed(place)) {
        return 0;
    }
    auto& found = in.table[at];
    const auto before = uses_of(found);
    if (before < most_uses) {
        found.rest += std::uint64_t{1} << uses_at;
    }
    return before;
}

bool record_index::set_expiry(const filter::key_hash& key,
                              const record_place& place,
                              std::uint16_t expiry) noexcept {
    auto& in = shard_of(key);
    const std::scoped_lock lock{in.guard};
    const auto [at, present] = in.look(tag_of(key));
    if (!present || (in.table[at].rest & place_mask) != packed(place)) {
        return false;
    }
    in.table[at].tag_expiry = in.table[at].tag() << 16 | expiry;
    return true;
}

void record_index::for_each(std::size_t number,
                            const std::function<void(const filter::key_hash& partial,
                                                     const index_entry& entry)>& see) const {
    const auto& in = shards_[number];
    const std::scoped_lock lock{in.guard};
    for (std::uint32_t i = 0; i < in.slots; ++i) {
        if (!in.table[i].is_empty()) {
            see({.low = number, .high = in.table[i].tag() << (64 - tag_bits)},
                unpacked(in.table[i]));
        }
    }
}

std::uint64_t record_index::records() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < shards; ++i) {
        const std::scoped_lock lock{shards_[i].guard};
        sum += shards_[i].records;
    }
    return sum;
}

std::uint64_t record_index::bytes() const noexcept {
    std::uint64_t sum = sizeof(*this) + heap_cost(shards * sizeof(shard));
    for (std::size_t i = 0; i < shards; ++i) {
        const std::scoped_lock lock{shards_[i].guard};
        sum += heap_cost(shards_[i].slots * sizeof(slot));
    }
    return sum;
}

}  // namespace reprise::proxy::cache::disk
