#include "proxy/cache/disk/recovery.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint64_t piece_bytes = 1u << 20;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t first_footer_read = 64u << 10;

/// A window that moves forward over the segment, read in pieces. What can't be read, page by page,
/// reads as zeros, which are no record.
class sliding_bytes {
public:
    sliding_bytes(const read_at& read, std::uint64_t end) : read_{read}, end_{end} {}

    /// At least `wanted` bytes from `offset`, or all that there are. Valid until the next call.
    std::span<const char> at(std::uint64_t offset, std::uint64_t wanted) {
        wanted = std::min(wanted, end_ - offset);
        if (offset < begin_ || offset + wanted > begin_ + held_.size()) {
            load(offset, std::min(std::max(wanted, piece_bytes), end_ - offset));
        }
        return std::span<const char>{held_}.subspan(offset - begin_);
    }
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_; }

private:
    void load(std::uint64_t offset, std::uint64_t bytes) {
        // What is here already need not be read again.
        const auto held_end = begin_ + held_.size();
        std::uint64_t kept = 0;
        if (offset >= begin_ && offset < held_end) {
            kept = held_end - offset;
            std::memmove(held_.data(), held_.data() + (offset - begin_), kept);
        }
        held_.resize(bytes);
        begin_ = offset;
        const std::span<char> wanted{held_.data() + kept, bytes - kept};
        if (read_(offset + kept, wanted)) {
            return;
        }
        for (std::uint64_t at = 0; at < wanted.size();) {
            const auto to_boundary = page_bytes - (offset + kept + at) % page_bytes;
            const auto page = wanted.subspan(at, std::min(to_boundary, wanted.size() - at));
            if (!read_(offset + kept + at, page)) {
                std::fill(page.begin(), page.end(), '\0');
                unreadable_ += page.size();
            }
            at += page.size();
        }
    }

    const read_at& read_;
    std::uint64_t end_;
    std::uint64_t begin_ = 0;
    std::vector<char> held_;
    std::uint64_t unreadable_ = 0;
};

/// Whether the footer says what the segment holds; fills `into` if so.
bool take_footer(const read_at& read, const recovery_options& options, recovered_segment& into) {
    std::vector<char> last(std::min(first_footer_read, options.segment_bytes));
    if (!read(options.segment_bytes - last.size(), last)) {
        into.bad_footer = true;
        return false;
    }
    const auto end = read_trailer(last, options.segment_bytes);
    if (end.has_error() || end->sequence != into.header.sequence) {
        // It may be one of this round whose trailer is damaged; nobody can tell.
        return false;
    }
    const auto bytes = end->footer_bytes();
    if (bytes > last.size()) {
        const auto missing = bytes - last.size();
        std::vector<char> whole(bytes);
        std::copy(last.begin(), last.end(), whole.begin() + static_cast<std::ptrdiff_t>(missing));
        if (!read(options.segment_bytes - bytes, std::span{whole}.first(missing))) {
            into.bad_footer = true;
            return false;
        }
        last = std::move(whole);
    }
    auto entries = read_footer(std::span<const char>{last}.last(bytes),
                               options.store_id,
                               into.header.sequence,
                               options.segment_bytes);
    if (entries.has_error()) {
        into.bad_footer = true;
        return false;
    }
    into.state = segment_state::closed;
    into.entries = std::move(*entries);
    into.end = end->records_end;
    into.last_written = end->closed;
    return true;
}

void scan(const read_at& read, const recovery_options& options, recovered_segment& into) {
    into.state = segment_state::scanned;
    into.last_written = into.header.begun;
    sliding_bytes bytes{read, options.segment_bytes};
    std::unordered_set<std::uint64_t> ids;
    bool in_gap = false;
    // The gaps that count as damage are those with a record behind them: what lies behind the last
    // is of earlier rounds, or torn by the end of whoever wrote it.
    for (auto offset = first_record; offset + record_header_bytes <= options.segment_bytes;) {
        auto seen = bytes.at(offset, record_header_bytes);
        auto header = read_header(seen);
        if (header.has_value() && header->sequence == into.header.sequence &&
            header->record_bytes() <= options.segment_bytes - offset) {
            seen = bytes.at(offset, options.bodies ? header->record_bytes() : header->front_bytes);
            header = check_front(seen, options.store_id, into.header.sequence);
        } else if (header.has_value()) {
            header = format_errc::other_round;
        }
        if (header.has_error()) {
            in_gap = true;
            offset += alignment;
            continue;
        }
        into.damaged += in_gap ? 1 : 0;
        in_gap = false;
        const auto next = offset + header->record_bytes();
        // A page of this segment that a disk wrote to a second place, too: right in all but its position, by which what was
        // purged since would seem to be younger than its purge.
        if (!ids.insert(header->id).second) {
            ++into.damaged;
            offset = next;
            continue;
        }
        if (!options.bodies || check_body(seen, *header, options.store_id)) {
            into.entries.push_back(entry_of(*header, offset));
            into.end = next;
            into.last_written = header->written;
        } else {
            ++into.damaged;
        }
        offset = next;
    }
    into.unreadable_bytes = bytes.unreadable();
}

}  // namespace

recovered_segment recover(const read_at& read, const recovery_options& options) {
    recovered_segment found;
    std::array<char, segment_header_bytes> first{};
    if (!read(0, first)) {
        found.state = segment_state::unreadable;
        return found;
    }
    const auto header = read_segment_header(first, options.store_id);
    if (header.has_error() || header->number != options.number ||
        header->segment_bytes != options.segment_bytes) {
        return found;
    }
    found.header = *header;
    if (!options.footer || !take_footer(read, options, found)) {
        scan(read, options, found);
    }
    return found;
}

}  // namespace reprise::proxy::cache::disk
