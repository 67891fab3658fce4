// One coroutine for each digest: wait, ask, hand the answer to the side thread, and wait until that
// has made of it what there is to be made (digest_fetch_told.cpp). What a sibling saw is asked for along
// with its digest, if it can be (seen_along).

#include "proxy/http/message_head.hpp"
#include "proxy/net/standing_work.hpp"
#include "proxy/peer/digest_fetch_parts.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/signature.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace reprise::proxy::peer {
namespace {

// What is held grows too old while a sibling that can't be reached is left alone: so often it is looked at.
constexpr std::chrono::seconds longest_unlooked{10};

// Without memory a turn is over, and the next comes this much later.
constexpr std::chrono::seconds after_lack{1};

// The side thread has the follower of what a sibling saw; null: it has not.
struct while_aside {
    explicit while_aside(bool* of) : is_aside{of} { mark(true); }
    ~while_aside() { mark(false); }
    while_aside(const while_aside&) = delete;
    while_aside& operator=(const while_aside&) = delete;
    void mark(bool is) const noexcept {
        if (is_aside != nullptr) {
            *is_aside = is;
        }
    }
    bool* const is_aside;
};

// However its coroutine leaves off: the digest's would go on to use what is this one's.
struct resting {
    explicit resting(seen_along& of) : along{of} { along.rest(); }
    ~resting() { along.rest_is_over(); }
    resting(const resting&) = delete;
    resting& operator=(const resting&) = delete;
    seen_along& along;
};

// However a question ends: one that stayed open would pass for that of a sibling with nothing to tell.
struct open_question {
    explicit open_question(std::optional<steady_time>& of) : since{of} { since = steady_now(); }
    ~open_question() { since.reset(); }
    open_question(const open_question&) = delete;
    open_question& operator=(const open_question&) = delete;
    std::optional<steady_time>& since;
};

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
    // The last counts of several questions that one instance keeps open.
    if (question.wait.count() > 0 && !node.empty() && !secret.has_file()) {  // sign() says it
        http::append_field_line(wire, node_field, node);
    }
    if (!of.squid && secret.has_file()) {
        wire += sign(secret,
                     {.method = "GET", .target = target, .host = host, .secure = of.https},
                     {.from = node, .to = endpoint},
                     now,
                     fresh);
    }
    wire += "\r\n";
    return wire;
}

void digest_fetcher::shared::give_slot_back(one& sibling) {
    const auto slot = sibling.slot.exchange(no_slot);
    if (slot == no_slot) {
        return;
    }
    // Queued behind the work under way for it, and before the next owner's first digest. What can't be
    // posted for want of memory stays taken, and goes with the next.
    given_back.add(slot);
    try {
        context.aside.post([self = weak_from_this(), slots = given_back] {
            if (const auto all = self.lock()) {
                all->remove(slots);
            }
        });
    } catch (const std::bad_alloc&) {
        return;
    }
    given_back.for_each([this](unsigned free) { context.table.dismiss(free); });
    given_back = {};
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
                       left_behind.empty() &&
                       sibling.part(seen).follower.begins_light(answer->status, answer->body);
    if (takes) {
        take(sibling, seen, std::move(answer));
    }
    return takes;
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
    const open_question asks{part.asks_since};
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
    {
        const while_aside mark{seen ? &sibling->seen_is_aside : nullptr};
        co_await all->context.aside.run(all->context.io, std::move(work));
    }
    std::function<void()> tell = [&all = *all, &one = *sibling] {
        if (!all.stopped) {
            all.tell_in_slot(one);
        }
    };
    if (!seen && !all->is_over(*sibling) && settle_slot(all, sibling)) {
        co_await all->context.aside.run(all->context.io, std::move(tell));
    }
}

