#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/contents_loader.hpp"
#include "proxy/cache/disk/record_read.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "proxy/cache/disk/writer.hpp"
#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/recency.hpp"

#include <utility>
#include <vector>

// What the writer lets go of, and what not. Whatever takes the place of something, or has it taken away, was
// ordered a while ago, and something else may be there by now: so what is there is read and named first. A
// drop is of one record, by its id; all else is of what is not more recent than the response it is done for
// (meet), but where a newer response is lost on its way: then what it would have replaced goes unread. A
// response without Vary and the directory of those that have it stand in one place, the primary key,
// and are held against each other too.

namespace reprise::proxy::cache::disk {

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

// What the index has under a primary key whose responses have Vary; none: it has no such, or that can't be read.
std::optional<variant_directory> writer::directory_under(const filter::key_hash& primary) {
    if (tail_.awaits(primary)) {
        flush();
    }
    const auto there = core_->index.find(primary);
    if (!there || there->kind != record_kind::variants) {
        return std::nullopt;
    }
    auto from = core_->segments.at(there->place.segment);
    if (!from.from || from.sequence == 0) {
        return std::nullopt;
    }
    record_read read{{}, std::move(from), *there, core_->super.store_id};
    read.read_now();
    if (read.how() != record_read::found::good || read.header().primary != primary) {
        return std::nullopt;
    }
    auto listed = read_variants(read.bytes());
    return listed ? std::optional{std::move(*listed)} : std::nullopt;
}

writer::meeting writer::hold_against(const stored_ptr& there,
                                     const stored_response& comer,
                                     bool is_part) {
    if (!there) {
        return meeting::nothing_newer;
    }
    if (is_part && are_of_one_representation(comer, *there)) {
        return meeting::its_whole;
    }
    if (is_outdated_by(comer, *there)) {
        return meeting::newer;
    }
    core_->replaced.went(there->disk_record.load(relaxed));
    return meeting::nothing_newer;
}

writer::meeting writer::meet(const filter::key_hash& primary,
                             std::uint64_t discriminator,
                             const stored_response& comer,
                             bool is_part) {
    const auto there = newest_of(primary, discriminator);
    return there || discriminator != 0 ? hold_against(there, comer, is_part)
                                       : meet_variants(primary, comer, is_part);
}

// Each variant by itself: those that are not more recent are not to be found any more. Where all are so the
// whole directory may go; else they go one by one, and it stays for the others.
writer::meeting writer::meet_variants(const filter::key_hash& primary,
                                      const stored_response& comer,
                                      bool is_part) {
    const auto directory = directory_under(primary);
    if (!directory) {
        return meeting::nothing_newer;
    }
    auto met = meeting::nothing_newer;
    std::vector<std::uint64_t> older;
    for (const auto& one : directory->variants) {
        const auto there = newest_of(primary, one.discriminator);
        const bool is_listed = there && there->disk_record.load(relaxed) == one.id;
        const auto with_this = hold_against(is_listed ? there : nullptr, comer, is_part);
        if (with_this == meeting::nothing_newer) {
            older.push_back(one.discriminator);
        } else if (met != meeting::newer) {
            met = with_this;
        }
    }
    if (met != meeting::nothing_newer) {
        for (const auto discriminator : older) {
            let_older_go(primary, discriminator, noting::surely);
        }
    }
    return met;
}

// A download took long, a response left memory late, or a 304 was overtaken by another.
bool writer::comes_late(const response_task& task, std::uint64_t discriminator) {
    if (task.kind == record_kind::refresh) {
        const auto before = newest_of(task.primary, discriminator);
        return before && is_outdated_by(*task.response, *before);
    }
    if (meet(task.primary, discriminator, *task.response) == meeting::newer) {
        return true;
    }
    // Its directory would take the place of a response without Vary.
    return discriminator != 0 &&
           hold_against(newest_of(task.primary, 0), *task.response, false) == meeting::newer;
}

void writer::perform(const outdate_task& task) {
    switch (meet(task.primary, task.discriminator, *task.newer, task.is_part)) {
    case meeting::nothing_newer:
        forget(task);
        if (let_older_plain_go(task.primary, task.discriminator, *task.newer, task.is_part)) {
            return;
        }
        break;
    case meeting::newer: break;
    case meeting::its_whole: return;
    }
    if (core_->on_outdated) {
        core_->on_outdated(task.primary, task.url, task.newer);
    }
}

// Removes it, whether it is in the index, can't be read, or may still be loaded.
void writer::forget(const outdate_task& task) {
    const auto object = index_key(record_kind::object, task.primary, task.discriminator);
    if (core_->loading.load(relaxed) || core_->index.find(object)) {
        keep(drop_note{task.primary, task.discriminator, drop_note::whatever});
    }
    (void)core_->erase(object);
}

// Where too many drops wait to be kept, the whole URL goes.
void writer::keep(const drop_note& what) {
    if (!note(what)) {
        note(dropped_url{what.primary});
        (void)core_->erase(what.primary);
    }
}

// A variant that `comer` is, or was to be: its request would be answered again by what is older and has no Vary.
// What is still to be loaded is not asked: to rule it out would rule out the directory of all variants too.
bool writer::let_older_plain_go(const filter::key_hash& primary,
                                std::uint64_t discriminator,
                                const stored_response& comer,
                                bool is_part) {
    const auto plain = discriminator == 0 ? nullptr : newest_of(primary, 0);
    if (!plain) {
        return true;
    }
    const auto met = hold_against(plain, comer, is_part);
    if (met == meeting::nothing_newer) {
        let_older_go(primary, 0);
    }
    return met != meeting::newer;
}

// The same unread, where a newer variant is lost on its way.
void writer::let_plain_go(const filter::key_hash& primary, std::uint64_t discriminator) {
    const auto there = core_->index.find(primary);
    if (discriminator != 0 && there && there->kind != record_kind::variants) {
        let_older_go(primary, 0);
    }
}

// It is noted first: where there is no memory for that it is still there to be let go the next time.
void writer::let_older_go(const filter::key_hash& primary,
                          std::uint64_t discriminator,
                          noting how) {
    const auto object = index_key(record_kind::object, primary, discriminator);
    if (!tail_.awaits(object) && !core_->loading.load(relaxed) && !core_->index.find(object)) {
        return;
    }
    const drop_note gone{primary, discriminator, drop_note::whatever};
    core_->note_unlisted(primary);  // for there may be no room for the note
    if (how == noting::surely) {
        keep(gone);
    } else {
        (void)note(gone);
    }
    (void)tail_.withdraw(object);
    (void)core_->erase(object);
}

void writer::let_older_than_failed_go() {
    auto& failed = tail_.failed();
    while (!failed.empty()) {
        const auto& one = failed.back();
        core_->note_unlisted(one.primary);  // its bytes may be there all the same
        if (one.discriminator && one.outdates_older) {
            let_older_go(one.primary, *one.discriminator);
            let_plain_go(one.primary, *one.discriminator);
        } else if (!one.moved_from && one.entry.kind != record_kind::refresh) {
            (void)core_->erase(one.key);
        }
        failed.pop_back();
    }
}

// With that, a restart does not find what was older either; unless more wait to be kept than are
// remembered, which is no reason to give up all that is stored.
void writer::is_not_written(const response_task& task) {
    if (!task.outdates_older()) {
        return;
    }
    let_older_go(task.primary, task.discriminator());
    (void)let_older_plain_go(task.primary, task.discriminator(), *task.response);
}

// A newer response came that the queue had no room for: this one is not written. What it ends is ended all the
// same, where that is more than the newer one ends: one without Vary has come for all variants.
void writer::let_go(const write_task& task) {
    if (const auto* outdated = std::get_if<outdate_task>(&task)) {
        perform(*outdated);
    } else if (const auto* response = std::get_if<response_task>(&task)) {
        core_->counts.skipped.fetch_add(1, std::memory_order_relaxed);
        if (response->discriminator() == 0) {
            perform(outdate_task{response->primary, 0, response->url, response->response, false});
        }
        if (response->kind == record_kind::large) {
            perform(abandon_task{response->primary, response->id, extents_of(*response)});
        }
    }
}

// Each stays in the queue, and under way, until it is done with. With `lock` held, which is let go meanwhile.
void writer::skip_offered(std::unique_lock<std::mutex>& lock) {
    while (!offered_.empty()) {
        const auto& one = offered_.front();
        lock.unlock();
        skip(one.task);
        if (one.about) {
            core_->on_their_way.end(*one.about);
        }
        if (one.bytes != 0 && !std::holds_alternative<outdate_task>(one.task)) {
            core_->counts.skipped.fetch_add(1, relaxed);
            core_->counts.skipped_bytes.fetch_add(one.bytes, relaxed);
        }
        lock.lock();
        pop_offered();
    }
}

void writer::skip(const write_task& task) {
    if (const auto* response = std::get_if<response_task>(&task);
        response != nullptr && response->outdates_older()) {
        let_older_go(response->primary, response->discriminator());
        let_plain_go(response->primary, response->discriminator());
    }
    if (const auto* outdated = std::get_if<outdate_task>(&task)) {
        const auto object = index_key(
            record_kind::object, outdated->primary, outdated->discriminator);
        let_plain_go(outdated->primary, outdated->discriminator);
        keep(drop_note{outdated->primary, outdated->discriminator, drop_note::whatever});
        (void)core_->erase(object);
    }
}

// It was dropped, or invalidated as far as anybody knows. What it was to replace goes with it, unless
// that is newer.
void writer::perform_dropped(const response_task& task) {
    if (task.kind == record_kind::refresh) {
        is_not_written(task);
        return;
    }
    if (meet(task.primary, task.discriminator(), *task.response) != meeting::newer) {
        is_not_written(task);
    }
    if (task.kind == record_kind::large) {
        perform(abandon_task{task.primary, task.id, extents_of(task)});
    }
}

// What there is of the variant: what was being written when the note was made is in the index by now, or
// still waits to enter it.
journal_fact writer::drop_unread(const drop_note& note) {
    const auto key = index_key(record_kind::object, note.primary, note.discriminator);
    (void)tail_.withdraw(key);
    (void)core_->erase(key);
    if (note.discriminator != 0) {
        tell_variants(*core_, note.primary);
    }
    return dropped_variant{note.primary, note.discriminator};
}

void writer::is_dropped(std::uint64_t id) {
    const std::lock_guard lock{guard_};
    dropped_ids_.add(id, offered_in_all_);
}

std::optional<journal_fact> writer::drop(const drop_note& note) {
    const auto key = index_key(record_kind::object, note.primary, note.discriminator);
    if (note.id == drop_note::whatever) {
        return drop_unread(note);
    }
    if (tail_.awaits(key)) {
        flush();
        if (!tail_.is_open()) {
            return drop_unread(note);  // its bytes may be there
        }
    }
    const auto entry = core_->index.find(key);
    if (entry && entry->kind == record_kind::variants) {
        is_dropped(note.id);  // a directory is no response, whether it can be read or not
        return std::nullopt;
    }
    if (entry) {
        auto from = core_->segments.at(entry->place.segment);
        if (!from.from || from.sequence == 0) {
            return std::nullopt;
        }
        record_read read{{}, std::move(from), *entry, core_->super.store_id};
        read.read_now();
        if (read.how() == record_read::found::good && read.header().id != note.id) {
            is_dropped(note.id);
            return std::nullopt;
        }
    } else {
        is_dropped(note.id);
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
