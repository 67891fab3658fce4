// A store that was there before is read, a step at a time, while it is in use already: which copies of its superblock
// hold, what its segments have, and where the writer goes on. A step that there is no memory for is taken again.

#include "proxy/cache/disk/loader.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/disk/contents_loader.hpp"
#include "proxy/cache/disk/recovery.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {

/// Whether it is worth going on with: whatever was written to it lies before its end, and room is
/// left.
bool can_go_on(const recovered_segment& found, std::uint64_t segment_bytes) {
    const bool known = found.state == segment_state::closed ||
                       (found.state == segment_state::scanned && !found.bad_footer &&
                        found.unreadable_bytes == 0);
    return known && found.end < segment_bytes / 8 * 7;
}

}  // namespace

loader::loader(std::shared_ptr<core> into, writer& then, verdicts says)
    : core_{std::move(into)},
      writer_{then},
      says_{std::move(says)},
      patience_{core_->settings.path,
                {core_->settings.retry_after, core_->settings.retry_at_most},
                core_->loading_lacks_memory},
      thread_{[this] { run(); }} {}

loader::~loader() {
    stop();
}

void loader::stop() {
    patience_.stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

std::vector<loader::found> loader::find_segments() {
    std::vector<found> out;
    const auto count = core_->segments.size();
    bool goes_on = patience_.with_memory([&] { out.reserve(count); });
    for (std::uint32_t number = 0; number < count && goes_on && !patience_.is_stopped(); ++number) {
        goes_on = patience_.with_memory([&] { look_into(number, out); });
    }
    std::sort(out.begin(), out.end(), [](const found& a, const found& b) {
        return a.sequence > b.sequence;
    });
    return out;
}

// Into a segment's file and its header. What takes memory comes first.
void loader::look_into(std::uint32_t number, std::vector<found>& out) {
    const auto path = core_->path_of(segment_name(number));
    const auto open = [&](open_mode mode) {
        auto made = core_->files->open(path, mode);
        if (!made) {
            throw_if_no_memory(made.error());
        }
        return made;
    };
    auto opened = open(open_mode::update);
    if (!opened && opened.error() != boost::system::errc::no_such_file_or_directory) {
        opened = open(open_mode::read);
    }
    if (!opened) {
        if (opened.error() != boost::system::errc::no_such_file_or_directory) {
            const auto why = opened.error().message();
            core_->counts.read_errors.fetch_add(1);
            core_->segments.unreadable(number);
            knows_all_ = false;
            log::warn("disk: ", path, ": ", why);
        }
        return;
    }
    segment_header_image image{};
    if (const auto failed = read_all(**opened, 0, std::as_writable_bytes(std::span{image}))) {
        throw_if_no_memory(failed);
        core_->segments.begin(number, *opened, 0, {});
        core_->segments.unreadable(number);
        knows_all_ = false;
        return;
    }
    const auto header = read_segment_header(image, core_->super.store_id);
    const bool ours = header && header->number == number &&
                      header->segment_bytes == core_->shape.segment_bytes;
    core_->segments.begin(
        number, *opened, ours ? header->sequence : 0, ours ? header->begun : wall_time{});
    knows_all_ = knows_all_ && ours;
    if (ours) {
        out.push_back({number, *opened, header->sequence});
    }
}

void loader::take_in(const found& segment, const recovered_segment& records, std::uint64_t& live) {
    for (auto it = records.entries.rbegin(); it != records.entries.rend(); ++it) {
        const auto& one = *it;
        if (says_.is_dead(one, segment.sequence)) {
            continue;
        }
        const auto key = one.key();
        const index_entry entry{.place = {static_cast<std::uint16_t>(segment.number), one.offset},
                                .bytes = one.bytes,
                                .kind = one.kind,
                                .uses = 0,
                                .expiry = one.expiry};
        // Noted and then taken from the index there; here the other way round.
        const auto gone = [&] { return core_->gone.has(key) || core_->gone.has(one.primary); };
        if (gone() || !core_->put_if_absent(key, entry)) {
            continue;
        }
        if (gone()) {
            (void)core_->erase(key, entry);
            continue;
        }
        live += one.bytes;
    }
}

void loader::run() {
    const auto begun = steady_now();
    const auto segments = find_segments();

    log_end end;
    const bool knows_slots = !patience_.is_stopped();
    end.knows_slots = knows_slots;
    end.next_sequence = sequence_after(
        std::max(segments.empty() ? 0 : segments.front().sequence, says_.last.sequence),
        wall_now());
    std::vector<loaded_segment> loaded;
    (void)patience_.with_memory([&] { loaded.reserve(segments.size()); });
    bool is_whole = true;  // the index: every record of the segments that were found could be read
    bool has_begun = false;
    const auto begin_writing = [&] {
        if (!std::exchange(has_begun, true)) {
            writer_.begin(std::move(end));
        }
    };
    std::size_t i = 0;
    for (; i < segments.size() && !patience_.is_stopped(); ++i) {
        const auto& one = segments[i];
        recovered_segment records;
        std::uint64_t live = 0;
        const bool is_read = patience_.with_memory([&] {
            records = read_segment(*one.from, *core_, one.number);
            take_in(one, records, live);
        });
        if (!is_read) {
            break;  // stopped
        }
        if (records.state == segment_state::unreadable || records.state == segment_state::unused) {
            core_->counts.read_errors.fetch_add(1);
            log::warn("disk: ", core_->settings.path, ": segment ", one.number, " can't be read");
            is_whole = false;
        } else {
            core_->counts.damaged.fetch_add(records.damaged);
            is_whole = is_whole && records.unreadable_bytes == 0;
            loaded.push_back({one.number, one.sequence, live});
        }
        if (i == 0) {
            // Positions in the journal may reach further than what a power cut has left.
            const bool behind = log_position{one.sequence, records.end} >= says_.last;
            if (behind && knows_all_ && can_go_on(records, core_->shape.segment_bytes)) {
                end.open = {one.number, one.from, std::move(records)};
            }
            begin_writing();
        }
    }
    begin_writing();  // where no segment came to that
    const bool is_complete = knows_slots && i == segments.size();
    core_->gone.close();
    says_ = {};
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady_now() - begun);
    core_->loaded_in_ms.store(took.count());
    // The writer knows before anybody reads that the store is ready: from then on it can be lent. It
    // is told at a stop too, which it would else take for one in the middle.
    if (is_complete) {
        writer_.loaded(std::move(loaded), is_whole && !core_->gone.has_everything());
    }
    if (!patience_.is_stopped()) {
        core_->loading.store(false);  // else what is not in the index may still be on disk
        log::info("disk: ",
                  core_->settings.path,
                  ": ",
                  core_->counts.objects.load(),
                  " objects found in ",
                  took.count(),
                  " ms");
        if (core_->settings.told != nullptr) {
            tell_contents(*core_, patience_);
        }
    }
}

}  // namespace reprise::proxy::cache::disk
