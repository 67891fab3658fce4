// What came from the origin, judged and kept: storable? admitted? whole, or a part? What is stored
// already is freshened by it in producer_freshening.cpp.

#include "proxy/fetch/producer_steps.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/targeted.hpp"

namespace reprise::proxy::fetch {

using http::body_kind;

namespace {
constexpr std::chrono::seconds uncacheable_for{120};
constexpr std::uint64_t room_ahead = 64u << 10;  // of the bytes that have come; one read is no more
}  // namespace

// `sights` requests wait for this response: each is one, and the second may admit. The filter is
// told when the body has passed: a failed fetch is no sight.
void producer::note_sights(std::size_t sights) {
    const auto before = into_.add_sights(sights);
    for (std::size_t i = 0; i < sights; ++i) {
        const auto pending = order_->pending_sights + before + i;
        ruling_ = w_.common.admission.peek(order_->key, order_->admission, pending);
        // Seen by a sibling lately is seen.
        if (!ruling_.admitted && order_->may_use_parents && w_.common.peers->shares() &&
            w_.peers->seen.may_contain(peer_key())) {
            ruling_ = w_.common.admission.peek(order_->key, order_->admission, pending + 1);
        }
        if (ruling_.seen_before > 0 && !order_->replaces) {
            w_.counts.admission_hits_lost.add();
        }
    }
}

void producer::record_sights() {
    auto left = into_.add_sights(0);
    if (left > 0 && order_->may_use_parents && w_.common.peers->shares()) {
        w_.common.peers->note_seen(peer_key(), came_at_);
    }
    for (; left > 0; --left) {
        (void)w_.common.admission.note(order_->key, order_->admission, came_at_);
    }
}

// What readers and the store are to know of the head at hand, but for the verdict.
std::shared_ptr<cache::fetched_head> producer::made_for_readers(
    const http::body_framing& framing) const {
    const auto& o = *order_;
    auto head = std::make_shared<cache::fetched_head>();
    const auto date = http::format_date(response_time_);
    http::append_response_fields(
        head->head,
        head_,
        {.via = w_.common.pseudonym, .date = std::string_view{date.data(), date.size()}});
    if (framing.kind == body_kind::chunked) {
        for (const auto& line : head_.fields) {
            if (line.id == http::field_id::trailer) {
                head->trailer.append("Trailer: ").append(line.value).append("\r\n");
            }
        }
    }
    head->status = head_.status;
    head->has_body = framing.kind != body_kind::none;
    if (framing.kind == body_kind::length) {
        head->length = framing.length;
    } else if (framing.has_stated_length) {
        head->length = framing.stated_length;
    }
    const auto& fields = head_.fields;
    head->directives = http::read_governing_directives(fields, o.now_settings->options.targeted);
    head->freshness = http::freshness_of(head_.status,
                                         fields,
                                         head->directives,
                                         request_time_,
                                         response_time_,
                                         o.now_settings->freshness);
    head->freshness.response_time = came_at_;
    head->asked_at = asked_at_;
    head->vary = http::read_vary(fields);
    if (!head->vary.empty()) {
        head->selecting = http::selecting_values(head->vary, o.request->head.fields);
    }
    if (const auto* etag = http::find(fields, http::field_id::etag);
        etag != nullptr && http::is_strong(etag->value) && etag->value.starts_with('"')) {
        head->strong_etag = etag->value;
    }
    if (head_.status == 206 && http::count(fields, http::field_id::content_range) == 1) {
        const auto range = http::parse_content_range(
            http::find(fields, http::field_id::content_range)->value);
        head->range_first = range.first;
        head->range_last = range.last;
        head->range_total = range.total;
    }
    if (!o.is_get) {
        for (const auto id : {http::field_id::location, http::field_id::content_location}) {
            if (const auto* line = http::find(fields, id)) {
                head->locations.emplace_back(line->value);
            }
        }
    }
    const auto* via = sibling_ ? sibling_.get() : parent();
    head->origin = lease_.address().to_string() + ":" +
                   std::to_string(via != nullptr ? via->port : o.connect_port);
    head->origin_time = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() -
                                                                              sent_at_);
    if (via != nullptr) {
        head->peer = via->name;
        head->from_sibling = sibling_ != nullptr;
    }
    return head;
}

