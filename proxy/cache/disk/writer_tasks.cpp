#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/contents_loader.hpp"
#include "proxy/cache/disk/large_body.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "proxy/cache/disk/writer.hpp"
#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/recency.hpp"

#include <utility>
#include <vector>

// What the writer does with one task: encode it at the end of the log, and make room for that.

namespace reprise::proxy::cache::disk {

std::uint64_t response_task::discriminator() const noexcept {
    const auto vary = response->vary();
    return vary.empty() ? 0 : variant_discriminator(primary, vary.names, response->selecting());
}

template <class Source>
std::optional<index_entry> writer::append(const Source& source, std::uint64_t id) {
    const auto bytes = sized(source);
    if (!bytes || *bytes > core_->shape.record_most || !make_room(*bytes)) {
        core_->counts.skipped.fetch_add(1, relaxed);
        return std::nullopt;
    }
    return tail_.append(*bytes, id, [&](std::span<char> into, const record_stamp& stamp) {
        return encode(source, stamp, core_->super.store_id, into);
    });
}

std::uint32_t writer::extents_of(const response_task& task) const noexcept {
    const auto extent = core_->shape.inline_most;
    return static_cast<std::uint32_t>((task.length + extent - 1) / extent);
}

// The response whose head is under this key; null: there is none, or it can't be read.
stored_ptr writer::head_under(const filter::key_hash& key) {
    if (tail_.awaits(key)) {
        flush();
    }
    const auto there = core_->index.find(key);
    if (!there || there->kind == record_kind::variants) {
        return nullptr;
    }
    std::vector<char> front;
    if (!read_front(*core_, there->place, there->bytes, front)) {
        return nullptr;
    }
    auto view = read_object(front);
    if (!view) {
        return nullptr;
    }
    auto& came = view->freshness.response_time;
    came = core_->came_at(view->header, came);
    return stored_response::make(make_response(*view));
}

// The newest head of a variant; null: there is none. Costs a read where one takes another's place;
// for a new one the index says that there is nothing to read.
stored_ptr writer::newest_of(const filter::key_hash& primary, std::uint64_t discriminator) {
    auto object = head_under(index_key(record_kind::object, primary, discriminator));
    if (!object) {
        return nullptr;
    }
    auto newer = head_under(refresh_key(primary, discriminator));
    const bool is_its = newer &&
                        newer->disk_record.load(relaxed) == object->disk_record.load(relaxed);
    return is_its ? newer : object;
}

void writer::perform(const outdate_task& task) {
    const auto there = newest_of(task.primary, task.discriminator);
    if (there && task.is_part && are_of_one_representation(*task.newer, *there)) {
        return;
    }
    if (!there || !is_outdated_by(*task.newer, *there)) {
        if (there) {
            core_->replaced.went(there->disk_record.load(relaxed));
        }
        forget(task);
    } else if (core_->on_outdated) {
        core_->on_outdated(task.primary, task.url, task.newer);
    }
}

// Removes it, whether it is in the index, can't be read, or may still be loaded.
void writer::forget(const outdate_task& task) {
    const auto object = index_key(record_kind::object, task.primary, task.discriminator);
    const bool may_come = core_->loading.load(relaxed);
    core_->gone.note(object);
    if (core_->erase(object) || may_come) {
        if (!note(drop_note{task.primary, task.discriminator, drop_note::whatever})) {
            (void)core_->erase(task.primary);
            note(dropped_url{task.primary});
        }
    }
}

std::optional<drop_note> writer::let_older_go(const filter::key_hash& primary,
                                              std::uint64_t discriminator) {
    const auto object = index_key(record_kind::object, primary, discriminator);
    const bool may_come = core_->loading.load(relaxed);
    if (may_come) {
        core_->gone.note(object);
    }
    const bool waited = tail_.withdraw(object);
    if (!core_->erase(object) && !waited && !may_come) {
        return std::nullopt;
    }
    return drop_note{primary, discriminator, drop_note::whatever};
}

void writer::let_older_than_failed_go() {
    for (const auto& one : tail_.take_failed()) {
        if (one.discriminator) {
            if (const auto older = let_older_go(one.primary, *one.discriminator)) {
                (void)note(*older);
            }
        } else if (!one.moved_from && one.entry.kind != record_kind::refresh) {
            (void)core_->erase(one.key);
        }
    }
}

// With that, a restart does not find what was older either; unless more wait to be kept than are
// remembered, which is no reason to give up all that is stored.
void writer::is_not_written(const response_task& task) {
    if (!task.outdates_older()) {
        return;
    }
    if (const auto older = let_older_go(task.primary, task.discriminator())) {
        (void)note(*older);
    }
}

// It was dropped, or invalidated as far as anybody knows. What it was to replace goes with it, unless
// that is newer.
void writer::perform_dropped(const response_task& task) {
    if (task.kind == record_kind::refresh) {
        is_not_written(task);
        return;
    }
    const auto there = newest_of(task.primary, task.discriminator());
    if (!there || !is_outdated_by(*task.response, *there)) {
        is_not_written(task);
    }
    if (task.kind == record_kind::large) {
        perform(abandon_task{task.primary, task.id, extents_of(task)});
    }
}

void writer::perform(const response_task& task) {
    if (core_->invalidated.since(task.primary, task.asked) || dropped_ids_.contains(task.id)) {
        perform_dropped(task);
        return;
    }
    const auto discriminator = task.discriminator();
    if (discriminator != 0 && core_->loading.load(relaxed)) {
        // The directory may be in a segment that is not known yet: it would be begun anew.
        is_not_written(task);
        core_->counts.skipped.fetch_add(1, relaxed);
        return;
    }
    // A more recent one may have been written before: a download took long, a response left memory
    // late, or a 304 was overtaken by another.
    const auto before = newest_of(task.primary, discriminator);
    if (before && is_outdated_by(*task.response, *before)) {
        core_->counts.skipped.fetch_add(1, relaxed);
        if (core_->on_outdated) {
            core_->on_outdated(task.primary, task.url, task.response);
        }
        if (task.kind == record_kind::large) {
            perform(abandon_task{task.primary, task.id, extents_of(task)});
        }
        return;
    }
    if (before && task.kind != record_kind::refresh) {
        core_->replaced.went(before->disk_record.load(relaxed));
    }
    if (task.kind == record_kind::large) {
        // The head is for when all of it is there: in the index, hence in the file.
        flush();
        const auto extent = static_cast<std::uint32_t>(core_->shape.inline_most);
        if (!has_extents(core_->index,
                         {task.primary, task.id, task.length, extent, extents_of(task)})) {
            is_not_written(task);
            core_->counts.skipped.fetch_add(1, relaxed);
            return;
        }
    }
    if (task.kind == record_kind::refresh) {
        const auto object = index_key(record_kind::object, task.primary, discriminator);
        if (tail_.awaits(object)) {
            flush();
        }
        // Another may have come in its place, or it was never written: then this is nobody's head.
        const auto there = core_->index.find(object);
        std::vector<char> front;
        const auto of = there ? read_front(*core_, there->place, there->bytes, front)
                              : std::nullopt;
        if (!of) {
            is_not_written(task);                   // it may still be loaded
            if (there && !task.outdates_older()) {  // nor can anybody else read it
                (void)core_->erase(object, *there);
                if (discriminator != 0) {
                    tell_variants(*core_, task.primary);
                }
            }
            return;
        }
        if (of->header.id != task.subject) {
            return;
        }
    }
    write_response(task, discriminator);
    carry_what_is_due();
}

void writer::write_response(const response_task& task, std::uint64_t discriminator) {
    const bool is_large = task.kind == record_kind::large;
    const object_source source{
        .kind = task.kind,
        .primary = task.primary,
        .discriminator = discriminator,
        .url = task.url,
        .response = *task.response,
        .ban_epoch = task.ban_epoch,
        .subject = task.subject,
        .length = task.length,
        .extent_bytes = is_large ? static_cast<std::uint32_t>(core_->shape.inline_most) : 0,
        .carried = false};
    const auto entry = append(source, task.id);
    if (!entry) {
        is_not_written(task);
        return;
    }
    // Variants are not told one by one: their directory is.
    const bool told = core_->settings.told != nullptr && discriminator == 0;
    const auto& response = *task.response;
    tail_.publish_later(
        {.key = index_key(task.kind, task.primary, discriminator),
         .entry = *entry,
         .primary = task.primary,
         .length = task.length,
         .asked = task.asked,
         .moved_from = {},
         .discriminator = task.outdates_older() ? std::optional{discriminator} : std::nullopt,
         .url = told ? task.url : std::string{},
         .useful_until = useful_until(response.freshness(), response.directives())});
    if (task.kind == record_kind::refresh) {
        const auto object = index_key(record_kind::object, task.primary, discriminator);
        if (const auto found = core_->index.find(object)) {
            (void)core_->index.set_expiry(object, found->place, entry->expiry);
        }
        if (core_->settings.told != nullptr && discriminator != 0) {
            flush();  // so that the new head is what is read
            tell_variants(*core_, task.primary);
        }
    } else if (discriminator != 0) {
        list_variant(task, discriminator, entry->expiry);
    }
}

void writer::list_variant(const response_task& task,
                          std::uint64_t discriminator,
                          std::uint16_t expiry) {
    if (tail_.awaits(task.primary)) {
        flush();
    }
    variant_directory directory;
    const auto before = core_->index.find(task.primary);
    if (before && before->kind == record_kind::variants) {
        auto from = core_->segments.at(before->place.segment);
        if (from.from && from.sequence != 0) {
            record_read read{{}, std::move(from), *before, core_->super.store_id};
            read.read_now();
            if (read.how() == record_read::outcome::good && read.header().primary == task.primary) {
                if (auto known = read_variants(read.bytes()); known && known->url == task.url) {
                    directory = std::move(*known);
                }
            }
        }
    }
    directory.url = task.url;
    std::erase_if(directory.variants, [&](const listed_variant& one) {
        const auto key = index_key(record_kind::object, task.primary, one.discriminator);
        return one.discriminator != discriminator && !core_->index.find(key);
    });
    const auto gone = directory.add({.names = std::string{task.response->vary().names},
                                     .discriminator = discriminator,
                                     .id = task.id,
                                     .response_time = task.response->freshness().response_time,
                                     .expiry = expiry});
    if (gone && gone->discriminator != discriminator) {
        (void)core_->erase(index_key(record_kind::object, task.primary, gone->discriminator));
    }
    const directory_source source{task.primary, directory};
    if (const auto entry = append(source, core_->next_id())) {
        tail_.publish_later({.key = task.primary,
                             .entry = *entry,
                             .primary = task.primary,
                             .length = entry->bytes,
                             .asked = task.asked,
                             .moved_from = {}});
    }
}

void writer::perform(const extent_task& task) {
    const extent_source source{
        .primary = task.primary, .object = task.object, .part = task.part, .bytes = task.bytes};
    if (const auto entry = append(source, core_->next_id())) {
        tail_.publish_later({.key = extent_key(task.primary, task.object, task.part),
                             .entry = *entry,
                             .primary = task.primary,
                             .length = entry->bytes,
                             .asked = {},
                             .moved_from = {}});
        carry_what_is_due();
    }
}

void writer::perform(const abandon_task& task) {
    flush();
    for (std::uint32_t part = 0; part < task.parts; ++part) {
        (void)core_->erase(extent_key(task.primary, task.object, part));
    }
}

// What there is of the variant: what was being written when the note was made is in the index by now, or
// still waits to enter it.
journal_fact writer::drop_unread(const drop_note& note) {
    const auto key = index_key(record_kind::object, note.primary, note.discriminator);
    core_->gone.note(key);
    (void)tail_.withdraw(key);
    (void)core_->erase(key);
    if (note.discriminator != 0) {
        tell_variants(*core_, note.primary);
    }
    return dropped_variant{note.primary, note.discriminator};
}

std::optional<journal_fact> writer::drop(const drop_note& note) {
    const auto key = index_key(record_kind::object, note.primary, note.discriminator);
    if (note.id == drop_note::whatever) {
        return drop_unread(note);
    }
    if (tail_.awaits(key)) {
        flush();
        if (troubled_) {
            return drop_unread(note);  // its bytes may be there
        }
    }
    const auto entry = core_->index.find(key);
    if (entry) {
        auto from = core_->segments.at(entry->place.segment);
        if (!from.from || from.sequence == 0) {
            return std::nullopt;
        }
        record_read read{{}, std::move(from), *entry, core_->super.store_id};
        read.read_now();
        if (read.how() == record_read::outcome::good && read.header().id != note.id) {
            dropped_ids_.insert(note.id);
            return std::nullopt;
        }
    } else {
        dropped_ids_.insert(note.id);
        if (!core_->loading.load(relaxed)) {
            return std::nullopt;
        }
    }
    core_->gone.note(key);
    if (entry) {
        (void)core_->erase(key, *entry);
        if (note.discriminator != 0) {
            tell_variants(*core_, note.primary);
        }
    }
    return dropped_variant{note.primary, note.discriminator};
}

void writer::carry_what_is_due() {
    const auto filled = [this] {
        return static_cast<double>(tail_.position().offset) /
               static_cast<double>(core_->shape.segment_bytes);
    };
    while (!troubled_ && tail_.is_open() && reclaimer_.is_active() &&
           reclaimer_.carry_one(tail_, filled())) {
        if (tail_.unwritten_bytes() >= log_tail::piece_bytes) {
            flush();
        }
    }
    if (tail_.is_open() && tail_.unwritten_bytes() >= log_tail::piece_bytes) {
        flush();
    }
}

bool writer::make_room(std::uint64_t record_bytes) {
    if (troubled_) {
        return false;
    }
    while (!tail_.is_open() || !tail_.has_room(record_bytes)) {
        close_tail();
        if (troubled_ || !open_next()) {
            return false;
        }
    }
    return true;
}

void writer::close_tail() {
    if (const auto failed = tail_.close()) {
        trouble(failed, "closing a segment");
    }
    sync_by_ = {};
}

std::optional<std::uint32_t> writer::free_segment(bool even_failed) {
    std::optional<std::uint32_t> unread, last_choice;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto view = core_->segments.at(number);
        if (view.sequence != 0 || (!view.from && steady_now() < make_again_)) {
            continue;
        }
        const auto failed = failed_.find(number);
        if (failed == failed_.end() || next_sequence_ >= failed->second) {
            if (!core_->segments.is_unread(number)) {
                return number;
            }
            // The next start may be able to read it.
            unread = unread ? unread : number;
            continue;
        }
        if (even_failed && !last_choice) {
            last_choice = number;
        }
    }
    return unread ? unread : last_choice;
}

