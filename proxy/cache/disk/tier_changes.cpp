#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/arriving_object.hpp"
#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/disk/writer.hpp"
#include "proxy/http/reuse.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

// What changes the store: each change is queued for the writer, or noted for its journal, and nothing here waits
// for the disk. From the call on no look-up finds what it takes away.

namespace reprise::proxy::cache::disk {

namespace {

std::uint64_t discriminator_of(const filter::key_hash& primary, const stored_response& one) {
    const auto vary = one.vary();
    return vary.empty() ? 0 : variant_discriminator(primary, vary.names, one.selecting());
}

using window_of = std::optional<http::seconds> http::response_directives::*;

// Until when it may be sent stale by that directive, where nothing forbids it.
wall_time stale_until(const stored_response& one, window_of window) {
    const auto allowed = one.directives();
    const auto facts = one.freshness();
    return facts.response_time + (facts.lifetime - facts.initial_age) +
           (allowed.*window).value_or(http::seconds{0});
}

bool allows_less_stale(const stored_response& updated, const stored_response& current) {
    const auto before = current.directives();
    if (http::forbids_stale(before)) {
        return false;
    }
    const auto ends_sooner = [&](window_of window) {
        return before.*window && stale_until(updated, window) < stale_until(current, window);
    };
    return http::forbids_stale(updated.directives()) ||
           ends_sooner(&http::response_directives::stale_while_revalidate) ||
           ends_sooner(&http::response_directives::stale_if_error);
}

}  // namespace

bool tier::put(const filter::key_hash& key,
               std::string_view url,
               const stored_ptr& response,
               const invalidation_mark& asked) {
    if (!response->has_content() || response->vary().any) {
        return false;
    }
    const auto size = response->size();
    core_->room.note_wait(response->wait());
    if (size > core_->shape.inline_most) {
        const auto whole = begin_object(key, url, size, "", asked, response->wait());
        const auto content = response->content();
        return whole && whole->ask_room_for(size, response->head().size()) &&
               std::all_of(content->slices.begin(),
                           content->slices.end(),
                           [&whole](const slice& part) { return whole->append(part); }) &&
               whole->finish(*response);
    }
    const auto skip = [&] {
        core_->counts.skipped.fetch_add(1, relaxed);
        core_->counts.skipped_bytes.fetch_add(size, relaxed);
        return false;
    };
    core_->room.aged_to(core_->requests.agings());
    if (core_->settings.choosy &&
        !core_->room.worth_writing(core_->requests.estimate(key), size, response->wait())) {
        return skip();
    }
    const auto epoch = held_against_purges(*core_, key, url, *response, asked);
    if (!epoch || size > core_->settings.max_object) {
        return skip();
    }
    response_task task{.kind = record_kind::object,
                       .primary = key,
                       .url = std::string{url},
                       .response = response,
                       .id = core_->next_id(),
                       .asked = asked.count,
                       .ban_epoch = *epoch,
                       .subject = 0,
                       .length = size,
                       .representation = std::nullopt};
    const auto id = task.id;
    if (!writer_->offer(std::move(task), size + response->head().size() + task_bytes)) {
        return skip();
    }
    response->disk_record = id;
    core_->counts.puts.fetch_add(1, relaxed);
    core_->counts.put_bytes.fetch_add(size, relaxed);
    return true;
}

std::unique_ptr<object_writer> tier::begin(const filter::key_hash& key,
                                           std::string_view url,
                                           std::optional<std::uint64_t> length,
                                           std::string_view strong_etag,
                                           const invalidation_mark& asked,
                                           packed_wait so_far) {
    return begin_object(key, url, length, strong_etag, asked, so_far);
}

std::unique_ptr<arriving_object> tier::begin_object(const filter::key_hash& key,
                                                    std::string_view url,
                                                    std::optional<std::uint64_t> length,
                                                    std::string_view strong_etag,
                                                    const invalidation_mark& asked,
                                                    packed_wait so_far) {
    core_->room.aged_to(core_->requests.agings());
    const bool unwanted = core_->settings.choosy && length &&
                          !core_->room.worth_writing(
                              core_->requests.estimate(key), *length, so_far);
    if (unwanted || !core_->takes_puts() || (length && *length > core_->settings.max_object)) {
        core_->counts.skipped.fetch_add(1, relaxed);
        core_->counts.skipped_bytes.fetch_add(length.value_or(0), relaxed);
        return nullptr;
    }
    return std::make_unique<arriving_object>(core_, writer_, key, url, strong_etag, asked);
}

bool tier::holds_or_awaits(const filter::key_hash& key, const stored_response& one) const {
    const auto object = index_key(record_kind::object, key, discriminator_of(key, one));
    // In this order: what has been written is in the index before it waits no more. And a variant is found by the
    // list of its URL's, which has the URL's own key.
    return core_->on_their_way.has_either_form(object, key) ||
           (core_->index.find(object).has_value() && may_hold(key));
}

bool tier::is_being_written(const filter::key_hash& key, std::string_view strong_etag) const {
    const auto representation = representation_of(key, strong_etag);
    const auto asked = representation ? core_->on_their_way.asked_for(*representation)
                                      : std::nullopt;
    return asked && !core_->invalidated.since(key, *asked);
}

bool allows_less(const stored_response& updated, const stored_response& current) {
    const auto before = current.tags(), now = updated.tags();
    return useful_until(updated.freshness(), updated.directives()) <
               useful_until(current.freshness(), current.directives()) ||
           allows_less_stale(updated, current) ||
           !std::includes(before.begin(), before.end(), now.begin(), now.end());
}

bool tier::freshen(const filter::key_hash& key,
                   std::string_view url,
                   const stored_response& current,
                   const stored_response& updated,
                   const invalidation_mark& asked) {
    const auto subject = current.disk_record.load(relaxed);
    if (subject == 0 || was_dropped(current) || updated.parts() ||
        updated.weak_last_modified() !=
            current.weak_last_modified() ||  // FORMAT.md: no refresh has it alone
        !(updated.vary() == current.vary()) ||
        updated.selecting() != current.selecting()) {
        return false;
    }
    // By the tags of both: a 304 may take away the one that was purged meanwhile.
    const auto epoch = held_against_purges(*core_, key, url, updated, asked);
    if (!epoch || !held_against_purges(*core_, key, url, current, asked)) {
        return false;
    }
    auto head = updated.draft_without_content();
    head.on_disk = nullptr;
    response_task task{.kind = record_kind::refresh,
                       .primary = key,
                       .url = std::string{url},
                       .response = stored_response::make(head),
                       .id = core_->next_id(),
                       .asked = asked.count,
                       .ban_epoch = *epoch,
                       .subject = subject,
                       .length = updated.size(),
                       .representation = std::nullopt,
                       .allows_less = allows_less(updated, current)};
    const auto object = index_key(record_kind::object, key, task.discriminator());
    // In this order: what is no longer under way can be found.
    const bool is_coming = core_->on_their_way.has_either_form(object, key);
    if (!is_coming && !core_->index.find(object)) {
        return false;
    }
    if (!writer_->offer(std::move(task), updated.head().size() + task_bytes)) {
        return false;
    }
    updated.disk_record = subject;
    return true;
}

void tier::invalidate(const filter::key_hash& key, std::function<void()> kept) {
    drop_url(key, false, std::move(kept));
}

void tier::purge(const filter::key_hash& key, std::function<void()> kept) {
    drop_url(key, true, std::move(kept));
}

void tier::drop_url(const filter::key_hash& key, bool always, std::function<void()> kept) {
    if (off_) {
        keep_bans(std::move(kept));
        return;
    }
    core_->gone.note(key);
    if (writer_->drop_url(key, always, std::move(kept))) {
        core_->counts.invalidated.fetch_add(1, relaxed);
    }
}

bool tier::drop(const filter::key_hash& key, const stored_response& outdated) {
    const auto id = outdated.disk_record.load(relaxed);
    if (id == 0 || off_) {
        return true;
    }
    if (core_->lent) {
        return false;  // nothing is taken out by the writer meanwhile: the caller invalidates
    }
    const auto discriminator = discriminator_of(key, outdated);
    try {
        core_->dropped.note(id);  // first: nobody finds it while the note waits
        if (writer_->note(drop_note{key, discriminator, id})) {
            return true;
        }
    } catch (const std::bad_alloc&) {
        // No memory is as good as no room: it would be hidden for ever, and be there for the next start.
    }
    core_->dropped.gone(id);  // with its URL, as the caller sees to
    return false;
}

bool tier::was_dropped(const stored_response& one) const {
    return core_->dropped.has(one.disk_record.load(relaxed));
}

bool tier::is_outrun(const filter::key_hash& key, const stored_response& one) const {
    const auto object = index_key(record_kind::object, key, discriminator_of(key, one));
    // In this order: what is no longer under way was noted as replacing before.
    return core_->on_their_way.has_either_form(object, key) ||
           core_->replaced.has(one.disk_record.load(relaxed));
}

void tier::on_outdated(outdated_call told) {
    core_->on_outdated = std::move(told);
}

void tier::outdate(const filter::key_hash& key, std::string_view url, const stored_ptr& newer) {
    offer_outdating(key, url, *newer, newer->parts() != nullptr);
}

void tier::drop_older(const filter::key_hash& key,
                      std::string_view url,
                      const stored_response& gone) {
    offer_outdating(key, url, gone, false);
}

void tier::offer_outdating(const filter::key_hash& key,
                           std::string_view url,
                           const stored_response& newer,
                           bool is_part) {
    if (off_) {
        return;
    }
    const auto discriminator = discriminator_of(key, newer);
    const auto object = index_key(record_kind::object, key, discriminator);
    // While the index is being filled, what is not there may still come. In this order: what is no longer under way
    // can be found.
    const bool may_come = core_->on_their_way.has_either_form(object, key) ||
                          core_->loading.load(relaxed);
    if (!may_come && !core_->index.find(object) && !core_->index.find(key)) {
        return;
    }
    const auto is_offered = [&] {
        try {
            auto head = newer.draft_without_content();
            head.parts = nullptr;
            const auto bytes = head.head.size() + task_bytes;
            outdate_task task{
                key, discriminator, std::string{url}, stored_response::make(head), is_part};
            return writer_->offer(std::move(task), bytes);
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    if (!is_offered()) {
        core_->gone.note(object);
        core_->on_their_way.outdate(object, key);
        core_->note_unlisted(key);  // until it is noted
        const bool was_there = core_->erase(object).has_value();
        const auto beside = core_->index.find(key);
        const bool is_plain = discriminator != 0 && beside &&
                              beside->kind != record_kind::variants && core_->erase(key, *beside);
        const auto note = [&](std::uint64_t of) {
            try {
                return writer_->note(drop_note{key, of, drop_note::whatever});
            } catch (const std::bad_alloc&) {
                return false;
            }
        };
        const bool is_noted = (!(was_there || may_come) || note(discriminator)) &&
                              (!is_plain || note(0));
        if (!is_noted) {
            invalidate(key);
        }
    }
}

void tier::expire(const filter::key_hash& key, wall_time now, std::function<void()> kept) {
    try {
        if (!off_ && core_->expire(key, {end_of_time, now})) {
            writer_->note(expired_url{key, now}, std::move(kept));
            return;
        }
    } catch (const std::bad_alloc&) {
        // It is not remembered; or nobody would say where in the log it ends, and whatever came later would be stale
        // too.
        core_->note_unlisted(key);
        core_->gone.note(key);  // it may still be loaded
        (void)core_->erase(key);
        core_->expiries.forget(key);
        throw;
    }
    purge(key, std::move(kept));  // too many to remember: gone is safer than fresh
}

void tier::keep_bans(std::function<void()> kept) {
    if (off_) {
        if (kept) {
            kept();
        }
        return;
    }
    writer_->note(bans_note{}, std::move(kept));
}

}  // namespace reprise::proxy::cache::disk
