#include "proxy/cache/policy/frequency_sketch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

// Counters change by compare-and-swap alone: whoever loses a race loses a sight, and never takes
// back what others have counted. A block is halved by whoever first turns its bit to the phase of
// now (catch_up).

namespace reprise::proxy::cache {

namespace {

constexpr std::uint64_t counter_mask = 0xf;
constexpr unsigned rows = 4;

// A row is two words of a block, 32 counters: five of the hash's bits pick one.
struct place {
    unsigned word;
    unsigned shift;
};

constexpr place place_in_row(std::uint64_t bits, unsigned row) noexcept {
    const auto index = static_cast<unsigned>(bits >> (5 * row)) & 31;
    return {2 * row + index / 16, index % 16 * 4};
}

// Two bits of a doorkeeper's 512, from bits that the rows do not use.
struct probes {
    unsigned first;
    unsigned second;
};

constexpr probes probes_of(std::uint64_t bits) noexcept {
    return {static_cast<unsigned>(bits >> 32) & 511, static_cast<unsigned>(bits >> 41) & 511};
}

constexpr std::uint64_t halved(std::uint64_t counters) noexcept {
    return counters >> 1 & 0x7777777777777777;
}

constexpr std::uint64_t larger_counters(std::uint64_t a, std::uint64_t b) noexcept {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 4) {
        out |= std::max(a & counter_mask << shift, b & counter_mask << shift);
    }
    return out;
}

}  // namespace

frequency_sketch::frequency_sketch(std::uint64_t keys)
    : blocks_{std::bit_ceil(std::max<std::uint64_t>(1, (keys + keys_a_block - 1) / keys_a_block))},
      counters_{std::make_unique<block[]>(blocks_)},
      doorkeeper_{std::make_unique<block[]>(blocks_)},
      phases_{std::make_unique<std::atomic<std::uint64_t>[]>(words_of_phases())} {}

// A block is one phase behind at most, for the hand passes all of them in each.
bool frequency_sketch::is_behind(std::uint64_t block_number) const noexcept {
    const auto phase = phases_[block_number / 64].load(relaxed) >> (block_number % 64);
    return ((phase ^ agings_.load(relaxed)) & 1) != 0;
}

// Several threads may find it behind; the one that turns its bit halves it.
void frequency_sketch::catch_up(std::uint64_t block_number) noexcept {
    if (!is_behind(block_number)) [[likely]] {
        return;
    }
    const auto bit = std::uint64_t{1} << (block_number % 64);
    auto& phases = phases_[block_number / 64];
    auto before = phases.load(relaxed);
    do {
        if (((before & bit) != 0 ? 1u : 0u) == (agings_.load(relaxed) & 1)) {
            return;
        }
    } while (!phases.compare_exchange_weak(before, before ^ bit, relaxed));
    for (unsigned w = 0; w < words_a_block; ++w) {
        auto& word = counters_[block_number].words[w];
        auto whole = word.load(relaxed);
        while (!word.compare_exchange_weak(whole, halved(whole), relaxed)) {
        }
        doorkeeper_[block_number].words[w].store(0, relaxed);
    }
}

void frequency_sketch::catch_up_all() noexcept {
    for (std::uint64_t i = 0; i < blocks_; ++i) {
        catch_up(i);
    }
}

void frequency_sketch::note(const filter::key_hash& key) noexcept {
    const auto home = key.low & (blocks_ - 1);
    auto before = sights_.load(relaxed);
    auto sight = before + 1;
    // A note that loses a race of these exchanges has lost its sight. A plain store would do more:
    // one that comes late would take back what others have counted since, an aging too.
    if (sight < sights_a_key * keys()) {
        (void)sights_.compare_exchange_strong(before, sight, relaxed);
    } else {
        sight = 1;
        if (sights_.compare_exchange_strong(before, sight, relaxed)) {
            agings_.fetch_add(1, relaxed);
        }
    }
    if (sight % sights_a_block == sights_a_block - 1) {
        catch_up(sight / sights_a_block);  // the hand
    }
    catch_up(home);

    auto& door = doorkeeper_[home];
    const auto [first, second] = probes_of(key.high);
    const auto bit_1 = std::uint64_t{1} << (first % 64);
    const auto bit_2 = std::uint64_t{1} << (second % 64);
    auto& word_1 = door.words[first / 64];
    auto& word_2 = door.words[second / 64];
    const bool has_1 = (word_1.load(relaxed) & bit_1) != 0;
    const bool has_2 = (word_2.load(relaxed) & bit_2) != 0;
    if (!has_1) {
        word_1.fetch_or(bit_1, relaxed);
    }
    if (!has_2) {
        word_2.fetch_or(bit_2, relaxed);
    }
    if (!has_1 || !has_2) {
        return;
    }

    auto& counters = counters_[home];
    std::array<std::uint64_t, rows> seen{};  // whole words, of which a count is a part
    auto least = counter_mask;
    for (unsigned row = 0; row < rows; ++row) {
        const auto [word, shift] = place_in_row(key.high, row);
        seen[row] = counters.words[word].load(relaxed);
        least = std::min(least, seen[row] >> shift & counter_mask);
    }
    if (least == counter_mask) {
        return;
    }
    for (unsigned row = 0; row < rows; ++row) {
        const auto [word, shift] = place_in_row(key.high, row);
        if ((seen[row] >> shift & counter_mask) == least) {
            // Only over what was below the largest count: else it would run over into its neighbour.
            (void)counters.words[word].compare_exchange_strong(
                seen[row], seen[row] + (std::uint64_t{1} << shift), relaxed);
        }
    }
}

