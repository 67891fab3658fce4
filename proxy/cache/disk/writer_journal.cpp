// The writer's part of the journal: what was noted is kept there, or later where it can't be written, and it is
// written anew where it has grown.

#include "proxy/base/log.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {

// Purges that are remembered one by one while the journal can't be written.
constexpr std::size_t most_unkept = 1u << 16;

std::uint64_t encoded_bytes(std::span<const journal_entry> entries, std::uint64_t store) {
    std::vector<char> bytes;
    std::uint64_t sum = journal_header_bytes;
    for (const auto& entry : entries) {
        bytes.clear();
        append_entry(bytes, entry, 0, store);
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
    auto batch = [this] {
        const std::lock_guard lock{guard_};
        return noted_.take();
    }();
    if (batch.empty()) {
        return;
    }
    see_what_is_known();
    std::vector<journal_entry> entries;
    auto calls = batch.take_calls();
    const auto add = [&](journal_fact fact) {
        auto& added = entries.emplace_back();
        added.at = position();
        added.fact = std::move(fact);
    };
    if (batch.everything_before()) {
        core_->expiries.settle_all(position());
        add(dropped_all{});
    }
    for (const auto& primary : batch.dropped()) {
        // What has this key by now is older than the note. Most of it knows from invalidations that it is
        // not to enter the index; not where a URL goes for want of room for a note of one record.
        (void)tail_.withdraw(primary);
        (void)core_->erase(primary);
        add(dropped_url{primary});
    }
    for (const auto& [primary, time] : batch.expired()) {
        core_->expiries.settle(primary, position());
        add(expired_url{primary, time});
    }
    for (const auto& dropped : batch.drops()) {
        if (auto fact = drop(dropped)) {
            add(std::move(*fact));
        }
        core_->dropped.gone(dropped.id);
    }
    if (batch.bans()) {
        const auto before = journal_epoch_;
        for (auto& ban : core_->purges.made_since(before)) {
            journal_epoch_ = std::max(journal_epoch_, ban.epoch);
            add(std::move(ban));
        }
        // Asked for last: what has left the full list since `before` is in no journal.
        const auto forgotten = core_->purges.forgotten();
        if (const auto last = std::max(forgotten.hard, forgotten.soft); last > before) {
            journal_epoch_ = std::max(journal_epoch_, last);
            add(forgotten);
        }
    }
    if (!journal_broken_) {
        // Where it would grow beyond its share of the store it is gathered first.
        const auto grown = journal_.bytes() + encoded_bytes(entries, core_->super.store_id);
        const auto failed = grown > core_->shape.journal_most / 2
                                ? rewrite_journal(entries)
                                : journal_.append(entries, !calls.empty());
        if (!failed) {
            for (const auto& call : calls) {
                call();
            }
            return;
        }
        journal_broken_ = true;
        trouble(failed, "keeping purges");
    }
    keep_later(std::move(entries), std::move(calls));
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
        // What it may have beyond this store's size goes once it has ended.
        (void)has_lender();
    }
    if (!has_surplus_ && !core_->segments.has_unread()) {
        const std::lock_guard lock{guard_};
        knows_log_ = true;
    }
}

// A disk may be away for days. Too many entries become one, which drops all that is older: a
// restart then begins empty. If callers are too many the earlier ones have timed out.
void writer::keep_later(std::vector<journal_entry> entries,
                        std::vector<std::function<void()>> calls) {
    // Bans are in their list, from which the journal is written anew.
    std::erase_if(entries, [](const journal_entry& one) {
        return std::holds_alternative<kept_ban>(one.fact) ||
               std::holds_alternative<forgotten_bans>(one.fact);
    });
    std::move(entries.begin(), entries.end(), std::back_inserter(unkept_));
    if (unkept_.size() > most_unkept) {
        unkept_.assign(1, {position(), dropped_all{}});
    }
    if (unkept_calls_.size() > most_unkept) {
        unkept_calls_.clear();
    }
    std::move(calls.begin(), calls.end(), std::back_inserter(unkept_calls_));
}

// What newer records replaced, in its file or in one that could not be read, is not to come back at a
// restart once these are gone as well: whatever is older than the segment that goes has gone before.
// An error: the journal failed, which is written anew when trouble() is over.
error_code writer::drop_what_is_left_in(std::uint32_t number) {
    const auto left = core_->segments.left_in_file(number);
    if (left == 0 || core_->segments.is_unread(number)) {
        return {};
    }
    const journal_entry over{{left + 1, 0}, dropped_all{}};
    const auto failed = journal_broken_
                            ? boost::system::errc::make_error_code(boost::system::errc::io_error)
                            : journal_.append({&over, 1}, true);
    if (failed) {
        journal_broken_ = true;
        keep_later({over}, {});
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
    journal_epoch_ = says.epoch;
    says.last = std::max(says.last, position());
    auto entries = says.entries(oldest_position());
    // For a moment there are two journals, and this one is to have room for more.
    const auto limit = core_->shape.journal_most / 8 * 3;
    const auto store = core_->super.store_id;
    const auto dead_before = says.all;
    while (encoded_bytes(entries, store) > limit &&
           !(says.bans.empty() && says.urls.empty() && says.variants.empty() &&
             says.expiries.empty())) {
        coarsen(says);
        entries = says.entries(oldest_position());
    }
    if (says.all > dead_before) {
        warn_of_coarse_journal(says.all);
    }
    return journal_.replace(entries);
}

}  // namespace reprise::proxy::cache::disk
