#include "proxy/base/log.hpp"
#include "proxy/cache/disk/superblocks.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

// Trouble: the disk fails, or memory has ended. What waits for a segment is given up (settle), nothing more is
// taken, and after a while all is tried again (recover_from_trouble).

namespace reprise::proxy::cache::disk {

namespace {

// At a stop there is no later: so often more is tried what lacks memory, a moment apart.
constexpr unsigned most_last_tries = 10;
constexpr std::chrono::milliseconds between_last_tries{50};

}  // namespace

void writer::begin_trouble(const error_code& why, std::string_view doing) noexcept {
    core_->counts.write_errors.fetch_add(1, std::memory_order_relaxed);
    troubled_ = true;
    backoff_ = backoff_.count() == 0 ? core_->settings.retry_after
                                     : std::min(2 * backoff_, core_->settings.retry_at_most);
    try_again_ = steady_now() + backoff_;
    core_->set_health(tier_state::reading, core::reason(doing, why));
}

void writer::trouble(const error_code& why, std::string_view doing) {
    begin_trouble(why, doing);
    let_older_than_failed_go();
}

// With guard_ held. False: the thread is to end. What is in hand is given up at once where there is memory for that, and
// else at the next try.
bool writer::go_on_without_memory(std::unique_lock<std::mutex>& lock) {
    if (lending_ == lending::asked) {
        lending_ = lending::no;
        lent_or_not_.notify_all();
    }
    if (stopping_) {
        // All of it is tried once more, the writing too: nothing is wrong with the disk.
        if (++last_tries_ <= most_last_tries) {
            (void)wake_.wait_for(lock, between_last_tries, [] { return false; });
            return true;
        }
        lock.unlock();
        (void)tail_.close();  // which takes none: what it has taken in is newer than what is there
        lock.lock();
        log::error("disk: ", core_->settings.path, ": no memory: the last purges may not be kept");
        return false;
    }
    if (!troubled_ || steady_now() >= try_again_) {
        begin_trouble(no_memory(), "writing");
    }
    is_unsettled_ = true;
    try {
        settle(lock);
    } catch (const std::bad_alloc&) {
        if (!lock.owns_lock()) {
            lock.lock();
        }
    }
    return true;
}

// What an open segment has taken in is written, which takes no memory. Nothing else of what waits is written any more:
// what is older is let go with it, and who waits for it goes on. Where that lacks memory too, what is done is done. With
// `lock` held, which is let go meanwhile. @pre troubled_
void writer::settle(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    let_older_than_failed_go();
    flush();
    end_carried_out();
    lock.lock();
    skip_offered(lock);
    note_oldest();
    wake_pausing(lock);
    is_unsettled_ = false;
}

// False: it is not in order yet. What is in the index must still be what is in that directory.
bool writer::mend_journal() {
    const auto copies = read_superblocks(*core_->files, core_->settings.path);
    const auto super = believed(copies);
    if (!super && copies.front().error().category() != format_category()) {
        trouble(copies.front().error(), "looking for the store");
        return false;
    }
    if (super && super->store_id == id_there_ && id_there_ != core_->super.store_id) {
        if (const auto failed = write_superblocks(
                *core_->files, core_->settings.path, core_->super)) {
            trouble(failed, "giving the store another id");
            return false;
        }
        id_there_ = core_->super.store_id;
    } else if (!super || super->store_id != core_->super.store_id) {
        trouble(format_errc::bad_checksum, "another store has taken this one's place");
        return false;
    }
    // The disk may be full of what is too much. But what may go only when the journal says so waits until that can be
    // written, or each would wait for the other.
    const bool journal_comes_first = journal_broken_ && (must_say_what_ends() || death_is_unkept_);
    if (gives_back_ && !troubled_ && !journal_comes_first) {
        give_back_one();
        if (troubled_) {
            return false;
        }
    }
    if (journal_broken_) {
        if (const auto failed = rewrite_journal(unkept_)) {
            trouble(failed, "keeping purges");
            return false;
        }
        journal_broken_ = death_is_unkept_ = false;
        unkept_.clear();
    }
    call_all(unkept_calls_);
    if (gives_back_ && !troubled_ && journal_comes_first) {
        give_back_one();
    }
    return !troubled_;
}

void writer::recover_from_trouble() {
    troubled_ = false;
    if (!mend_journal()) {
        return;
    }
    if (tail_.is_open()) {
        reclaim_ahead();  // memory may have ended when it was opened, and before that was done
    }
    // Where it only may not use a segment again yet nothing has failed: what is put is skipped until it may.
    if (!tail_.is_open() && !must_wait_for_loading() && !open_next() && troubled_) {
        return;
    }
    backoff_ = std::chrono::milliseconds{0};
    core_->set_health(tier_state::ready, {});
}

}  // namespace reprise::proxy::cache::disk