// The answer to a validation that nobody waited for says that what is stored is no more. Any answer
// but a refusal or an error does; of one that a client waits for, only that there is nothing.
bool producer::ends_use(bool behind) const noexcept {
    const auto status = head_.status;
    return status == 404 || status == 410 || (behind && status >= 200 && status <= 299);
}

// An answer, storable in itself, that says nothing of what is stored and still of use: a refusal
// (its own client's, perhaps) or an error must not take its place, whatever its lifetime.
bool producer::leaves_stored() const {
    const auto& o = *order_;
    const auto status = head_.status;
    if (o.behind) {
        return !ends_use(true);
    }
    if (!o.gap_range.empty()) {
        return status >= 500 || status == 429;
    }
    if (!o.replaces || (status != 500 && status != 502 && status != 503 && status != 504)) {
        return false;
    }
    // It may stand in for the errors to come, as it does for this one.
    const auto& freshness = o.now_settings->options.freshness;
    const auto kept = o.validating
                          ? o.validating
                          : w_.common.store.peek(o.key, o.url, o.request->head.fields).response;
    if (!kept) {
        return false;
    }
    const auto& stored = *kept;
    return http::may_serve_on_error(stored.directives, stored.freshness, came_at_) ||
           (freshness.stale_on_error_status && !http::forbids_stale(stored.directives) &&
            -http::remaining(stored.freshness, came_at_) < freshness.stale_on_error);
}

void producer::publish_head(const http::body_framing& framing) {
    auto& o = *order_;
    const auto head = made_for_readers(framing);
    const auto& fields = head_.fields;
    const auto* via = sibling_ ? sibling_.get() : parent();
    if (book_ && !sibling_ && o.is_get) {
        w_.common.peers->siblings().note_origin(head->origin_time);
    }
    const bool is_post = o.request->head.method == boost::beast::http::verb::post;
    head->verdict = is_post ? http::judge_post(head_.status,
                                               o.destination,
                                               o.request->head.fields,
                                               o.asked,
                                               fields,
                                               head->directives,
                                               head->freshness,
                                               o.now_settings->storing)
                            : http::judge_storable(o.request->head.method_text,
                                                   head_.status,
                                                   o.request->head.fields,
                                                   o.asked,
                                                   fields,
                                                   head->directives,
                                                   head->freshness,
                                                   o.now_settings->storing);
    // A part of, or a 304 about, what would be storable whole is a sight of it.
    auto as_whole = head->verdict;
    if (o.is_get && (o.own_range || o.own_conditions || !o.gap_range.empty()) &&
        (head_.status == 206 || head_.status == 304)) {
        as_whole = http::judge_storable("GET",
                                        200,
                                        o.request->head.fields,
                                        o.asked,
                                        fields,
                                        head->directives,
                                        head->freshness,
                                        o.now_settings->storing);
    }
    if (as_whole == http::storability::storable && head_.status == 206 &&
        may_store_part(head->length)) {
        head->verdict = as_whole;
    }
    const bool is_sight = (o.is_get || is_post) && o.resume_etag.empty() &&
                          as_whole == http::storability::storable && !o.url.empty();
    const bool here = via == nullptr || !via->proxy_only;
    storable_ = o.may_store && here && head->verdict == http::storability::storable &&
                !o.url.empty();
    if (storable_ && leaves_stored()) {
        storable_ = false;
        head->detail = "error";
    }
    if (is_post && storable_) {
        // What was stored goes first (RFC 9111 4.4), and not once more when the client's exchange
        // has this head: that would keep this answer out.
        w_.counts.store_invalidated.add(w_.common.store.invalidate(o.key, o.url, response_time_));
        begun_at_ = w_.common.store.mark(o.key);
        head->replaces_stored = true;
    }

    std::size_t sights = 0;
    if (is_sight) {
        sights = into_.readers();
        sights = sights == 0 ? 1 : sights;
        note_sights(sights);
    }
    if (o.listed) {
        if (head->verdict == http::storability::storable) {
            w_.common.uncacheable.forget(o.key);
        } else if (cache::speaks_for_next(head->verdict, head_.status)) {
            w_.common.uncacheable.note(o.key, steady_now(), uncacheable_for);
        }
    }
    if (const auto& asked = o.behind ? o.behind : o.validating;
        asked && head->verdict != http::storability::storable && ends_use(bool{o.behind})) {
        // What replaces it may not be kept. It must not go on standing in for that.
        (void)w_.common.store.drop(o.key, o.url, asked);
    }
    if (head->verdict != http::storability::storable) {
        head->detail = http::to_string(head->verdict);
        note_not_stored(w_.counts, static_cast<std::size_t>(head->verdict));
    } else if (!here) {
        head->detail = "proxy-only";
    }
    const bool admitted = ruling_.admitted || o.replaces;
    if (storable_) {
        room_ = w_.common.store.reserve();
    }
    if (storable_ && admitted) {
        find_place(*head);
        (void)into_.admit();
    } else if (storable_) {
        refuse(*head);
    }
    if (storable_ && !o.replaces) {
        note_admission(w_.counts, ruling_.policy, ruling_.rule, admitted);
    }
    published_ = head;
    const auto waiting = into_.producer_head(head);
    if (is_sight && waiting > sights) {
        // Somebody joined between the count and the head's being known.
        note_sights(waiting - sights);
        if (storable_ && ruling_.admitted) {
            (void)into_.keep_whole();
            (void)into_.admit();
        }
    }
}