// Whether one segment fails, and not the disk: other segments' contents are not to be given up for
// tries that all fail alike.
error_code writer::try_journal() {
    const bool failed_lately = !failed_.empty() || backoff_.count() != 0;
    if (!failed_lately) {
        return {};
    }
    const journal_entry nothing{position(), sealed{}};
    const auto failed = journal_.append({&nothing, 1}, true);
    journal_broken_ = bool{failed};
    return failed;
}

std::optional<std::uint32_t> writer::oldest_segment() const {
    std::optional<std::uint32_t> oldest;
    std::uint64_t lowest = 0;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto sequence = core_->segments.sequence(number);
        const bool is_tail = tail_.is_open() && tail_.number() == number;
        if (sequence != 0 && !is_tail && (!oldest || sequence < lowest)) {
            oldest = number;
            lowest = sequence;
        }
    }
    return oldest;
}

bool writer::must_wait_for_loading() {
    const bool open = tail_.is_open() && tail_.has_room(core_->shape.record_most);
    return !knows_slots_ || (!may_reclaim_ && !open && !free_segment(true));
}

bool writer::open_next() {
    for (;;) {
        auto number = free_segment(false);
        if (!number && !reclaimer_.is_active()) {
            const auto oldest = may_reclaim_ ? oldest_segment() : std::nullopt;
            number = oldest ? std::nullopt : free_segment(true);
            if (!oldest && !number) {
                trouble(
                    boost::system::errc::make_error_code(boost::system::errc::no_space_on_device),
                    "looking for a segment");
                return false;
            }
            if (const auto failed = number ? error_code{} : try_journal()) {
                trouble(failed, "keeping purges");
                return false;
            }
            if (oldest) {
                reclaimer_.begin(*oldest);  // nothing could be carried ahead of time
            }
        }
        if (!may_use_again(number ? *number : reclaimer_.number())) {
            return false;
        }
        if (!number) {
            number = reclaimer_.number();
            reclaimer_.finish();
        }
        settle_deaths();
        if (core_->segments.has_unread() || has_surplus_) {
            if (const auto failed = drop_what_is_left_in(*number)) {
                trouble(failed, "keeping purges");
                return false;
            }
        }
        error_code failed;
        auto opened = open_segment_file(*number, failed);
        if (failed == boost::system::errc::no_space_on_device && oldest_segment() &&
            steady_now() >= make_again_) {
            make_again_ = steady_now() + core_->settings.retry_at_most;
            log::warn("disk: ",
                      core_->settings.path,
                      ": no room for more segments; those that are there are used again");
            continue;
        }
        if (!failed) {
            // Not again, whatever comes of it: the header may be in the file.
            failed = tail_.open(*number, next_sequence_++, std::move(opened));
        }
        if (failed) {
            (void)drop_what_is_left_in(*number);
            failed_[*number] = next_sequence_ + core_->segments.size();
            trouble(failed, "beginning a segment");
            return false;
        }
        failed_.erase(*number);
        break;
    }
    core_->expiries.forget_before(oldest_position());
    if (may_reclaim_ && !reclaimer_.is_active() && !free_segment(false)) {
        if (const auto oldest = oldest_segment()) {
            reclaimer_.begin(*oldest);
        }
    }
    return true;
}

