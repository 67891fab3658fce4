#include "proxy/base/log.hpp"
#include "proxy/cache/disk/room_in.hpp"
#include "proxy/cache/disk/writer.hpp"

#include <algorithm>
#include <utility>

// Where the writer goes on: which segment it begins when one is full, what has to be kept of that before,
// and who may still read it.

namespace reprise::proxy::cache::disk {

void writer::carry_what_is_due() {
    const auto filled = [this] {
        return static_cast<double>(tail_.position().offset) /
               static_cast<double>(core_->shape.segment_bytes);
    };
    while (!troubled_ && tail_.is_open() && reclaimer_.is_active() &&
           reclaimer_.carry_one(tail_, filled())) {
        if (tail_.unwritten_bytes() >= log_tail::piece_bytes) {
            flush();
        }
    }
    if (tail_.is_open() && tail_.unwritten_bytes() >= log_tail::piece_bytes) {
        flush();
    }
    if (tail_.is_open()) {
        reclaimer_.tell_due(filled());
    }
}

bool writer::make_room(std::uint64_t record_bytes) {
    if (troubled_) {
        return false;
    }
    while (!tail_.is_open() || !tail_.has_room(record_bytes)) {
        close_tail();
        if (troubled_ || !open_next()) {
            return false;
        }
    }
    return true;
}

void writer::close_tail() {
    if (const auto failed = tail_.close()) {
        trouble(failed, "closing a segment");
    }
    sync_by_ = {};
}

std::optional<std::uint32_t> writer::free_segment(bool even_failed) {
    std::optional<std::uint32_t> unread, last_choice;
    const bool may_make = core_->segments.files() < core_->shape.segments &&
                          steady_now() >= make_again_;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto view = core_->segments.at(number);
        const bool is_there = view.from || core_->segments.is_unread(number);
        if (view.sequence != 0 || (!is_there && !may_make)) {
            continue;
        }
        const auto failed = failed_.find(number);
        if (failed == failed_.end() || next_sequence_ >= failed->second) {
            if (!core_->segments.is_unread(number)) {
                return number;
            }
            // The next start may be able to read it.
            unread = unread ? unread : number;
            continue;
        }
        if (even_failed && !last_choice) {
            last_choice = number;
        }
    }
    return unread ? unread : last_choice;
}

// Whether one segment fails, and not the disk: other segments' contents are not to be given up for
// tries that all fail alike.
error_code writer::try_journal() {
    const bool failed_lately = !failed_.empty() || backoff_.count() != 0;
    if (!failed_lately) {
        return {};
    }
    const journal_entry nothing{position(), sealed{}};
    const auto failed = journal_.append({&nothing, 1}, true);
    journal_broken_ = bool{failed};
    return failed;
}

std::optional<std::uint32_t> writer::oldest_segment() const {
    std::optional<std::uint32_t> oldest;
    std::uint64_t lowest = 0;
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto sequence = core_->segments.sequence(number);
        const bool is_tail = tail_.is_open() && tail_.number() == number;
        if (sequence != 0 && !is_tail && (!oldest || sequence < lowest)) {
            oldest = number;
            lowest = sequence;
        }
    }
    return oldest;
}

bool writer::must_wait_for_loading() {
    const bool open = tail_.is_open() && tail_.has_room(core_->shape.record_most);
    return !knows_slots_ || (!may_reclaim_ && !open && !free_segment(true));
}

bool writer::open_next() {
    for (;;) {
        auto number = free_segment(false);
        if (!number && !reclaimer_.is_active()) {
            const auto oldest = may_reclaim_ ? oldest_segment() : std::nullopt;
            number = oldest ? std::nullopt : free_segment(true);
            if (!oldest && !number) {
                trouble(
                    boost::system::errc::make_error_code(boost::system::errc::no_space_on_device),
                    "looking for a segment");
                return false;
            }
            if (const auto failed = number ? error_code{} : try_journal()) {
                trouble(failed, "keeping purges");
                return false;
            }
            if (oldest) {
                reclaimer_.begin(*oldest);  // nothing could be carried ahead of time
            }
        }
        if (!may_use_again(number ? *number : reclaimer_.number())) {
            return false;
        }
        if (!number) {
            number = reclaimer_.number();
            reclaimer_.finish();
        }
        core_->settle_deaths();
        // What is said of a segment that can't be begun has its room before: there its header may be already.
        make_room_in(unkept_, 2);
        auto& left_alone_until = failed_[*number];  // as it was, or 0: it is not
        if (must_say_what_ends()) {
            if (const auto failed = drop_what_is_left_in(*number)) {
                trouble(failed, "keeping purges");
                return false;
            }
        }
        error_code failed;
        bool is_new = false;
        auto opened = open_segment_file(*number, is_new, failed);
        const bool has_file = !failed;
        if (has_file) {
            // Not again, whatever comes of it: the header may be in the file.
            failed = tail_.open(*number, next_sequence_++, std::move(opened));
        }
        // Where a file system reserves no room, the header of a new file is the first to find none.
        const bool has_no_room = is_no_room(failed) && (is_new || !has_file);
        if (has_no_room && oldest_segment() && steady_now() >= make_again_) {
            if (has_file) {
                (void)core_->files->remove(core_->path_of(segment_name(*number)));
            }
            make_again_ = steady_now() + core_->settings.retry_at_most;
            core_->room.no_more_room();
            if (left_alone_until == 0) {
                failed_.erase(*number);
            }
            log::warn("disk: ",
                      core_->settings.path,
                      ": no room for more segments; those that are there are used again");
            continue;
        }
        if (failed) {
            (void)drop_what_is_left_in(*number);
            left_alone_until = next_sequence_ + core_->segments.size();
            trouble(failed, "beginning a segment");
            return false;
        }
        failed_.erase(*number);
        break;
    }
    const auto oldest_left = oldest_position();
    core_->expiries.forget_before(oldest_left);
    core_->unlisted.forget_before(oldest_left.sequence);
    reclaim_ahead();
    return true;
}

