#include "proxy/cache/disk/tier.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/arriving_object.hpp"
#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "proxy/cache/disk/loader.hpp"
#include "proxy/cache/disk/superblocks.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <charconv>
#include <openssl/rand.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

// Opening a store, and the face over its parts: look-ups read the index and the segments
// (lookup.cpp), changes are queued for the writer or noted for its journal. Nothing after the
// constructor waits for the disk but stop().

namespace reprise::proxy::cache::disk {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw std::runtime_error{"disk: " + path + ": " + why};
}

/// Another process must not write to the same segments. Held until the file is closed.
std::shared_ptr<file> take_lock(filesystem& files, const std::string& directory) {
    const auto path = directory + "/lock";
    auto opened = files.open(path, open_mode::make);
    const bool writable = opened.has_value();
    if (!opened) {
        opened = files.open(path, open_mode::read);  // a read-only file system has locks too
    }
    if (!opened) {
        refuse(path, opened.error().message());
    }
    if (const auto failed = (*opened)->try_lock()) {
        if (failed != boost::system::errc::operation_would_block) {
            refuse(path, failed.message());
        }
        char holder[20]{};
        const auto size = (*opened)->read_some(0, std::as_writable_bytes(std::span{holder}));
        const std::string pid{holder, size ? std::min<std::size_t>(*size, sizeof holder) : 0};
        refuse(directory,
               "another process uses this store" +
                   (pid.empty() ? std::string{} : " (process " + pid + ")"));
    }
    if (writable) {
        const auto pid = std::to_string(::getpid());
        if (!(*opened)->resize(0)) {
            (void)write_all(**opened, 0, std::as_bytes(std::span{pid}));
        }
    }
    return *opened;
}

/// What a process that lent the store, and still reads it, has locked; null: there is none.
std::shared_ptr<file> find_lender(filesystem& files, const std::string& directory) {
    const auto opened = files.open(directory + "/readers", open_mode::read);
    return opened && (*opened)->try_lock() == boost::system::errc::operation_would_block ? *opened
                                                                                         : nullptr;
}

void fill_with_random(std::span<std::byte> bytes) {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                   static_cast<int>(bytes.size())) != 1) {
        throw std::runtime_error{"no random numbers: the system's generator failed"};
    }
}

std::uint64_t random_id() {
    std::uint64_t id = 0;
    fill_with_random(std::as_writable_bytes(std::span{&id, 1}));
    return id;
}

superblock new_store(const tier_settings& settings) {
    superblock made;
    made.store_id = random_id();
    fill_with_random(made.seed);
    made.segment_bytes = plan(settings.size, settings.segment).segment_bytes;
    made.made = wall_now();
    return made;
}

tier_settings with_defaults(tier_settings settings) {
    if (settings.size < smallest_store) {
        refuse(settings.path,
               "a store of less than " + std::to_string(smallest_store) + " bytes is too small");
    }
    if (settings.max_object == 0) {
        settings.max_object = settings.size / 4;
    }
    return settings;
}

// Each start numbers its bans behind all that any record can have been held against, even if the
// last of those that were made were never kept.
constexpr unsigned epochs_a_start_bits = 32;

std::uint64_t discriminator_of(const filter::key_hash& primary, const stored_response& one) {
    const auto vary = one.vary();
    return vary.empty() ? 0 : variant_discriminator(primary, vary.names, one.selecting());
}

}  // namespace

std::string_view to_string(tier_state state) noexcept {
    switch (state) {
    case tier_state::loading: return "loading";
    case tier_state::ready: return "ready";
    case tier_state::reading: return "reading";
    case tier_state::off: return "off";
    }
    return "off";
}

