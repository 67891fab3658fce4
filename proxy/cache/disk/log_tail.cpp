#include "proxy/cache/disk/log_tail.hpp"

#include "proxy/cache/disk/contents_loader.hpp"

#include <algorithm>
#include <array>
#include <new>

// The buffer begins at the file's offset start_; its first kept_ bytes are written already, the
// front of a page that is not full. flush() pads to a page, writes, lets what waited into the
// index, and keeps the last page's front again. An error gives the segment up.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint64_t page = 4096;
// So much may be dirty before it is waited for: what a sync at the end finds to do is little.
constexpr std::uint64_t write_out_bytes = 8u << 20;

}  // namespace

error_code log_tail::open(std::uint32_t number, std::uint64_t sequence, std::shared_ptr<file> to) {
    assert(!is_open() && failed_.empty());
    const auto now = wall_now();
    const auto header = encode(segment_header{.number = number,
                                              .sequence = sequence,
                                              .segment_bytes = core_.shape.segment_bytes,
                                              .begun = now},
                               core_.super.store_id);
    buffer_.reserve(2 * piece_bytes);
    std::vector<char> first(page);
    buffer_.assign(header.begin(), header.end());
    start_ = 0;
    std::copy(header.begin(), header.end(), first.begin());
    if (auto failed = write_all(*to, 0, as_bytes_of(first))) {
        return failed;
    }
    if (auto failed = to->sync()) {
        return failed;
    }
    number_ = number;
    sequence_ = sequence;
    kept_ = buffer_.size();
    fill_ = segment_fill{core_.shape.segment_bytes};
    written_out_ = 0;
    dirty_ = false;
    file_ = std::move(to);
    core_.segments.begin(number, file_, sequence, now);
    core_.room.open(number, sequence);
    return {};
}

error_code log_tail::resume(std::uint32_t number,
                            std::uint64_t sequence,
                            std::shared_ptr<file> to,
                            std::vector<footer_entry> entries,
                            std::uint64_t end,
                            bool was_closed) {
    assert(!is_open());
    auto filled = segment_fill::resumed(core_.shape.segment_bytes, std::move(entries), end);
    buffer_.reserve(2 * piece_bytes);
    if (was_closed) {
        // The footer must not be believed any more once records follow those that it lists.
        constexpr std::array<char, trailer_bytes> nothing{};
        const auto at = core_.shape.segment_bytes - trailer_bytes;
        if (auto failed = write_all(*to, at, as_bytes_of(nothing))) {
            return failed;
        }
        if (auto failed = to->sync()) {
            return failed;
        }
    }
    start_ = filled.offset() / page * page;
    buffer_.resize(filled.offset() - start_);
    if (auto failed = read_all(*to, start_, std::as_writable_bytes(std::span{buffer_}))) {
        return failed;
    }
    number_ = number;
    sequence_ = sequence;
    kept_ = buffer_.size();
    fill_ = std::move(filled);
    written_out_ = start_;
    dirty_ = true;  // perhaps: the last process may have been killed
    file_ = std::move(to);
    core_.room.open(number, sequence);
    return {};
}

bool log_tail::awaits(const filter::key_hash& key) const noexcept {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& one) {
        return one.key == key && !one.withdrawn;
    });
}

bool log_tail::withdraw(const filter::key_hash& key) noexcept {
    bool any = false;
    for (auto& one : waiting_) {
        if (one.key == key && !one.withdrawn) {
            one.withdrawn = any = true;
        }
    }
    return any;
}

// The page that flush() fills up has its room too.
void log_tail::make_room_for(std::size_t bytes) {
    make_room_in(buffer_, bytes + page);
    make_room_in(waiting_);
    fill_.room_for_entry();
}

error_code log_tail::flush() noexcept {
    if (!is_open() || unwritten_bytes() == 0) {
        return {};
    }
    const auto size = buffer_.size();
    assert(round_up(size, page) <= buffer_.capacity());
    buffer_.resize(round_up(size, page));
    dirty_ = true;
    if (auto failed = write_all(*file_, start_, as_bytes_of(buffer_))) {
        give_up();
        return failed;
    }
    publish();
    const auto whole = size / page * page;
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(whole));
    buffer_.resize(size - whole);
    kept_ = buffer_.size();
    start_ += whole;
    if (start_ - written_out_ >= write_out_bytes) {
        file_->write_out(written_out_, start_ - written_out_);
        written_out_ = start_;
    }
    return {};
}

