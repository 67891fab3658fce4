#include "proxy/peer/digest_fetch.hpp"

#include "proxy/base/log.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/seen_along.hpp"
#include "proxy/peer/sibling_exchange.hpp"
#include "proxy/peer/signature.hpp"

#include <boost/asio/co_spawn.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

// One coroutine for each digest: wait, ask, hand the answer to the side thread, and wait until that
// has decoded it, told the table and the log, and published the figures.
// What a sibling saw is asked for along with its digest, if it can be (seen_along).

namespace reprise::proxy::peer {
namespace {

constexpr unsigned no_slot = most_slots;
// What is held grows too old while a sibling that can't be reached is left alone: so often it is looked at.
constexpr std::chrono::seconds longest_unlooked{10};

std::optional<unsigned> as_shown(unsigned slot) noexcept {
    return slot == no_slot ? std::nullopt : std::optional{slot};
}

}  // namespace

std::string followed::authority() const {
    const bool literal = host.find(':') != host.npos;
    auto out = literal ? '[' + host + ']' : host;
    if (port != (https ? 443 : 80)) {
        out += ':' + std::to_string(port);
    }
    return out;
}

std::string digest_request(const followed& of,
                           std::string_view endpoint,
                           std::string_view path,
                           const digest_follower::question& question,
                           const fleet_secret& secret,
                           std::string_view node,
                           wall_time now,
                           const nonce& fresh) {
    std::string target{path};
    if (!question.query.empty()) {
        target.append("?").append(question.query);
    }
    const auto host = of.authority();
    std::string wire = "GET " + target + " HTTP/1.1\r\n";
    http::append_field_line(wire, "Host", host);
    // To a Reprise none: what has one was passed on for somebody (resource.hpp).
    if (of.squid && !node.empty()) {
        http::append_field_line(wire, "Via", "1.1 " + std::string{node});
    }
    if (of.squid) {
        http::append_field_line(wire, "Accept", "application/cache-digest");
    }
    if (!question.none_match.empty()) {
        http::append_field_line(wire, "If-None-Match", question.none_match);
    }
    if (!question.modified_since.empty()) {
        http::append_field_line(wire, "If-Modified-Since", question.modified_since);
    }
    // Of several questions that one instance keeps open the last counts.
    if (question.wait.count() > 0 && !node.empty() && !secret.has_file()) {  // sign() says it
        http::append_field_line(wire, node_field, node);
    }
    if (!of.squid && secret.has_file()) {
        wire += sign(secret,
                     {.method = "GET", .target = target, .host = host, .secure = of.https},
                     {.from = node, .to = endpoint},
                     now,
                     fresh,
                     question.forms);
    }
    wire += "\r\n";
    return wire;
}

/// Troubles that one log line covers: a host that is down refuses connections or does not answer.
follow_trouble loss_of(follow_trouble trouble) noexcept {
    return trouble == follow_trouble::timed_out ? follow_trouble::unreachable : trouble;
}

/// One digest of a sibling, and the coroutine that follows it. The loop's thread; what is known of the
/// digest is the side thread's while that has work for it.
struct digest_fetcher::pursuit {
    pursuit(const follow_plan& plan, follow_context& context)
        : follower{plan, context.random(), steady_now()},
          wake{context.timer},
          exchange{context.timer, context.random} {}

    void end() {
        exchange.end();
        wake.notify();
    }

    digest_follower follower;
    net::wakeup wake;
    sibling_exchange exchange;
};

struct digest_fetcher::one {
    one(const followed& is, unsigned at, follow_context& context)
        : of{is},
          slot{at},
          digest{plan_for(is, context, filter::digest_layout::standard), context} {
        if (is.seen && context.seen != nullptr) {
            seen.emplace(plan_for(is, context, filter::digest_layout::blocked), context);
        }
        shown.name = is.name;
        shown.slot = at;
        shown.https = is.https;
        shown.of_site = is.of_site;
        shown.members = is.members;
    }

    static follow_plan plan_for(const followed& is,
                                const follow_context& context,
                                filter::digest_layout layout) {
        follow_plan plan;
        plan.refresh = is.refresh;
        plan.seed = context.secret.id();
        plan.squid = is.squid;
        plan.site_nodes = is.of_site ? config::most_site_nodes : context.site_nodes;
        plan.layout = layout;
        plan.news = context.news;
        plan.itself_again = context.itself_again;
        plan.key_of = [&secret = context.secret](std::uint64_t name) {
            return key_of(name, secret);
        };
        return plan;
    }

