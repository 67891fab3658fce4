#include "proxy/cache/disk/segment.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

// Writer and reader take a structure's places from one list of constants (header_at, entry_at,
// trailer_at). A footer is believed as a whole or not at all: its round, its checksum, and entries
// that follow each other without overlap.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint64_t segment_magic = 0x544e454d47455352;  // "RSEGMENT"
constexpr std::uint64_t footer_magic = 0x5245544f4f465352;   // "RSFOOTER"
constexpr std::uint32_t segment_version = 1;
constexpr std::uint8_t carried_entry_flag = 1;

namespace header_at {
constexpr std::size_t sum = 0, magic = 8, version = 16, number = 20, sequence = 24, bytes = 32,
                      begun = 40;
}  // namespace header_at

namespace entry_at {
constexpr std::size_t primary_low = 0, primary_high = 8, discriminator = 16, id = 24, place = 32,
                      size = 36, expiry = 40, kind = 42, flags = 43, wait = 44;
}  // namespace entry_at

namespace trailer_at {
constexpr std::size_t magic = 0, sequence = 8, records_end = 16, closed = 24, entries = 32,
                      version = 36, sum = 56;
}  // namespace trailer_at

footer_entry read_footer_entry(const char* from) noexcept {
    footer_entry read;
    read.kind = static_cast<record_kind>(load_at<std::uint8_t>(from + entry_at::kind));
    read.carried = load_at<std::uint8_t>(from + entry_at::flags) != 0;
    read.expiry = load_at<std::uint16_t>(from + entry_at::expiry);
    read.primary = {.low = load_at<std::uint64_t>(from + entry_at::primary_low),
                    .high = load_at<std::uint64_t>(from + entry_at::primary_high)};
    read.discriminator = load_at<std::uint64_t>(from + entry_at::discriminator);
    read.id = load_at<std::uint64_t>(from + entry_at::id);
    read.offset = alignment * load_at<std::uint32_t>(from + entry_at::place);
    read.bytes = alignment * load_at<std::uint32_t>(from + entry_at::size);
    read.wait = packed_wait::of_code(load_at<std::uint32_t>(from + entry_at::wait));
    return read;
}

}  // namespace

segment_header_image encode(const segment_header& header, std::uint64_t store_id) noexcept {
    segment_header_image image{};
    char* const to = image.data();
    store_at(to + header_at::magic, segment_magic);
    store_at(to + header_at::version, segment_version);
    store_at(to + header_at::number, header.number);
    store_at(to + header_at::sequence, header.sequence);
    store_at(to + header_at::bytes, header.segment_bytes);
    store_at(to + header_at::begun, std::int64_t{header.begun.time_since_epoch().count()});
    store_at(to + header_at::sum, checksum(std::span{image}.subspan(header_at::magic), store_id));
    return image;
}

std::uint64_t sequence_after(std::uint64_t last, wall_time now) noexcept {
    const auto since = std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch());
    return std::max(last + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0)));
}

result<segment_header> read_segment_header(std::span<const char> bytes,
                                           std::uint64_t store_id) noexcept {
    if (bytes.size() < segment_header_bytes) {
        return format_errc::truncated;
    }
    const char* const from = bytes.data();
    if (load_at<std::uint64_t>(from + header_at::magic) != segment_magic) {
        return format_errc::bad_magic;
    }
    if (load_at<std::uint32_t>(from + header_at::version) != segment_version) {
        return format_errc::other_version;
    }
    const auto summed = bytes.first(segment_header_bytes).subspan(header_at::magic);
    if (load_at<std::uint64_t>(from + header_at::sum) != checksum(summed, store_id)) {
        return format_errc::bad_checksum;
    }
    segment_header read;
    read.number = load_at<std::uint32_t>(from + header_at::number);
    read.sequence = load_at<std::uint64_t>(from + header_at::sequence);
    read.segment_bytes = load_at<std::uint64_t>(from + header_at::bytes);
    read.begun = wall_time{
        std::chrono::milliseconds{load_at<std::int64_t>(from + header_at::begun)}};
    if (read.sequence == 0 || read.segment_bytes < smallest_segment ||
        read.segment_bytes > largest_segment) {
        return format_errc::bad_field;
    }
    return read;
}

footer_entry entry_of(const record_header& header, std::uint64_t offset) noexcept {
    return {.kind = header.kind,
            .carried = header.carried,
            .expiry = header.expiry,
            .primary = header.primary,
            .discriminator = header.discriminator,
            .id = header.id,
            .offset = offset,
            .bytes = header.record_bytes(),
            .wait = header.wait};
}

