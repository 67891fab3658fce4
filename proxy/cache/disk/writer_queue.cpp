#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <new>
#include <utility>

// What other threads put in: tasks, as far as there is room, and notes, always. None of it waits for the
// disk.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint64_t pause_above = 8u << 20;  // queued bytes

std::optional<filter::key_hash> directory_of(const filter::key_hash& primary,
                                             std::uint64_t discriminator) {
    return discriminator == 0 ? std::nullopt : std::optional{primary};
}

// The object of which this task brings a newer response; none: none.
std::optional<task_subject> subject_of(const write_task& task) {
    if (const auto* put = std::get_if<response_task>(&task)) {
        if (put->kind == record_kind::refresh) {
            return std::nullopt;
        }
        return task_subject{index_key(record_kind::object, put->primary, put->discriminator()),
                            put->representation,
                            put->asked,
                            directory_of(put->primary, put->discriminator())};
    }
    if (const auto* outdated = std::get_if<outdate_task>(&task)) {
        return task_subject{
            .object = index_key(record_kind::object, outdated->primary, outdated->discriminator),
            .representation = std::nullopt,
            .variant_of = directory_of(outdated->primary, outdated->discriminator)};
    }
    return std::nullopt;
}

}  // namespace

bool writer::offer(write_task task, std::uint64_t bytes, std::uint64_t promised) {
    const auto about = subject_of(task);
    const auto* const response = std::get_if<response_task>(&task);
    const bool of_large = response != nullptr && response->length > core_->shape.inline_most;
    bool wake = false;
    {
        const std::lock_guard lock{guard_};
        promised_bytes_ -= promised;
        const bool has_room = bytes <= promised || bytes + offered_bytes_ + promised_bytes_ <=
                                                       core_->settings.write_queue;
        // What takes no room is never refused: it gives some back.
        if (stopping_ || (bytes != 0 && !core_->takes_puts())) {
            return false;
        }
        if (bytes != 0 && !has_room) {
            core_->counts.overrun.fetch_add(1, relaxed);
            return false;
        }
        const auto now = steady_now();
        try {
            offered_.push_back({std::move(task), bytes, about, 0, now});
        } catch (const std::bad_alloc&) {
            return false;
        }
        try {
            offered_.back().number = about ? core_->on_their_way.begin(*about) : 0;
        } catch (const std::bad_alloc&) {
            offered_.pop_back();
            return false;
        }
        oldest_ = oldest_.value_or(now);
        offered_bytes_ += bytes;
        ++offered_in_all_;
        // Nobody finds a large object before its head is written, and no other tier has it:
        // requests meanwhile fetch or validate it again. Beside its size a last page written twice
        // is nothing.
        write_now_ = write_now_ || of_large;
        wake = sleeping_ == sleep::for_anything ||
               (sleeping_ == sleep::for_a_piece &&
                (write_now_ || offered_bytes_ >= log_tail::piece_bytes));
        if (wake) {
            sleeping_ = sleep::awake;
        }
    }
    if (wake) {
        wake_.notify_one();
    }
    return true;
}

bool writer::promise(std::uint64_t bytes) {
    const std::lock_guard lock{guard_};
    const auto most = core_->settings.write_queue;
    const auto waiting = offered_bytes_ + promised_bytes_;
    if (stopping_ || !core_->takes_puts()) {
        return false;
    }
    if (waiting + bytes > most && waiting > most / 4) {
        core_->counts.overrun.fetch_add(1, relaxed);
        return false;
    }
    promised_bytes_ += bytes;
    return true;
}

void writer::release(std::uint64_t promised) {
    const std::lock_guard lock{guard_};
    promised_bytes_ -= promised;
}