// Whether a process that lent us the store may still read it, or go on with it. Once it has ended all of
// it is ours: what a smaller store has no use for too.
bool writer::has_lender() {
    if (core_->lender && !core_->lender->try_lock()) {
        core_->lender = nullptr;
    }
    if (has_surplus_ && !core_->lender) {
        has_surplus_ = !core_->remove_surplus();
    }
    return core_->lender != nullptr;
}

// What a process that lent us the store may still read stays as it is until that has ended.
bool writer::may_use_again(std::uint32_t number) {
    if (!has_lender() || core_->segments.left_in_file(number) == 0) {
        return true;
    }
    if (!std::exchange(said_that_others_read_, true)) {
        log::info("disk: ",
                  core_->settings.path,
                  ": the program before this one still reads what the next segment holds; until it "
                  "has ended nothing is stored on disk");
    }
    return false;
}

std::shared_ptr<file> writer::open_segment_file(std::uint32_t number, error_code& failed) {
    const auto path = core_->path_of(segment_name(number));
    const auto opened = core_->files->open(path, open_mode::make);
    if (!opened) {
        failed = opened.error();
        return nullptr;
    }
    const auto size = (*opened)->size();
    if (!size) {
        failed = size.error();
        return nullptr;
    }
    if (*size != core_->shape.segment_bytes) {
        failed = *size > core_->shape.segment_bytes
                     ? (*opened)->resize(core_->shape.segment_bytes)
                     : (*opened)->reserve(core_->shape.segment_bytes);
        if (!failed) {
            failed = core_->files->sync_directory(core_->settings.path);
        }
        if (failed) {
            if (*size == 0) {
                (void)core_->files->remove(path);
            }
            return nullptr;
        }
    }
    return *opened;
}

void writer::settle_deaths() {
    for (const auto& one : core_->take_deaths()) {
        core_->room.died(one.place.segment, {one.bytes, one.bytes, 1});
    }
}

}  // namespace reprise::proxy::cache::disk
