#pragma once
// Memory above a disk, as the proxy has them: residents in memory, a log of segments below.
//
//     a request   in memory: a hit. On disk: a hit.
//                 Else the origin is asked, and the object comes into memory: as admitted, or to
//                 wait; one that is too large for memory goes to the disk or nowhere.
//     to disk     goes what admission has let in and the disk finds worth it: when it is
//                 admitted, or when it leaves memory. Its place in memory is then free, unless
//                 copies are kept.
//
// Requests are counted in one sketch for both tiers, which decides what is worth keeping.

#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/disk_model.hpp"
#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>
#include <optional>

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
    struct kept : proxy::cache::evictable {
        object_number object = 0;
        std::uint32_t last_used = 0;  // seconds
        bool was_found = false;
    };

    void ask(const request& wanted);
    void asked_in_memory(const request& wanted, kept& found);
    void missed(const request& wanted);
    void enter_memory(const request& wanted, std::uint64_t bytes, proxy::cache::standing as);
    [[nodiscard]] bool promotes() const noexcept;
    [[nodiscard]] bool is_for_disk(const kept& leaving) const noexcept;
    [[nodiscard]] bool goes_to_disk(const filter::key_hash& key,
                                    std::uint64_t bytes) const noexcept;
    void evict_from_memory(const request& now);
    void write(object_number object, const filter::key_hash& key, std::uint64_t bytes);

    disk_choice choice_;
    bool has_probation_;
    std::uint64_t unit_;
    std::unique_ptr<admission_rule> admission_;
    proxy::cache::frequency_sketch sketch_;
    std::uint64_t memory_bytes_;  // sketch and filter included
    std::uint64_t disk_bytes_;
    std::uint64_t planned_for_ = 0;  // what residents_ was last told
    std::optional<proxy::cache::residents> residents_;
    object_pool<kept> in_memory_;

    std::unique_ptr<disk_model> disk_;
    std::uint64_t misses_ = 0, missed_bytes_ = 0;
    tally tally_;
};

}  // namespace reprise::replay
