#pragma once
// The siblings of this node: what they hold, whether they may be asked, and what came of it.

#include "filter/plugins/trafficserver/fleet_words.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <reprise/digest.h>
#include <string>
#include <vector>

namespace reprise::trafficserver {

enum class met : unsigned {
    asked,
    hits,
    false_hits,
    failed,
    bytes,
    digest_bytes,
    failed_digests,
    digest_keys,  ///< a gauge
};
inline constexpr std::size_t met_count = 8;

/// One sibling. Threads: any; never destroyed.
class neighbour {
public:
    neighbour(const sibling_words& words, unsigned number_here);

    const std::string name;
    const endpoint at;
    const std::string host;       ///< as text, for the server's parent selection
    const std::string at_text;    ///< as signatures have it
    const std::string authority;  ///< as Host has it
    const unsigned number;

    void count(met what, std::uint64_t by = 1) noexcept {
        counts_[static_cast<unsigned>(what)].fetch_add(by, std::memory_order_relaxed);
    }
    void set(met what, std::uint64_t value) noexcept {
        counts_[static_cast<unsigned>(what)].store(value, std::memory_order_relaxed);
    }
    /// Hands the counts to the server. On the task's thread.
    void show() noexcept;

    /// It gave no answer, or none that can be used: it is not asked for a second, two, up to a minute.
    void failed() noexcept;
    void worked() noexcept;
    [[nodiscard]] bool may_be_asked() const noexcept;

private:
    std::array<std::atomic<std::uint64_t>, met_count> counts_{};
    std::array<int, met_count> figures_{};
    std::atomic<std::int64_t> not_before_{0};  ///< milliseconds of the steady clock
    std::atomic<unsigned> failures_{0};
};

/// Bytes that the digests of so many siblings may take here: as much as siblings of `most_objects` can need, of whatever sizes
/// they are, but at most half of the machine's `memory`; and a GiB at least. It is a limit, and nothing is taken for it.
[[nodiscard]] std::uint64_t digest_room(std::size_t siblings, std::uint64_t memory) noexcept;

class neighbours {
public:
    /// @throws std::runtime_error
    neighbours(const fleet_options& options, const unsigned char* seed);

    [[nodiscard]] std::vector<std::unique_ptr<neighbour>>& all() noexcept { return all_; }
    [[nodiscard]] reprise_siblings* digests() const noexcept { return digests_; }
    /// Whom to ask for the key; null: nobody names it who may be asked. On any of the server's threads.
    [[nodiscard]] neighbour* likely_holder(reprise_key key) noexcept;
    /// Whoever was asked did not have it. Nobody is asked for it for some ten minutes: a ring's digest may name what is gone for
    /// longer, and what comes behind a question in vain the server does not store.
    void asked_in_vain(reprise_key key) noexcept;
    /// Whether one of them has this address.
    [[nodiscard]] bool includes(const endpoint& of) const noexcept;

private:
    [[nodiscard]] bool was_asked_in_vain(reprise_key key) const noexcept;

    /// The last keys' upper 48 bits and, below them, the minute; a key's other bits are its place.
    /// 128 KiB.
    static constexpr std::size_t vain_places = 1 << 14;
    std::array<std::atomic<std::uint64_t>, vain_places> in_vain_{};
    std::vector<std::unique_ptr<neighbour>> all_;
    reprise_siblings* digests_ = nullptr;
};

}  // namespace reprise::trafficserver
