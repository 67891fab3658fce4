#include "proxy/peer/digest_follower.hpp"

#include "proxy/peer/news_pace.hpp"
#include "proxy/peer/publication.hpp"

#include <algorithm>
#include <utility>

// answered() judges an answer, which ends in good() or failed() unless it comes from this node
// itself. `change_` gathers what has changed since take_change() was last called: as places that
// turned, or, where these can't tell it, as a replacement.

namespace reprise::proxy::peer {
namespace {

using filter::digest_errc;
using filter::squid_errc;
using std::chrono::milliseconds;

constexpr milliseconds longest_wait = std::chrono::minutes{1};
/// For how long a question is left open: below what a sibling waits at most, and what NATs forget in.
constexpr std::chrono::seconds news_wait{25};
/// An answer without anything new that comes at once: something there is in a hurry to end.
constexpr milliseconds after_nothing{1000};
/// One that has news that fits and news that does not by turns is asked for no more wholes than that at once.
constexpr milliseconds between_wholes{1000};
constexpr milliseconds least_between{5};  // two questions, whatever peering.news is
/// News of so many bytes is some hundreds of places, which take tens of microseconds.
constexpr std::size_t light_bytes = 1024;
/// A Squid says how long its digest counts; no longer than this is believed.
constexpr std::chrono::seconds longest_squid = std::chrono::hours{1};

// A few bytes may say that hundreds of megabytes have no bit on, and the index takes eight times
// that. An honest digest is made for at most four times as many keys as it has, and has then one
// bit in seven on; less only until its owner has made a smaller one, when much left at once. What
// one in 64 takes to send is an eighth of what it takes to hold. Nodes of which a gateway makes one digest
// have so many times the bits (digest.site_nodes). A seen filter is as thin as can be
// whenever its generation begins: what those may take is bounded by limits.bytes alone; they are
// asked as they are and become no columns of an index.
bool is_oversized(const filter::digest& of, unsigned nodes) noexcept {
    constexpr std::uint64_t always = std::uint64_t{1} << 20;  // bits: an index of a megabyte
    return of.shape().layout == filter::digest_layout::standard && of.shape().bits > always &&
           of.shape().bits / 64 / nodes > of.bits_on();
}

follow_trouble trouble_of(boost::system::error_code error) noexcept {
    if (error == digest_errc::other_seed) {
        return follow_trouble::other_secret;
    }
    if (error == digest_errc::wrong_base || error == digest_errc::is_news) {
        return follow_trouble::wrong_base;
    }
    if (error == digest_errc::over_limit || error == squid_errc::over_limit) {
        return follow_trouble::too_large;
    }
    if (error == digest_errc::saturated || error == squid_errc::saturated) {
        return follow_trouble::saturated;
    }
    return follow_trouble::malformed;
}

// What a sibling says beside a bad status, in one short line: text that would stand in a log as it is.
std::string said_in(std::span<const std::byte> body) {
    constexpr std::size_t most = 160;
    std::string out;
    for (const auto each : body) {
        const auto c = static_cast<char>(each);
        if (c < 0x20 || c > 0x7e || c == '<' || out.size() == most) {
            break;
        }
        out.push_back(c);
    }
    return out.empty() ? out : ": " + out;
}

follow_trouble trouble_of(unsigned status) noexcept {
    switch (status) {
    case 401:
    case 403: return follow_trouble::refused;
    case 404: return follow_trouble::no_digest;
    case 503: return follow_trouble::not_ready;
    default: return follow_trouble::bad_status;
    }
}

}  // namespace

std::string_view to_string(follow_state state) noexcept {
    switch (state) {
    case follow_state::never: return "never";
    case follow_state::current: return "current";
    case follow_state::failing: return "failing";
    case follow_state::outdated: return "outdated";
    case follow_state::itself: return "itself";
    }
    return "?";
}

bool was_away(const follow_figures& of) noexcept {
    switch (of.trouble) {
    case follow_trouble::unreachable:
    case follow_trouble::timed_out:
    case follow_trouble::bad_message:  // a proxy in front of it, which answers for it
    case follow_trouble::bad_status:
    case follow_trouble::not_ready: return true;
    default: return false;
    }
}

std::string in_words(const follow_figures& of, steady_time now) {
    if (of.trouble == follow_trouble::none) {
        return of.state == follow_state::never ? ": it was not asked for one yet" : "";
    }
    auto text = ": " + std::string{to_string(of.trouble)};
    if (!of.detail.empty()) {
        text += " (" + of.detail + ")";
    }
    if (of.next_at) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(*of.next_at - now).count();
        text += "; it is asked for again in " + std::to_string(std::max<std::int64_t>(left, 0)) +
                " s";
    }
    return text;
}

