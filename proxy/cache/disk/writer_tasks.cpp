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

// What the writer does with one task: encode it at the end of the log, or see that nothing older stays.

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

}  // namespace reprise::proxy::cache::disk