awaitable<void> digest_fetcher::run(std::shared_ptr<shared> all,
                                    std::shared_ptr<one> sibling,
                                    bool seen) {
    auto& part = sibling->part(seen);
    bool lacked = false;
    while (!all->is_over(*sibling)) {
        if (std::exchange(lacked, false)) {
            (void)co_await part.wake.wait(steady_now() + after_lack);
            continue;
        }
        try {
            co_await take_turn(all, sibling, seen);
        } catch (const std::exception&) {  // no memory, no random bytes
            lacked = all->left_over = true;
        }
    }
}

awaitable<void> digest_fetcher::take_turn(std::shared_ptr<shared> all,
                                          std::shared_ptr<one> sibling,
                                          bool seen) {
    auto& part = sibling->part(seen);
    const auto is_to_rest = [&] {
        return seen && sibling->along.asks_for_both() && part.follower.news_from();
    };
    if (all->left_over) {
        tell_changed(all);
    }
    if (std::exchange(part.is_heard, false)) {
        part.follower.heard(steady_now());
    }
    if (is_to_rest()) {
        {
            const resting rest{sibling->along};
            while (sibling->along.asks_for_both() && !all->is_over(*sibling)) {
                (void)co_await part.wake.wait(steady_now() + longest_unlooked);
            }
        }
        if (!all->is_over(*sibling)) {
            co_await take_aside(all, sibling, true, std::nullopt);  // time has passed
        }
        co_return;
    }
    const auto next = std::min(part.follower.next(), steady_now() + longest_unlooked);
    if (next > steady_now()) {
        (void)co_await part.wake.wait(next);
    }
    if (all->is_over(*sibling) || is_to_rest() || part.is_heard) {
        co_return;
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
        co_return;
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
        all->left_over = true;  // there is a slot for another
    } else if (const auto slot = all->context.table.enrol(sibling->of.name)) {
        sibling->slot = *slot;
    } else {
        const std::scoped_lock lock{all->guard};
        all->left_out.emplace(sibling->of.name, sibling->of);
        sibling->gone = true;
        sibling->end();
        all->siblings.erase(sibling->of.name);
        all->count();
    }
    tell_changed(all);
    return !sibling->gone;
}

// Without memory for it the next turn of any sibling's tries it again.
void digest_fetcher::tell_changed(const std::shared_ptr<shared>& all) {
    try {
        if (all->left_over) {
            follow_left_out(all);
        }
        all->context.changed();
    } catch (const std::exception&) {
        all->left_over = true;
    }
}

void digest_fetcher::follow_left_out(const std::shared_ptr<shared>& all) {
    // What begins here runs at once, as far as its first wait, and is not to begin what this is about to.
    all->left_over = false;
    try {
        begin_left_out(all);
    } catch (...) {
        all->left_over = true;
        throw;
    }
}

void digest_fetcher::begin_left_out(const std::shared_ptr<shared>& all) {
    std::vector<std::shared_ptr<one>> idle;
    {
        const std::scoped_lock lock{all->guard};
        while (!all->stopped && !all->left_out.empty()) {
            const auto first = all->left_out.begin();
            const auto slot = all->context.table.enrol(first->first);
            if (!slot) {
                break;
            }
            all->siblings.emplace(first->first,
                                  std::make_shared<one>(first->second, *slot, all->context));
            all->left_out.erase(first);
        }
        all->count();
        for (const auto& [name, sibling] : all->siblings) {
            if (!all->stopped &&
                (!sibling->digest.runs || (sibling->seen && !sibling->seen->runs))) {
                idle.push_back(sibling);
            }
        }
    }
    if (all->context.catching != nullptr && !idle.empty() && !std::exchange(all->has_begun, true)) {
        const auto now = steady_now();
        (void)all->context.catching->begin(now, now, all->context.budget);
    }
    for (const auto& sibling : idle) {
        start(all, sibling);
    }
}