    [[nodiscard]] pursuit& part(bool of_seen) { return of_seen ? *seen : digest; }
    /// From where news of what it saw goes on.
    [[nodiscard]] seen_along::generation seen_from() const {
        return seen && !seen_is_aside ? seen->follower.news_from() : std::nullopt;
    }
    void end() {
        digest.end();
        if (seen) {
            seen->end();
        }
    }

    followed of;
    std::atomic<unsigned> slot;  // no_slot: it is this instance itself. Changed on the loop
    pursuit digest;
    std::optional<pursuit> seen;
    std::shared_ptr<const filter::digest> seen_in_use;  // side thread's
    // The loop's.
    seen_along along;
    bool seen_is_aside = false;  // the side thread has its follower
    struct {
        follow_trouble loss = follow_trouble::none;
        bool used = false;
        bool left_out = false;  // of what other sites are told
    } told;                     // to the log, last
    bool gone = false;
    figures_of_one shown;  // guarded by shared::guard
};

struct digest_fetcher::shared {
    explicit shared(follow_context from) : context{std::move(from)} {}

    [[nodiscard]] bool is_over(const one& sibling) const {
        return stopped || sibling.gone || context.timer.stopped();
    }
    void give_slot_back(one& sibling);
    [[nodiscard]] std::optional<got_response> take_along(one& sibling,
                                                         std::optional<got_response>& answer);
    [[nodiscard]] bool takes_here(one& sibling, bool seen, std::optional<got_response>& answer);
    void take(one& sibling, bool seen, std::optional<got_response> answer);
    void tell_table(one& sibling);
    void tell_members(one& sibling, unsigned slot, const digest_follower::news& news);
    void tell_seen(one& sibling);
    void tell_log(one& sibling);
    void tell_in_slot(one& sibling);
    void show(one& sibling, bool seen);
    void count();  // under guard

