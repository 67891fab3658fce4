#include "proxy/cache/disk/writer.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>
#include <new>
#include <utility>

// The thread goes round in work(): it waits, keeps what was noted, and writes what was offered.
// What is noted goes first before every task. Before a stop, and before the store is lent, the rest
// is written (write_the_rest). What others put in is in writer_queue.cpp, what one task does in
// writer_tasks.cpp and writer_drops.cpp, and what becomes of it all when the disk fails or memory
// ends in writer_trouble.cpp.

namespace reprise::proxy::cache::disk {

namespace {

// When nothing more comes, what is written and not yet synced is synced so much later.
constexpr std::chrono::seconds sync_after{5};
constexpr steady_time never{};

// Before a stop what is reclaimed and not told yet is told, so that what was said last is what is there.
// Not before the store is lent, which somebody waits for: it is told by whoever comes to write here again.
constexpr std::chrono::seconds tell_at_most{1};

}  // namespace

writer::writer(std::shared_ptr<core> of,
               journal kept,
               std::uint64_t epoch,
               bool troubled,
               std::uint64_t id_there)
    : core_{std::move(of)},
      noted_{core_->settings.purge_queue},
      journal_{std::move(kept)},
      journal_epoch_{epoch},
      journal_broken_{troubled},
      id_there_{id_there},
      in_hand_{core_->settings.purge_queue},
      tail_{*core_},
      reclaimer_{*core_},
      troubled_{troubled},
      try_again_{steady_now()},
      thread_{[this] { run(); }} {}

writer::~writer() {
    stop();
}

void writer::begin(log_end end) {
    {
        const std::lock_guard lock{guard_};
        end_ = std::move(end);
    }
    wake_.notify_one();
}

void writer::loaded(std::vector<loaded_segment> segments, bool is_whole) {
    {
        const std::lock_guard lock{guard_};
        loaded_ = std::move(segments);
        index_is_whole_ = is_whole;
        all_loaded_ = true;
    }
    wake_.notify_one();
}

std::string writer::lend(std::chrono::milliseconds most) {
    std::unique_lock lock{guard_};
    if (!all_loaded_) {
        return "its index is still being loaded";
    }
    // A ban that came before whoever has the store next was told of bans is in the journal that it reads.
    (void)noted_.add(bans_note{});
    lending_ = lending::asked;
    wake_.notify_one();
    lent_or_not_.wait_for(lock, most, [this] { return lending_ != lending::asked; });
    if (lending_ == lending::asked) {
        lending_ = lending::no;
        return "the disk does not answer";
    }
    return lending_ == lending::done ? "" : "the disk takes no writes";
}

void writer::take_back() {
    {
        const std::lock_guard lock{guard_};
        lending_ = lending::no;
    }
    wake_.notify_one();
}

void writer::stop() {
    {
        const std::lock_guard lock{guard_};
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void writer::run() {
    std::unique_lock lock{guard_};
    wake_.wait(lock, [this] { return end_ || stopping_; });
    if (!end_) {
        return;
    }
    // The one place that catches a lack of memory: what was in the middle is in a member, and is gone on with.
    for (bool goes_on = true; goes_on;) {
        try {
            go_on_with_log(lock);
            work(lock);
            write_the_rest(lock);
            goes_on = rest(lock);
        } catch (const std::bad_alloc&) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            goes_on = go_on_without_memory(lock);
        }
    }
}

// Once, as loading found it.
void writer::go_on_with_log(std::unique_lock<std::mutex>& lock) {
    if (!end_) {
        return;
    }
    auto end = *std::exchange(end_, std::nullopt);
    lock.unlock();
    next_sequence_ = end.next_sequence;
    knows_slots_ = end.knows_slots;
    if (end.open && !troubled_) {
        auto& open = *end.open;
        if (const auto failed = tail_.resume(open.number,
                                             open.found.header.sequence,
                                             open.from,
                                             std::move(open.found.entries),
                                             open.found.end,
                                             open.found.state == segment_state::closed)) {
            trouble(failed, "going on with the last segment");
        }
    }
    lock.lock();
}

// With guard_ held.
void writer::hear_of_loaded() {
    if (!all_loaded_ || may_reclaim_) {
        return;
    }
    may_reclaim_ = true;
    gives_back_ = true;
    waits_for_loading_ = false;
    for (const auto& one : loaded_) {
        if (!tail_.is_open() || tail_.number() != one.number) {
            core_->room.found(one.number, one.sequence, one.live_bytes);
        }
    }
}

// Until it is to stop, or to be lent.
void writer::work(std::unique_lock<std::mutex>& lock) {
    while (wait(lock)) {
        hear_of_loaded();
        if (is_unsettled_) {
            settle(lock);
        }
        lock.unlock();
        keep_noted();
        if (troubled_ && steady_now() >= try_again_) {
            recover_from_trouble();
        }
        if (!troubled_ && ask_for_lender_at_ != never && steady_now() >= ask_for_lender_at_) {
            ask_for_lender_at_ = never;
            gives_back_ = true;  // which asks for it, and again later
        }
        if (gives_back_ && !troubled_) {
            give_back_one();
        }
        if (!troubled_ && sync_by_ != never && steady_now() >= sync_by_) {
            sync_by_ = never;
            if (const auto failed = tail_.sync()) {
                trouble(failed, "syncing");
            }
        }
        lock.lock();
        write_all_offered(lock);
    }
}

void writer::write_the_rest(std::unique_lock<std::mutex>& lock) {
    hear_of_loaded();  // the end may have come in the moment between
    lock.unlock();
    let_older_than_failed_go();  // nothing, but where memory ended in the middle of that
    keep_noted();
    lock.lock();
    write_all_offered(lock);
    const bool is_last = stopping_;
    if (is_last) {
        skip_offered(lock);  // what waits for what will not be found any more
    }
    lock.unlock();
    keep_noted();
    if (is_last || !troubled_) {
        close_tail();  // whatever the trouble is: a disk that fails has closed it already
        keep_noted();  // what a failure of that takes along
    }
    if (is_last && journal_broken_) {
        (void)mend_journal();  // there is no later try
    }
    if (!journal_broken_ && journal_.append({}, true)) {
        journal_broken_ = true;
        log::error("disk: ", core_->settings.path, ": the last purges may not be kept");
    }
    lock.lock();
    if (stopping_) {
        lock.unlock();
        const auto until = steady_now() + tell_at_most;
        while (reclaimer_.has_untold() && steady_now() < until) {
            reclaimer_.tell_one();
        }
        lock.lock();
    }
}

// Lent, until it is taken back. False: stop. What was noted in the last moment is written first, since
// what comes later is told to whoever has the store, and to nobody before that.
bool writer::rest(std::unique_lock<std::mutex>& lock) {
    if (stopping_) {
        return false;
    }
    if (lending_ == lending::asked && !troubled_ && !journal_broken_) {
        if (!noted_.empty() || !offered_.empty()) {
            return true;  // once more
        }
        lending_ = lending::done;
        index_is_whole_ = knows_log_ = false;  // whoever has it may write what is not seen here
    } else {
        lending_ = lending::no;
    }
    lent_or_not_.notify_all();
    if (lending_ == lending::no) {
        if (journal_broken_ && !troubled_) {
            begin_trouble(boost::system::errc::make_error_code(boost::system::errc::io_error),
                          "keeping purges");
        }
        return true;
    }
    wake_.wait(lock, [this] { return stopping_ || lending_ == lending::no; });
    if (stopping_) {
        return false;
    }
    // As after a failure: the journal may have been written by another process meanwhile, and at positions
    // of its own.
    troubled_ = journal_broken_ = true;
    has_unknown_ = true;  // as far as we know: it may have had more room
    next_sequence_ = sequence_after(next_sequence_ - 1, wall_now());
    try_again_ = steady_now();
    return true;
}

bool writer::wait(std::unique_lock<std::mutex>& lock) {
    for (;;) {
        if (stopping_ || lending_ == lending::asked) {
            return false;
        }
        // What is in hand comes first, and lacked memory: it waits for the next try.
        const bool may_keep = !has_in_hand() && !is_unsettled_;
        if ((!noted_.empty() && may_keep) || (all_loaded_ && !may_reclaim_) ||
            (gives_back_ && !troubled_)) {
            return true;
        }
        const auto now = steady_now();
        auto until = never;
        auto how = sleep::for_anything;
        if (troubled_) {
            until = try_again_;
        } else if (!waits_for_loading_ && (!offered_.empty() || tail_.has_unwritten())) {
            if (write_by_ == never) {
                write_by_ = now + core_->settings.write_after;
            }
            if (write_now_ || offered_bytes_ >= log_tail::piece_bytes) {
                return true;
            }
            until = write_by_;
            how = sleep::for_a_piece;
        } else if (sync_by_ != never) {
            until = sync_by_;
        }
        // Nothing else may happen for hours, and nobody tells us that the lender has ended.
        if (!troubled_ && ask_for_lender_at_ != never) {
            until = until == never ? ask_for_lender_at_ : std::min(until, ask_for_lender_at_);
        }
        if (until != never && now >= until) {
            return true;
        }
        if (reclaimer_.has_untold()) {
            lock.unlock();
            reclaimer_.tell_one();
            lock.lock();
            continue;  // something may have come meanwhile, and nobody wakes us for it
        }
        sleeping_ = how;
        if (until == never) {
            wake_.wait(lock);
        } else {
            wake_.wait_until(lock, until);
        }
        sleeping_ = sleep::awake;
    }
}

void writer::write_all_offered(std::unique_lock<std::mutex>& lock) {
    const bool is_last = stopping_ || lending_ == lending::asked;
    if (!is_last && !write_now_ && offered_bytes_ < log_tail::piece_bytes &&
        steady_now() < write_by_) {
        return;  // woken for something else
    }
    while (!offered_.empty() && !troubled_) {
        if (!noted_.empty()) {
            lock.unlock();
            keep_noted();
            lock.lock();
            continue;
        }
        if (must_wait_for_loading()) {
            waits_for_loading_ = true;
            break;
        }
        const auto& next = offered_.front();  // where it stays until it is done
        lock.unlock();
        if (next.about && core_->on_their_way.is_outdated(*next.about, next.number)) {
            let_go(next.task);
        } else {
            std::visit([this](const auto& task) { perform(task); }, next.task);
        }
        carried_out_.push_back({next.about, tail_.to_enter(), next.at});
        end_carried_out();
        lock.lock();
        pop_offered();
        note_oldest();
        wake_pausing(lock);
    }
    if (troubled_) {
        skip_offered(lock);
        wake_pausing(lock);
    }
    write_now_ = false;
    lock.unlock();
    flush();
    end_carried_out();
    lock.lock();
    note_oldest();
    write_by_ = never;
}

// Ends the tasks whose records can be found by now, or never will be: what was given up waits no more.
void writer::end_carried_out() noexcept {
    while (!carried_out_.empty() && carried_out_.front().entered <= tail_.entered()) {
        if (const auto& about = carried_out_.front().about) {
            core_->on_their_way.end(*about);
        }
        carried_out_.pop_front();
    }
}

// In trouble too, where a segment is open: then it is not that which failed, and what it has taken in is newer than
// what is there.
void writer::flush() {
    if (const auto failed = tail_.flush()) {
        trouble(failed, "writing");
        return;
    }
    if (tail_.is_dirty() && sync_by_ == never) {
        sync_by_ = steady_now() + sync_after;
    }
}

log_position writer::position() const noexcept {
    return tail_.is_open() ? tail_.position() : log_position{next_sequence_, 0};
}

// The lowest position of any record a restart might find; a segment that could not be begun anew
// still holds its old ones. So may those that another process has left.
log_position writer::oldest_position() const {
    if (!knows_slots_ || has_unknown_) {
        return {};
    }
    std::uint64_t lowest = tail_.is_open() ? tail_.position().sequence : 0;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto sequence = core_->segments.left_in_file(number);
        if (sequence != 0 && (lowest == 0 || sequence < lowest)) {
            lowest = sequence;
        }
    }
    return {lowest, 0};
}

}  // namespace reprise::proxy::cache::disk