std::string_view to_string(follow_trouble trouble) noexcept {
    switch (trouble) {
    case follow_trouble::none: return "none";
    case follow_trouble::unreachable: return "unreachable";
    case follow_trouble::timed_out: return "timed_out";
    case follow_trouble::refused: return "refused";
    case follow_trouble::no_digest: return "no_digest";
    case follow_trouble::not_ready: return "not_ready";
    case follow_trouble::bad_status: return "bad_status";
    case follow_trouble::bad_message: return "bad_message";
    case follow_trouble::too_large: return "too_large";
    case follow_trouble::malformed: return "malformed";
    case follow_trouble::saturated: return "saturated";
    case follow_trouble::other_secret: return "other_secret";
    case follow_trouble::wrong_base: return "wrong_base";
    case follow_trouble::went_back: return "went_back";
    }
    return "?";
}

digest_follower::digest_follower(const follow_plan& plan, std::uint64_t seed, steady_time now)
    : plan_{plan},
      random_{static_cast<std::minstd_rand::result_type>((seed ^ (seed >> 32)) | 1)},
      next_{now} {
    if (plan_.stale_after == milliseconds{0}) {
        plan_.stale_after = std::max<milliseconds>(10 * plan_.refresh, std::chrono::minutes{1});
    }
    stale_after_ = plan_.stale_after;
}

// From 90 to 110 per cent.
milliseconds digest_follower::jittered(milliseconds wait) {
    return wait * 9 / 10 +
           milliseconds{static_cast<std::int64_t>(random_()) % (wait.count() / 5 + 1)};
}

digest_follower::question digest_follower::ask(steady_time now) {
    ++figures_.asked;
    asked_at_ = now;
    question out;
    if (held_ && !whole_next_) {
        out.query = "since=" + to_text(held_->stamp().generation);
        out.none_match = etag_;
    } else if (squid_) {
        out.none_match = etag_;
        out.modified_since = last_modified_;
    }
    if (plan_.news.count() > 0 && !plan_.squid) {
        out.wait = news_wait;
        out.query += (out.query.empty() ? "wait=" : "&wait=") + std::to_string(news_wait.count());
    }
    return out;
}

std::optional<filter::digest_generation> digest_follower::news_from() const noexcept {
    const bool goes_on = usable_ && held_ && !whole_next_ && figures_.by_news;
    return goes_on ? std::optional{held_->stamp().generation} : std::nullopt;
}

void digest_follower::good(steady_time now, milliseconds wait) {
    failures_ = 0;
    is_early_ = false;
    whole_next_ = false;
    figures_.state = follow_state::current;
    figures_.trouble = follow_trouble::none;
    figures_.detail.clear();
    figures_.good_at = now;
    figures_.next_at.reset();
    next_ = now + jittered(wait);
    if (!usable_ && (held_ || squid_)) {
        usable_ = true;
        change_ = {.what = change::kind::replaced, .places = {}};
    }
}

void digest_follower::drop() {
    hold_ = {};  // of what goes
    replica_.reset();
    held_.reset();
    squid_.reset();
    etag_.clear();
    last_modified_.clear();
    if (usable_) {
        change_ = {.what = change::kind::gone, .places = {}};
    }
    usable_ = false;
}

// The whole is what a sibling that moved on has to say. A good one says nothing of whether the next piece of news will
// fit: so it takes back neither the wait nor that there was one.
bool digest_follower::wants_whole_at_once(steady_time now) noexcept {
    const bool is_asked_for = std::exchange(whole_next_, true);
    const bool is_first = wrong_bases_++ == 0;
    const auto last = std::exchange(wrong_base_at_, now);
    if (!is_asked_for && is_first && (!last || now - *last >= between_wholes)) {
        return true;
    }
    failures_ = std::max(failures_, std::max(wrong_bases_, 2u) - 2);
    return false;
}

void digest_follower::failed(follow_trouble why, std::string detail, steady_time now) {
    ++figures_.failed;
    if (why == follow_trouble::not_ready && figures_.trouble != why) {
        // It is there again: for how long it was not says nothing of how long it loads.
        failures_ = 0;
        is_early_ = false;
    }
    figures_.trouble = why;
    figures_.detail = std::move(detail);
    figures_.state = held_ || squid_ ? follow_state::failing : follow_state::never;
    if (why == follow_trouble::other_secret) {
        drop();
    }
    figures_.by_news = false;
    if (why == follow_trouble::wrong_base && wants_whole_at_once(now)) {
        next_ = now;
        look(now);
        return;
    }
    failed_at_ = now;
    if (std::exchange(is_early_, false) && now < planned_) {
        early_gap_ *= 2;
        next_ = planned_;
        figures_.next_at = next_;
        look(now);
        return;
    }
    early_gap_ = before_early;
    // What is followed by news is looked for sooner: `refresh` is no pace of it.
    const auto least = plan_.news.count() > 0 && !plan_.squid
                           ? std::min<milliseconds>(plan_.refresh, after_nothing)
                           : plan_.refresh;
    auto wait = least;
    for (unsigned i = 0; i < failures_ && wait < longest_wait; ++i) {
        wait *= 2;
    }
    ++failures_;
    next_ = now + jittered(std::max(least, std::min(wait, std::max(longest_wait, plan_.refresh))));
    figures_.next_at = next_;
    look(now);
}

