// What is made of siblings' answers: a follower takes them, and the table of siblings, other sites, the
// log and the pages are told. All of it is the side thread's, or the loop's while that does nothing.

#include "proxy/base/log.hpp"
#include "proxy/peer/digest_fetch_parts.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::peer {

namespace {

/// Troubles that one log line covers: a host that is down refuses connections or does not answer.
follow_trouble loss_of(follow_trouble trouble) noexcept {
    return trouble == follow_trouble::timed_out ? follow_trouble::unreachable : trouble;
}

std::optional<unsigned> as_shown(unsigned slot) noexcept {
    return slot == no_slot ? std::nullopt : std::optional{slot};
}

}  // namespace

// Side thread, or the loop. What a sibling's answer (none: time has passed) makes of what is known of it.
void digest_fetcher::shared::take(one& sibling, bool seen, std::optional<got_response> answer) {
    auto& follower = sibling.part(seen).follower;
    const bool was_there = !was_away(follower.figures());
    try {
        remove_left_behind();
        if (answer && answer->trouble != follow_trouble::none) {
            follower.failed(answer->trouble, std::move(answer->detail), steady_now());
        } else if (answer) {
            follower.answered({.status = answer->status,
                               .etag = answer->etag,
                               .node = answer->node,
                               .tells_news = answer->tells_news,
                               .last_modified = answer->last_modified,
                               .fresh_for = answer->fresh_for,
                               .body = answer->body,
                               .had_more = answer->had_more},
                              context.node,
                              steady_now());
        }
        follower.look(steady_now());
        if (seen) {
            tell_seen(sibling);
        } else {
            if (answer && follower.figures().state == follow_state::current) {
                tell_benefit(sibling, was_there);
            }
            tell_table(sibling);
        }
    } catch (const std::bad_alloc&) {
        follower.failed(follow_trouble::too_large, "out of memory", steady_now());
        follower.tell_again();
    }
    if (!seen) {
        tell_log(sibling);
    }
    show(sibling, seen);
}

// Side thread, or the loop while that does nothing: it may end neither. Nobody is asked by the slot until its next owner's
// first digest is put there, and what is left of this one goes before that.
void digest_fetcher::shared::remove(const slot_set& slots) noexcept {
    left_behind |= slots;
    try {
        remove_left_behind();
    } catch (const std::bad_alloc&) {
        // The next answer of any sibling is taken behind it, or not at all.
    }
}

void digest_fetcher::shared::remove_left_behind() {
    if (left_behind.empty()) {
        return;
    }
    left_behind.for_each([this](unsigned slot) {
        context.table.remove(slot);
        if (context.members != nullptr) {
            context.members->remove(slot);
        }
        if (context.seen != nullptr) {
            context.seen->remove(slot);
        }
    });
    left_behind = {};
}

// Before what it has is told of: whoever finds it there asks it.
void digest_fetcher::shared::tell_benefit(const one& sibling, bool was_there) const {
    const unsigned slot = sibling.slot;
    if (slot == no_slot) {
        return;
    }
    auto& its = context.table.benefit_of(slot);
    was_there ? its.heard() : its.came_back();
}

// Side thread, or the loop while that does nothing. The digest of a sibling that is no longer followed may still be put here: it is
// removed before the slot's next owner puts its own.
void digest_fetcher::shared::tell_table(one& sibling) {
    using kind = digest_follower::change::kind;
    auto& follower = sibling.digest.follower;
    const unsigned slot = sibling.slot;
    if (slot == no_slot) {
        return;  // what there is is told when it has one
    }
    const auto change = follower.take_change();
    const auto& held = follower.held();
    const auto& squid = follower.held_squid();
    bool has_room = true;
    if (change.what == kind::gone) {
        context.table.remove(slot);
    } else if (change.what == kind::flipped && held) {
        has_room = context.table.flip(slot, *held, change.places);
    } else if (change.what == kind::replaced && held) {
        has_room = context.table.put(slot, *held);
    } else if (change.what == kind::replaced && squid) {
        has_room = context.table.put(slot, squid);
    }
    if (!has_room) {
        context.table.remove(slot);
        follower.refuse("beside what other siblings' digests take", steady_now());
    }
    tell_members(sibling, slot, change);
}

// A gateway tells of its own site: what is another's is one hop more away from whoever asks.
void digest_fetcher::shared::tell_members(one& sibling,
                                          unsigned slot,
                                          const digest_follower::change& change) {
    using kind = digest_follower::change::kind;
    if (context.members == nullptr || sibling.of.of_site || sibling.of.squid) {
        return;
    }
    const auto& held = sibling.digest.follower.held();
    bool is_member = true;
    if (!held) {
        context.members->remove(slot);
    } else if (change.what == kind::flipped ||
               (change.what == kind::nothing && sibling.told.left_out)) {
        // What kept one out that is quiet may have gone.
        is_member = context.members->flip(slot, *held, change.places);
    } else if (change.what == kind::replaced) {
        is_member = context.members->put(slot, *held);
    }
    sibling.told.left_out = !is_member;
    sibling.told.said_left_out = sibling.told.said_left_out && !is_member;
    if (!is_member && !sibling.told.said_left_out && sibling.may_tell_left_out.due()) {
        sibling.told.said_left_out = true;
        log::warn("peers: ",
                  sibling.of.name,
                  ": other sites are not told of it: its digest has another rate than those of the "
                  "siblings before it (digest.false_positive_rate must be the same on all), or is "
                  "more than ",
                  filter::digest_union::most_apart,
                  " times smaller than two others");
    }
}