tier::tier(const tier_settings& settings,
           std::shared_ptr<filesystem> files,
           purge_list& purges,
           const invalidations& invalidated) {
    const auto chosen = with_defaults(settings);
    if (const auto failed = files->make_directory(chosen.path)) {
        refuse(chosen.path, failed.message());
    }
    lock_ = take_lock(*files, chosen.path);

    const auto copies = read_superblocks(*files, chosen.path);
    const auto known = believed(copies);
    const bool is_new = neither_is_there(copies);
    if (is_of_other_version(copies)) {
        refuse(chosen.path,
               make_error_code(format_errc::other_version).message() +
                   "; it is not touched: move the directory away, or empty it");
    }
    if (!known && !is_new) {
        turn_off(chosen,
                 std::move(files),
                 purges,
                 invalidated,
                 "both copies of the superblock are damaged (store: " +
                     copies[0].error().message() + "; store.copy: " + copies[1].error().message() +
                     "), and what it keeps can't be read without one: move the directory away, or "
                     "empty it, and start anew");
        return;
    }
    auto super = known ? *known : new_store(chosen);
    if (is_new) {
        if (const auto failed = write_superblocks(*files, chosen.path, super)) {
            refuse(chosen.path, failed.message());
        }
    } else if (mend_superblocks(*files, chosen.path, copies)) {
        log::warn("disk: ",
                  chosen.path,
                  ": a copy of the superblock was damaged; it was written anew from the other");
    }
    const auto path_of_journal = chosen.path + "/purges";
    journal kept{path_of_journal, files, super.store_id};
    auto loaded = is_new ? journal::loaded{} : kept.load();
    error_code trouble;
    if (loaded.damaged || loaded.missing || loaded.failed) {
        // Purges may be lost, so nothing that is there may be served: under another id it is not.
        log::error("disk: ",
                   path_of_journal,
                   ": ",
                   loaded.failed    ? loaded.failed.message()
                   : loaded.missing ? std::string{"is missing"}
                                    : std::string{"is damaged"},
                   "; purges may be lost, so what was stored is dropped");
        loaded = {};
        purged_.all = true;
        super.store_id = random_id();
        trouble = write_superblocks(*files, chosen.path, super);
        kept = journal{path_of_journal, files, super.store_id};
    }
    auto& says = loaded.says;
    purged_.all = purged_.all || says.all != log_position{};
    for (const auto& one : says.urls) {
        purged_.urls.push_back(one.first);
    }
    for (const auto& one : says.expiries) {
        purged_.urls.push_back(one.first);
    }
    const auto epoch = ((says.epoch >> epochs_a_start_bits) + 1) << epochs_a_start_bits;
    purges.restore(says.bans, says.forgotten, epoch);
    const journal_entry start{says.last, epochs_begin{epoch}};
    if (!trouble) {
        trouble = kept.bytes() == 0 ? kept.replace({&start, 1}) : kept.append({&start, 1}, true);
    }

    core_ = std::make_shared<core>(
        chosen, files, super, plan(chosen.size, super.segment_bytes), purges, invalidated);
    for (const auto& [primary, mark] : says.expiries) {
        if (!core_->expiries.note(primary, mark)) {
            auto& dropped = says.urls[primary];  // too many to remember: gone is safer than fresh
            dropped = std::max(dropped, mark.before);
        }
    }
    core_->lender = find_lender(*core_->files, chosen.path);
    if (trouble) {
        core_->set_health(tier_state::reading, "keeping purges: " + trouble.message());
    }
    writer_ = std::make_shared<writer>(core_, std::move(kept), epoch, bool{trouble});
    loader_ = std::make_unique<loader>(core_, *writer_, std::move(says));
}

// Makes all parts that others hold on to, but closed: the only thread is the writer's, which waits.
void tier::turn_off(const tier_settings& chosen,
                    std::shared_ptr<filesystem> files,
                    purge_list& purges,
                    const invalidations& invalidated,
                    std::string why) {
    const auto nobodys = new_store(chosen);  // the secret of keys is needed all the same
    journal none{chosen.path + "/purges", files, nobodys.store_id};
    core_ = std::make_shared<core>(chosen,
                                   std::move(files),
                                   nobodys,
                                   plan(chosen.size, nobodys.segment_bytes),
                                   purges,
                                   invalidated);
    core_->set_health(tier_state::off, std::move(why));
    core_->closed.store(true, std::memory_order_release);
    core_->loading.store(false, std::memory_order_relaxed);
    core_->gone.close();
    writer_ = std::make_shared<writer>(core_, std::move(none), purges.epoch(), true);
    off_ = true;
    purged_.all = true;
    if (chosen.told != nullptr) {
        chosen.told->loaded();
    }
}

tier::~tier() {
    stop();
}

std::string tier::lend(std::chrono::milliseconds most) {
    if (is_lent() && !take_back()) {
        return "another program has it, and does not give it back";
    }
    const auto& directory = core_->settings.path;
    auto readers = core_->files->open(directory + "/readers", open_mode::make);
    if (!readers) {
        return directory + "/readers: " + readers.error().message();
    }
    if (const auto failed = (*readers)->try_lock_shared()) {
        return directory + "/readers: " + failed.message();
    }
    core_->lent = true;
    if (!off_) {
        if (auto why = writer_->lend(most); !why.empty()) {
            core_->lent = false;
            return directory + ": " + why;
        }
    }
    readers_ = std::move(*readers);
    lock_ = nullptr;
    return {};
}

bool tier::take_back() {
    try {
        lock_ = take_lock(*core_->files, core_->settings.path);
    } catch (const std::runtime_error&) {
        return false;
    }
    core_->lent = false;
    if (!off_) {
        writer_->take_back();
    }
    readers_ = nullptr;
    return true;
}

bool tier::is_lent() const noexcept {
    return core_->lent.load(relaxed);
}

void tier::stop() {
    if (loader_) {
        loader_->stop();
    }
    writer_->stop();
    core_->closed.store(true, std::memory_order_release);
    core_->pool.stop();
}

const filter::hash_secret& tier::secret() const noexcept {
    return core_->secret;
}

void tier::note_request(const filter::key_hash& key) noexcept {
    core_->requests.note(key);
}