void digest_follower::heard(steady_time now) noexcept {
    const auto soon = std::max(now, failed_at_ + early_gap_);
    if (is_early_ || next_ <= soon || !was_away(figures_)) {
        return;
    }
    is_early_ = true;
    planned_ = std::exchange(next_, soon);
    figures_.next_at = next_;
}

void digest_follower::refuse(std::string detail, steady_time now) {
    drop();
    (void)take_change();
    failed(follow_trouble::too_large, std::move(detail), now);
}

void digest_follower::look(steady_time now) {
    if (usable_ && figures_.good_at && now - *figures_.good_at > stale_after_) {
        usable_ = false;
        change_ = {.what = change::kind::gone, .places = {}};
        figures_.state = follow_state::outdated;
    }
    if (!usable_ && (held_ || squid_) && figures_.state == follow_state::failing) {
        figures_.state = follow_state::outdated;
    }
}

void digest_follower::take(filter::digest next, bool by_delta) {
    auto made = std::make_shared<filter::digest_replica>(std::move(next));
    // Two changes since the last look: only the whole will do.
    std::optional<std::vector<std::uint64_t>> places;
    if (by_delta && usable_ && change_.what == change::kind::nothing) {
        places = filter::few_flipped_places(*held_, made->now());
    }
    if (places) {
        change_ = {.what = change::kind::flipped, .places = std::move(*places)};
    } else {
        change_ = {.what = change::kind::replaced, .places = {}};
    }
    replica_ = std::move(made);
    held_ = {replica_, &replica_->now()};
    usable_ = true;
}

bool digest_follower::begins_light(unsigned status, std::span<const std::byte> body) {
    if (!replica_ || !usable_ || change_.what != change::kind::nothing) {
        return false;
    }
    if (status != 200 || body.size() > light_bytes) {
        return status == 304;
    }
    const auto head = filter::read_digest_head(body);
    if (head.has_error() || head->form != filter::digest_form::news) {
        return false;
    }
    hold_ = replica_->try_hold();
    return hold_.owns_lock();
}

void digest_follower::judge_news(const follow_answer& answer, steady_time now) {
    if (!replica_) {
        failed(follow_trouble::wrong_base, "news, and nothing is held", now);
        return;
    }
    auto turned = replica_->apply(answer.body, plan_.key_of, plan_.limits, std::move(hold_));
    if (turned.has_error()) {
        // Damage on the way or a difference that was there: the whole mends both.
        const auto why = trouble_of(turned.error());
        failed(why == follow_trouble::malformed ? follow_trouble::wrong_base : why,
               turned.error().message(),
               now);
        return;
    }
    ++figures_.news;
    figures_.news_bytes += answer.body.size();
    figures_.news_places += turned->size();
    figures_.news_at = now;
    if (!usable_ || change_.what == change::kind::replaced) {
        change_ = {.what = change::kind::replaced, .places = {}};
    } else if (change_.what == change::kind::flipped) {
        // What turned twice is named twice, and so is as it was.
        change_.places.insert(change_.places.end(), turned->begin(), turned->end());
    } else {
        change_ = {.what = change::kind::flipped, .places = std::move(*turned)};
    }
    usable_ = true;
    wrong_bases_ = 0;
    etag_ = '"' + to_text(held_->stamp().generation) +
            '"';  // of what came along the answer has no field
    good(now, plan_.refresh);
}

void digest_follower::answered(const follow_answer& answer,
                               std::string_view our_node,
                               steady_time now) {
    struct at_end {
        digest_follower& of;
        ~at_end() { of.hold_ = {}; }
    } const end{*this};
    figures_.answered_since = asked_at_;
    if (!answer.node.empty()) {
        figures_.node = answer.node;
    }
    if (!answer.node.empty() && answer.node == our_node) {
        drop();
        figures_.state = follow_state::itself;
        figures_.trouble = follow_trouble::none;
        next_ = now + std::max(plan_.refresh, plan_.itself_again);
        return;
    }
    const bool by_news = answer.tells_news && plan_.news.count() > 0 && !plan_.squid;
    if (answer.status == 304 && (held_ || squid_)) {
        ++figures_.unchanged;
        if (squid_) {
            good_of_squid(answer, now);
        } else {
            good(now, plan_.refresh);
            go_on(by_news, answer.had_more ? after_news() : after_nothing, now);
        }
        return;
    }
    if (answer.status != 200) {
        failed(trouble_of(answer.status),
               "status " + std::to_string(answer.status) + said_in(answer.body),
               now);
    } else if (answer.body.size() > plan_.most_bytes) {
        failed(follow_trouble::too_large, "", now);
    } else if (plan_.squid) {
        judge_squid(answer, now);
    } else {
        const auto before = figures_.failed;
        judge(answer, now);
        if (figures_.failed == before) {
            go_on(by_news, after_news(), now);
        }
    }
}

