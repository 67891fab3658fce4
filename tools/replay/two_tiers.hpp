#pragma once
// Memory above a disk, as the proxy has them: residents in memory, a log of segments below whose
// room is managed by disk::space. Footers are kept in vectors instead of files.
//
//     a request   in memory: a hit. On disk: a hit.
//                 Else the origin is asked, and the object comes into memory: as admitted, or to
//                 wait; one that is too large for memory goes to the disk or nowhere.
//     to disk     goes what admission has let in and disk::space finds worth it: when it is
//                 admitted, or when it leaves memory. Its place in memory is then free, unless
//                 copies are kept.
//
// Requests are counted in one sketch for both tiers, which decides what is worth keeping.
// Large objects are written as extents of at most a quarter of a segment, as the tier does; one
// that loses an extent is gone.

#include "proxy/cache/disk/space.hpp"
#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace reprise::replay {

class two_tiers final : public model {
public:
    /// `capacity` in the trace's units, of both tiers together; `unit`: bytes for each. What the
    /// filter and the sketch take is memory that the memory tier does not have.
    two_tiers(const setup& wanted,
              std::unique_ptr<admission_rule> admission,
              std::uint64_t capacity,
              std::uint64_t unit);

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override;

private:
    using segment_number = proxy::cache::disk::segment_number;
    static constexpr segment_number nowhere = ~segment_number{0};

    struct kept : proxy::cache::evictable {
        object_number object = 0;
        std::uint32_t last_used = 0;  // seconds
        bool admitted = false;
    };
    /// An object on disk, and where each of its extents is.
    struct on_disk {
        filter::key_hash key;
        std::uint64_t bytes = 0;
        std::vector<segment_number> places;
    };
    /// What a segment's footer says of a record.
    struct record {
        object_number object = 0;
        std::uint32_t extent = 0;
        std::uint64_t bytes = 0;
    };

    void ask(const request& wanted);
    void asked_in_memory(const request& wanted, kept& found);
    void missed(const request& wanted);
    void enter_memory(const request& wanted, std::uint64_t bytes, bool admitted);
    void evict_from_memory(const request& now);
    [[nodiscard]] bool is_worth_writing(const filter::key_hash& key, std::uint64_t bytes) const;
    void write(object_number object, const filter::key_hash& key, std::uint64_t bytes);
    void append(const record& what, bool carried);
    void begin_segment();
    void drop_from_disk(object_number object);
    [[nodiscard]] proxy::cache::disk::occupant occupant_of(const record& what) const;

    disk_choice disk_;
    bool all_enter_memory_;
    std::uint64_t unit_;
    std::unique_ptr<admission_rule> admission_;
    proxy::cache::frequency_sketch sketch_;
    std::uint64_t memory_bytes_;  // sketch and filter included
    std::uint64_t disk_bytes_;
    std::uint64_t planned_for_ = 0;  // what residents_ was last told
    std::optional<proxy::cache::residents> residents_;
    object_pool<kept> in_memory_;

    std::uint64_t segment_bytes_;
    std::uint64_t extent_bytes_;
    std::optional<proxy::cache::disk::space> space_;
    std::vector<std::vector<record>> footers_;
    std::vector<std::uint64_t> filled_;
    segment_number open_ = nowhere;
    std::uint64_t sequence_ = 0;
    object_pool<on_disk> stored_;
    std::uint64_t misses_ = 0, missed_bytes_ = 0;
    tally tally_;
};

}  // namespace reprise::replay
