#pragma once
// What digest_fetcher is made of: a sibling, its two digests, and what all siblings share.
//
//     digest_fetch.cpp        the coroutines that ask: the loop's
//     digest_fetch_told.cpp   what is made of answers: the side thread's, or the loop's while that does
//                             nothing

#include "proxy/base/seldom.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/seen_along.hpp"
#include "proxy/peer/sibling_exchange.hpp"
#include "proxy/peer/slot_set.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace reprise::proxy::peer {

inline constexpr unsigned no_slot = most_slots;

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
    /// The sibling has been heard: its coroutine tells the follower, which may be the side thread's now.
    void hear() {
        is_heard = true;
        wake.notify();
    }

    digest_follower follower;
    bool runs = false;                      // the loop's: its coroutine was begun, and is upheld
    bool is_heard = false;                  // the loop's
    std::optional<steady_time> asks_since;  // the loop's: a question is under way
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

    /// What it holds is known as it was `since` then, or it can't be. Where it is
    /// not followed by news nothing is to be expected before its time. Under shared::guard.
    [[nodiscard]] bool is_known_since(steady_time since) const {
        const auto& is = shown.digest;
        return is.answered_since >= since || quiet_at >= since ||
               is.trouble != follow_trouble::none || is.state == follow_state::itself ||
               (is.state != follow_state::never && !is.by_news);
    }
    /// As it was shown last: it could not be had. Under shared::guard.
    [[nodiscard]] bool is_away() const { return was_away(shown.digest) || was_away(shown.seen); }
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
    /// What is asked where it is no more is asked anew.
    void is_at(const whereabouts& where) {
        of.where = where;
        digest.exchange.leave_unless_at(where);
        if (seen) {
            seen->exchange.leave_unless_at(where);
        }
    }
    void hear() {
        digest.hear();
        if (seen) {
            seen->hear();
        }
    }

    followed of;                             // `where` is the loop's, all else as it was
    std::atomic<bool> is_being_told{false};  // that it was heard
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
        bool left_out = false;       // of what other sites are told
        bool said_left_out = false;  // in the log, since it was none of those last
    } told;                          // to the log, last
    // One that falls from one state into another and back, over and over, is not told of each time. By what
    // was lost; none: it is followed again.
    std::array<log::seldom, follow_troubles> may_tell;
    log::seldom may_tell_left_out;
    bool gone = false;
    figures_of_one shown;    // guarded by shared::guard
    steady_time quiet_at{};  // guarded likewise: it had nothing to tell of what changed until then
};

struct digest_fetcher::shared : std::enable_shared_from_this<digest_fetcher::shared> {
    explicit shared(follow_context from) : context{std::move(from)} {}

    [[nodiscard]] bool is_over(const one& sibling) const {
        return stopped || sibling.gone || context.timer.stopped();
    }
    void give_slot_back(one& sibling);
    [[nodiscard]] std::optional<got_response> take_along(one& sibling,
                                                         std::optional<got_response>& answer);
    [[nodiscard]] bool takes_here(one& sibling, bool seen, std::optional<got_response>& answer);
    void take(one& sibling, bool seen, std::optional<got_response> answer);
    void tell_benefit(const one& sibling, bool was_there) const;
    void tell_table(one& sibling);
    void tell_members(one& sibling, unsigned slot, const digest_follower::change& change);
    void tell_seen(one& sibling);
    void tell_log(one& sibling);
    void tell_in_slot(one& sibling);
    void remove(const slot_set& slots) noexcept;
    void remove_left_behind();
    void show(one& sibling, bool seen) noexcept;
    void show_all(one& sibling, bool seen);
    void count();                   // under guard
    void look_whether_caught_up();  // under guard

    follow_context context;
    std::map<std::string, std::shared_ptr<one>> siblings;
    std::map<std::string, followed> left_out;  // the loop's: there was no slot for them
    bool has_begun = false;                    // the loop's: somebody is followed, or was
    bool left_over = false;  // the loop's: there was no memory to begin with one, or for a turn
    slot_set given_back;     // the loop's: to be removed, and free from then on
    slot_set left_behind;    // side thread's: given back, and something of it may be there still
    std::atomic<bool> stopped{false};
    std::atomic<std::size_t> all{0}, others{0}, away{0};
    mutable std::mutex guard;  // guards `siblings` and what each shows
};

}  // namespace reprise::proxy::peer