// What is worth it is carried from the oldest segment while this one is filled.
void writer::reclaim_ahead() {
    if (may_reclaim_ && !reclaimer_.is_active() && !free_segment(false)) {
        if (const auto oldest = oldest_segment()) {
            reclaimer_.begin(*oldest);
        }
    }
}

// A file of which nothing is there any more.
std::optional<std::uint32_t> writer::free_file() const {
    for (std::uint32_t number = 0; number < core_->segments.size(); ++number) {
        const auto view = core_->segments.at(number);
        if (view.from && view.sequence == 0 && !core_->segments.is_unread(number)) {
            return number;
        }
    }
    return std::nullopt;
}

// A store that was made smaller: of what it has too much the oldest goes, as when its room is needed, but with the file.
// One at a time, so that what is noted and offered does not wait for all of them.
void writer::give_back_one() {
    make_room_in(unkept_, 2);
    const bool has_too_many = core_->segments.files() > core_->shape.segments;
    if (!has_too_many || has_lender()) {
        gives_back_ = false;
        if (has_too_many) {
            ask_for_lender_at_ = steady_now() + core_->settings.retry_after;
            return;
        }
        if (tail_.is_open()) {
            reclaim_ahead();
        }
        return;
    }
    if (const auto free = free_file()) {
        remove_file_of(*free);
        return;
    }
    if (!reclaimer_.is_active()) {
        const auto oldest = oldest_segment();
        if (!oldest) {
            gives_back_ = false;  // the others can't be read, and nobody knows how old they are
            return;
        }
        reclaimer_.begin(*oldest);
    }
    const auto number = reclaimer_.number();
    if (must_say_what_ends()) {
        if (const auto failed = drop_what_is_left_in(number)) {
            trouble(failed, "keeping purges");
            return;
        }
    }
    reclaimer_.finish();
    core_->settle_deaths();
    core_->room.gave_back(number);
    remove_file_of(number);
}

// The next may go only when this one has gone for good, or the journal says that it is dead: after a power cut it could be
// there again, with what the next had replaced. @pre it has ended, and unkept_ has room for one more
void writer::remove_file_of(std::uint32_t number) {
    auto failed = core_->files->remove(core_->path_of(segment_name(number)));
    if (!failed || failed == boost::system::errc::no_such_file_or_directory) {
        failed = core_->files->sync_directory(core_->settings.path);
    }
    if (failed) {
        log::warn("disk: ",
                  core_->settings.path,
                  ": ",
                  failed.message(),
                  ": a segment too many is left, and takes its room until the next start");
        const bool is_known = journal_broken_;  // which is being mended then
        if (const auto unkept = drop_what_is_left_in(number); unkept && !is_known) {
            trouble(unkept, "keeping purges");
        }
    }
    core_->segments.removed(number, !failed);
}

// Whether a process that lent us the store may still read it, or go on with it. Once it has ended all of
// it is ours, and what is too much is given back.
bool writer::has_lender() {
    if (core_->lender && !core_->lender->try_lock()) {
        core_->lender = nullptr;
        gives_back_ = may_reclaim_;
        ask_for_lender_at_ = {};
    }
    if (has_unknown_ && !core_->lender) {
        has_unknown_ = core_->may_have_unknown_segments();
    }
    return core_->lender != nullptr;
}

// What a process that lent us the store may still read stays as it is until that has ended.
bool writer::may_use_again(std::uint32_t number) {
    if (!has_lender() || core_->segments.left_in_file(number) == 0) {
        return true;
    }
    if (!std::exchange(said_that_others_read_, true)) {
        log::info("disk: ",
                  core_->settings.path,
                  ": the program before this one still reads what the next segment holds; until it "
                  "has ended nothing is stored on disk");
    }
    return false;
}

// `is_new`: it had nothing in it.
std::shared_ptr<file> writer::open_segment_file(std::uint32_t number,
                                                bool& is_new,
                                                error_code& failed) {
    const auto path = core_->path_of(segment_name(number));
    const auto opened = core_->files->open(path, open_mode::make);
    if (!opened) {
        failed = opened.error();
        return nullptr;
    }
    const auto size = (*opened)->size();
    if (!size) {
        failed = size.error();
        return nullptr;
    }
    is_new = *size == 0;
    if (*size != core_->shape.segment_bytes) {
        failed = *size > core_->shape.segment_bytes
                     ? (*opened)->resize(core_->shape.segment_bytes)
                     : (*opened)->reserve(core_->shape.segment_bytes);
        if (!failed) {
            failed = core_->files->sync_directory(core_->settings.path);
        }
        if (failed) {
            if (is_new) {
                (void)core_->files->remove(path);
            }
            return nullptr;
        }
    }
    return *opened;
}

}  // namespace reprise::proxy::cache::disk
