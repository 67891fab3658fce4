#include "proxy/cache/disk/tier.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/core.hpp"
#include "proxy/cache/disk/journal.hpp"
#include "proxy/cache/disk/loader.hpp"
#include "proxy/cache/disk/resizing.hpp"
#include "proxy/cache/disk/superblocks.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <charconv>
#include <openssl/rand.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

// Opening a store, lending and closing it, and what is told of it: look-ups are lookup.cpp's, and changes
// tier_changes.cpp's. Nothing after the constructor waits for the disk but stop().

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
    made.segment_bytes = segment_bytes_at_first(settings);
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

// What was ended before this start was ended by now, whatever the clock said by which that was noted: a lifetime
// that ends at a time to come would have a stale response be fresh until then.
void end_by(wall_time now, verdicts& says) {
    for (auto& ban : says.bans) {
        ban.time = std::min(ban.time, now);
    }
    says.forgotten.soft_time = std::min(says.forgotten.soft_time, now);
    for (auto& one : says.expiries) {
        one.second.time = std::min(one.second.time, now);
    }
}

// Each start numbers its bans behind all that any record can have been held against, even if the
// last of those that were made were never kept.
constexpr unsigned epochs_a_start_bits = 32;

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
    auto lender = find_lender(*files, chosen.path);
    const auto too_small = why_too_small(chosen, super);
    if (!too_small.empty() && lender) {
        refuse(chosen.path,
               too_small +
                   ", so it is to be begun anew, but the program before this one still reads what "
                   "is there: end that first and start again, or set a size of " +
                   std::to_string(least_size_for(super.segment_bytes)) + " bytes or more");
    }
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
    throw_if_no_memory(loaded.failed);
    const bool may_lack_purges = loaded.damaged || loaded.missing || loaded.failed;
    error_code trouble;
    auto id_there = super.store_id;
    if (!too_small.empty()) {
        log::warn("disk: ",
                  chosen.path,
                  ": ",
                  too_small,
                  ", so it is begun anew and what was stored is dropped; with ",
                  least_size_for(super.segment_bytes),
                  " bytes or more it would have been kept");
        if (const auto failed = remove_contents(*files, chosen.path, path_of_journal)) {
            log::warn("disk: ",
                      chosen.path,
                      ": ",
                      failed.message(),
                      ": old segments are left, and take more room until they are used again");
        }
        super.segment_bytes = segment_bytes_at_first(chosen);
    } else if (may_lack_purges) {
        log::error("disk: ",
                   path_of_journal,
                   ": ",
                   loaded.failed    ? loaded.failed.message()
                   : loaded.missing ? std::string{"is missing"}
                                    : std::string{"is damaged"},
                   "; purges may be lost, so what was stored is dropped");
    }
    if (!too_small.empty() || may_lack_purges) {
        // Nothing that is there may be served: under another id it is not. What the journal knew of
        // purges goes with it, so any URL is taken for purged.
        loaded = {};
        purged_.all = true;
        super.store_id = random_id();
        trouble = write_superblocks(*files, chosen.path, super);
        if (!trouble) {
            id_there = super.store_id;
        }
        kept = journal{path_of_journal, files, super.store_id};
    }
    auto& says = loaded.says;
    end_by(resident_now(), says);
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

    const auto planned = plan(chosen.size, super.segment_bytes);
    core_ = std::make_shared<core>(chosen,
                                   files,
                                   super,
                                   planned,
                                   numbers_of_segments(*files, chosen.path, planned.segments),
                                   purges,
                                   invalidated);
    for (const auto& [primary, mark] : says.expiries) {
        if (!core_->expiries.note(primary, mark)) {
            auto& dropped = says.urls[primary];  // too many to remember: gone is safer than fresh
            dropped = std::max(dropped, mark.before);
        }
    }
    core_->lender = std::move(lender);
    if (trouble) {
        core_->set_health(tier_state::reading, "keeping purges: " + trouble.message());
    }
    writer_ = std::make_shared<writer>(core_, std::move(kept), epoch, bool{trouble}, id_there);
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
    const auto planned = plan(chosen.size, nobodys.segment_bytes);
    core_ = std::make_shared<core>(
        chosen, std::move(files), nobodys, planned, planned.segments, purges, invalidated);
    core_->set_health(tier_state::off, std::move(why));
    core_->closed.store(true, std::memory_order_release);
    core_->loading.store(false, std::memory_order_relaxed);
    core_->gone.close();
    writer_ = std::make_shared<writer>(
        core_, std::move(none), purges.epoch(), true, nobodys.store_id);
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
    lent_at_ = core_->purges.epoch();
    if (!off_) {
        std::string why;
        try {
            why = writer_->lend(most);
        } catch (const std::exception&) {
            core_->lent = false;
            throw;
        }
        if (!why.empty()) {
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
    } catch (const std::exception&) {
        return false;
    }
    // The other began where a start begins, one step of these behind the journal's: whatever it had time to
    // store says that it was held against all bans up to there.
    const auto steps = (core_->purges.epoch() >> epochs_a_start_bits) + 2;
    core_->purges.go_on_behind(steps << epochs_a_start_bits, lent_at_);
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

bool tier::has_room_for(std::uint64_t bytes) const {
    return writer_->queued_bytes() + bytes <= core_->settings.write_queue;
}

std::uint64_t tier::queued_bytes() const {
    return writer_->queued_bytes();
}

bool tier::may_hold(const filter::key_hash& key) const noexcept {
    return core_->index.find(key).has_value();
}

tier_figures tier::figures() const {
    const auto& counts = core_->counts;
    const auto health = core_->health();
    tier_figures out;
    out.state = health.state == tier_state::ready && core_->loading.load(relaxed)
                    ? tier_state::loading
                    : health.state;
    out.trouble = health.reason;
    if (out.state == tier_state::loading && core_->loading_lacks_memory.load(relaxed)) {
        out.trouble = "loading waits for memory";
    }
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
    out.overrun = counts.overrun.load(relaxed);
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
            std::max(resident_now() - *oldest, std::chrono::milliseconds{0}));
    }
    out.loaded_in = std::chrono::milliseconds{core_->loaded_in_ms.load(relaxed)};
    return out;
}

}  // namespace reprise::proxy::cache::disk
