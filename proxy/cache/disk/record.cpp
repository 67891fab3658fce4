#include "proxy/cache/disk/record.hpp"

#include "proxy/cache/disk/record_front.hpp"

#include <algorithm>
#include <array>

// Here is what all kinds of record share, and the extent; object_record.cpp has the sections of the
// others that hold a response. seal() alone writes a header and its checksum, and read_header()
// mirrors it, field by field.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint32_t record_magic = 0x63527052;  // "RpRc"
constexpr std::uint8_t carried_flag = 1;

// Places in a header; FORMAT.md has the table.
namespace record_at {
constexpr std::size_t sum = 0, magic = 8, kind = 12, flags = 13, expiry = 14, sequence = 16,
                      primary_low = 24, primary_high = 32, discriminator = 40, id = 48,
                      subject = 56, front_bytes = 64, body_bytes = 68, written = 72,
                      part_or_wait = 80, unused = 84;
}  // namespace record_at

/// The extent's section: nothing that its header does not say.
constexpr std::size_t extent_front(std::uint64_t body_bytes) noexcept {
    return record_header_bytes + 8 * ((body_bytes + block_bytes - 1) / block_bytes);
}

std::uint64_t size_of(std::span<const slice> slices) noexcept {
    std::uint64_t bytes = 0;
    for (const auto& one : slices) {
        bytes += one.size;
    }
    return bytes;
}

}  // namespace

std::string_view to_string(record_kind kind) noexcept {
    switch (kind) {
    case record_kind::object: return "object";
    case record_kind::extent: return "extent";
    case record_kind::large: return "large";
    case record_kind::refresh: return "refresh";
    case record_kind::variants: return "variants";
    }
    return "unknown";
}

filter::key_hash index_key(record_kind kind,
                           const filter::key_hash& primary,
                           std::uint64_t discriminator) noexcept {
    if (kind == record_kind::variants || (discriminator == 0 && kind != record_kind::refresh)) {
        return primary;
    }
    // Objects and large ones are alternatives to each other, so they share a key.
    const auto label = kind == record_kind::large ? record_kind::object : kind;
    std::array<char, 25> text{};
    store_at(text.data(), primary.low);
    store_at(text.data() + 8, primary.high);
    store_at(text.data() + 16, discriminator);
    text[24] = static_cast<char>(label);
    const auto view = std::span<const char>{text};
    return {.low = checksum(view, primary.low), .high = checksum(view, ~primary.high)};
}

std::uint64_t variant_discriminator(const filter::key_hash& primary,
                                    std::string_view names,
                                    std::string_view selecting) noexcept {
    // Two sums, so that no text need be joined: the end of the names can't move.
    const auto of_names = checksum(names, primary.low);
    return std::max<std::uint64_t>(checksum(selecting, primary.high ^ of_names), 1);
}

std::uint64_t extent_discriminator(std::uint64_t object, std::uint32_t part) noexcept {
    std::array<char, 4> text{};
    store_at(text.data(), part);
    return std::max<std::uint64_t>(checksum(text, object), 1);
}

result<std::size_t> sized(const extent_source& what) noexcept {
    const auto body = size_of(what.bytes);
    const auto front = extent_front(body);
    if (body == 0 || body > UINT32_MAX || front > front_most) {
        return format_errc::too_large;
    }
    return round_up(front + body, alignment);
}

