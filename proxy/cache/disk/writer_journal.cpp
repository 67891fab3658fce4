// The writer's part of the journal: what was noted is kept there, or later where it can't be written, and it is
// written anew where it has grown.

#include "proxy/base/let_go.hpp"
#include "proxy/base/log.hpp"
#include "proxy/cache/disk/room_in.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {

// Purges that are remembered one by one while the journal can't be written.
constexpr std::size_t most_unkept = 1u << 16;

std::uint64_t encoded_bytes(std::span<const journal_entry> entries, std::uint64_t store_id) {
    std::vector<char> bytes;
    std::uint64_t sum = journal_header_bytes;
    for (const auto& entry : entries) {
        bytes.clear();
        append_entry(bytes, entry, 0, store_id);
        sum += bytes.size();
    }
    return sum;
}

// The older half of what is dropped one by one is dropped as everything older than its newest.
void coarsen(verdicts& says) {
    std::vector<log_position> places;
    for (const auto& one : says.urls) {
        places.push_back(one.second);
    }
    for (const auto& one : says.variants) {
        places.push_back(one.second.before);
    }
    for (const auto& one : says.expiries) {
        places.push_back(one.second.before);
    }
    if (places.empty()) {
        // Bans alone are too much: whatever was not looked up since is taken for purged.
        says.forgotten.hard = says.epoch;
        says.bans.clear();
        return;
    }
    const auto middle = places.begin() + static_cast<std::ptrdiff_t>(places.size() / 2);
    std::nth_element(places.begin(), middle, places.end());
    says.all = std::max(says.all, *middle);
    const auto covered = [&says](const log_position& at) { return at <= says.all; };
    std::erase_if(says.urls, [&](const auto& one) { return covered(one.second); });
    std::erase_if(says.variants, [&](const auto& one) { return covered(one.second.before); });
    std::erase_if(says.expiries, [&](const auto& one) { return covered(one.second.before); });
}

}  // namespace

void writer::keep_noted() {
    keep_in_hand();  // nothing, but where memory ended in the middle
    {
        const std::lock_guard lock{guard_};
        in_hand_ = noted_.take();
    }
    keep_in_hand();
}

void writer::keep_in_hand() {
    if (!has_in_hand()) {
        return;
    }
    see_what_is_known();
    gather_noted();
    keep_gathered();
}

// What is in hand becomes entries of the journal. Each step has its memory before it does anything, and what it has
// done is no longer in hand: so it may be gone on with, and says nothing twice.
void writer::gather_noted() {
    make_room_in(gathered_,
                 1 + in_hand_.dropped().size() + in_hand_.expired().size() +
                     in_hand_.drops().size());
    const auto add = [&](journal_fact fact) noexcept {
        gathered_.push_back({position(), std::move(fact)});
    };
    if (in_hand_.everything_before()) {
        core_->expiries.settle_all(position());
        add(dropped_all{});
    }
    for (const auto& primary : in_hand_.dropped()) {
        // What has this key by now is older than the note. Most of it knows from invalidations that it is
        // not to enter the index; not where a URL goes for want of room for a note of one record.
        (void)tail_.withdraw(primary);
        (void)core_->erase(primary);
        add(dropped_url{primary});
    }
    for (const auto& [primary, time] : in_hand_.expired()) {
        core_->expiries.settle(primary, position());
        add(expired_url{primary, time});
    }
    in_hand_.urls_are_done();
    while (!in_hand_.drops().empty()) {
        const auto dropped = in_hand_.drops().back();
        if (auto fact = drop(dropped)) {
            add(std::move(*fact));
        }
        core_->dropped.gone(dropped.id);
        in_hand_.last_drop_is_done();
    }
    if (in_hand_.bans()) {
        const auto before = journal_epoch_;
        auto made = core_->purges.made_since(before);
        make_room_in(gathered_, made.size() + 1);
        for (auto& ban : made) {
            journal_epoch_ = std::max(journal_epoch_, ban.epoch);
            add(std::move(ban));
        }
        // Asked for last: what has left the full list since `before` is in no journal.
        const auto forgotten = core_->purges.forgotten();
        if (const auto last = std::max(forgotten.hard, forgotten.soft); last > before) {
            journal_epoch_ = std::max(journal_epoch_, last);
            add(forgotten);
        }
        in_hand_.bans_are_done();
    }
    if (gathered_calls_.empty()) {  // else they were taken before
        gathered_calls_ = in_hand_.take_calls();
    }
}

// The entries are put into the journal, or among those that wait for it to be whole again.
void writer::keep_gathered() {
    if (!journal_broken_) {
        // Where it would grow beyond its share of the store it is gathered first.
        const auto grown = journal_.bytes() + encoded_bytes(gathered_, core_->super.store_id);
        const auto failed = grown > core_->shape.journal_most / 2
                                ? rewrite_journal(gathered_)
                                : journal_.append(gathered_, !gathered_calls_.empty());
        if (!failed) {
            proxy::let_go(gathered_);
            call_all(gathered_calls_);
            return;
        }
        journal_broken_ = true;
        trouble(failed, "keeping purges");
    }
    keep_later();
}

