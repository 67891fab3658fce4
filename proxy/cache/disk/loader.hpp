#pragma once
// Fills the index at start, on a thread of its own: first all segment headers, which tell where the
// log ends, so that the writer may begin; then the records, from the newest segment to the oldest,
// so that the first record of a key that comes is the one that counts.
//
// Traffic goes on meanwhile. What it puts is newer than anything loaded; what it purges is noted
// (gone_while_loading) and not loaded any more.
//
// Threads   its own; the constructor's caller may go on at once.
// Errors    a segment that can't be read is left out, counted and logged. One that there is no memory for is
//           read when there is some: it would be missing until the next start.

#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "proxy/cache/disk/memory_patience.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace reprise::proxy::cache::disk {

class loader {
public:
    /// `says` is dead weight once everything is loaded, and is given up then.
    loader(std::shared_ptr<core> into, writer& then, verdicts says);
    ~loader();  ///< stop()
    loader(const loader&) = delete;
    loader& operator=(const loader&) = delete;

    /// Leaves the rest out, and waits for the thread. The writer has been told to begin then, be it to
    /// keep what was noted alone.
    void stop();

private:
    struct found {
        std::uint32_t number = 0;
        std::shared_ptr<file> from;
        std::uint64_t sequence = 0;
    };
    void run();
    [[nodiscard]] std::vector<found> find_segments();
    void look_into(std::uint32_t number, std::vector<found>& out);
    /// Adds the bytes that live in it to `live`: where memory ends in the middle, of what is in the index by then.
    void take_in(const found& segment, const recovered_segment& records, std::uint64_t& live);

    const std::shared_ptr<core> core_;
    writer& writer_;
    verdicts says_;
    bool knows_all_ = true;  // each file that is there could be read, and says which segment it is
    memory_patience patience_;
    std::thread thread_;
};

}  // namespace reprise::proxy::cache::disk