// What is admitted goes to memory, or to disk alone where memory does not take it. It is said to be
// stored (RFC 9211 2.6: "the cache stored the response") where nothing that is known now stands
// against it; what is written to disk as it arrives may yet come faster than the disk takes it.
void producer::find_place(cache::fetched_head& head) {
    const auto& options = order_->now_settings->options;
    if (head.length && held_already_ + *head.length > options.memory.max_object) {
        head.detail = begin_on_disk(head, "too-large");
    } else if (head.length && !w_.common.store.takes(order_->key, order_->url, *head.length)) {
        head.detail = w_.common.store.offers_unused_to_disk() ? begin_on_disk(head, "no-room")
                                                              : "no-room";
    } else if (!promise_room(head.length)) {
        // As when it proves too long for memory later.
        head.detail = begin_on_disk(head, "no-room");
    } else {
        // Of unknown length it may yet prove too long: then nothing is claimed.
        head.stored = into_.keep_whole() && head.length.has_value();
    }
}

// Whether memory has room for all of it as things are; it is taken as the bytes come, a little
// ahead, so that a body which does not come keeps out no other.
bool producer::promise_room(std::optional<std::uint64_t> length) {
    if (length) {
        return room_.could_grow_to(*length) && room_.grow_to(std::min(*length, room_ahead));
    }
    return room_.grow_to(std::min(order_->now_settings->fetches.window, room_ahead));
}

// What is not admitted waits for its next request, on probation or not at all.
void producer::refuse(cache::fetched_head& head) {
    refused_ = true;
    switch (ruling_.policy) {
    case config::admission_policy::second_hit: head.detail = "first-request"; break;
    case config::admission_policy::nth_hit: head.detail = "too-few-requests"; break;
    case config::admission_policy::never: head.detail = "policy-never"; break;
    case config::admission_policy::tinylfu:
    case config::admission_policy::automatic: head.detail = "too-few-requests"; break;
    case config::admission_policy::always: break;
    }
    keep_on_probation(head);
}

// A first request's body may wait in memory for the second (admission.probation), where it is small
// enough to be kept at all.
void producer::keep_on_probation(cache::fetched_head& head) {
    const auto& options = order_->now_settings->options;
    if (!ruling_.may_wait) {
        return;
    }
    if (head.length && held_already_ + *head.length > options.memory.max_object) {
        return;
    }
    if (!promise_room(head.length) || !into_.keep_whole()) {
        return;
    }
    probation_ = ruling_.uses_to_admit;
    refused_ = false;
    head.stored = head.length.has_value();
    head.probation = head.stored;
    head.detail = "probation";
}