template <class Add>
bool writer::change_notes(const Add& add, std::function<void()> kept) {
    bool added = false;
    bool overflowed = false;
    bool lent = false;
    bool wake = false;
    {
        const std::lock_guard lock{guard_};
        if (kept) {
            noted_.room_for_call();  // what is added is called back for, and the writer woken
        }
        const bool before = noted_.everything_before();
        added = add();
        lent = lending_ == lending::done;
        if (kept && !lent) {
            noted_.call(std::move(kept));
        }
        overflowed = !before && noted_.everything_before();
        overflows_ += overflowed ? 1 : 0;
        wake = !noted_.empty();
        if (wake) {
            sleeping_ = sleep::awake;
        }
    }
    if (wake) {
        wake_.notify_one();
    }
    if (kept && lent) {
        kept();  // whoever has the store is told, and keeps it
    }
    if (overflowed) {
        log::error("disk: ",
                   core_->settings.path,
                   ": the disk does not answer, and more purges wait for it than are remembered "
                   "one by one: they hold, but a restart will find nothing that is stored now");
    }
    return added;
}

template <class Note>
bool writer::add_note(const Note& what, std::function<void()> kept) {
    return change_notes([&] { return noted_.add(what); }, std::move(kept));
}

void writer::note(const dropped_url& url, std::function<void()> kept) {
    (void)add_note(url, std::move(kept));
}

// It is looked for where a record is first and then where it goes to: what is under way enters the index
// before it is that no more, and what leaves the index without an entry is unlisted before. All of it
// with guard_ held, so that nothing is offered meanwhile, and so that whoever finds nothing because
// another has just taken it out is told that it is kept behind the other's note. Where there is no memory for the
// note it is served no more all the same, and the next one will be kept.
bool writer::drop_url(const filter::key_hash& primary, bool always, std::function<void()> kept) {
    bool was_there = false;
    try {
        (void)change_notes(
            [&] {
                const bool is_coming = core_->on_their_way.has_either_form(primary, primary);
                was_there = core_->erase(primary).has_value();
                if (always || is_coming || was_there || !knows_log_ ||
                    core_->unlisted.may_have(primary)) {
                    (void)noted_.add(dropped_url{primary});
                }
                return true;
            },
            std::move(kept));
    } catch (const std::bad_alloc&) {
        core_->note_unlisted(primary);
        (void)core_->erase(primary);
        throw;
    }
    return was_there;
}

void writer::note(const expired_url& url, std::function<void()> kept) {
    (void)add_note(url, std::move(kept));
}

void writer::note(const bans_note& made, std::function<void()> kept) {
    (void)add_note(made, std::move(kept));
}

bool writer::note(const drop_note& record) {
    return add_note(record, {});
}

writer::waiting writer::waiting_notes() {
    const std::lock_guard lock{guard_};
    return {noted_.size(), overflows_};
}

std::uint64_t writer::queued_bytes() {
    const std::lock_guard lock{guard_};
    return offered_bytes_;
}

bool writer::wants_a_pause(std::uint64_t who, std::function<void()> go_on) {
    const std::lock_guard lock{guard_};
    const bool does = offered_bytes_ > pause_above &&
                      !(oldest_ && steady_now() - *oldest_ > object_writer::patience_with_disk);
    if (does) {
        pausing_[who] = std::move(go_on);
    }
    return does;
}

// What they do is a signal to a loop, which may lack memory: then those that are left are woken the next time. With
// `lock` held, which is let go meanwhile.
void writer::wake_pausing(std::unique_lock<std::mutex>& lock) {
    if (waking_.empty() && offered_bytes_ <= pause_above / 2) {
        waking_ = std::exchange(pausing_, {});
    }
    if (waking_.empty()) {
        return;
    }
    lock.unlock();
    while (!waking_.empty()) {
        waking_.begin()->second();
        waking_.erase(waking_.begin());
    }
    lock.lock();
}

std::chrono::nanoseconds writer::behind() {
    const std::lock_guard lock{guard_};
    return oldest_ ? steady_now() - *oldest_ : std::chrono::nanoseconds{0};
}

// With guard_ held. It has been written, or never will be.
void writer::pop_offered() noexcept {
    offered_bytes_ -= offered_.front().bytes;
    offered_.pop_front();
    dropped_ids_.one_is_done();
}

// With guard_ held.
void writer::note_oldest() noexcept {
    oldest_.reset();
    if (!carried_out_.empty()) {
        oldest_ = carried_out_.front().offered;
    } else if (!offered_.empty()) {
        oldest_ = offered_.front().at;
    }
}

}  // namespace reprise::proxy::cache::disk