result<trailer> read_trailer(std::span<const char> last_bytes,
                             std::uint64_t segment_bytes) noexcept {
    if (last_bytes.size() < trailer_bytes) {
        return format_errc::truncated;
    }
    const char* const from = last_bytes.data() + last_bytes.size() - trailer_bytes;
    if (load_at<std::uint64_t>(from + trailer_at::magic) != footer_magic) {
        return format_errc::bad_magic;
    }
    if (load_at<std::uint32_t>(from + trailer_at::version) != segment_version) {
        return format_errc::other_version;
    }
    trailer read;
    read.sequence = load_at<std::uint64_t>(from + trailer_at::sequence);
    read.records_end = load_at<std::uint64_t>(from + trailer_at::records_end);
    read.entries = load_at<std::uint32_t>(from + trailer_at::entries);
    read.closed = wall_time{
        std::chrono::milliseconds{load_at<std::int64_t>(from + trailer_at::closed)}};
    if (read.records_end < first_record || read.records_end > segment_bytes ||
        read.footer_bytes() > segment_bytes - read.records_end) {
        return format_errc::bad_length;
    }
    return read;
}

result<std::vector<footer_entry>> read_footer(std::span<const char> footer,
                                              std::uint64_t store_id,
                                              std::uint64_t sequence,
                                              std::uint64_t segment_bytes) {
    const auto end = read_trailer(footer, segment_bytes);
    if (end.has_error()) {
        return end.error();
    }
    if (end->sequence != sequence) {
        return format_errc::other_round;
    }
    if (footer.size() != end->footer_bytes()) {
        return format_errc::truncated;
    }
    const auto sum_at = footer.size() - trailer_bytes + trailer_at::sum;
    if (load_at<std::uint64_t>(footer.data() + sum_at) !=
        checksum(footer.first(sum_at), store_id)) {
        return format_errc::bad_checksum;
    }
    std::vector<footer_entry> entries;
    entries.reserve(end->entries);
    auto free_from = first_record;
    for (std::uint32_t i = 0; i < end->entries; ++i) {
        const char* const from = footer.data() + std::size_t{i} * footer_entry_bytes;
        const auto kind = load_at<std::uint8_t>(from + entry_at::kind);
        if (kind < static_cast<std::uint8_t>(record_kind::object) ||
            kind > static_cast<std::uint8_t>(record_kind::variants) ||
            load_at<std::uint8_t>(from + entry_at::flags) > carried_entry_flag) {
            return format_errc::bad_field;
        }
        const auto entry = read_footer_entry(from);
        if (entry.offset < free_from || entry.bytes < record_header_bytes ||
            entry.offset + entry.bytes > end->records_end) {
            return format_errc::bad_length;
        }
        free_from = entry.offset + entry.bytes;
        entries.push_back(entry);
    }
    return entries;
}

bool segment_fill::has_room(std::uint64_t record_bytes) const noexcept {
    const auto taken = offset_ + trailer_bytes + (entries_.size() + 1) * footer_entry_bytes;
    return taken <= segment_bytes_ && record_bytes <= segment_bytes_ - taken;
}

const footer_entry& segment_fill::note(const record_header& header) {
    entries_.push_back(entry_of(header, offset_));
    offset_ += header.record_bytes();
    return entries_.back();
}

std::vector<char> segment_fill::footer(std::uint64_t store_id,
                                       std::uint64_t sequence,
                                       wall_time now) const {
    std::vector<char> bytes(entries_.size() * footer_entry_bytes + trailer_bytes);
    char* to = bytes.data();
    for (const auto& entry : entries_) {
        store_at(to + entry_at::primary_low, entry.primary.low);
        store_at(to + entry_at::primary_high, entry.primary.high);
        store_at(to + entry_at::discriminator, entry.discriminator);
        store_at(to + entry_at::id, entry.id);
        store_at(to + entry_at::place, static_cast<std::uint32_t>(entry.offset / alignment));
        store_at(to + entry_at::size, static_cast<std::uint32_t>(entry.bytes / alignment));
        store_at(to + entry_at::expiry, entry.expiry);
        store_at(to + entry_at::kind, static_cast<std::uint8_t>(entry.kind));
        store_at(to + entry_at::flags, entry.carried ? carried_entry_flag : std::uint8_t{0});
        store_at(to + entry_at::wait, std::uint32_t{entry.wait.code()});
        to += footer_entry_bytes;
    }
    store_at(to + trailer_at::magic, footer_magic);
    store_at(to + trailer_at::sequence, sequence);
    store_at(to + trailer_at::records_end, offset_);
    store_at(to + trailer_at::closed, std::int64_t{now.time_since_epoch().count()});
    store_at(to + trailer_at::entries, static_cast<std::uint32_t>(entries_.size()));
    store_at(to + trailer_at::version, segment_version);
    const std::span<const char> summed{bytes.data(), to + trailer_at::sum};
    store_at(to + trailer_at::sum, checksum(summed, store_id));
    return bytes;
}

segment_fill segment_fill::resumed(std::uint64_t segment_bytes,
                                   std::vector<footer_entry> entries,
                                   std::uint64_t end) {
    segment_fill fill{segment_bytes};
    fill.entries_ = std::move(entries);
    fill.offset_ = end;
    return fill;
}

}  // namespace reprise::proxy::cache::disk
