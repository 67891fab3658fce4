#pragma once
// An object on its way to disk while it arrives: cut into extents, each offered to the writer as
// soon as it is full. What proves small becomes one record after all.
//
// Memory    up to one extent, beside what is offered.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::cache::disk {

/// What a task takes of the queue beside the bytes of a body.
inline constexpr std::uint64_t task_bytes = 1024;

class arriving_object final : public object_writer {
public:
    arriving_object(std::shared_ptr<core> into,
                    std::shared_ptr<writer> by,
                    const filter::key_hash& primary,
                    std::string_view url,
                    std::string_view strong_etag,
                    const invalidation_mark& asked);
    ~arriving_object() override;

    [[nodiscard]] bool append(const slice& bytes) override;
    [[nodiscard]] bool wants_a_pause(std::function<void()> go_on) const override;
    [[nodiscard]] bool finish(const stored_response& response) override;

    /// It is there whole, `bytes` long, with a head of so many: room for all of it, before any of it is written.
    /// False: there is none.
    [[nodiscard]] bool ask_room_for(std::uint64_t bytes, std::uint64_t head);

private:
    [[nodiscard]] bool offer(write_task task, std::uint64_t bytes);
    [[nodiscard]] bool offer_extent();
    bool give_up();

    const std::shared_ptr<core> core_;
    const std::shared_ptr<writer> writer_;
    const filter::key_hash primary_;
    const std::string url_;
    const std::optional<filter::key_hash> representation_;
    const invalidation_mark asked_;
    const std::uint64_t id_;
    std::vector<slice> gathered_;
    std::uint64_t gathered_bytes_ = 0;
    std::uint64_t length_ = 0;
    std::uint64_t promised_ = 0;  // of the writer's queue
    std::uint32_t parts_ = 0;
    bool over_ = false;  // finished or given up
};

/// Whether a response asked for then may be stored, and the epoch up to which it was held against
/// the bans.
[[nodiscard]] std::optional<std::uint64_t> held_against_purges(const core& by,
                                                               const filter::key_hash& primary,
                                                               std::string_view url,
                                                               const stored_response& response,
                                                               const invalidation_mark& asked);

}  // namespace reprise::proxy::cache::disk
