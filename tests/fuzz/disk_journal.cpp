// Whatever bytes a journal has, what is read of it lies within them, and says the same again once it is
// gathered and written anew. The input is tried as it is; and as entries behind a good header, of
// which the sizes are followed and the checksums made right.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace disk = reprise::proxy::cache::disk;

constexpr std::uint64_t store_id = 1;

void try_journal(std::span<const char> bytes) {
    const auto read = disk::read_journal(bytes, store_id);
    require(read.end <= bytes.size());
    require(read.entries.empty() || read.end > disk::journal_header_bytes);
    disk::verdicts gathered;
    for (const auto& entry : read.entries) {
        gathered.add(entry);
    }
    auto again = disk::journal_header(store_id);
    for (const auto& entry : read.entries) {
        disk::append_entry(again, entry, again.size(), store_id);
    }
    const auto reread = disk::read_journal(again, store_id);
    require(!reread.damaged && reread.end == again.size());
    require(reread.entries.size() == read.entries.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    try_journal(std::span{text.data(), text.size()});
    auto bytes = disk::journal_header(store_id);
    auto at = bytes.size();
    bytes.insert(bytes.end(), text.begin(), text.end());
    constexpr std::size_t sum_bytes = 8, size_at = 8, least = 16;
    while (at + least <= bytes.size()) {
        const std::span entry{bytes.data() + at, bytes.size() - at};
        const auto entry_bytes = disk::load_at<std::uint32_t>(entry.data() + size_at);
        if (entry_bytes < least || entry_bytes > entry.size()) {
            break;
        }
        const auto summed = entry.first(entry_bytes).subspan(sum_bytes);
        disk::store_at(entry.data(), disk::checksum(summed, store_id));
        at += entry_bytes;
    }
    try_journal(bytes);
    return 0;
}
