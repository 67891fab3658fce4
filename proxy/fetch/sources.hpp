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
// A parent that was found to be down is left alone for a while, and then asked by one request, which
// finds out for all; with peering.never_direct the first is asked all the same. Down is one that can't
// be reached or says nothing (to OPTIONS * neither, where a request waited in vain for a head); one that
// does not know us (407); and one that leads back here: it is one of our own listeners, or our own 508 came back
// through it, or it answered 508 itself, to a request that nobody had passed on before us (a client
// could write a Via that makes any proxy find a loop).
//
// Threads   its fetch's.

#include "proxy/fetch/expectation.hpp"
#include "proxy/fetch/upstream.hpp"
#include "proxy/peer/benefit.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

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
          into_{*order.into} {}

    /// A final response's head, from whoever has it. `validate`: a request of our own validation.
    [[nodiscard]] awaitable<trouble> find(bool validate);
    /// The sibling in hand broke off: the same from elsewhere, and from no sibling again.
    [[nodiscard]] awaitable<trouble> find_another();

    /// The parent that has answered, or the home; null: it was neither.
    [[nodiscard]] const peer::known_peer* parent() const noexcept;
    /// The sibling that has answered as the URL's home; null: it was none.
    [[nodiscard]] const peer::known_peer* home() const noexcept {
        return home_ ? parent() : nullptr;
    }
    /// Whether peers might have been asked.
    [[nodiscard]] bool knows_peers() const noexcept { return book_ != nullptr; }
    /// What the sibling in hand was worth is known.
    void end_asking(peer::asking_end how);
    /// Nobody waits for siblings any more, and what was in hand has failed if nobody said else.
    void stop_asking();

private:
    [[nodiscard]] bool may_leave_to_peers() const;
    void find_peers();
    [[nodiscard]] bool is_behind();
    [[nodiscard]] awaitable<void> wait_until(steady_time until, std::function<bool()> met);
    [[nodiscard]] awaitable<void> catch_up();
    void settle_on_parent();
    [[nodiscard]] bool find_home();
    [[nodiscard]] bool home_declines();
    [[nodiscard]] std::optional<failure> trouble_behind_home() const;
    [[nodiscard]] bool home_has_fetched() const;
    [[nodiscard]] bool home_is_outdated() const;
    void pass_home_by();
    void leave_home();
    [[nodiscard]] const filter::key_hash& peer_key();
    void ask_siblings();
    [[nodiscard]] awaitable<bool> wait_for_siblings(steady_time until);
    void adopt_sibling();
    void note_whose_word();
    [[nodiscard]] awaitable<head_end> ask_origins();
    [[nodiscard]] net::origin_address address() const;
    [[nodiscard]] bool take_idle(bool fresh_only);
    [[nodiscard]] awaitable<attempt<net::origin_lease>> acquire(bool fresh_only, steady_time until);
    [[nodiscard]] awaitable<trouble> connect(bool fresh_only);
    [[nodiscard]] awaitable<trouble> connect_and_send(bool fresh_only);
    void blame_parent(steady_time begun, const failure& why);
    [[nodiscard]] bool leads_back(net::origin_lease& lease) const;
    [[nodiscard]] std::optional<failure> trouble_with_parent() const;
    void note_parent_answered();
    void note_certificate_request(const head_end& end) const;
    [[nodiscard]] bool never_direct() const;
    [[nodiscard]] bool leads_through() const;
    [[nodiscard]] trouble lacks_way_out() const;
    [[nodiscard]] failure told_of_parent(failure why) const;
    [[nodiscard]] bool try_next_parent(steady_time begun, const failure& why, bool blames = true);
    [[nodiscard]] awaitable<bool> parent_lives(failure_code why);

    thread::worker& w_;
    fetch_order& order_;
    upstream& at_;
    expectation& expected_;
    source& here_;  // in at_
    cache::fetch& into_;
    bool validate_ = false;
    std::shared_ptr<const peer::peer_book> book_;  // null: no peer is asked
    std::optional<filter::key_hash> peer_key_;
    std::optional<peer::homes::home> home_;  // of the book; none: it is not asked, or no more
    std::vector<std::size_t> parents_;       // of the book, in the order to be tried
    std::size_t parent_at_ = 0;              // the one in hand; behind the last: the origin itself
    std::optional<std::size_t> settled_on_;  // parent_at_, once it is known who is asked there
};

}  // namespace reprise::proxy::fetch