record_header encode(const extent_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept {
    record_header header;
    header.kind = record_kind::extent;
    header.sequence = stamp.sequence;
    header.primary = what.primary;
    header.discriminator = extent_discriminator(what.object, what.part);
    header.id = stamp.id;
    header.subject = what.object;
    header.body_bytes = static_cast<std::uint32_t>(size_of(what.bytes));
    header.front_bytes = static_cast<std::uint32_t>(extent_front(header.body_bytes));
    header.part = what.part;
    header.written = stamp.now;
    char* to = into.data() + header.front_bytes;
    for (const auto& piece : what.bytes) {
        const auto bytes = piece.size == 0 ? std::string_view{} : piece.view();
        to = std::copy(bytes.begin(), bytes.end(), to);
    }
    finish_body(header, store_id, into);
    seal(header, store_id, into);
    return header;
}

void finish_body(const record_header& header,
                 std::uint64_t store_id,
                 std::span<char> into) noexcept {
    const auto body = into.subspan(header.front_bytes, header.body_bytes);
    std::fill(body.data() + body.size(), into.data() + into.size(), '\0');
    for (std::uint32_t i = 0; i < blocks_of(header); ++i) {
        const auto begin = i * block_bytes;
        const auto piece = body.subspan(begin, std::min(block_bytes, body.size() - begin));
        store_at(into.data() + record_header_bytes + 8 * i, checksum(piece, store_id));
    }
}

void seal(const record_header& header, std::uint64_t store_id, std::span<char> record) noexcept {
    char* const to = record.data();
    store_at(to + record_at::magic, record_magic);
    store_at(to + record_at::kind, static_cast<std::uint8_t>(header.kind));
    store_at(to + record_at::flags, header.carried ? carried_flag : std::uint8_t{0});
    store_at(to + record_at::expiry, header.expiry);
    store_at(to + record_at::sequence, header.sequence);
    store_at(to + record_at::primary_low, header.primary.low);
    store_at(to + record_at::primary_high, header.primary.high);
    store_at(to + record_at::discriminator, header.discriminator);
    store_at(to + record_at::id, header.id);
    store_at(to + record_at::subject, header.subject);
    store_at(to + record_at::front_bytes, header.front_bytes);
    store_at(to + record_at::body_bytes, header.body_bytes);
    store_at(to + record_at::written, std::int64_t{header.written.time_since_epoch().count()});
    store_at(to + record_at::part_or_wait,
             header.kind == record_kind::extent ? header.part : std::uint32_t{header.wait.code()});
    store_at(to + record_at::unused, std::uint32_t{0});
    const auto summed = record.first(header.front_bytes).subspan(record_at::magic);
    store_at(to + record_at::sum, checksum(summed, store_id));
}

record_header restamp(std::span<char> record,
                      std::uint64_t store_id,
                      std::uint64_t sequence) noexcept {
    auto header = *read_header(record);
    header.sequence = sequence;
    header.carried = true;
    seal(header, store_id, record);
    return header;
}

result<record_header> read_header(std::span<const char> bytes) noexcept {
    if (bytes.size() < record_header_bytes) {
        return format_errc::truncated;
    }
    const char* const from = bytes.data();
    if (load_at<std::uint32_t>(from + record_at::magic) != record_magic) {
        return format_errc::bad_magic;
    }
    const auto kind = load_at<std::uint8_t>(from + record_at::kind);
    const auto flags = load_at<std::uint8_t>(from + record_at::flags);
    const auto written = load_at<std::int64_t>(from + record_at::written);
    if (kind < static_cast<std::uint8_t>(record_kind::object) ||
        kind > static_cast<std::uint8_t>(record_kind::variants) || (flags & ~carried_flag) != 0 ||
        load_at<std::uint32_t>(from + record_at::unused) != 0 || !is_plausible_time(written)) {
        return format_errc::bad_field;
    }
    record_header header;
    header.kind = static_cast<record_kind>(kind);
    header.carried = flags != 0;
    header.expiry = load_at<std::uint16_t>(from + record_at::expiry);
    header.sequence = load_at<std::uint64_t>(from + record_at::sequence);
    header.primary = {.low = load_at<std::uint64_t>(from + record_at::primary_low),
                      .high = load_at<std::uint64_t>(from + record_at::primary_high)};
    header.discriminator = load_at<std::uint64_t>(from + record_at::discriminator);
    header.id = load_at<std::uint64_t>(from + record_at::id);
    header.subject = load_at<std::uint64_t>(from + record_at::subject);
    header.front_bytes = load_at<std::uint32_t>(from + record_at::front_bytes);
    header.body_bytes = load_at<std::uint32_t>(from + record_at::body_bytes);
    const auto part_or_wait = load_at<std::uint32_t>(from + record_at::part_or_wait);
    if (header.kind == record_kind::extent) {
        header.part = part_or_wait;
    } else {
        header.wait = packed_wait::of_code(part_or_wait);
    }
    header.written = wall_time{std::chrono::milliseconds{written}};
    if (header.front_bytes % 8 != 0 || header.front_bytes > front_most ||
        header.front_bytes < record_header_bytes + 8 * std::uint64_t{blocks_of(header)} ||
        header.record_bytes() > largest_segment) {
        return format_errc::bad_length;
    }
    return header;
}

result<record_header> check_front(std::span<const char> bytes,
                                  std::uint64_t store_id,
                                  std::uint64_t sequence) noexcept {
    const auto header = read_header(bytes);
    if (header.has_error()) {
        return header;
    }
    // Before the checksum: what an earlier round left is mostly sound, and no damage.
    if (header->sequence != sequence) {
        return format_errc::other_round;
    }
    if (bytes.size() < header->front_bytes) {
        return format_errc::truncated;
    }
    const auto summed = bytes.first(header->front_bytes).subspan(record_at::magic);
    if (load_at<std::uint64_t>(bytes.data() + record_at::sum) != checksum(summed, store_id)) {
        return format_errc::bad_checksum;
    }
    return header;
}

bool check_body(std::span<const char> record,
                const record_header& header,
                std::uint64_t store_id) noexcept {
    if (record.size() < std::uint64_t{header.front_bytes} + header.body_bytes) {
        return false;
    }
    const auto body = record.subspan(header.front_bytes, header.body_bytes);
    for (std::uint32_t i = 0; i < blocks_of(header); ++i) {
        const auto begin = i * block_bytes;
        if (!check_block(record,
                         i,
                         body.subspan(begin, std::min(block_bytes, body.size() - begin)),
                         store_id)) {
            return false;
        }
    }
    return true;
}

bool check_block(std::span<const char> front,
                 std::uint32_t number,
                 std::span<const char> block,
                 std::uint64_t store_id) noexcept {
    const auto at = record_header_bytes + 8 * std::uint64_t{number};
    return at + 8 <= front.size() &&
           load_at<std::uint64_t>(front.data() + at) == checksum(block, store_id);
}

}  // namespace reprise::proxy::cache::disk
