#pragma once
// Who is asked for a response: siblings that probably have it, a parent, the origin.
//
//     siblings ──none has it──> parents, by rendezvous hashing ──all down──> origin, but with
//         │                                                                  peering.never_direct
//         └──peering.budget is over──> parent or origin too; the first good answer wins
//
// What belongs to a sibling (peering.homes) is asked of that one in the place of all of them; it has
// peering.budget to say that it is at work, and then the origin's time. Without it the way is the
// other sources', from the parents on.
//
// What another site asks for (asked_by::site) is asked of this node's siblings, and then of nobody.
//
// Threads   its fetch's.

#include "proxy/fetch/expectation.hpp"
#include "proxy/fetch/upstream.hpp"
#include "proxy/fetch/way_out.hpp"
#include "proxy/peer/benefit.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace reprise::proxy::fetch {

class sources {
public:
    /// All outlive it. What it finds is `at.from`.
    sources(thread::worker& w, fetch_order& order, upstream& at, expectation& expected)
        : w_{w},
          order_{order},
          at_{at},
          expected_{expected},
          here_{at.from},
          into_{*order.into},
          way_{w, order, at.from} {}

    /// A final response's head, from whoever has it. `validate`: a request of our own validation.
    [[nodiscard]] awaitable<trouble> find(bool validate);
    /// The sibling in hand broke off: the same from elsewhere, and from no sibling again.
    [[nodiscard]] awaitable<trouble> find_another();

    /// The parent that has answered, or the home; null: it was neither.
    [[nodiscard]] const peer::known_peer* parent() const noexcept { return way_.parent(); }
    /// The sibling that has answered as the URL's home; null: it was none.
    [[nodiscard]] const peer::known_peer* home() const noexcept { return way_.home(); }
    /// Whether peers might have been asked.
    [[nodiscard]] bool knows_peers() const noexcept { return way_.book() != nullptr; }
    /// What the sibling in hand was worth is known.
    void end_asking(peer::asking_end how);
    /// Nobody waits for siblings any more, and what was in hand has failed if nobody said else.
    void stop_asking();

private:
    [[nodiscard]] bool is_behind();
    [[nodiscard]] awaitable<void> wait_until(steady_time until, std::function<bool()> met);
    [[nodiscard]] awaitable<void> catch_up();
    void ask_siblings();
    [[nodiscard]] awaitable<bool> wait_for_siblings(steady_time until);
    void adopt_sibling();
    [[nodiscard]] std::optional<head_end> judge_home();
    [[nodiscard]] bool home_has_fetched() const;
    [[nodiscard]] bool home_is_outdated() const;
    void note_whose_word();
    [[nodiscard]] awaitable<head_end> ask_origins();
    [[nodiscard]] bool take_idle(bool fresh_only);
    [[nodiscard]] awaitable<attempt<net::origin_lease>> acquire(bool fresh_only, steady_time until);
    [[nodiscard]] awaitable<trouble> connect(bool fresh_only);
    [[nodiscard]] awaitable<trouble> connect_and_send(bool fresh_only);
    [[nodiscard]] awaitable<bool> waits_for_origin(failure_code why);
    void note_certificate_request(const head_end& end) const;

    thread::worker& w_;
    fetch_order& order_;
    upstream& at_;
    expectation& expected_;
    source& here_;  // in at_
    cache::fetch& into_;
    way_out way_;
    bool validate_ = false;
};

}  // namespace reprise::proxy::fetch