error_code log_tail::sync() noexcept {
    if (!is_open() || !dirty_) {
        return {};
    }
    if (auto failed = file_->sync()) {
        give_up();
        return failed;
    }
    dirty_ = false;
    return {};
}

error_code log_tail::close() noexcept {
    if (!is_open()) {
        return {};
    }
    if (auto failed = flush()) {
        return failed;
    }
    error_code failed;
    try {
        const auto footer = fill_.footer(core_.super.store_id, sequence_, wall_now());
        failed = write_all(*file_, fill_.footer_offset(), as_bytes_of(footer));
    } catch (const std::bad_alloc&) {
        failed = no_memory();  // a start reads the records one by one
    }
    if (!failed) {
        failed = file_->sync();
    }
    give_up();
    return failed;
}

void log_tail::publish(const publication& one) noexcept {
    const auto frequency = std::max<unsigned>(core_.requests.estimate(one.primary), 1);
    const auto length = one.length != 0 ? one.length : one.entry.bytes;
    const occupant record{one.entry.bytes, length, frequency, {}};
    core_.room.wrote(number_, record, one.moved_from.has_value());
    if (one.withdrawn) {
        core_.note_death(one.entry);
        return;
    }
    if (one.moved_from) {
        if (core_.move(one.key, *one.moved_from, one.entry)) {
            core_.counts.carried.fetch_add(1, std::memory_order_relaxed);
            core_.counts.carried_bytes.fetch_add(one.entry.bytes, std::memory_order_relaxed);
        } else {
            core_.note_death(one.entry);
        }
        return;
    }
    const core::saying said{one.url, one.useful_until};
    const bool is_primary = !one.url.empty() && one.entry.kind != record_kind::refresh;
    auto it_outdates = one.outdates_older;
    try {
        // A newer head that takes the place of another allows no less than that, but maybe less than the object.
        const auto before = core_.put(one.key, one.entry, is_primary ? &said : nullptr);
        it_outdates = it_outdates || before;
    } catch (const std::bad_alloc&) {
        // An object would be found without its newer head.
        erase_invalidated(one, it_outdates);
        core_.note_death(one.entry);
        core_.counts.skipped.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    if (!one.url.empty() && !is_primary) {
        core_.tell_held(one.primary, said);  // a newer head
    }
    // An invalidation notes itself and then looks into the index; here it is the other way
    // round, so at least one of the two sees the other.
    if (one.asked && core_.invalidated.since(one.primary, *one.asked)) {
        erase_invalidated(one, it_outdates);
    }
}

void log_tail::publish() noexcept {
    for (const auto& one : waiting_) {
        publish(one);
    }
    // Directories last: by now all variants that came with them are in the index.
    for (const auto& one : waiting_) {
        if (one.entry.kind == record_kind::variants && !one.moved_from) {
            tell_variants(core_, one.primary);
        }
    }
    waiting_.clear();
}

// It was invalidated since it was asked for, or nobody knows whether it was; or there was no memory to let it in.
// `it_outdates`: what is older must not be found without it.
void log_tail::erase_invalidated(const publication& one, bool it_outdates) noexcept {
    // Its invalidation may come to look for it when it has gone, and must be kept all the same.
    core_.note_unlisted(one.primary);
    (void)core_.erase(one.key, one.entry);
    if (one.entry.kind != record_kind::refresh) {
        return;
    }
    if (one.discriminator && it_outdates) {
        // The object must not be found without this head. A restart finds both, or neither.
        const auto object = index_key(record_kind::object, one.primary, *one.discriminator);
        (void)core_.erase(object);
        if (*one.discriminator != 0) {
            tell_variants(core_, one.primary);
        }
    } else if (!one.url.empty()) {
        // What is still there is stale, by a soft purge.
        core_.tell_held(one.primary, {one.url, wall_time::min()});
    }
}

void log_tail::give_up() noexcept {
    if (is_open()) {
        core_.room.close(number_);
    }
    file_ = nullptr;
    assert(failed_.empty() || waiting_.empty());
    if (!waiting_.empty()) {
        failed_ = std::exchange(waiting_, {});
    }
    buffer_.clear();
    kept_ = 0;
    dirty_ = false;
}

}  // namespace reprise::proxy::cache::disk