unsigned frequency_sketch::estimate(const filter::key_hash& key) const noexcept {
    const auto home = key.low & (blocks_ - 1);
    const auto& door = doorkeeper_[home];
    const auto [first, second] = probes_of(key.high);
    const bool known = (door.words[first / 64].load(relaxed) >> (first % 64) & 1) != 0 &&
                       (door.words[second / 64].load(relaxed) >> (second % 64) & 1) != 0;
    auto least = counter_mask;
    for (unsigned row = 0; row < rows; ++row) {
        const auto [word, shift] = place_in_row(key.high, row);
        least = std::min(least, counters_[home].words[word].load(relaxed) >> shift & counter_mask);
    }
    if (is_behind(home)) {
        return static_cast<unsigned>(least) / 2;
    }
    return static_cast<unsigned>(least) + (known ? 1 : 0);
}

// All of them are of the phase that is now.
void frequency_sketch::replace(std::uint64_t blocks,
                               std::unique_ptr<block[]> counters,
                               std::unique_ptr<block[]> doorkeeper,
                               std::unique_ptr<std::atomic<std::uint64_t>[]> phases) noexcept {
    blocks_ = blocks;
    counters_ = std::move(counters);
    doorkeeper_ = std::move(doorkeeper);
    phases_ = std::move(phases);
    const auto of_now = (agings_.load(relaxed) & 1) != 0 ? ~std::uint64_t{0} : 0;
    for (std::uint64_t i = 0; i < words_of_phases(); ++i) {
        phases_[i].store(of_now, relaxed);
    }
}

void frequency_sketch::grow_to(std::uint64_t keys_wanted) {
    while (keys() < keys_wanted) {
        auto counters = std::make_unique<block[]>(2 * blocks_);
        auto doorkeeper = std::make_unique<block[]>(2 * blocks_);
        auto phases = std::make_unique<std::atomic<std::uint64_t>[]>(2 * words_of_phases());
        catch_up_all();
        // A key's block was its hash's low bits; with one bit more it is that block or its twin.
        for (std::uint64_t i = 0; i < 2 * blocks_; ++i) {
            for (unsigned w = 0; w < words_a_block; ++w) {
                const auto from = i & (blocks_ - 1);
                counters[i].words[w].store(counters_[from].words[w].load(relaxed), relaxed);
                doorkeeper[i].words[w].store(doorkeeper_[from].words[w].load(relaxed), relaxed);
            }
        }
        replace(2 * blocks_, std::move(counters), std::move(doorkeeper), std::move(phases));
    }
}

void frequency_sketch::shrink_to(std::uint64_t keys_wanted) {
    while (blocks_ > 1 && keys() / 2 >= std::max<std::uint64_t>(1, keys_wanted)) {
        const auto half = blocks_ / 2;
        auto counters = std::make_unique<block[]>(half);
        auto doorkeeper = std::make_unique<block[]>(half);
        auto phases = std::make_unique<std::atomic<std::uint64_t>[]>(words_of_phases());
        catch_up_all();
        for (std::uint64_t i = 0; i < half; ++i) {
            for (unsigned w = 0; w < words_a_block; ++w) {
                const auto a = counters_[i].words[w].load(relaxed);
                const auto b = counters_[i + half].words[w].load(relaxed);
                counters[i].words[w].store(larger_counters(a, b), relaxed);
                const auto doors = doorkeeper_[i].words[w].load(relaxed) |
                                   doorkeeper_[i + half].words[w].load(relaxed);
                doorkeeper[i].words[w].store(doors, relaxed);
            }
        }
        replace(half, std::move(counters), std::move(doorkeeper), std::move(phases));
        sights_.store(sights_.load(relaxed) / 2, relaxed);
    }
}

}  // namespace reprise::proxy::cache
