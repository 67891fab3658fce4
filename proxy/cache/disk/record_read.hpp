#pragma once
// The reading of one whole record: at once where the page cache has it, else by the pool; and of
// its front alone.
//
// Threads   made, begun and asked on one event loop; read and verified there or on a thread of the
//           pool. read_front is for threads of the tier's own: it waits for the disk.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/record.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace reprise::proxy::cache::disk {

class record_read final : public read_job {
public:
    enum class found : std::uint8_t {
        none,  ///< not read yet
        good,
        unreadable,  ///< the system says so
        damaged,     ///< what was read is not the record of that segment and sequence
    };

    /// @throws std::bad_alloc
    record_read(net::wakeup::signal sleeper,
                segment_table::view from,
                const index_entry& entry,
                std::uint64_t store_id);

    /// False: not all of it is in memory.
    [[nodiscard]] bool try_at_once() noexcept;
    /// On the caller's thread, however long it takes: for threads of the tier's own.
    void read_now() noexcept { run(); }

    [[nodiscard]] found how() const noexcept { return how_; }
    /// @pre how() == good, as below
    [[nodiscard]] const record_header& header() const noexcept { return header_; }
    [[nodiscard]] std::span<const char> bytes() const noexcept {
        return {memory_->data(), static_cast<std::size_t>(entry_.bytes)};
    }
    /// The body, in the memory that was read.
    [[nodiscard]] body_ptr body() const;
    [[nodiscard]] const index_entry& entry() const noexcept { return entry_; }
    [[nodiscard]] log_position position() const noexcept {
        return {from_.sequence, entry_.place.offset};
    }
    [[nodiscard]] std::uint64_t sequence() const noexcept { return from_.sequence; }

private:
    void run() noexcept override;
    void verify() noexcept;

    segment_table::view from_;
    index_entry entry_;
    std::uint64_t store_id_;
    block_ptr memory_;
    found how_ = found::none;
    record_header header_;
};

struct record_front {
    record_header header;
    std::uint64_t sequence = 0;  ///< of the segment it was read from
};

/// The front of the record of `bytes` at `at`, into `into`; none: it is not there any more, cannot
/// be read or is damaged. One read, of 4 KiB as a rule.
[[nodiscard]] std::optional<record_front> read_front(const core& from,
                                                     const record_place& at,
                                                     std::uint64_t bytes,
                                                     std::vector<char>& into);

}  // namespace reprise::proxy::cache::disk
