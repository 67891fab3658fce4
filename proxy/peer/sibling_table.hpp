#pragma once
// Which siblings to ask for a URL, best first.
//
// The digests of Reprise siblings are columns of a filter::sibling_index: one look-up answers for
// 64, and of those beyond a second is asked, a third, a fourth. Squids' digests have another hash: they are asked one by one. Both give a mask of slots; of
// those that are worth asking now (benefit.hpp) the one with the least expected cost comes first.
//
// Threads   enrol, dismiss, put, flip, remove, figures: any, a lock. Look-ups: any number of
//           threads, each with a `reader` of its own; no lock unless a Squid's digest changed.
// Memory    an index: bits * slice / 8 bytes (sibling_index.hpp); Squids' masks. Both bounded.

#include "filter/digest.hpp"
#include "filter/sibling_index.hpp"
#include "filter/squid_digest.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/peer/benefit.hpp"
#include "proxy/peer/slot_set.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Slots of siblings, best first.
struct candidates {
    std::array<std::uint8_t, most_slots> slots;
    std::size_t count = 0;

    [[nodiscard]] const std::uint8_t* begin() const noexcept { return slots.data(); }
    [[nodiscard]] const std::uint8_t* end() const noexcept { return slots.data() + count; }
    [[nodiscard]] bool empty() const noexcept { return count == 0; }
};

class sibling_table {
    struct squid_member {
        unsigned slot;
        std::shared_ptr<const filter::squid_digest> digest;
    };
    using squid_list = std::shared_ptr<const std::vector<squid_member>>;

public:
    /// Bytes for the digests of 64 siblings with ten million keys each at 1 %: 766 MB. While
    /// digests of one size get more columns, up to half as much again for a moment.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

    /// @param most  bytes that all digests together may take
    explicit sibling_table(std::uint64_t most = most_bytes) : most_{most} {}

    /// The slot of this name, the lowest free one for a new name; none when all are taken.
    [[nodiscard]] std::optional<unsigned> enrol(std::string_view name);
    /// Its slot is free, its figures begin anew. Does not wait for a put; remove() the digest
    /// before anybody else's is put there.
    void dismiss(unsigned slot);

    // Changes of digests wait for one another, some nanoseconds per bit: not on an event loop.
    /// The sibling's digest, of layout `standard`, in place of the one before. False, and nothing
    /// has changed, when all siblings' together would then take more than `most`.
    /// @throws std::bad_alloc, and then nothing has changed
    bool put(unsigned slot, const filter::digest& digest);
    /// The digest after a delta. Puts the whole when the index does not know the one before.
    bool flip(unsigned slot, const filter::digest& digest, std::span<const std::uint64_t> places);
    bool put(unsigned slot, std::shared_ptr<const filter::squid_digest> digest);
    /// Its digest is not to be asked (stale, refused); its slot stays.
    /// @throws std::bad_alloc where there is a digest: it is not asked, and still takes its memory
    void remove(unsigned slot);

    [[nodiscard]] benefit& benefit_of(unsigned slot) noexcept { return benefits_[slot]; }
    [[nodiscard]] const benefit& benefit_of(unsigned slot) const noexcept {
        return benefits_[slot];
    }
    /// Empty: nobody has the slot.
    [[nodiscard]] std::string name_of(unsigned slot) const;

    /// What an origin's answer took, for what asking siblings saves: a weighted mean over all.
    void note_origin(std::chrono::microseconds took) noexcept;
    void set_hit_worth(std::chrono::microseconds beside) noexcept;
    /// That time, and what a hit is worth beside it.
    [[nodiscard]] hit_value hit_gives() const noexcept;

    [[nodiscard]] std::uint64_t bytes() const;

    /// One thread's access.
    class reader {
    public:
        /// @pre the table outlives it
        explicit reader(sibling_table& table);
        ~reader() { tell(); }
        reader(const reader&) = delete;
        reader& operator=(const reader&) = delete;

        /// `url` is the primary key's text, `key` its hash under the fleet's secret (key_of).
        /// Counts the look-up, of those `among` whom it is: the others are no candidates, and it
        /// is no chance of theirs. Some are counted together, since that is a write to each sibling's own line. O(groups * probes + siblings + Squids); no allocation but for
        /// Squids' keys.
        [[nodiscard]] candidates find(std::string_view url,
                                      const filter::key_hash& key,
                                      steady_time now,
                                      const slot_set& among = slot_set::all());
        /// The siblings whose digests name it, worth asking or not; counts nothing.
        [[nodiscard]] slot_set named(std::string_view url, const filter::key_hash& key);
        /// For a thread that may not look anything up for long.
        void rest() noexcept;
        /// All look-ups are in siblings' figures now.
        void tell() noexcept;

    private:
        static constexpr unsigned most_untold = 16;
        sibling_table& table_;
        std::array<std::optional<filter::sibling_index::reader>, slot_blocks> reprises_;
        std::uint64_t squid_version_ = ~std::uint64_t{0};
        squid_list squids_;
        slot_set offered_to_;  // by look-ups that are not in figures yet
        unsigned untold_ = 0;  // so many
    };

private:
    friend class reader;
    void change_squids(unsigned slot, std::shared_ptr<const filter::squid_digest> digest);
    [[nodiscard]] std::uint64_t squid_bytes(unsigned but) const;

    const std::uint64_t most_;
    [[nodiscard]] std::uint64_t index_bytes(unsigned but) const;
    [[nodiscard]] slot_set members() const noexcept;
    void set_member(unsigned slot, bool is) noexcept;

    std::array<filter::sibling_index, slot_blocks> indexes_;
    std::array<benefit, most_slots> benefits_;
    // That have a digest of either kind.
    std::array<std::atomic<filter::sibling_mask>, slot_blocks> members_{};
    std::atomic<double> origin_us_{0};
    std::atomic<std::int64_t> hit_worth_us_{hit_value{}.beside.count()};
    mutable std::mutex guard_;  // of what is below
    std::array<std::string, most_slots> names_;
    squid_list squids_;
    std::atomic<std::uint64_t> squid_version_{0};
};

}  // namespace reprise::proxy::peer