// News turns bits of what is in use there: nothing is to be done then. What there was no memory for is
// tried again at the next look.
void digest_fetcher::shared::tell_seen(one& sibling) {
    auto& follower = sibling.seen->follower;
    (void)follower.take_change();
    const unsigned slot = sibling.slot;
    if (slot != no_slot && follower.held() != sibling.seen_in_use) {
        const bool has_room = context.seen->put(slot, follower.held());
        sibling.seen_in_use = has_room ? follower.held() : nullptr;
        if (!has_room) {
            follower.refuse("beside what other siblings saw takes", steady_now());
        }
    }
}

// It has another slot than before, or none: what is held of it was told of the one before. What it
// saw is told by the next look, since that follower is another coroutine's.
void digest_fetcher::shared::tell_in_slot(one& sibling) {
    sibling.seen_in_use = nullptr;
    sibling.digest.follower.tell_again();
    try {
        remove_left_behind();
        tell_table(sibling);
    } catch (const std::bad_alloc&) {
        sibling.digest.follower.failed(follow_trouble::too_large, "out of memory", steady_now());
        sibling.digest.follower.tell_again();
    }
    show(sibling, false);
}

// Once for each change, not for each answer: a sibling that is away is asked again and again. And each change once in a
// minute: what is held back is told then, if it is so still.
void digest_fetcher::shared::tell_log(one& sibling) {
    const auto& follower = sibling.digest.follower;
    const auto& is = follower.figures();
    const bool used = follower.held() || follower.held_squid();
    const auto loss = loss_of(is.trouble);
    const bool is_lost = loss != follow_trouble::none;
    const auto& before = sibling.told;
    const bool is_news = is_lost ? loss != before.loss || used != before.used
                                 : before.loss != follow_trouble::none &&
                                       is.state == follow_state::current;
    if (is_news && !sibling.may_tell[static_cast<std::size_t>(loss)].due()) {
        return;
    }
    sibling.told.loss = loss;
    sibling.told.used = used;
    if (is_news && !is_lost) {
        log::info("peers: ", sibling.of.name, ": its digest is followed again");
    } else if (is_news) {
        log::warn("peers: ",
                  sibling.of.name,
                  ": its digest can't be had: ",
                  to_string(is.trouble),
                  is.detail.empty() ? "" : " (",
                  is.detail,
                  is.detail.empty() ? "" : ")",
                  used ? "; what is held of it is used" : "; it is not asked");
    }
}

// What there is no memory to show is shown with the next answer.
void digest_fetcher::shared::show(one& sibling, bool seen) noexcept {
    try {
        show_all(sibling, seen);
    } catch (const std::bad_alloc&) {
    }
}

void digest_fetcher::shared::show_all(one& sibling, bool seen) {
    if (seen) {
        const std::scoped_lock lock{guard};
        const bool was = sibling.is_away();
        sibling.shown.seen = sibling.seen->follower.figures();
        if (was != sibling.is_away()) {
            count();
        }
        return;
    }
    const auto& follower = sibling.digest.follower;
    figures_of_one next;
    next.name = sibling.of.name;
    next.slot = as_shown(sibling.slot);
    next.https = sibling.of.https;
    next.of_site = sibling.of.of_site;
    next.members = sibling.of.members;
    next.digest = follower.figures();
    next.held = follower.held_replica();
    next.held_squid = follower.held_squid();
    if (const auto& held = follower.held()) {
        next.bits = held->shape().bits;
        next.bits_on = held->bits_on();
        next.estimated_objects = held->estimated_keys();
        next.false_positive_rate = held->false_positive_rate();
        next.generation = held->stamp().generation;
    } else if (const auto& squid = next.held_squid) {
        next.bits = squid->size().bits();
        next.bits_on = squid->bits_on();
        next.estimated_objects = squid->estimated_keys();
        next.false_positive_rate = squid->false_positive_rate();
    }
    const std::scoped_lock lock{guard};
    const bool was = sibling.is_away();
    next.seen = std::move(sibling.shown.seen);
    std::swap(sibling.shown, next);  // what was shown before may be large: it goes after the lock
    const auto is_itself = [](const figures_of_one& of) {
        return of.digest.state == follow_state::itself;
    };
    if (is_itself(sibling.shown) != is_itself(next) || was != sibling.is_away()) {
        count();
    }
    look_whether_caught_up();
}

void digest_fetcher::shared::look_whether_caught_up() {
    if (context.catching == nullptr || !context.catching->is_on(steady_now())) {
        return;
    }
    const auto since = context.catching->since();
    const bool is_caught_up = std::all_of(siblings.begin(), siblings.end(), [&](const auto& each) {
        return each.second->is_known_since(since);
    });
    if (is_caught_up) {
        context.catching->end();
    }
}

void digest_fetcher::shared::count() {
    all = siblings.size();
    std::size_t not_itself = 0, not_there = 0;
    for (const auto& [name, sibling] : siblings) {
        not_itself += sibling->shown.digest.state != follow_state::itself ? 1 : 0;
        not_there += sibling->is_away() ? 1 : 0;
    }
    others = not_itself;
    away = not_there;
}

}  // namespace reprise::proxy::peer