// Each leaves the list when it was called: one that lacked memory for what it does is called again.
void writer::call_all(std::vector<std::function<void()>>& calls) {
    while (!calls.empty()) {
        calls.back()();
        calls.pop_back();
    }
}

// From then on what is invalidated is noted only where something of it may be there.
void writer::see_what_is_known() {
    {
        const std::lock_guard lock{guard_};
        if (knows_log_ || !index_is_whole_ || !may_reclaim_) {
            return;
        }
    }
    if (!troubled_) {
        (void)has_lender();  // nor may it have left anything that we don't know
    }
    if (!has_unknown_ && !core_->segments.has_unread()) {
        const std::lock_guard lock{guard_};
        knows_log_ = true;
    }
}

// A disk may be away for days. Too many entries become one, which drops all that is older: a
// restart then begins empty. If callers are too many the earlier ones have timed out.
void writer::keep_later() {
    make_room_in(unkept_, gathered_.size());
    make_room_in(unkept_calls_, gathered_calls_.size());
    for (auto& entry : gathered_) {
        // Bans are in their list, from which the journal is written anew.
        if (!std::holds_alternative<kept_ban>(entry.fact) &&
            !std::holds_alternative<forgotten_bans>(entry.fact)) {
            unkept_.push_back(std::move(entry));
        }
    }
    proxy::let_go(gathered_);
    if (unkept_.size() > most_unkept) {
        unkept_.assign(1, {position(), dropped_all{}});
    }
    if (unkept_calls_.size() > most_unkept) {
        unkept_calls_.clear();
    }
    std::move(gathered_calls_.begin(), gathered_calls_.end(), std::back_inserter(unkept_calls_));
    gathered_calls_.clear();
}

// Whether a segment may go only when the journal says that it is dead: what it replaced may be where nobody can see
// that it has gone before, in a segment that can't be read or that another process has left.
bool writer::must_say_what_ends() const {
    return core_->segments.has_unread() || has_unknown_;
}

// What newer records replaced, in its file or in one that could not be read, is not to come back at a
// restart once these are gone as well: whatever is older than the segment that goes has gone before.
// An error: the journal failed, or there was no memory for it; it is written anew when trouble() is over, with what is
// said here. @pre unkept_ has room for one more
error_code writer::drop_what_is_left_in(std::uint32_t number) {
    const auto left = core_->segments.left_in_file(number);
    if (left == 0 || core_->segments.is_unread(number)) {
        return {};
    }
    const journal_entry over{{left + 1, 0}, dropped_all{}};
    auto failed = boost::system::errc::make_error_code(boost::system::errc::io_error);
    if (!journal_broken_) {
        try {
            failed = journal_.append({&over, 1}, true);
        } catch (const std::bad_alloc&) {
            failed = no_memory();
        }
    }
    if (failed) {
        journal_broken_ = death_is_unkept_ = true;
        unkept_.push_back(over);
    }
    return failed;
}

// What this process has is served as ever: it knows of each purge what that met.
void writer::warn_of_coarse_journal(const log_position& dead_before) const {
    unsigned used = 0, older = 0;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto sequence = core_->segments.sequence(number);
        used += sequence != 0 ? 1 : 0;
        older += sequence != 0 && sequence < dead_before.sequence ? 1 : 0;
    }
    log::warn("disk: ",
              core_->settings.path,
              ": more was purged than the journal has room for, and of the older half it says only "
              "that everything before the last of these is dead: the next start will find nothing "
              "of what ",
              older,
              " of the ",
              used,
              " segments in use have now, nor of what was written behind them before that");
}

error_code writer::rewrite_journal(std::span<const journal_entry> more) {
    auto old = journal_.load();
    auto& says = old.says;
    if (is_no_memory(old.failed)) {
        return old.failed;  // which says nothing of the journal
    }
    if (old.damaged || old.missing || old.failed) {
        says.add({position(), dropped_all{}});
    }
    for (const auto& entry : more) {
        says.add(entry);
    }
    // The list decides: of bans that say the same only the last counts. The epoch is read first, so
    // that a ban made meanwhile is written again; forgotten() is read last.
    says.epoch = core_->purges.epoch();
    says.bans = core_->purges.made_since(0);
    says.forgotten = core_->purges.forgotten();
    says.last = std::max(says.last, position());
    auto entries = says.entries(oldest_position());
    // For a moment there are two journals, and this one is to have room for more.
    const auto limit = core_->shape.journal_most / 8 * 3;
    const auto store_id = core_->super.store_id;
    const auto dead_before = says.all;
    while (encoded_bytes(entries, store_id) > limit &&
           !(says.bans.empty() && says.urls.empty() && says.variants.empty() &&
             says.expiries.empty())) {
        coarsen(says);
        entries = says.entries(oldest_position());
    }
    if (says.all > dead_before) {
        warn_of_coarse_journal(says.all);
    }
    const auto failed = journal_.replace(entries);
    if (!failed) {
        journal_epoch_ = says.epoch;
    }
    return failed;
}

}  // namespace reprise::proxy::cache::disk