void digest_fetcher::start(const std::shared_ptr<shared>& all,
                           const std::shared_ptr<one>& sibling) {
    for (const bool seen : {false, true}) {
        if ((seen && !sibling->seen) || sibling->part(seen).runs) {
            continue;
        }
        net::standing_work follows{all->context.io,
                                   [all, sibling, seen] { return run(all, sibling, seen); }};
        sibling->part(seen).runs = true;
        std::move(follows).begin();
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
                sibling->is_at(stays->second->where);
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
    const std::scoped_lock lock{all.guard};
    all.look_whether_caught_up();  // without those that went
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

void digest_fetcher::heard_of(std::string_view node) {
    if (node.empty() || shared_->away.load(std::memory_order_relaxed) == 0) {
        return;
    }
    std::vector<std::weak_ptr<one>> awaited;
    try {
        const std::scoped_lock lock{shared_->guard};
        const bool is_somebodys = std::any_of(
            shared_->siblings.begin(), shared_->siblings.end(), [node](const auto& each) {
                return each.second->shown.digest.node == node;
            });
        for (const auto& [name, sibling] : shared_->siblings) {
            const auto& known_as = sibling->shown.digest.node;
            const bool is_meant = known_as == node || (known_as.empty() && !is_somebodys);
            if (is_meant && sibling->is_away() && !sibling->of.squid && !sibling->is_being_told) {
                awaited.push_back(sibling);
                sibling->is_being_told = true;
            }
        }
    } catch (const std::bad_alloc&) {
        // Those that are marked are told.
    }
    if (awaited.empty()) {
        return;
    }
    try {
        asio::post(shared_->context.io, [awaited] {
            for (const auto& each : awaited) {
                const auto sibling = each.lock();
                if (sibling && !sibling->gone) {
                    sibling->is_being_told = false;
                    sibling->hear();
                }
            }
        });
    } catch (const std::bad_alloc&) {
        for (const auto& each : awaited) {
            if (const auto sibling = each.lock()) {
                sibling->is_being_told = false;  // the next time
            }
        }
    }
}

void digest_fetcher::came_back(steady_time away_at,
                               steady_time now,
                               std::chrono::milliseconds budget) {
    if (shared_->context.catching == nullptr ||
        !shared_->context.catching->begin(away_at, now, budget)) {
        return;
    }
    {
        const std::scoped_lock lock{shared_->guard};
        shared_->look_whether_caught_up();
    }
    // It has an end of its own, soon, and without it the budget alone is the end of catching up: nobody need be told. What
    // it throws comes out of the loop, which goes on.
    auto looking = find_the_quiet(shared_);
    asio::co_spawn(shared_->context.io, std::move(looking), [](const std::exception_ptr& thrown) {
        if (thrown) {
            std::rethrow_exception(thrown);
        }
    });
}

// News of what changed while this node was away lies in its sockets when it wakes, and is found in the first turns of the
// loop; more is asked for then, and comes at once, but over a link, and from a sibling that has as much to do as this node now. A
// question that stays open for longer has no answer because nothing has changed.
awaitable<void> digest_fetcher::find_the_quiet(std::shared_ptr<shared> all) {
    constexpr std::chrono::milliseconds between_looks{10}, old_is_quiet_after{20},
        new_is_quiet_after{60};
    asio::steady_timer some_turns{all->context.io};
    const auto mine = all->context.catching->begun_at(), woke = steady_now();
    const auto goes_on = [&] {
        return !all->stopped && all->context.catching->begun_at() == mine &&
               all->context.catching->is_on(steady_now());
    };
    while (goes_on()) {
        const auto looked = steady_now();
        some_turns.expires_at(looked + between_looks);
        error_code ignored;
        co_await some_turns.async_wait(
            asio::redirect_error(asio::use_awaitable_t<executor>{}, ignored));
        if (!goes_on()) {
            break;
        }
        const auto since = all->context.catching->since();
        const std::scoped_lock lock{all->guard};
        for (const auto& [name, sibling] : all->siblings) {
            const auto asks = sibling->digest.asks_since;
            if (!asks) {
                continue;
            }
            const bool is_old = *asks < since;
            if (looked - std::max(*asks, woke) >=
                (is_old ? old_is_quiet_after : new_is_quiet_after)) {
                sibling->quiet_at = since;
            }
        }
        all->look_whether_caught_up();
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