// A body of unknown length may be kept for the store only while it is within the window and there
// is room for it.
void producer::keep_while_there_is_room() {
    if (on_disk_) {
        feed_disk();
        return;
    }
    if (!into_.kept_whole()) {
        return;
    }
    if (published_->length) {
        const auto next = std::min(*published_->length, into_.received() + room_ahead);
        // A late sight may have admitted it without a promise of room.
        if (held_already_ + *published_->length > order_->now_settings->options.memory.max_object ||
            !room_.grow_to(next)) {
            leave_memory();
        }
        return;
    }
    const auto& now = *order_->now_settings;
    const auto next = into_.received() + read_size;
    if (next > std::min<std::uint64_t>(now.options.memory.max_object, now.fetches.window) ||
        !room_.grow_to(next)) {
        leave_memory();
    }
}

// What proves too large for memory goes on to disk, from its first byte, if there is one.
void producer::leave_memory() {
    if (published_->status != 206 && into_.was_admitted()) {
        (void)begin_on_disk(*published_, "");
    }
    into_.keep_no_more();
    room_.reset();
    if (on_disk_) {
        feed_disk();
    }
}

// A body that memory does not take is written as it arrives. Nothing waits for that: a disk that
// falls behind loses the object. What clients are told of it; `otherwise` if it is not written.
std::string_view producer::begin_on_disk(const cache::fetched_head& head,
                                         std::string_view otherwise) {
    const auto& o = *order_;
    if (head_.status == 206) {
        return otherwise;
    }
    if (w_.common.store.is_being_written(o.key, head.strong_etag)) {
        return "being-written";
    }
    on_disk_ = w_.common.store.begin_on_disk(o.key, o.url, head.length, head.strong_etag, begun_at_);
    if (on_disk_ && !into_.keep_outside()) {
        on_disk_.reset();
    }
    return on_disk_ ? "to-disk" : otherwise;
}

void producer::feed_disk() {
    to_disk_.clear();
    into_.take_new(to_disk_);
    for (const auto& piece : to_disk_) {
        if (!on_disk_->append(piece)) {
            on_disk_.reset();
            into_.keep_outside_no_more();
            return;
        }
    }
}

// A 206 to a Range of the client's or ours, with one right Content-Range. What answers an If-Range
// may lack the fields that its sender has already (RFC 9110 15.3.7): it adds to the parts of the
// same representation, but begins none. One that brings fewer bytes than its Content-Range says is
// an incomplete response (RFC 9111 3.3): what it brings is kept, if it can never be joined to more.
bool producer::may_store_part(std::optional<std::uint64_t> length) {
    const auto& o = *order_;
    place_ = cache::part_place_of(head_.fields);
    if (!place_ || (!o.own_range && o.gap_range.empty())) {
        place_.reset();
        return false;
    }
    const auto& asked = o.request->head.fields;
    const auto validator = cache::strong_validator_of(head_.fields, response_time_);
    if (length && *length != place_->range.size()) {
        if (*length == 0 || *length > place_->range.size() || !validator.empty()) {
            place_.reset();
            return false;
        }
        place_->range.last = place_->range.first + *length - 1;
    }
    const auto kept = w_.common.store.peek(o.key, o.url, asked);
    if (kept.what == cache::lookup::present && !validator.empty()) {
        const auto lines = kept.response->fields();
        if (cache::strong_validator_of(lines, response_time_) == validator) {
            joins_ = kept.response;
            held_already_ = joins_->parts ? joins_->parts->bytes() : 0;
        }
    }
    begins_none_ = !o.gap_validator.empty() ||
                   http::find(asked, http::field_id::if_range) != nullptr;
    if (begins_none_ && !joins_) {
        place_.reset();
    }
    return place_.has_value();
}

// What of the head is kept: all but the fields that its no-cache or private names.
std::string producer::kept_head() const {
    const auto& head = *published_;
    if (!head.directives.no_cache_fields && !head.directives.private_fields) {
        return head.head;
    }
    const auto lines = lines_of(head);
    std::string kept{head.head, 0, head.head.find("\r\n") + 2};
    for (const auto& line : lines) {
        if (!http::is_withheld(line, lines)) {
            kept.append(line.name).append(": ").append(line.value).append("\r\n");
        }
    }
    return kept;
}

