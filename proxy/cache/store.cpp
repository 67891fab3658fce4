#include "proxy/cache/store.hpp"

#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/recency.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <thread>
#include <utility>

// The tiers have locks of their own, and no lock is over both. What is put into memory asks the disk
// afterwards whether it was dropped there; what is dropped is noted by the disk first, and memory is
// looked into last: so one of the two sees the other, whatever comes between.

namespace reprise::proxy::cache {

namespace {

// Made of one exchange, and not freshened since.
bool are_one_answer(const stored_response& one, const stored_response& other) {
    return one.freshness() == other.freshness() && one.asked_at() == other.asked_at() &&
           one.head() == other.head();
}

}  // namespace

store::store(const memory_plan& memory) : memory_{memory}, outdated_to_{memory.told} {
    memory_.on_eviction([this](const evicted_response& gone) {
        gone.was_given_on = is_for_disk(gone) &&
                            disk_->put(gone.key, gone.url, gone.response, gone.asked);
        if (gone.was_given_on && !gone.was_admitted) {
            filled_.fetch_add(1, std::memory_order_relaxed);
            filled_bytes_.fetch_add(gone.response->size(), std::memory_order_relaxed);
        }
        if (told_) {
            told_(gone);
        }
    });
}

void store::attach(std::unique_ptr<disk::tier> disk, disk_write when) {
    disk_ = std::move(disk);
    when_ = when;
    if (when_ == disk_write::eviction) {
        memory_.on_outrun(
            [this](const evicted_response& gone) { drop_from_disk(gone.key, *gone.response); });
    }
    // What was put into both and proves older on disk leaves memory too, which knew of nothing.
    disk_->on_outdated(
        [this](const filter::key_hash& key, std::string_view url, const stored_ptr& head) {
            const auto kept = memory_.variant_of(key, url, *head);
            if (kept && are_one_answer(*kept, *head)) {
                (void)memory_.drop(key, url, kept);
            }
        });
    // Siblings may hold what was purged here before the restart: what they have since then is not
    // taken. The journal does not say when a URL was purged, so it is as if it had been just now.
    const auto before = disk_->take_purged_before();
    const auto now = steady_now();
    for (const auto& key : before.urls) {
        times_.note(key, now);
    }
    if (before.all) {
        times_.note_all(now);
    }
}

bool store::put(const filter::key_hash& key,
                std::string_view url,
                stored_ptr response,
                invalidation_mark asked,
                standing as,
                unsigned uses_to_admit) {
    const auto before = disk_ ? memory_.variant_of(key, url, *response) : nullptr;
    if (before && is_outdated_by(*response, *before)) {
        return false;
    }
    // Memory first: the disk's thread may find it older than what is there at once, and takes it out of
    // memory then (on_outdated), where it has to be by that time.
    const bool for_disk = disk_ && when_ == disk_write::admission && as == standing::admitted &&
                          !response->parts() && belongs_on_disk(url);
    memory_tier::handing on;
    const auto placed = memory_.put_if(
        key, url, nullptr, response, asked, as, uses_to_admit, for_disk ? &on : nullptr);
    const bool to_disk = on.is_begun() && disk_->put(key, url, response, asked);
    if (on.end() && to_disk) {
        drop_from_disk(key, *response);
    }
    // What is too large for memory ends the older ones too.
    if (disk_ && placed != placement::refused && !to_disk) {
        outdate_on_disk(key, url, response, before);
    }
    return placed == placement::stored || to_disk;
}

// `before`: what memory had, which may be on its way to the disk.
void store::outdate_on_disk(const filter::key_hash& key,
                            std::string_view url,
                            const stored_ptr& newer,
                            const stored_ptr& before) {
    note_outdated(key, url);
    const bool adds_to_it = newer->parts() && before && are_of_one_representation(*newer, *before);
    if (before && !adds_to_it) {
        drop_from_disk(key, *before);
    }
    disk_->outdate(key, url, newer);
}

void store::drop_from_disk(const filter::key_hash& key, const stored_response& outdated) {
    if (!disk_->drop(key, outdated)) {
        disk_->invalidate(key);
    }
}

void store::note_outdated(const filter::key_hash& key, std::string_view url) const {
    if (disk_->is_lent() && unwritten_ && disk_->may_hold(key)) {
        unwritten_(url);
    }
}

bool store::finish_on_disk(disk::object_writer& writing,
                           const filter::key_hash& key,
                           std::string_view url,
                           const stored_response& response) {
    const auto before = memory_.variant_of(key, url, response);
    if ((before && is_outdated_by(response, *before)) || !writing.finish(response)) {
        return false;
    }
    const auto now = memory_.variant_of(key, url, response);
    if (now && now != before && is_outdated_by(response, *now)) {
        drop_from_disk(key, response);
        return false;
    }
    if (now) {
        (void)memory_.drop(key, url, now);
    }
    return true;
}

void store::end_older(const filter::key_hash& key,
                      std::string_view url,
                      const newcomer& by,
                      const stored_ptr& found) {
    const newcomer with{by.response, by.request, by.is_stored, disk_ != nullptr};
    while (const auto older = memory_.ended_by(key, url, with)) {
        drop_alone(key, url, older);
    }
    // It may be on disk alone, or on its way there.
    const bool has_gone = !found || (disk_ && disk_->was_dropped(*found));
    if (!has_gone && puts_an_end_to(with, *found)) {
        drop_alone(key, url, found);
    }
}

bool store::has_ended_since(const filter::key_hash& key,
                            std::string_view url,
                            const stored_response& response,
                            invalidation_mark asked) const {
    return memory_.invalidated().surely_since(key, asked.count) ||
           !memory_.purges().judge(url, response.tags(), asked.purges).none();
}

void store::drop_alone(const filter::key_hash& key,
                       std::string_view url,
                       const stored_ptr& outdated) {
    const auto record = outdated->disk_record.load(std::memory_order_relaxed);
    if (disk_) {
        note_outdated(key, url);
        drop_from_disk(key, *outdated);
    }
    if (!memory_.drop(key, url, outdated)) {
        (void)drop_copy(key, url, outdated);
    }
    drop_if_written_since(key, *outdated, record);
}

void store::admitted(const filter::key_hash& key,
                     std::string_view url,
                     const stored_ptr& response,
                     invalidation_mark asked) {
    if (disk_ && when_ == disk_write::admission && response->has_content() &&
        belongs_on_disk(url)) {
        memory_tier::handing on;
        memory_.hand_on(key, url, response, on);
        const bool to_disk = on.is_begun() && disk_->put(key, url, response, asked);
        if (on.end() && to_disk) {
            drop_from_disk(key, *response);
        }
    }
}

// Which of those that leave memory are offered to the disk. A disk that judges for itself needs no
// judgement by so little as a use in memory. While it fills, admission has nothing to protect: with
// memory for a twentieth of the room, strictness cost up to 29 % more misses than plain LRU has where
// half of all that was asked for fits, and this up to 14 % (tools/results/2026-11-25-regret.md).
bool store::is_for_disk(const evicted_response& gone) const {
    if (!leaves_for_disk() || !gone.response->has_content() || !belongs_on_disk(gone.url)) {
        return false;
    }
    // It has been there: but its log may have let that record go while memory had the response.
    if (gone.response->disk_record.load(std::memory_order_relaxed) != 0 &&
        disk_->holds_or_awaits(gone.key, *gone.response)) {
        return false;
    }
    switch (disk_->chooses()) {
    case disk::tier::choice::takes_all: return gone.was_admitted && gone.was_found;
    case disk::tier::choice::judges: return gone.was_admitted;
    case disk::tier::choice::fills: return true;
    }
    return false;
}

store::unadmitted_writes store::written_unadmitted() const noexcept {
    return {filled_.load(std::memory_order_relaxed), filled_bytes_.load(std::memory_order_relaxed)};
}

std::uint64_t store::leave_to_disk(steady_time until, const std::function<bool()>& hurry) {
    constexpr std::chrono::milliseconds nap{2};
    constexpr std::uint64_t most_queued = 2u << 20;  // what the end itself has time to write
    if (!leaves_for_disk()) {
        return 0;
    }
    struct leaving {
        filter::key_hash key;
        std::string url;
        stored_ptr response;
        invalidation_mark asked;
        double worth;
    };
    std::vector<leaving> all;
    try {
        memory_.empty_into([&](const evicted_response& gone) {
            if (is_for_disk(gone)) {
                const auto worth = disk_->worth_of(
                    gone.key, gone.response->size(), gone.response->wait());
                all.push_back({gone.key, std::string{gone.url}, gone.response, gone.asked, worth});
            }
        });
    } catch (const std::bad_alloc&) {
        // Those that are known by now are given.
    }
    std::stable_sort(all.begin(), all.end(), [](const leaving& one, const leaving& other) {
        return one.worth < other.worth;
    });
    bool goes_on = true;
    std::uint64_t left = 0;
    for (auto one = all.rbegin(); one != all.rend(); ++one) {
        while (goes_on && disk_->queued_bytes() > most_queued) {
            std::this_thread::sleep_for(nap);
            goes_on = steady_now() < until && !hurry();
        }
        goes_on = goes_on && disk_->takes_puts();
        if (goes_on) {
            (void)disk_->put(one->key, one->url, one->response, one->asked);
        } else {
            left += one->response->size();
        }
    }
    return left;
}

bool store::put_over(const filter::key_hash& key,
                     std::string_view url,
                     const stored_ptr& expected,
                     stored_ptr response,
                     invalidation_mark asked,
                     standing as,
                     unsigned uses_to_admit) {
    const bool for_disk = disk_ && when_ == disk_write::admission && as == standing::admitted &&
                          !response->parts() && belongs_on_disk(url);
    memory_tier::handing on;
    const auto placed = memory_.put_if(
        key, url, &expected, response, asked, as, uses_to_admit, for_disk ? &on : nullptr);
    if (placed == placement::refused) {
        return false;
    }
    const bool to_disk = on.is_begun() && disk_->put(key, url, response, asked);
    if (on.end() && to_disk) {
        drop_from_disk(key, *response);
    }
    if (disk_ && !to_disk) {
        outdate_on_disk(key, url, response, expected);
    }
    return placed == placement::stored || to_disk;
}

std::unique_ptr<disk::object_writer> store::begin_on_disk(const filter::key_hash& key,
                                                          std::string_view url,
                                                          std::optional<std::uint64_t> length,
                                                          std::string_view strong_etag,
                                                          invalidation_mark asked,
                                                          packed_wait so_far) {
    return belongs_on_disk(url) ? disk_->begin(key, url, length, strong_etag, asked, so_far)
                                : nullptr;
}

void store::promote(const filter::key_hash& key,
                    std::string_view url,
                    const stored_ptr& response,
                    unsigned uses,
                    invalidation_mark asked) {
    const bool each_has_its_own = when_ == disk_write::eviction && disk_ &&
                                  disk_->chooses() != disk::tier::choice::takes_all;
    if (uses > 1 && response->has_content() && fits_memory(*response) && !each_has_its_own) {
        (void)memory_.put_over(key, url, nullptr, response, asked);  // over nothing that is newer
        // Asked behind the put, and drop() looks into memory behind its note, finish_on_disk() behind its
        // offer: one of the two sees the other.
        if (disk_ && (disk_->was_dropped(*response) || disk_->is_outrun(key, *response))) {
            (void)memory_.drop(key, url, response);
        }
    }
}

bool store::freshen(const filter::key_hash& key,
                    std::string_view url,
                    const stored_ptr& current,
                    stored_ptr updated,
                    invalidation_mark asked) {
    const bool on_disk = disk_ && current->disk_record.load(std::memory_order_relaxed) != 0 &&
                         disk_->freshen(key, url, *current, *updated, asked);
    if (disk_ && !on_disk &&
        (disk::allows_less(*updated, *current) ||
         updated->weak_last_modified() != current->weak_last_modified())) {
        // Its older head would answer for too long, stale perhaps, to no purge of the tags that are new, or for bytes
        // that it is no validator of.
        note_outdated(key, url);
        if (!disk_->drop(key, *current)) {
            (void)memory_.invalidate(key, url);
            disk_->invalidate(key);
        }
        (void)drop_copy(key, url, current);
        updated->disk_record = 0;
    }
    if (memory_.freshen(key, url, current, updated, asked)) {
        return true;
    }
    if (on_disk && updated->has_content() && fits_memory(*updated)) {
        // The disk shows the new head when it is written: until then nobody else is to ask the
        // origin.
        (void)memory_.put(key, url, updated, asked);
        if (disk_->was_dropped(*current)) {  // as in promote()
            (void)memory_.drop(key, url, updated);
            return false;
        }
    }
    return on_disk;
}

// Another copy of the same record, promoted meanwhile: what was read of a record twice are two responses.
// One with the head of a later exchange stays.
bool store::drop_copy(const filter::key_hash& key,
                      std::string_view url,
                      const stored_ptr& outdated) {
    const auto record = outdated->disk_record.load(std::memory_order_relaxed);
    if (record == 0) {
        return false;
    }
    const auto copy = memory_.variant_of(key, url, *outdated);
    return copy && copy != outdated &&
           copy->disk_record.load(std::memory_order_relaxed) == record &&
           !is_outdated_by(*outdated, *copy) && memory_.drop(key, url, copy);
}

bool store::drop(const filter::key_hash& key, std::string_view url, const stored_ptr& outdated) {
    const auto record = outdated->disk_record.load(std::memory_order_relaxed);
    if (disk_) {
        note_outdated(key, url);
        if (record == 0 && outdated->vary().empty() && disk_->may_hold(key)) {
            disk_->drop_older(key, url, *outdated);  // older still, or stored meanwhile
        } else if (!disk_->drop(key, *outdated)) {
            // The disk hangs: nothing of the URL is served, rather than what is outdated.
            (void)memory_.invalidate(key, url);
            disk_->invalidate(key);
        }
    }
    const bool was_in_memory = memory_.drop(key, url, outdated) || drop_copy(key, url, outdated);
    drop_if_written_since(key, *outdated, record);
    return was_in_memory || outdated->disk_record.load(std::memory_order_relaxed) != 0;
}

// What put it on the disk meanwhile did not find it dropped, and what dropped it found nothing there.
void store::drop_if_written_since(const filter::key_hash& key,
                                  const stored_response& outdated,
                                  std::uint64_t record) {
    if (disk_ && outdated.disk_record.load(std::memory_order_relaxed) != record) {
        drop_from_disk(key, outdated);
    }
}

template <class FromDisk>
std::size_t store::end_all(const filter::key_hash& key,
                           std::string_view url,
                           const FromDisk& end_on_disk) {
    times_.note(key, steady_now());  // first: a miss from now on is asked for anew
    const auto in_memory = memory_.invalidate(key, url);
    if (!disk_) {
        return in_memory;
    }
    const bool on_disk = disk_->may_hold(key);
    end_on_disk();  // though it may hold nothing: something may be on its way
    return in_memory != 0 ? in_memory : on_disk ? 1 : 0;
}

std::size_t store::invalidate(const filter::key_hash& key, std::string_view url) {
    return end_all(key, url, [&] { disk_->invalidate(key); });
}

std::size_t store::purge(const filter::key_hash& key, std::string_view url) {
    return end_all(key, url, [&] { disk_->purge(key); });
}

std::size_t store::expire(const filter::key_hash& key, std::string_view url, wall_time now) {
    times_.note(key, steady_now());
    const bool on_disk = disk_ && disk_->may_hold(key);
    // Memory first: it raises the key's count of invalidations, so that nothing asked for earlier
    // is written behind the purge's place in the journal. A change between the two calls may be
    // missing from the digest.
    const auto in_memory = memory_.expire(key, url, now);
    if (disk_) {
        disk_->expire(key, now);
    } else if (outdated_to_ != nullptr) {
        outdated_to_->outdated(key);
    }
    return in_memory != 0 ? in_memory : on_disk ? 1 : 0;
}

bool store::invalidated_since(const filter::key_hash& key,
                              std::string_view url,
                              std::span<const std::uint64_t> tags,
                              steady_time moment) const {
    return times_.since(key, moment) || memory_.purges().met_since(url, tags, moment);
}

void store::keep_purges(std::function<void()> kept) {
    if (disk_) {
        disk_->keep_bans(std::move(kept));
    } else {
        kept();
    }
}

}  // namespace reprise::proxy::cache