// Half of the pace of one that nobody else reads; a sibling that does not keep to it is asked no
// more often than that.
milliseconds digest_follower::after_news() const noexcept {
    return std::max(pace_for(plan_.news, 1) / 2, least_between);
}

// At once, unless that is too soon after the last question: a sibling that has nothing to wait with
// may be wrong.
void digest_follower::go_on(bool by_news, milliseconds least, steady_time now) {
    figures_.by_news = by_news;
    if (by_news) {
        next_ = std::max(now, asked_at_ + least);
    }
}

void digest_follower::judge(const follow_answer& answer, steady_time now) {
    const auto head = filter::read_digest_head(answer.body);
    if (head.has_error()) {
        failed(trouble_of(head.error()), head.error().message(), now);
        return;
    }
    const auto& said = head->stamp.generation;
    // One that was restored from a snapshot counts from there on: its whole is as good as any, once what was
    // held is not used any more. And where that is not what its owner has by this generation, an older whole is
    // what news leads on from: it may be the last one published, and the only one for long.
    const bool begins_anew = (!usable_ || whole_next_) && head->form == filter::digest_form::whole;
    if (held_ && !begins_anew && said.epoch == held_->stamp().generation.epoch &&
        said.counter < held_->stamp().generation.counter) {
        failed(follow_trouble::went_back, "", now);
        return;
    }
    if (head->form == filter::digest_form::news) {
        judge_news(answer, now);
        return;
    }
    const bool is_delta = head->form == filter::digest_form::delta;
    if (is_delta && !held_) {
        failed(follow_trouble::wrong_base, "a delta, and nothing is held", now);
        return;
    }
    auto next = is_delta ? filter::apply_delta(answer.body, replica_->settled(), plan_.limits)
                         : filter::decode_digest(answer.body, plan_.seed, plan_.limits);
    if (next.has_error() || is_oversized(*next, plan_.site_nodes) ||
        next->shape().layout != plan_.layout) {
        if (held_ && said.epoch != held_->stamp().generation.epoch) {
            drop();
        }
        if (next.has_error()) {
            failed(trouble_of(next.error()), next.error().message(), now);
        } else if (is_oversized(*next, plan_.site_nodes)) {
            failed(follow_trouble::too_large, "many more bits than its keys need", now);
        } else {
            failed(follow_trouble::malformed, "of a layout that is not asked here", now);
        }
        return;
    }
    (is_delta ? figures_.deltas : figures_.wholes) += 1;
    (is_delta ? figures_.delta_bytes : figures_.whole_bytes) += answer.body.size();
    if (is_delta) {
        wrong_bases_ = 0;
    }
    take(std::move(*next), is_delta);
    etag_ = answer.etag;
    good(now, plan_.refresh);
}

void digest_follower::judge_squid(const follow_answer& answer, steady_time now) {
    auto next = filter::squid_digest::decode(answer.body, plan_.limits.bytes);
    if (next.has_error()) {
        failed(trouble_of(next.error()), next.error().message(), now);
        return;
    }
    ++figures_.wholes;
    figures_.whole_bytes += answer.body.size();
    squid_ = std::make_shared<const filter::squid_digest>(std::move(*next));
    usable_ = true;
    change_ = {.what = change::kind::replaced, .places = {}};
    etag_ = answer.etag;
    last_modified_ = answer.last_modified;
    good_of_squid(answer, now);
}

// A Squid rebuilds its digest when it says so, and not before.
void digest_follower::good_of_squid(const follow_answer& answer, steady_time now) {
    const auto stated = std::min(answer.fresh_for.value_or(std::chrono::seconds{0}), longest_squid);
    const auto wait = std::max<milliseconds>(plan_.refresh, stated);
    stale_after_ = std::max(plan_.stale_after, 3 * wait);
    good(now, wait);
}

void digest_follower::tell_again() noexcept {
    change_.what = usable_ ? change::kind::replaced : change::kind::gone;
}

digest_follower::change digest_follower::take_change() {
    return std::exchange(change_, {});
}

}  // namespace reprise::proxy::peer