// A whole response as it will be kept, without its body.
std::shared_ptr<cache::stored_response> producer::made_of_head(std::uint64_t bytes) const {
    auto stored = std::make_shared<cache::stored_response>();
    const auto length = std::to_string(bytes);
    stored->head.reserve(published_->head.size() + 20 + length.size());
    stored->head.append(kept_head());
    // A 204 has no Content-Length (RFC 9110 8.6); everything else stored has its own.
    if (published_->status != 204) {
        stored->head.append("Content-Length: ").append(length).append("\r\n");
    }
    cache::index_head(*stored);
    stored->status = published_->status;
    return stored;
}

void producer::describe(cache::stored_response& stored) const {
    stored.freshness = published_->freshness;
    stored.asked_at = published_->asked_at;
    stored.directives = published_->directives;
    stored.vary = published_->vary;
    stored.selecting = published_->selecting;
    if (!stored.parts) {
        stored.reusable_until = http::reusable_until(stored.directives, stored.freshness);
    }
}

// The body has passed, and is on disk but for its end.
void producer::finish_on_disk() {
    feed_disk();
    if (!on_disk_) {
        return;
    }
    const auto bytes = into_.received();
    const auto stored = made_of_head(bytes);
    describe(*stored);
    if (w_.common.store.finish_on_disk(*on_disk_, order_->key, order_->url, *stored)) {
        w_.counts.stored_objects.add();
        w_.counts.stored_bytes.add(bytes);
    }
    on_disk_.reset();
}

void producer::store_body() {
    auto& o = *order_;
    auto content = into_.whole_body();
    if (!content) {
        return;
    }
    const auto bytes = content->size;
    std::shared_ptr<cache::stored_response> stored;
    if (published_->status == 206) {
        if (!place_ || bytes != place_->range.size()) {
            return;
        }
        stored = cache::made_of_part(kept_head(), *place_, std::move(content));
    } else {
        stored = made_of_head(bytes);
        stored->content = std::move(content);
    }
    describe(*stored);
    room_.reset();
    if (stored->parts) {
        if (joins_) {
            stored->vary = joins_->vary;
            stored->selecting = joins_->selecting;
        }
        store_part(std::move(stored));
        return;
    }
    const bool waits = probation_ != 0 && !into_.was_admitted();
    if (w_.common.store.put(o.key,
                            o.url,
                            std::move(stored),
                            begun_at_,
                            waits ? cache::standing::probation : cache::standing::admitted,
                            waits ? probation_ : 1) &&
        !waits) {
        w_.counts.stored_objects.add();
        w_.counts.stored_bytes.add(bytes);
    }
}

// Together with what is held of the same representation, in place of every other. Another part may
// come between the look and the put: then it is combined with that.
void producer::store_part(std::shared_ptr<cache::stored_response> added) {
    auto& o = *order_;
    const auto& now = *o.now_settings;
    const cache::combining_rules rules{now.options.memory.max_object,
                                       now.response_limits.bytes,
                                       now.response_limits.fields,
                                       now.freshness,
                                       now.options.targeted};
    const auto bytes = added->parts->bytes();
    for (int tries = 0; tries < 4; ++tries) {
        const auto kept = w_.common.store.variant_of(o.key, o.url, *added);
        auto next = added;
        if (kept) {
            auto together = cache::combine(*kept, *added, rules);
            if (together.what == cache::combination::too_large) {
                return;
            }
            if (together.what == cache::combination::combined) {
                next = std::move(together.response);
            }
        }
        if (begins_none_ && next == added) {
            return;
        }
        cache::complete_if_whole(*next);
        const bool waits = probation_ != 0 && !into_.was_admitted();
        if (w_.common.store.put_over(o.key,
                                     o.url,
                                     kept,
                                     std::move(next),
                                     begun_at_,
                                     waits ? cache::standing::probation : cache::standing::admitted,
                                     waits ? probation_ : 1)) {
            if (!waits) {
                w_.counts.stored_objects.add();
                w_.counts.stored_bytes.add(bytes);
            }
            return;
        }
    }
}

}  // namespace reprise::proxy::fetch
