#include "filter/plugins/trafficserver/neighbours.hpp"

#include "filter/plugins/trafficserver/server.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <unistd.h>

namespace reprise::trafficserver {

namespace {

constexpr std::array<const char*, met_count> met_names{"asked",
                                                       "hits",
                                                       "false_hits",
                                                       "failed",
                                                       "bytes",
                                                       "digest_bytes",
                                                       "failed_digests",
                                                       "digest_keys"};
constexpr std::int64_t first_pause = 1'000;
constexpr std::int64_t longest_pause = 60'000;

std::int64_t steady_milliseconds() noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::string authority_of(const endpoint& of) {
    auto text = of.text();
    if (text.ends_with(":80")) {
        text.resize(text.size() - 3);
    }
    return text;
}

/// 0: the system does not say.
std::uint64_t machine_memory() noexcept {
    const auto pages = ::sysconf(_SC_PHYS_PAGES);
    const auto bytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(bytes)
               : 0;
}

/// A thread's own access to the digests; it outlives them, or they it.
reprise_siblings_reader* reader_here(reprise_siblings* of) noexcept {
    struct closed {
        void operator()(reprise_siblings_reader* one) const { reprise_siblings_reader_close(one); }
    };
    thread_local std::unique_ptr<reprise_siblings_reader, closed> mine;
    if (!mine) {
        reprise_siblings_reader* made = nullptr;
        if (reprise_siblings_reader_open(of, &made, nullptr) == REPRISE_OK) {
            mine.reset(made);
        }
    }
    return mine.get();
}

}  // namespace

neighbour::neighbour(const sibling_words& words, unsigned number_here)
    : name(words.name),
      at(words.at),
      host(words.at.host()),
      at_text(words.at.text()),
      authority(authority_of(words.at)),
      number(number_here) {
    for (std::size_t i = 0; i < met_count; ++i) {
        figures_[i] = figure_for("plugin.reprise_siblings." + name + "." + met_names[i]);
    }
    warn_without("reprise_siblings", name, figures_);
}

void neighbour::show() noexcept {
    for (std::size_t i = 0; i < met_count; ++i) {
        if (figures_[i] >= 0) {
            TSStatIntSet(figures_[i],
                         static_cast<TSMgmtInt>(counts_[i].load(std::memory_order_relaxed)));
        }
    }
}

void neighbour::failed() noexcept {
    const auto before = failures_.fetch_add(1, std::memory_order_relaxed);
    const auto pause = std::min(first_pause << std::min(before, 6U), longest_pause);
    not_before_.store(steady_milliseconds() + pause, std::memory_order_relaxed);
}

void neighbour::worked() noexcept {
    if (failures_.load(std::memory_order_relaxed) != 0) {
        failures_.store(0, std::memory_order_relaxed);
        not_before_.store(0, std::memory_order_relaxed);
    }
}

bool neighbour::may_be_asked() const noexcept {
    const auto until = not_before_.load(std::memory_order_relaxed);
    return until == 0 || steady_milliseconds() >= until;
}

// A table has a row of bits for each place, a column for each sibling: 8 columns, or twice, four or eight times as many, until no two siblings
// of one size have the same (filter/sibling_index.hpp). So a sibling that is alone with its size takes a byte a place. Of two in one
// table whose numbers differ by 8, 16 or 32 each takes one, two or four, and more of one size take less each. News take
// a bit a place beside.
std::uint64_t digest_room(std::size_t siblings, std::uint64_t memory) noexcept {
    constexpr auto least = std::uint64_t{1} << 30;
    constexpr auto most_places = std::uint64_t{1}
                                 << 30;  // most_objects at a rate of 0.01, 20.4 each
    static_assert(most_objects * 21 < most_places);
    const auto columns = std::clamp<std::uint64_t>(std::bit_ceil(siblings), 8, 64);
    const auto each = most_places * std::max<std::uint64_t>(columns / 16, 1) + most_places / 8;
    return std::max(least, std::min(siblings * each, memory / 2));
}

neighbours::neighbours(const fleet_options& options, const unsigned char* seed) {
    reprise_siblings_options wanted = REPRISE_SIBLINGS_OPTIONS_INIT;
    wanted.seed = seed;
    wanted.most_bytes = digest_room(options.siblings.size(), machine_memory());
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_siblings_open(&wanted, &digests_, &error) != REPRISE_OK) {
        throw std::runtime_error{error.text};
    }
    for (const auto& one : options.siblings) {
        all_.push_back(std::make_unique<neighbour>(one, static_cast<unsigned>(all_.size())));
    }
}

namespace {
constexpr std::uint64_t minute_bits = 0xffff;
constexpr std::uint64_t vain_for = 10;  // minutes

std::uint64_t minute_now() noexcept {
    return static_cast<std::uint64_t>(steady_milliseconds() / 60'000) & minute_bits;
}
}  // namespace

void neighbours::asked_in_vain(reprise_key key) noexcept {
    in_vain_[key.high % vain_places].store((key.low & ~minute_bits) | minute_now(),
                                           std::memory_order_relaxed);
}

bool neighbours::was_asked_in_vain(reprise_key key) const noexcept {
    const auto there = in_vain_[key.high % vain_places].load(std::memory_order_relaxed);
    return (there & ~minute_bits) == (key.low & ~minute_bits) &&
           ((minute_now() - there) & minute_bits) < vain_for;
}

neighbour* neighbours::likely_holder(reprise_key key) noexcept {
    auto* const reader = all_.empty() ? nullptr : reader_here(digests_);
    std::uint64_t named = 0;
    if (reader != nullptr) {
        named = reprise_siblings_ask(reader, key);
        reprise_siblings_rest(reader);  // this thread's next miss may be long from now
    }
    for (auto left = named; left != 0; left &= left - 1) {
        const auto number = static_cast<unsigned>(std::countr_zero(left));
        if (number >= all_.size() || !all_[number]->may_be_asked()) {
            named &= ~(std::uint64_t{1} << number);
        }
    }
    if (named == 0 || was_asked_in_vain(key)) {
        return nullptr;
    }
    // One key is always asked of the same one of several: so what two hold is in the memory of one.
    for (auto skip = key.high % static_cast<unsigned>(std::popcount(named)); skip > 0; --skip) {
        named &= named - 1;
    }
    return all_[static_cast<unsigned>(std::countr_zero(named))].get();
}

bool neighbours::includes(const endpoint& of) const noexcept {
    return std::ranges::any_of(all_, [&](const auto& one) { return have_one_host(one->at, of); });
}

}  // namespace reprise::trafficserver
