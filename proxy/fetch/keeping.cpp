#include "proxy/fetch/keeping.hpp"

#include "proxy/base/clock.hpp"
#include "proxy/base/live_feed.hpp"
#include "proxy/cache/recency.hpp"
#include "proxy/fetch/admit.hpp"
#include "proxy/fetch/outdated.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/reuse.hpp"

#include <algorithm>

// In the order of a response's way: its sights, and what is to become of it. Its body and its end:
// keeping_body.cpp. Nothing here waits: the producer calls between its reads.

namespace reprise::proxy::fetch {

namespace {

constexpr std::chrono::seconds uncacheable_for{120};
constexpr std::chrono::seconds uncacheable_by_home_for{10};
constexpr std::chrono::seconds too_large_for{3600};  // nobody is served otherwise for it

// By what we write ourselves (vary_of), which the response's fields do not show.
http::storability unless_it_varies(const cache::fetched_head& head, http::storability verdict) {
    return verdict == http::storability::storable && head.vary.any ? http::storability::vary_any
                                                                   : verdict;
}

bool is_server_error(unsigned status) noexcept {
    return status == 500 || status == 502 || status == 503 || status == 504;
}

}  // namespace

bool ends_use(unsigned status, bool behind) noexcept {
    return status == 404 || status == 410 || (behind && status >= 200 && status <= 299);
}

// ---- sights ----

// `sights` requests wait for this response: each is one, and the second may admit. The filter is
// told when the body has passed: a failed fetch is no sight.
void keeping::note_sights(std::size_t sights) {
    const auto before = into_.add_sights(sights);
    const admission_question asked{order_.key, order_.url, order_.admission, order_.may_use_peers};
    std::uint64_t lost = 0;
    for (std::size_t i = 0; i < sights; ++i) {
        const auto& known = expected_.ruling();
        ruling_ = known && before + i == 0 ? *known
                                           : rule_on(w_, asked, order_.pending_sights + before + i);
        if (ruling_.may_have_cost_a_hit() && !order_.replaces && !too_large_) {
            ++lost;
        }
    }
    if (lost != 0) {
        w_.counts.admission_hits_lost.add(lost);
        // An accelerator's key begins with "//" and the host that was asked for (append_key).
        std::string_view where = order_.url;
        if (where.starts_with("//")) {
            where = where.substr(2, where.find('/', 2) - 2);
        }
        if (const auto host = host_in(where); !host.empty()) {
            w_.common.costly.note(host, lost);
        }
    }
}

void keeping::record_sights() {
    auto left = into_.add_sights(0);
    auto* peers = w_.common.peers.get();
    if (left > 0 && order_.may_use_peers && peers->shares()) {
        peers->note_seen(order_.url, came_);
    }
    for (; left > 0; --left) {
        (void)w_.common.admission.note(order_.key, order_.admission, came_);
    }
}

// ---- judging ----

// From another cache's store, and by its Date older than what is held here: it was asked for later, so that
// recency.hpp would take it for newer.
bool keeping::is_older_elsewhere(const received& came) const {
    if (came.by == word_of::origin || came.fetched_now) {
        return false;
    }
    const auto kept = held_for(w_.common.store, order_);
    return kept && cache::is_dated_before(came.head.fields, came.came, *kept);
}

// An error seldom says by what it varies: it would answer those who have a variant of their own, too. What the disk
// alone has is taken for fresh, since nobody has read it.
bool keeping::is_fresh_for_somebody(const received& came) const {
    const auto is_fresh = [&](const cache::stored_response& stored) {
        return stored.status() < 500 && came.resident_came < stored.reusable_until();
    };
    const auto kept = held_for(w_.common.store, order_);
    const auto all = w_.common.store.variants(order_.key, order_.url);
    const auto* const disk = w_.common.store.disk();
    const bool is_unread = !kept && disk != nullptr && disk->may_hold(order_.key);
    return is_unread || (kept && is_fresh(*kept)) ||
           std::any_of(all.begin(), all.end(), [&](const auto& one) { return is_fresh(*one); });
}

// Storable, but must not replace what is stored, whatever its lifetime: a refusal (perhaps this
// client's alone) or an error.
bool keeping::leaves_stored(const received& came, const cache::fetched_head& head) const {
    const auto status = came.head.status;
    if (order_.behind()) {
        return !ends_use(status, true) && status != order_.behind()->status();
    }
    if (order_.as<wanted::gap>() != nullptr) {
        return status >= 500 || status == 429;
    }
    if (status >= 500 && head.freshness.source == http::lifetime_source::negative &&
        is_fresh_for_somebody(came)) {
        return true;  // one request in a bad moment is no reason to take from all what is fresh
    }
    if (!order_.replaces || !is_server_error(status)) {
        return false;
    }
    const auto& freshness = order_.now_settings->options.freshness;
    const auto kept = held_for(w_.common.store, order_);
    if (!kept) {
        return false;
    }
    const auto& stored = *kept;
    // It may stand in for the errors to come, as it does for this one.
    return http::may_serve_on_error(stored.directives(), stored.freshness(), came.resident_came) ||
           (freshness.stale_on_error_status && !http::forbids_stale(stored.directives()) &&
            -http::remaining(stored.freshness(), came.resident_came) < freshness.stale_on_error);
}

// Some store of this node takes so long a body of this URL, whose home may be another's.
bool keeping::fits_stores(unsigned status, std::uint64_t length) const {
    return !exceeds_stores(status, length) &&
           (held_already_ + length <= order_.now_settings->options.memory.largest() ||
            w_.common.store.belongs_on_disk(order_.url));
}

// No store takes so long a body, whoever asks and however often.
bool keeping::exceeds_stores(unsigned status, std::uint64_t length) const {
    const auto& options = order_.now_settings->options;
    const bool may_go_to_disk = w_.common.store.disk() != nullptr && status != 206;
    return held_already_ + length > options.memory.largest() &&
           (!may_go_to_disk || length > options.disk.largest());
}

// A part says nothing of how large its whole is.
void keeping::note_too_large(unsigned status) {
    if (status != 206 && whom_ == word_of::origin) {
        w_.common.uncacheable.note_too_large(order_.key, steady_now(), too_large_for);
    }
}

http::storability keeping::judge_as(std::string_view method,
                                    unsigned status,
                                    const cache::fetched_head& head,
                                    const received& came) const {
    // Whether a Range was met is judged by the request's own; of these two we have asked for the rest.
    if (status == 416 &&
        (order_.as<wanted::gap>() != nullptr || order_.as<wanted::rest>() != nullptr)) {
        return http::storability::partial;
    }
    auto rules = order_.storing();
    rules.never_cookies = rules.never_cookies || whom_ != word_of::origin;
    return unless_it_varies(head,
                            http::judge_storable(method,
                                                 status,
                                                 order_.request->head.fields,
                                                 order_.asked,
                                                 came.head.fields,
                                                 head.directives,
                                                 head.freshness,
                                                 rules));
}

http::storability keeping::judge_answer(const cache::fetched_head& head,
                                        const received& came) const {
    const auto& request = order_.request->head;
    if (request.method != boost::beast::http::verb::post) {
        return judge_as(request.method_text, came.head.status, head, came);
    }
    return unless_it_varies(head,
                            http::judge_post(came.head.status,
                                             order_.destination,
                                             request.fields,
                                             order_.asked,
                                             came.head.fields,
                                             head.directives,
                                             head.freshness,
                                             order_.storing()));
}

void keeping::judge(cache::fetched_head& head, const received& came) {
    whom_ = came.by;
    is_of_now_ = came.by == word_of::origin || came.fetched_now;
    at_most_ = came.at_most;
    const auto status = came.head.status;
    const bool is_post = order_.request->head.method == boost::beast::http::verb::post;
    came_ = came.resident_came;
    head.verdict = judge_answer(head, came);
    // A part of the whole, or a 304 about it, is a sight of the whole: the 200 of a GET.
    const bool about_part = order_.own_range || order_.own_conditions ||
                            order_.as<wanted::gap>() != nullptr;
    const auto as_whole = order_.is_get && about_part && (status == 206 || status == 304)
                              ? judge_as("GET", 200, head, came)
                              : head.verdict;
    if (as_whole == http::storability::storable && status == 206 &&
        may_store_part(came, head.length)) {
        head.verdict = as_whole;
    }
    // Another site's question, which its gateway hands on to siblings, is no client's of this node.
    const bool is_own = peer::reach_of(order_.asked_by).beyond;
    is_sight_ = is_own && (order_.is_get || is_post) && order_.as<wanted::rest>() == nullptr &&
                as_whole == http::storability::storable && !order_.url.empty();
    storable_ = order_.may_store && whom_ != word_of::unkept_sibling &&
                head.verdict == http::storability::storable && !order_.url.empty();
    if (storable_ && leaves_stored(came, head)) {
        storable_ = false;
        head.detail = "error";
    } else if (storable_ && is_older_elsewhere(came)) {
        storable_ = false;
        head.detail = "older";
    }
    head.may_be_kept = storable_;
    if (is_post && storable_) {
        // What was stored goes first (RFC 9111 4.4), and not once more when the client's exchange
        // has this head: that would keep this answer out.
        auto& store = w_.common.store;
        auto own = store.mark(order_.key);
        const bool is_purged = store.memory().invalidated().since(order_.key, begun_at_.count);
        w_.counts.store_invalidated.add(store.invalidate(order_.key, order_.url));
        if (!is_purged) {
            begun_at_.count = own.count +
                              1;  // our own invalidation alone, and no purge since it was asked
        }
        head.replaces_stored = true;
    }
    too_large_ = head.length ? exceeds_stores(status, *head.length)
                             : w_.common.uncacheable.was_too_large(order_.key, steady_now());
    if (is_sight_) {
        sights_ = std::max<std::size_t>(into_.clients(), 1);
        note_sights(sights_);
    }
    note_verdict(head, came);
    if (!storable_) {
        return;
    }
    if (too_large_ && head.length) {
        head.detail = "too-large";
        note_too_large(status);
        return;
    }
    const bool admitted = ruling_.admitted || order_.replaces;
    room_ = w_.common.store.reserve();
    if (admitted) {
        find_place(head);
        (void)into_.admit();
    } else {
        refuse(head);
    }
    if (!order_.replaces && !too_large_) {
        note_admission(w_.counts, ruling_.policy, ruling_.rule, admitted);
    }
}

// What follows from the verdict for later requests, for what is stored, and for the counters.
void keeping::note_verdict(cache::fetched_head& head, const received& came) {
    const bool storable = head.verdict == http::storability::storable;
    const auto status = came.head.status;
    if (whom_ != word_of::origin) {
        // Whoever says what the key's next response will be could keep it out of this store. Of what a home has
        // fetched just now it is believed for a moment: all who ask would otherwise wait for one another.
        if (came.fetched_now && !storable && order_.listed &&
            cache::speaks_for_next(head.verdict, status)) {
            w_.common.uncacheable.note(
                order_.key, head.verdict, steady_now(), uncacheable_by_home_for);
        }
    } else if (storable && (order_.listed || storable_)) {
        if (head.length || !too_large_) {
            w_.common.uncacheable.forget(order_.key);
        }
    } else if (order_.listed && cache::speaks_for_next(head.verdict, status)) {
        w_.common.uncacheable.note(order_.key, head.verdict, steady_now(), uncacheable_for);
    }
    if (!storable || (head.length && !fits_stores(status, *head.length))) {
        end_what_it_replaces(status, head.asked_at);
    }
    if (!storable) {
        head.detail = http::to_string(head.verdict);
        note_not_stored(w_.counts, static_cast<std::size_t>(head.verdict));
    } else if (whom_ == word_of::unkept_sibling) {
        head.detail = "proxy-only";
    }
}

// It may not be kept, or nowhere, and what was validated, or sent stale, must not go on standing in for it.
// What that hid, being the same under another Vary, goes with it.
void keeping::end_what_it_replaces(unsigned status, wall_time asked_at) {
    auto& store = w_.common.store;
    const auto behind = order_.behind();
    const auto stored = behind ? behind : order_.validating();
    if (!stored || !ends_use(status, bool{behind})) {
        return;
    }
    (void)store.drop(order_.key, order_.url, stored);
    // What drop_alone() takes out of the disk alone may be in memory as a copy still: so often, and no more.
    for (std::size_t i = 0; i < cache::memory_tier::most_variants; ++i) {
        const auto next = store.peek(order_.key, order_.url, order_.request->head.fields).response;
        if (!next || next->freshness().response_time > asked_at) {
            break;
        }
        store.drop_alone(order_.key, order_.url, next);
    }
}

void keeping::goes_on(const received& came) {
    if (!storable_) {
        return;
    }
    const auto head = head_for_readers(came, order_, w_.common.pseudonym);
    const auto verdict = came.head.status == 206 ? judge_as("GET", 200, *head, came)
                                                 : judge_answer(*head, came);
    if (verdict != http::storability::storable || head->vary != head_->vary) {
        keep_nothing();
    }
}

// Whoever reads it reads on, and nobody else joins.
void keeping::keep_nothing() {
    storable_ = false;
    if (on_disk_) {
        on_disk_.reset();
        into_.keep_outside_no_more();
    }
    into_.keep_no_more();
    room_.reset();
    w_.common.fetches.take_back(order_.key, order_.into);
    if (order_.listed) {
        w_.common.fetches.remove(order_.key, order_.into);
    }
}

// Somebody may have joined between the count and the head's being known.
void keeping::is_known_to(cache::head_ptr head, std::size_t readers) {
    head_ = std::move(head);
    if (!is_sight_ || readers <= sights_) {
        return;
    }
    note_sights(readers - sights_);
    if (storable_ && ruling_.admitted && !(too_large_ && head_->length)) {
        (void)into_.keep_whole();
        (void)into_.admit();
    }
}

void keeping::promise(bool is_all_here) {
    const auto until = cache::useful_until(head_->freshness, head_->directives);
    if (whom_ == word_of::origin && !refused_) {
        expected_.learn(storable_ && into_.may_serve_siblings(), until);
    }
    const bool is_of_use = until > resident_now();
    if (order_.listed && storable_ && (expected_.was_said() ? is_of_use : !is_all_here)) {
        w_.common.fetches.promise_stored(order_.key, order_.into, until);
    } else if (expected_.was_said()) {
        w_.common.fetches.take_back(order_.key, order_.into);
    }
}

// What is admitted goes to memory, or to disk alone where memory does not take it. It is said to be
// stored (RFC 9211 2.6: "the cache stored the response") where nothing that is known now stands
// against it; what is written to disk as it arrives may yet meet a disk that hangs.
void keeping::find_place(cache::fetched_head& head) {
    const auto& options = order_.now_settings->options;
    if (head.length && held_already_ + *head.length > options.memory.largest()) {
        head.detail = begin_on_disk(head, "too-large");
    } else if (head.length && !w_.common.store.takes(order_.key, order_.url, *head.length)) {
        head.detail = w_.common.store.offers_unused_to_disk() ? begin_on_disk(head, "no-room")
                                                              : "no-room";
    } else if (!promise_room(head.length)) {
        // As when it proves too long for memory later.
        head.detail = begin_on_disk(head, "no-room");
    } else {
        // A body of unknown length may yet prove too long: nothing is claimed then.
        head.stored = into_.keep_whole() && head.length.has_value();
    }
}

// What is not admitted waits for its next request, on probation or not at all.
void keeping::refuse(cache::fetched_head& head) {
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
void keeping::keep_on_probation(cache::fetched_head& head) {
    const auto& options = order_.now_settings->options;
    if (!ruling_.may_wait) {
        return;
    }
    if (head.length && held_already_ + *head.length > options.memory.largest()) {
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

// A 206 to a Range of the client's or ours, with one right Content-Range. What answers an If-Range
// may lack the fields that its sender has already (RFC 9110 15.3.7): it adds to the parts of the
// same representation, but begins none. One that brings fewer bytes than its Content-Range says is
// an incomplete response (RFC 9111 3.3): what it brings is kept, if it can never be joined to more.
bool keeping::may_store_part(const received& came, std::optional<std::uint64_t> length) {
    place_ = cache::part_place_of(came.head.fields);
    if (!place_ || (!order_.own_range && order_.as<wanted::gap>() == nullptr)) {
        place_.reset();
        return false;
    }
    const auto& asked = order_.request->head.fields;
    const auto validator = cache::strong_validator_of(came.head.fields, came.came);
    if (length && *length != place_->range.size()) {
        if (*length == 0 || *length > place_->range.size() || !validator.empty()) {
            place_.reset();
            return false;
        }
        place_->range.last = place_->range.first + *length - 1;
    }
    const auto kept = w_.common.store.peek(order_.key, order_.url, asked);
    if (kept.what == cache::lookup::present && !validator.empty()) {
        const auto lines = kept.response->validating_fields();
        const auto vary = http::read_vary(came.head.fields);
        // One that lacks the line has it from what it is joined to; another says otherwise for whom it is.
        if (cache::strong_validator_of(lines, came.came) == validator &&
            (vary.empty() || vary == kept.response->vary())) {
            joins_ = kept.response;
            held_already_ = joins_->parts() ? joins_->parts()->bytes() : 0;
        }
    }
    const auto* gap = order_.as<wanted::gap>();
    begins_none_ = (gap != nullptr && !gap->validator.empty()) ||
                   http::find(asked, http::field_id::if_range) != nullptr;
    if (begins_none_ && !joins_) {
        place_.reset();
    }
    return place_.has_value();
}

}  // namespace reprise::proxy::fetch
