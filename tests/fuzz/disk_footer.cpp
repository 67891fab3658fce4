// Whatever bytes end a segment, or lie in it, recovery gives entries that are within the segment
// and do not overlap. The first byte of an input says where the rest of it lies: at the end, as a
// footer, as it is and once more with its checksum made right; or where the records are, of which
// the fronts' checksums are made right.

#include "proxy/cache/disk/recovery.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace disk = reprise::proxy::cache::disk;

constexpr std::uint64_t store_id = 1, sequence = 7;
constexpr std::uint32_t number = 2;
constexpr std::uint64_t size = disk::smallest_segment;

std::vector<char> empty_segment() {
    std::vector<char> segment(size);
    const auto header = disk::encode(
        disk::segment_header{
            .number = number, .sequence = sequence, .segment_bytes = size, .begun = {}},
        store_id);
    std::copy(header.begin(), header.end(), segment.begin());
    return segment;
}

void try_segment(const std::vector<char>& segment) {
    const auto read = [&](std::uint64_t offset, std::span<char> into) {
        require(offset <= size && into.size() <= size - offset);
        std::copy_n(
            segment.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return true;
    };
    const auto found = disk::recover(
        read, {.store_id = store_id, .number = number, .segment_bytes = size});
    require(found.state == disk::segment_state::closed ||
            found.state == disk::segment_state::scanned);
    auto free_from = disk::first_record;
    for (const auto& entry : found.entries) {
        require(entry.offset >= free_from && entry.bytes > 0);
        free_from = entry.offset + entry.bytes;
        (void)entry.key();
    }
    require(free_from <= found.end && found.end <= size);
    auto fill = disk::segment_fill::resumed(size, found.entries, found.end);
    (void)fill.has_room(1000);
}

void try_footer(std::span<const std::uint8_t> bytes) {
    auto segment = empty_segment();
    bytes = bytes.last(std::min<std::size_t>(bytes.size(), size - disk::first_record));
    std::copy(
        bytes.begin(), bytes.end(), segment.end() - static_cast<std::ptrdiff_t>(bytes.size()));
    try_segment(segment);
    const auto end = disk::read_trailer(segment, size);
    if (end.has_error()) {
        require(end.error().category() == disk::format_category());
        return;
    }
    constexpr std::size_t sum_bytes = 8, sequence_at = 8;
    disk::store_at(segment.data() + size - disk::trailer_bytes + sequence_at, sequence);
    const auto summed = std::span<const char>{segment}
                            .last(end->footer_bytes())
                            .first(end->footer_bytes() - sum_bytes);
    disk::store_at(segment.data() + size - sum_bytes, disk::checksum(summed, store_id));
    try_segment(segment);
}

void try_records(std::span<const std::uint8_t> bytes) {
    constexpr std::size_t sum_bytes = 8;
    auto segment = empty_segment();
    bytes = bytes.first(std::min<std::size_t>(bytes.size(), size - disk::first_record));
    std::copy(bytes.begin(),
              bytes.end(),
              segment.begin() + static_cast<std::ptrdiff_t>(disk::first_record));
    try_segment(segment);
    for (auto at = disk::first_record; at < disk::first_record + bytes.size();
         at += disk::alignment) {
        const auto record = std::span{segment}.subspan(at);
        const auto header = disk::read_header(record);
        if (header.has_value() && header->front_bytes <= record.size()) {
            const auto summed =
                std::span<const char>{record}.first(header->front_bytes).subspan(sum_bytes);
            disk::store_at(record.data(), disk::checksum(summed, store_id));
        }
    }
    try_segment(segment);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    if (bytes == 0) {
        return 0;
    }
    const std::span input{data + 1, bytes - 1};
    data[0] % 2 == 0 ? try_footer(input) : try_records(input);
    return 0;
}