tier::choice tier::chooses() const noexcept {
    return !core_->settings.choosy ? choice::takes_all
           : core_->room.filling() ? choice::fills
                                   : choice::judges;
}

double tier::worth_of(const filter::key_hash& key,
                      std::uint64_t bytes,
                      packed_wait wait) const noexcept {
    return core_->room.density(core_->requests.estimate(key), bytes, wait);
}

void tier::set_exponent(double exponent) noexcept {
    core_->room.set_exponent(exponent);
}

bool tier::takes_puts() const noexcept {
    return core_->takes_puts();
}

std::uint64_t tier::queued_bytes() const {
    return writer_->queued_bytes();
}

bool tier::may_hold(const filter::key_hash& key) const noexcept {
    return core_->index.find(key).has_value();
}

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
        const auto whole = begin(key, url, size, "", asked, response->wait());
        const auto content = response->content();
        return whole &&
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
    core_->gone.note(key);
    if (core_->erase(key)) {
        core_->counts.invalidated.fetch_add(1, relaxed);
    }
    if (off_) {
        keep_bans(std::move(kept));
        return;
    }
    writer_->note(dropped_url{key}, std::move(kept));
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
    core_->dropped.note(id);  // first: nobody finds it while the note waits
    if (!writer_->note(drop_note{key, discriminator, id})) {
        core_->dropped.gone(id);  // with its URL, as the caller sees to
        return false;
    }
    return true;
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
    auto head = newer.draft_without_content();
    head.parts = nullptr;
    const auto bytes = head.head.size() + task_bytes;
    outdate_task task{key, discriminator, std::string{url}, stored_response::make(head), is_part};
    if (!writer_->offer(std::move(task), bytes)) {
        core_->gone.note(object);
        core_->on_their_way.outdate(object, key);
        const bool was_there = core_->erase(object).has_value();
        const auto beside = core_->index.find(key);
        const bool is_plain = discriminator != 0 && beside &&
                              beside->kind != record_kind::variants && core_->erase(key, *beside);
        const bool is_noted = (!(was_there || may_come) ||
                               writer_->note(drop_note{key, discriminator, drop_note::whatever})) &&
                              (!is_plain || writer_->note(drop_note{key, 0, drop_note::whatever}));
        if (!is_noted) {
            invalidate(key);
        }
    }
}

void tier::expire(const filter::key_hash& key, wall_time now, std::function<void()> kept) {
    if (off_ || !core_->expire(key, {end_of_time, now})) {
        invalidate(key, std::move(kept));  // too many to remember: gone is safer than fresh
        return;
    }
    writer_->note(expired_url{key, now}, std::move(kept));
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

tier_figures tier::figures() const {
    const auto& counts = core_->counts;
    const auto health = core_->health();
    tier_figures out;
    out.state = health.state == tier_state::ready && core_->loading.load(relaxed)
                    ? tier_state::loading
                    : health.state;
    out.trouble = health.reason;
    if (is_lent() && out.state == tier_state::ready) {
        out.state = tier_state::reading;
        out.trouble = "the next program has the store";
    }
    out.objects = static_cast<std::uint64_t>(std::max<std::int64_t>(0, counts.objects.load()));
    out.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, counts.bytes.load()));
    out.capacity = core_->shape.segments * core_->shape.segment_bytes;
    out.segments = core_->shape.segments;
    out.index_bytes = core_->index.bytes();
    out.hits = counts.hits.load(relaxed);
    out.misses = counts.misses.load(relaxed);
    out.in_place = counts.in_place.load(relaxed);
    out.pooled = counts.pooled.load(relaxed);
    out.refused = counts.refused.load(relaxed);
    out.puts = counts.puts.load(relaxed);
    out.put_bytes = counts.put_bytes.load(relaxed);
    out.skipped = counts.skipped.load(relaxed);
    out.skipped_bytes = counts.skipped_bytes.load(relaxed);
    out.queued_bytes = writer_->queued_bytes();
    out.behind = writer_->behind();
    const auto purges = writer_->waiting_notes();
    out.queued_purges = purges.notes;
    out.purge_overflows = purges.overflows;
    out.written_bytes = core_->files->written_bytes();
    out.carried = counts.carried.load(relaxed);
    out.carried_bytes = counts.carried_bytes.load(relaxed);
    out.evicted = counts.evicted.load(relaxed);
    out.evicted_bytes = counts.evicted_bytes.load(relaxed);
    out.damaged = counts.damaged.load(relaxed);
    out.invalidated = counts.invalidated.load(relaxed);
    out.read_errors = counts.read_errors.load(relaxed);
    out.write_errors = counts.write_errors.load(relaxed);
    if (const auto oldest = core_->segments.oldest()) {
        out.oldest = std::chrono::duration_cast<std::chrono::seconds>(
            std::max(wall_now() - *oldest, std::chrono::milliseconds{0}));
    }
    out.loaded_in = std::chrono::milliseconds{core_->loaded_in_ms.load(relaxed)};
    return out;
}

}  // namespace reprise::proxy::cache::disk