    follow_context context;
    std::map<std::string, std::shared_ptr<one>> siblings;
    std::map<std::string, followed> left_out;  // the loop's: there was no slot for them
    std::atomic<bool> stopped{false};
    std::atomic<std::size_t> all{0}, others{0};
    mutable std::mutex guard;  // guards `siblings` and what each shows
};

// Side thread, or the loop while that does nothing. The digest of a sibling that is no longer followed may still be put here: it is
// removed before the slot's next owner puts its own.
void digest_fetcher::shared::tell_table(one& sibling) {
    using kind = digest_follower::news::kind;
    auto& follower = sibling.digest.follower;
    const unsigned slot = sibling.slot;
    if (slot == no_slot) {
        return;  // what there is is told when it has one
    }
    const auto news = follower.take_news();
    const auto& held = follower.held();
    const auto& squid = follower.held_squid();
    bool has_room = true;
    if (news.what == kind::gone) {
        context.table.remove(slot);
    } else if (news.what == kind::flipped && held) {
        has_room = context.table.flip(slot, *held, news.places);
    } else if (news.what == kind::replaced && held) {
        has_room = context.table.put(slot, *held);
    } else if (news.what == kind::replaced && squid) {
        has_room = context.table.put(slot, squid);
    }
    if (!has_room) {
        context.table.remove(slot);
        follower.refuse("beside what other siblings' digests take", steady_now());
    }
    tell_members(sibling, slot, news);
}

// A gateway tells of its own site: what is another's is one hop more away from whoever asks.
void digest_fetcher::shared::tell_members(one& sibling,
                                          unsigned slot,
                                          const digest_follower::news& news) {
    using kind = digest_follower::news::kind;
    if (context.members == nullptr || sibling.of.of_site || sibling.of.squid) {
        return;
    }
    const auto& held = sibling.digest.follower.held();
    bool is_member = true;
    if (!held) {
        context.members->remove(slot);
    } else if (news.what == kind::flipped ||
               (news.what == kind::nothing && sibling.told.left_out)) {
        // What kept one out that is quiet may have gone.
        is_member = context.members->flip(slot, *held, news.places);
    } else if (news.what == kind::replaced) {
        is_member = context.members->put(slot, *held);
    }
    if (!is_member && !std::exchange(sibling.told.left_out, true)) {
        log::warn("peers: ",
                  sibling.of.name,
                  ": other sites are not told of it: its digest has another rate than those of the "
                  "siblings before it (digest.false_positive_rate must be the same on all)");
    }
}

// News turns bits of what is in use there: nothing is to be done then.
void digest_fetcher::shared::tell_seen(one& sibling) {
    auto& follower = sibling.seen->follower;
    (void)follower.take_news();
    const unsigned slot = sibling.slot;
    if (slot != no_slot && follower.held() != sibling.seen_in_use) {
        sibling.seen_in_use = follower.held();
        context.seen->put(slot, sibling.seen_in_use);
    }
}

// It has another slot than before, or none: what is held of it was told of the one before. Of what it
// saw the next look tells, since that follower is another coroutine's.
void digest_fetcher::shared::tell_in_slot(one& sibling) {
    sibling.seen_in_use = nullptr;
    sibling.digest.follower.tell_again();
    try {
        tell_table(sibling);
    } catch (const std::bad_alloc&) {
        sibling.digest.follower.failed(follow_trouble::too_large, "out of memory", steady_now());
        sibling.digest.follower.tell_again();
    }
    show(sibling, false);
}

// Once for each change, not for each answer: a sibling that is away is asked again and again.
void digest_fetcher::shared::tell_log(one& sibling) {
    const auto& follower = sibling.digest.follower;
    const auto& is = follower.figures();
    const bool used = follower.held() || follower.held_squid();
    const auto loss = loss_of(is.trouble);
    const auto before = std::exchange(sibling.told, {loss, used, sibling.told.left_out});
    if (loss == follow_trouble::none) {
        if (before.loss != follow_trouble::none && is.state == follow_state::current) {
            log::info("peers: ", sibling.of.name, ": its digest is followed again");
        }
    } else if (loss != before.loss || used != before.used) {
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

void digest_fetcher::shared::show(one& sibling, bool seen) {
    if (seen) {
        const std::scoped_lock lock{guard};
        sibling.shown.seen = sibling.seen->follower.figures();
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
    next.seen = std::move(sibling.shown.seen);
    std::swap(sibling.shown, next);  // what was shown before may be large: it goes after the lock
    const auto is_itself = [](const figures_of_one& of) {
        return of.digest.state == follow_state::itself;
    };
    if (is_itself(sibling.shown) != is_itself(next)) {
        count();
    }
}

void digest_fetcher::shared::give_slot_back(one& sibling) {
    const auto slot = sibling.slot.exchange(no_slot);
    if (slot == no_slot) {
        return;
    }
    context.table.dismiss(slot);
    // Queued behind the work under way for it, and before the next owner's first digest.
    context.aside.post([&table = context.table,
                        seen = context.seen,
                        members = sibling.of.of_site ? nullptr : context.members,
                        slot] {
        table.remove(slot);
        if (members != nullptr) {
            members->remove(slot);
        }
        if (seen != nullptr) {
            seen->put(slot, nullptr);
        }
    });
}

void digest_fetcher::shared::count() {
    all = siblings.size();
    others = static_cast<std::size_t>(
        std::count_if(siblings.begin(), siblings.end(), [](const auto& entry) {
            return entry.second->shown.digest.state != follow_state::itself;
        }));
}

// What is to be taken of what was seen, if there is any in the answer. That there is nothing new is worth a word now and then: what
// is held does not grow old.
std::optional<got_response> digest_fetcher::shared::take_along(
    one& sibling, std::optional<got_response>& answer) {
    if (!answer) {
        return std::nullopt;
    }
    try {
        auto along = sibling.along.take(*answer, sibling.seen_from());
        if (along && along->status == 304) {
            const auto good_at = sibling.seen->follower.figures().good_at;
            const bool is_lately = good_at && steady_now() - *good_at < longest_unlooked;
            return is_lately ? std::nullopt : std::move(along);
        }
        return along;
    } catch (const std::bad_alloc&) {
        answer->trouble = follow_trouble::too_large;
        answer->detail = "out of memory";
        return std::nullopt;
    }
}

// A piece of a few places costs less than the way to the side thread and back. While that does nothing,
// nothing that it might hold is waited for, since what it is given comes from this loop. True: it was taken.
bool digest_fetcher::shared::takes_here(one& sibling,
                                        bool seen,
                                        std::optional<got_response>& answer) {
    const bool is_plain = answer && answer->trouble == follow_trouble::none &&
                          sibling.slot != no_slot &&
                          (answer->node.empty() || answer->node != context.node);
    const bool takes = is_plain && context.members == nullptr && context.aside.is_idle() &&
                       sibling.part(seen).follower.begins_light(answer->status, answer->body);
    if (takes) {
        take(sibling, seen, std::move(answer));
    }
    return takes;
}

// Side thread, or the loop. What a sibling's answer (none: time has passed) makes of what is known of it.
void digest_fetcher::shared::take(one& sibling, bool seen, std::optional<got_response> answer) {
    auto& follower = sibling.part(seen).follower;
    try {
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

awaitable<got_response> digest_fetcher::fetch(shared& all, one& sibling, bool seen) {
    auto& part = sibling.part(seen);
    const auto& of = sibling.of;
    auto question = part.follower.ask(steady_now());
    if (seen) {
        sibling.along.asks_itself();
    } else {
        const bool waits = question.wait.count() > 0;
        const auto along = sibling.along.ask(waits ? part.follower.news_from() : std::nullopt,
                                             sibling.seen_from());
        if (along) {
            question.query += "&seen=" + to_text(*along);
            question.forms = signed_as::rfc9421;
        }
        if (sibling.seen && sibling.along.rests() != along.has_value()) {
            sibling.seen->wake.notify();  // it comes to rest, or asks for itself
        }
    }
    const auto lane = question.wait.count() == 0 ? exchange_lane::short_question
                      : seen                     ? exchange_lane::seen_news
                      : of.members               ? exchange_lane::members_news
                                                 : exchange_lane::digest_news;
    const sibling_exchange::question what{.path = of.squid     ? squid_digest_path
                                                  : seen       ? seen_path
                                                  : of.members ? members_path
                                                               : digest_path,
                                          .asked = question,
                                          .lane = lane,
                                          .until = steady_now() + of.timeout + question.wait,
                                          .most_bytes = follow_plan{}.most_bytes};
    auto got = co_await part.exchange.get(all.context, of, what);
    co_return got;
}

// The side thread takes what came of a question, or (none) of time that has passed. Nobody else touches that digest's follower
// until this ends.
awaitable<void> digest_fetcher::take_aside(std::shared_ptr<shared> all,
                                           std::shared_ptr<one> sibling,
                                           bool seen,
                                           std::optional<got_response> got) {
    std::function<void()> work = [&all = *all, &one = *sibling, seen, &got] {
        if (!all.stopped) {
            all.take(one, seen, std::move(got));
        }
    };
    sibling->seen_is_aside = sibling->seen_is_aside || seen;
    co_await all->context.aside.run(all->context.io, std::move(work));
    sibling->seen_is_aside = sibling->seen_is_aside && !seen;
    if (!seen && !all->is_over(*sibling) && settle_slot(all, sibling)) {
        std::function<void()> tell = [&all = *all, &one = *sibling] {
            if (!all.stopped) {
                all.tell_in_slot(one);
            }
        };
        co_await all->context.aside.run(all->context.io, std::move(tell));
    }
}

awaitable<void> digest_fetcher::run(std::shared_ptr<shared> all,
                                    std::shared_ptr<one> sibling,
                                    bool seen) {
    auto& part = sibling->part(seen);
    const auto is_to_rest = [&] {
        return seen && sibling->along.asks_for_both() && part.follower.news_from();
    };
    while (!all->is_over(*sibling)) {
        if (is_to_rest()) {
            sibling->along.rest();
            while (sibling->along.asks_for_both() && !all->is_over(*sibling)) {
                (void)co_await part.wake.wait(steady_now() + longest_unlooked);
            }
            sibling->along.rest_is_over();
            if (!all->is_over(*sibling)) {
                co_await take_aside(all, sibling, true, std::nullopt);  // time has passed
            }
            continue;
        }
        const auto next = std::min(part.follower.next(), steady_now() + longest_unlooked);
        if (next > steady_now()) {
            (void)co_await part.wake.wait(next);
        }
        if (all->is_over(*sibling)) {
            break;
        }
        if (is_to_rest()) {
            continue;
        }
        std::optional<got_response> got;
        if (steady_now() >= part.follower.next()) {
            try {
                got = co_await fetch(*all, *sibling, seen);
            } catch (const std::bad_alloc&) {
                got.emplace();
                got->trouble = follow_trouble::too_large;
                got->detail = "out of memory";
            }
        }
        if (all->is_over(*sibling)) {
            break;
        }
        auto along = seen ? std::nullopt : all->take_along(*sibling, got);
        if (!all->takes_here(*sibling, seen, got)) {
            co_await take_aside(all, sibling, seen, std::move(got));
        }
        if (along && !all->is_over(*sibling) && !all->takes_here(*sibling, true, along)) {
            co_await take_aside(all, sibling, true, std::move(along));
        }
        if (!seen && sibling->along.ends(part.follower.news_from(), sibling->seen_from())) {
            sibling->seen->wake.notify();
        }
    }
}

// What has proved to be this instance itself gives its slot to another; what has become another has
// one again, if there is any. True: it has gained or lost its slot, and is still followed.
bool digest_fetcher::settle_slot(const std::shared_ptr<shared>& all,
                                 const std::shared_ptr<one>& sibling) {
    const bool was = sibling->slot == no_slot;
    const bool is = sibling->digest.follower.figures().state == follow_state::itself;
    if (is == was) {
        return false;
    }
    if (is) {
        all->give_slot_back(*sibling);
        follow_left_out(all);
    } else if (const auto slot = all->context.table.enrol(sibling->of.name)) {
        sibling->slot = *slot;
    } else {
        sibling->gone = true;
        sibling->end();
        const std::scoped_lock lock{all->guard};
        all->left_out.emplace(sibling->of.name, sibling->of);
        all->siblings.erase(sibling->of.name);
        all->count();
    }
    all->context.changed();
    return !sibling->gone;
}

void digest_fetcher::follow_left_out(const std::shared_ptr<shared>& all) {
    std::vector<std::shared_ptr<one>> begun;
    {
        const std::scoped_lock lock{all->guard};
        while (!all->stopped && !all->left_out.empty()) {
            const auto first = all->left_out.begin();
            const auto slot = all->context.table.enrol(first->first);
            if (!slot) {
                break;
            }
            auto made = std::make_shared<one>(first->second, *slot, all->context);
            all->siblings.emplace(first->first, made);
            begun.push_back(std::move(made));
            all->left_out.erase(first);
        }
        all->count();
    }
    for (const auto& sibling : begun) {
        start(all, sibling);
    }
}

void digest_fetcher::start(const std::shared_ptr<shared>& all,
                           const std::shared_ptr<one>& sibling) {
    for (const bool seen : {false, true}) {
        if (seen && !sibling->seen) {
            continue;
        }
        auto work = run(all, sibling, seen);
        asio::co_spawn(all->context.io, std::move(work), [](std::exception_ptr thrown) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
        });
    }
}

digest_fetcher::digest_fetcher(follow_context context)
    : shared_{std::make_shared<shared>(std::move(context))} {}

digest_fetcher::~digest_fetcher() {
    stop();
}

void digest_fetcher::follow(std::vector<followed> siblings) {
    auto& all = *shared_;
    std::map<std::string, const followed*> wanted;
    for (const auto& sibling : siblings) {
        wanted.emplace(sibling.name, &sibling);
    }
    {
        const std::scoped_lock lock{all.guard};
        std::erase_if(all.siblings, [&](const auto& entry) {
            const auto& sibling = entry.second;
            const auto stays = wanted.find(entry.first);
            if (stays != wanted.end() && *stays->second == sibling->of) {
                return false;
            }
            sibling->gone = true;
            sibling->end();
            all.give_slot_back(*sibling);
            return true;
        });
    }
    all.left_out.clear();
    for (const auto& [name, is] : wanted) {
        if (all.siblings.count(name) == 0) {
            all.left_out.emplace(name, *is);
        }
    }
    follow_left_out(shared_);
}

bool digest_fetcher::is_itself(const std::string& name) const {
    const auto it = shared_->siblings.find(name);
    return it != shared_->siblings.end() && it->second->slot == no_slot;
}

void digest_fetcher::stop() {
    shared_->stopped = true;
    for (const auto& [name, sibling] : shared_->siblings) {
        sibling->end();
    }
}

std::size_t digest_fetcher::followed_count() const noexcept {
    return shared_->all.load(std::memory_order_relaxed);
}

std::size_t digest_fetcher::others() const noexcept {
    return shared_->others.load(std::memory_order_relaxed);
}

std::vector<digest_fetcher::figures_of_one> digest_fetcher::figures() const {
    const std::scoped_lock lock{shared_->guard};
    std::vector<figures_of_one> out;
    for (const auto& [name, sibling] : shared_->siblings) {
        out.push_back(sibling->shown);
    }
    return out;
}

}  // namespace reprise::proxy::peer
