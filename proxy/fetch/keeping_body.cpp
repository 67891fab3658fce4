// In the order of a response's way, behind its head (keeping.cpp): its body as it comes, and its end.
// Nothing here waits: the producer calls between its reads.

#include "proxy/fetch/keeping.hpp"
#include "proxy/http/reuse.hpp"

#include <algorithm>

namespace reprise::proxy::fetch {

namespace {

constexpr std::uint64_t room_for_a_read = 16u << 10;  // of a body of unknown length, at a time
constexpr std::uint64_t room_ahead = 64u << 10;  // of the bytes that have come; one read is no more

}  // namespace

// ---- room for it ----

// Whether memory has room for all of it as things are; it is taken as the bytes come, a little
// ahead, so that a body which does not come keeps out no other.
bool keeping::promise_room(std::optional<std::uint64_t> length) {
    if (length) {
        return room_.could_grow_to(*length) && room_.grow_to(std::min(*length, room_ahead));
    }
    return room_.grow_to(std::min(order_.now_settings->fetches.window, room_ahead));
}

// ---- while the body comes ----

// A body of unknown length may be kept for the store only while it is within the window and there
// is room for it.
void keeping::keep_up() {
    if (on_disk_) {
        feed_disk();
        return;
    }
    if (!into_.kept_whole()) {
        room_.reset();  // somebody else may have ended that: what was invalidated is not stored
        return;
    }
    if (head_->length) {
        const auto next = std::min(*head_->length, into_.received() + room_ahead);
        // A late sight may have admitted it without a promise of room.
        if (held_already_ + *head_->length > order_.now_settings->options.memory.largest() ||
            !room_.grow_to(next)) {
            leave_memory();
        }
        return;
    }
    const auto next = std::min<std::uint64_t>(into_.received() + room_for_a_read,
                                              order_.now_settings->options.memory.largest());
    if (outgrows_memory() || !room_.grow_to(next)) {
        leave_memory();
    }
}

// The next read must not take it beyond the window; but any read may be the last, so what memory stores is held
// against what has come. @pre its length is unknown
bool keeping::outgrows_memory() const {
    const auto& now = *order_.now_settings;
    return into_.received() > now.options.memory.largest() ||
           into_.received() + room_for_a_read > now.fetches.window;
}

// No store takes so much of a body of unknown length, whoever asks and however often. One that is full
// or slow now may take it the next time.
bool keeping::outgrows_stores() const {
    const bool may_go_to_disk = head_->status != 206 && w_.common.store.belongs_on_disk(order_.url);
    return !head_->length && outgrows_memory() &&
           (!may_go_to_disk || into_.received() > order_.now_settings->options.disk.largest());
}

// What was sent stale must not go on standing in for what can't be kept: each request of its whole window
// would have that begun and broken off once more.
void keeping::end_what_was_sent() {
    const auto behind = order_.behind();
    if (behind && ends_use(head_->status, true) && outgrows_stores()) {
        (void)w_.common.store.drop(order_.key, order_.url, behind);
    }
}

// What proves too large for memory goes on to disk, from its first byte, if there is one.
void keeping::leave_memory() {
    if (head_->status != 206 && into_.was_admitted()) {
        (void)begin_on_disk(*head_, "");
    }
    into_.keep_no_more();
    room_.reset();
    if (on_disk_) {
        feed_disk();
    } else {
        w_.common.fetches.take_back(order_.key, order_.into);
        end_what_was_sent();
    }
}

// A body that memory does not take is written as it arrives, no faster than the disk takes it
// (outruns_disk). What clients are told of it; `otherwise` if it is not written.
std::string_view keeping::begin_on_disk(const cache::fetched_head& head,
                                        std::string_view otherwise) {
    if (head.status == 206) {
        return otherwise;
    }
    if (w_.common.store.is_being_written(order_.key, head.strong_etag)) {
        return "being-written";
    }
    on_disk_ = w_.common.store.begin_on_disk(order_.key,
                                             order_.url,
                                             head.length,
                                             head.strong_etag,
                                             begun_at_,
                                             cache::packed_wait{head.by.took});
    if (on_disk_ && !into_.keep_outside()) {
        on_disk_.reset();
    }
    return on_disk_ ? "to-disk" : otherwise;
}

void keeping::feed_disk() {
    to_disk_.clear();
    into_.take_new(to_disk_);
    for (const auto& piece : to_disk_) {
        if (!on_disk_->append(piece)) {
            on_disk_.reset();
            into_.keep_outside_no_more();
            w_.common.fetches.take_back(order_.key, order_.into);
            end_what_was_sent();
            return;
        }
    }
    // Its beginning is gone: nobody can join it any more.
    if (!is_passed_ && !order_.into->may_serve_siblings()) {
        is_passed_ = true;
        w_.common.fetches.take_back(order_.key, order_.into);
    }
}

// ---- the body is whole ----

// Of a body of unknown length it is known only now.
void keeping::judge_size() {
    if (!storable_ || head_->length) {
        return;
    }
    const bool was = too_large_;
    too_large_ = exceeds_stores(head_->status, into_.received());
    if (too_large_) {
        note_too_large(head_->status);
    } else if (was && whom_ == word_of::origin) {
        w_.common.uncacheable.forget(order_.key);
    }
}

void keeping::finish(bool trusted, cache::packed_wait took) {
    wait_ = took;
    record_sights();
    judge_size();
    // Asked here, and not of the fetch alone: whoever joined before it was taken back may ask for all of
    // it to be kept afterwards.
    const bool may_be_kept = trusted && storable_;
    if (!may_be_kept) {
        on_disk_.reset();
        into_.keep_no_more();
    }
    const bool kept_out = waits() || (refused_ && !on_disk_ && !into_.kept_whole());
    if (may_be_kept && !keep_body()) {
        end_unreplaced();
    }
    if (kept_out && !too_large_) {
        note_refused_bytes(w_.counts, ruling_.policy, ruling_.rule, into_.received());
    }
    if (ruling_.may_have_cost_a_hit() && storable_ && !order_.replaces && !too_large_) {
        w_.counts.admission_hit_bytes_lost.add(into_.received());
    }
}

// False: no tier has room for it. It has come whole, and no reader loses it because there is no memory to keep it.
bool keeping::keep_body() noexcept {
    try {
        return on_disk_ ? finish_on_disk() : into_.kept_whole() && store_body();
    } catch (const std::bad_alloc&) {
        on_disk_.reset();
        return false;
    }
}

// It is whole, and there was room for it nowhere: what it was to replace would go on answering in its stead. A part
// says nothing of the rest, what another cache had nothing of the origin, and what was sent stale goes for what would
// have ended it otherwise too. Without memory the older stays.
void keeping::end_unreplaced() noexcept {
    const bool is_wanted = !order_.behind() || ends_use(head_->status, true);
    if (!order_.replaces || !is_wanted || head_->status == 206 || !is_of_now_) {
        return;
    }
    try {
        auto head = made_of_head(into_.received());
        describe(head);
        const auto whole = cache::stored_response::make(head);
        if (!w_.common.store.has_ended_since(order_.key, order_.url, *whole, begun_at_)) {
            end_older(*whole, false);
        }
    } catch (const std::bad_alloc&) {
    }
}

// What the same request had before would answer it again when `than` leaves, or if it is not there at all. Its body has
// come whole, and no reader loses it because there is no memory for this.
void keeping::end_older(const cache::stored_response& than, bool is_stored) noexcept {
    try {
        w_.common.store.end_older(
            order_.key, order_.url, {than, order_.request->head.fields, is_stored}, order_.found);
    } catch (const std::bad_alloc&) {
    }
}

void keeping::count_stored(std::uint64_t bytes) {
    w_.counts.stored_objects.add();
    w_.counts.stored_bytes.add(bytes);
}

// The head that is kept: without the fields that its no-cache or private names.
void keeping::append_kept_head(std::string& to) const {
    const auto& head = *head_;
    if (!head.directives.no_cache_fields && !head.directives.private_fields) {
        to.append(head.head);
        return;
    }
    const auto lines = lines_of(head);
    const http::withheld_names withheld{lines};
    to.append(head.head, 0, head.head.find("\r\n") + 2);
    for (const auto& line : lines) {
        if (!withheld.has(line)) {
            http::append_field_line(to, line.name, line.value);
        }
    }
}

// A whole response as it will be kept, without its body.
cache::response_draft keeping::made_of_head(std::uint64_t bytes) const {
    cache::response_draft stored;
    const auto length = std::to_string(bytes);
    stored.head.reserve(head_->head.size() + 20 + length.size());
    append_kept_head(stored.head);
    // A 204 has no Content-Length (RFC 9110 8.6); everything else stored has its own.
    if (head_->status != 204) {
        stored.head.append("Content-Length: ").append(length).append("\r\n");
    }
    cache::index_head(stored);
    stored.status = head_->status;
    return stored;
}

void keeping::describe(cache::response_draft& stored) const {
    stored.freshness = head_->freshness;
    stored.asked_at = head_->asked_at;
    stored.asked_turn = head_->asked_turn;
    stored.wait = wait_;
    stored.directives = head_->directives;
    stored.weak_last_modified = head_->weak_last_modified;
    stored.vary = head_->vary;
    stored.selecting = head_->selecting;
    if (!stored.parts) {
        stored.reusable_until = http::reusable_until(stored.directives, stored.freshness);
    }
}

// The body has passed, and is on disk but for its end. False: it is not stored.
bool keeping::finish_on_disk() {
    feed_disk();
    if (!on_disk_) {
        return false;
    }
    const auto bytes = into_.received();
    auto draft = made_of_head(bytes);
    describe(draft);
    const auto stored = cache::stored_response::make(draft);
    const bool is_stored = w_.common.store.finish_on_disk(
        *on_disk_, order_.key, order_.url, *stored);
    on_disk_.reset();
    if (is_stored) {
        count_stored(bytes);
        end_older(*stored, true);
    }
    return is_stored;
}

// False: a whole response is not stored.
bool keeping::store_body() {
    // What is small is copied once, into the stored response; a part stays in its blocks.
    auto content = into_.whole_body(head_->status == 206 ? 0 : cache::stored_response::small_body);
    if (!content) {
        return false;
    }
    const auto bytes = content->size;
    if (head_->status != 206) {
        auto made = made_of_head(bytes);
        made.content = std::move(content);
        describe(made);
        room_.reset();
        return store_whole(made);
    }
    if (!place_ || bytes != place_->range.size()) {
        return true;
    }
    std::string head;
    append_kept_head(head);
    auto made = cache::made_of_part(head, *place_, std::move(content));
    describe(made);
    room_.reset();
    if (joins_) {
        made.vary = joins_->vary().spec();
        made.selecting = joins_->selecting();
    }
    store_part(std::move(made));
    return true;
}

bool keeping::store_whole(const cache::response_draft& made) {
    const bool on_probation = waits();
    const auto stored = cache::stored_response::make(made);
    if (!w_.common.store.put(order_.key,
                             order_.url,
                             stored,
                             begun_at_,
                             on_probation ? cache::standing::probation : cache::standing::admitted,
                             on_probation ? probation_ : 1)) {
        return false;
    }
    if (!on_probation) {
        count_stored(made.content->size);
    }
    end_older(*stored, true);
    return true;
}

// Together with what is held of the same representation, in place of every other. Another part may
// come between the look and the put: then it is combined with that.
void keeping::store_part(cache::response_draft added) {
    const auto& now = *order_.now_settings;
    const cache::combining_rules rules{now.options.memory.largest(),
                                       now.response_limits.bytes,
                                       now.response_limits.fields,
                                       rules_for(order_, at_most_, {}),
                                       now.options.targeted};
    const auto bytes = added.parts->bytes();
    const auto alone = cache::stored_response::make(added);
    cache::complete_if_whole(added);
    for (int tries = 0; tries < 4; ++tries) {
        const auto kept = w_.common.store.variant_of(order_.key, order_.url, *alone);
        cache::stored_ptr next;
        if (kept) {
            auto together = cache::combine(*kept, *alone, rules);
            if (together.what == cache::combination::too_large) {
                return;
            }
            if (together.what == cache::combination::combined) {
                next = std::move(together.response);
            }
        }
        if (!next) {
            if (begins_none_) {
                return;
            }
            next = cache::stored_response::make(added);
        }
        const bool on_probation = waits();
        if (w_.common.store.put_over(order_.key,
                                     order_.url,
                                     kept,
                                     next,
                                     begun_at_,
                                     on_probation ? cache::standing::probation
                                                  : cache::standing::admitted,
                                     on_probation ? probation_ : 1)) {
            if (!on_probation) {
                count_stored(bytes);
            }
            if (!next->parts()) {
                end_older(*next, true);
            }
            return;
        }
    }
}

}  // namespace reprise::proxy::fetch
