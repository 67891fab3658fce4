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
// Requests are counted in a sketch for memory and admission and in another for the disk, which
// decide what is worth keeping; where a setup is scaled, in one for both.

#include "proxy/cache/policy/frequency_sketch.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "tools/replay/admission_rule.hpp"
#include "tools/replay/disk_model.hpp"
#include "tools/replay/made_of.hpp"
#include "tools/replay/model.hpp"
#include "tools/replay/object_pool.hpp"
#include "tools/replay/setup.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::replay {

class two_tiers final : public model {
public:
    /// `unit`: bytes for each of the trace's sizes. @pre wanted.disk, and `made` has a disk
    two_tiers(const setup& wanted,
              std::unique_ptr<admission_rule> admission,
              parts made,
              std::uint64_t unit);

    void feed(std::span<const request> requests, std::size_t objects) override;
    [[nodiscard]] tally figures() const override;
    [[nodiscard]] std::vector<std::string> told() const override { return admission_->told(); }

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
                                    std::uint64_t bytes,
                                    proxy::cache::packed_wait wait) noexcept;
    void evict_from_memory(const request& now);
    void write(object_number object,
               const filter::key_hash& key,
               std::uint64_t bytes,
               proxy::cache::packed_wait wait);

    disk_choice choice_;
    parts made_;
    bool has_probation_;
    std::uint64_t unit_;
    std::unique_ptr<admission_rule> admission_;
    proxy::cache::frequency_sketch& requests_;                   // for memory and admission
    std::optional<proxy::cache::frequency_sketch> own_of_disk_;  // where the disk counts apart
    proxy::cache::frequency_sketch& disk_requests_;
    std::uint64_t planned_for_ = 0;  // what residents_ was last told
    std::optional<proxy::cache::residents> residents_;
    object_pool<kept> in_memory_;

    std::unique_ptr<disk_model> disk_;
    std::uint64_t misses_ = 0, missed_bytes_ = 0;
    tally tally_;
};

}  // namespace reprise::replay
