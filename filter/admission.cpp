// See admission.hpp. How the old generation is cleared without anybody waiting:
//
//   1. A note that finds the young generation spent (full, or old enough) claims slice 0 of the old
//      one; each note after it claims the next. A claim is a compare-exchange on the phase word.
//   2. The claimer clears its slice and counts it done. Notes go on writing to the young one.
//   3. Whoever counts the last slice resets the old one's counters and stores the next epoch,
//      claimed 0: the roles have changed.
//
// A thread put to sleep between its claim and its count delays step 3 by as long as it sleeps, and
// the young generation takes keys beyond its objects meanwhile: 20 ms at 10,000 new keys a second
// are 200 keys. Nobody waits for it, and taking its slice over would let it clear bits of the next
// generation when it wakes. A process that was killed there, of several that share a filter, never
// wakes: once the young generation has taken twice its objects, clearing begins over.
//
// The release in step 3 follows every clearing store (the counts of slices done chain them), and a
// note acquires the phase before it writes: no clearing store can undo an insertion. A note that
// read the phase before the change writes to what is now the old generation; its key then lives
// for one generation instead of two, which is what the contract promises.

#include "filter/admission.hpp"

#include "filter/sizing.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>

namespace reprise::filter {

namespace {

constexpr std::uint64_t blocks_a_slice = 16 * 1024 / block_bytes;
constexpr std::uint64_t figures_sample = 4096;  // blocks

/// @pre at most 15 layers of fewer than 2^32 blocks: the answer fits
std::uint32_t slices_for(std::uint64_t blocks) noexcept {
    return static_cast<std::uint32_t>((blocks + blocks_a_slice - 1) / blocks_a_slice);
}

std::chrono::sys_seconds time_of(std::int64_t seconds) noexcept {
    return std::chrono::sys_seconds{std::chrono::seconds{seconds}};
}

}  // namespace

std::uint64_t admission_blocks(const admission_settings& settings) noexcept {
    // Both generations together err with 1 - (1 - each)^2.
    const double each = -std::expm1(std::log1p(-settings.false_positive_rate) / 2);
    // While the old generation is cleared the young one takes a key per slice, and as many again as
    // threads are between their note and their claim.
    constexpr std::uint64_t most_threads = 64;
    const auto bare = blocks_for(settings.objects, each);
    const auto meanwhile = slices_for(bare * settings.layers) + most_threads;
    return blocks_for(settings.objects + meanwhile, each);
}

admission_filter::phase admission_filter::phase::unpack(std::uint64_t word) noexcept {
    return {.epoch = static_cast<std::uint32_t>(word >> 32),
            .claimed = static_cast<std::uint32_t>(word)};
}

std::uint64_t admission_filter::phase::pack() const noexcept {
    return std::uint64_t{epoch} << 32 | claimed;
}

admission_filter::admission_filter(const admission_settings& settings, std::chrono::sys_seconds now)
    : admission_filter{settings, now, {}} {}

admission_filter::admission_filter(const admission_settings& settings,
                                   std::chrono::sys_seconds now,
                                   std::span<std::byte> memory)
    : admission_filter{settings, memory} {
    for (auto& one : state_->generations) {
        one.since.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }
}

admission_filter::admission_filter(const admission_settings& settings, std::span<std::byte> memory)
    : settings_{settings},
      blocks_{admission_blocks(settings)},
      slices_{slices_for(blocks_ * settings.layers)} {
    assert(settings.objects > 0 && settings.age.count() > 0);
    assert(settings.layers > 0 && settings.layers <= max_layers);
    if (memory.empty()) {
        own_ = allocate_zeroes(static_cast<std::size_t>(memory_for(settings)));
        lay_out(own_.get());
    } else {
        assert(memory.size() >= memory_for(settings));
        lay_out(memory.data());
    }
}

std::uint64_t admission_filter::memory_for(const admission_settings& settings) noexcept {
    return sizeof(state) + 2 * settings.layers * admission_blocks(settings) * block_bytes;
}

void admission_filter::lay_out(std::byte* memory) {
    static_assert(alignof(state) == memory_alignment && sizeof(state) % memory_alignment == 0);
    assert(reinterpret_cast<std::uintptr_t>(memory) % memory_alignment == 0);
    state_ = reinterpret_cast<state*>(memory);  // atomics are as good as begun in zeroes
    memory += sizeof(state);
    for (std::size_t i = 0; i < generations_.size(); ++i) {
        auto& one = generations_[i];
        one.counts = &state_->generations[i];
        one.layers.reserve(settings_.layers);
        for (unsigned layer = 0; layer < settings_.layers; ++layer) {
            one.layers.emplace_back(blocks_, memory);
            memory += blocks_ * block_bytes;
        }
    }
}

admission_filter::roles admission_filter::roles_in(std::uint32_t epoch) noexcept {
    return {.young = generations_[epoch & 1], .old = generations_[(epoch & 1) ^ 1]};
}

const admission_filter::generation& admission_filter::young_now() const noexcept {
    return generations_[phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch & 1];
}

bool admission_filter::add_recent(recent& to) const {
    const auto epoch = phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch;
    const auto add = [&to](const generation& one) {
        const auto keys = one.counts->keys.load(std::memory_order_relaxed);
        to.layers.push_back(&one.layers.front());
        to.keys += keys;
        return keys;
    };
    if (add(generations_[epoch & 1]) >= settings_.objects / 4) {
        return true;
    }
    add(generations_[(epoch & 1) ^ 1]);
    return false;
}

digest admission_filter::recent_digest(digest_stamp stamp, const admission_filter* former) const {
    recent found;
    if (!add_recent(found) && former != nullptr) {
        former->add_recent(found);
    }
    stamp.keys = found.keys;
    return digest::of(found.layers, stamp);
}

std::uint32_t admission_filter::generations() const noexcept {
    return phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch;
}

bool admission_filter::is_spent(const generation& young,
                                std::chrono::sys_seconds now) const noexcept {
    return young.counts->keys.load(std::memory_order_relaxed) >= settings_.objects ||
           now - time_of(young.counts->since.load(std::memory_order_relaxed)) >= settings_.age;
}

void admission_filter::make_room(std::chrono::sys_seconds now) noexcept {
    auto word = state_->phase.load(std::memory_order_acquire);
    const auto found = phase::unpack(word);
    const auto [young, old] = roles_in(found.epoch);
    if (found.claimed == 0 && !is_spent(young, now)) {
        return;
    }
    // Claim one slice. Whoever is quicker makes progress in our place, so this ends; and it ends
    // when the roles change meanwhile, since then there is room.
    auto claim = found;
    do {
        claim = phase::unpack(word);
        if (claim.epoch != found.epoch) {
            return;
        }
        if (claim.claimed >= slices_) {
            begin_over(young, word);
            return;
        }
    } while (!state_->phase.compare_exchange_weak(
        word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire));
    clear_slice(old, claim.claimed);
    if (state_->cleared.fetch_add(1, std::memory_order_acq_rel) + 1 != slices_) {
        return;
    }
    state_->cleared.store(0, std::memory_order_relaxed);
    old.counts->keys.store(0, std::memory_order_relaxed);
    old.counts->since.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    state_->phase.store(phase{.epoch = found.epoch + 1, .claimed = 0}.pack(),
                        std::memory_order_release);
}

// Whoever only slept counts its slice after all, and then one change of roles comes a slice early:
// at worst it clears what 16 KiB of the new generation knew.
void admission_filter::begin_over(const generation& young, std::uint64_t word) noexcept {
    if (young.counts->keys.load(std::memory_order_relaxed) < 2 * settings_.objects + slices_) {
        return;
    }
    const auto over = phase{.epoch = phase::unpack(word).epoch, .claimed = 0}.pack();
    state_->cleared.store(0, std::memory_order_relaxed);
    state_->phase.compare_exchange_strong(
        word, over, std::memory_order_acq_rel, std::memory_order_relaxed);
}

void admission_filter::clear_slice(generation& old, std::uint32_t slice) const noexcept {
    // Slices are cut from all layers laid end to end, so that small layers share one.
    auto first = slice * blocks_a_slice;
    const auto last = std::min(first + blocks_a_slice, blocks_ * settings_.layers);
    while (first < last) {
        const auto begin = first % blocks_;
        const auto count = std::min(last - first, blocks_ - begin);
        old.layers[first / blocks_].clear(begin, begin + count);
        first += count;
    }
}

unsigned admission_filter::note(key_hash key, std::chrono::sys_seconds now) noexcept {
    make_room(now);
    const auto [young,
                old] = roles_in(phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch);
    // Walk up to the first layer that did not hold the key, writing all on the way to the young
    // generation: what the old one knew of the key is carried over whole.
    unsigned before = 0;
    for (; before < settings_.layers; ++before) {
        const bool in_young = young.layers[before].insert_and_test(key);
        if (before == 0 && !in_young) {
            young.counts->keys.fetch_add(1, std::memory_order_relaxed);
        }
        if (!in_young && !old.layers[before].may_contain(key)) {
            break;
        }
    }
    (before == 0 ? state_->first_sights : state_->repeats).fetch_add(1, std::memory_order_relaxed);
    return before;
}

unsigned admission_filter::peek(key_hash key) const noexcept {
    const auto epoch = phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch;
    const auto& young = generations_[epoch & 1];
    const auto& old = generations_[(epoch & 1) ^ 1];
    unsigned before = 0;
    while (before < settings_.layers &&
           (young.layers[before].may_contain(key) || old.layers[before].may_contain(key))) {
        ++before;
    }
    return before;
}

void admission_filter::prefetch(key_hash key) const noexcept {
    generations_[0].layers.front().prefetch(key);
    generations_[1].layers.front().prefetch(key);
}

void admission_filter::refresh(key_hash key, std::chrono::sys_seconds now) noexcept {
    // A key in the highest layer is in those below it too: note and refresh write upwards.
    if (young_now().layers.back().may_contain(key)) {
        return;
    }
    make_room(now);
    const auto [young,
                old] = roles_in(phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch);
    for (unsigned layer = 0; layer < settings_.layers; ++layer) {
        if (!young.layers[layer].insert_and_test(key) && layer == 0) {
            young.counts->keys.fetch_add(1, std::memory_order_relaxed);
        }
    }
    state_->refreshes.fetch_add(1, std::memory_order_relaxed);
}

admission_figures admission_filter::figures(std::chrono::sys_seconds now) const noexcept {
    const auto describe = [](const generation& one) {
        const auto measured = one.layers.front().measure(figures_sample);
        return admission_figures::generation{
            .since = time_of(one.counts->since.load(std::memory_order_relaxed)),
            .keys = one.counts->keys.load(std::memory_order_relaxed),
            .estimated_keys = measured.keys,
            .fill = measured.fill,
            .false_positive_rate = measured.false_positive_rate};
    };
    const auto epoch = phase::unpack(state_->phase.load(std::memory_order_acquire)).epoch;
    admission_figures made;
    made.young = describe(generations_[epoch & 1]);
    made.old = describe(generations_[(epoch & 1) ^ 1]);
    // Beyond its objects it goes on taking keys while the old one is cleared.
    made.young_used = std::min(
        1.0, static_cast<double>(made.young.keys) / static_cast<double>(settings_.objects));
    made.false_positive_rate = 1 - (1 - made.young.false_positive_rate) *
                                       (1 - made.old.false_positive_rate);
    made.first_sights = state_->first_sights.load(std::memory_order_relaxed);
    made.repeats = state_->repeats.load(std::memory_order_relaxed);
    made.refreshes = state_->refreshes.load(std::memory_order_relaxed);
    made.swaps = epoch;
    made.memory = 2 * blocks_ * block_bytes * settings_.layers;

    made.remembers_for = settings_.age;
    const auto keys = static_cast<double>(made.young.keys + made.old.keys);
    const auto since = made.old.keys > 0 ? made.old.since : made.young.since;
    const auto elapsed = static_cast<double>((now - since).count());
    const double to_fill = keys > 0 && elapsed > 0
                               ? static_cast<double>(settings_.objects) * elapsed / keys
                               : static_cast<double>(settings_.age.count());
    if (to_fill < static_cast<double>(settings_.age.count())) {
        made.remembers_for = std::chrono::seconds{static_cast<std::int64_t>(to_fill)};
    }
    return made;
}

}  // namespace reprise::filter
