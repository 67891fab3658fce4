#pragma once
// Who is asked besides siblings, one after another: the URL's home (peering.homes), or parents by
// rendezvous hashing, and then the origin, but with peering.never_direct. And what becomes known of them.
//
// A parent that was found to be down is left alone for a while, and then asked by one request, which
// finds out for all, within timeouts.origin_connect; with peering.never_direct the first is asked all the
// same. A home that was down is found out about so too. Down is one that can't be reached or says
// nothing; one that does not know us (a 407 of its own, and no origin's that it passes on); and one that
// leads back here: it is one of our own listeners, or our own 508 came back through it, or it answered 508
// itself, to a request that nobody had passed on before us (a client could write a Via that makes any proxy
// find a loop).
//
// A parent that lets a request wait in vain for a head may wait itself, for an origin that hangs. That is not held
// against it if it has answered another request meanwhile; and else, a few times in a row, if it says
// something to OPTIONS *: its own way out may be shut.
//
// Threads   its fetch's.

#include "proxy/fetch/order.hpp"
#include "proxy/fetch/source.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/peer_book.hpp"
#include "proxy/thread/worker.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise::proxy::fetch {

class way_out {
public:
    /// All outlive it. `here`: who is in hand, as others are to know it.
    way_out(thread::worker& w, const fetch_order& order, source& here) noexcept
        : w_{w},
          order_{order},
          here_{here} {}

    /// By what is known of peers now, from the beginning. True: siblings may be asked.
    [[nodiscard]] bool choose();
    /// This machine itself knows nothing against its origin. Else no peer is asked: the dial refuses it, and says why.
    [[nodiscard]] bool may_leave_to_peers() const;
    /// The URL's key, as all of the fleet have it.
    [[nodiscard]] const filter::key_hash& peer_key();
    /// Null: no peer is asked.
    [[nodiscard]] const std::shared_ptr<const peer::peer_book>& book() const noexcept {
        return book_;
    }

    /// The parent in hand, or the home; null: it is the origin's turn.
    [[nodiscard]] const peer::known_peer* parent() const noexcept;
    /// The sibling in hand, as the URL's home; null: it is none.
    [[nodiscard]] const peer::known_peer* home() const noexcept {
        return home_ ? parent() : nullptr;
    }
    /// By which it is known to all. @pre home()
    [[nodiscard]] std::string_view name_of_home() const noexcept { return home_->name; }
    /// The parent or home in hand is asked itself: one address of the settings'.
    [[nodiscard]] bool asks_a_peer() const noexcept {
        return parent() != nullptr && !leads_through();
    }
    /// The parent in hand makes a connection to the origin, and the request is not for its eyes.
    [[nodiscard]] bool leads_through() const noexcept {
        return !home_ && parent() != nullptr && order_.secure;
    }
    /// As what it is asked.
    [[nodiscard]] next_hop hop() const noexcept;
    /// What names it in the request, or us to it (wire_of).
    [[nodiscard]] std::string_view named() const noexcept;
    /// Where it is connected to. A view into this.
    [[nodiscard]] net::origin_address address() const;

    /// Goes around a parent that another request tries out just now.
    void settle();
    /// What stands against asking anybody at all: none; a parent is in hand, or the origin may be asked.
    [[nodiscard]] std::optional<failure> lacks_any() const;
    /// A connection that was made for the parent in hand leads to a listener of our own.
    [[nodiscard]] bool leads_back(net::origin_lease& lease) const;
    struct parent_trouble {
        failure why;
        /// The head is the parent's for certain. Else an origin's that answers so, passed on without a Via, looks the same.
        bool reached_no_origin = false;
    };
    /// What its head says of the parent, and not of what was asked.
    [[nodiscard]] std::optional<parent_trouble> trouble_with_parent() const;

    /// Whoever is in hand has failed at what began then.
    void blame(steady_time begun, const failure& why);
    /// The head in hand is the parent's, or the home's.
    void note_answered();
    /// The parent in hand has let a request wait that was sent then, but has answered others since.
    [[nodiscard]] bool has_answered_since(steady_time sent) const;
    /// It has not (parent_choice::judge_silence).
    [[nodiscard]] peer::parent_choice::silence judge_silence(steady_time sent) const;
    /// What the parent in hand was to find out of itself is known, or is left to another request.
    void end_trial() noexcept { here_.on_trial.end(); }

    /// To the next. False: it was the last that may be asked, or has done its part.
    [[nodiscard]] bool try_next(steady_time begun, const failure& why, bool blames = true);
    /// The home did not do its part: from now on the others are asked.
    void pass_home_by();
    /// The same, and no fault of the home.
    void leave_home();
    /// What is told where the parent in hand was the last that could be asked.
    [[nodiscard]] failure told_of_parent(failure why) const;

private:
    [[nodiscard]] bool find_home();
    void find_parents();
    [[nodiscard]] bool never_direct() const;
    /// No connection through the parent was made: it may have said so itself.
    void note_refused(failure_code why);

    thread::worker& w_;
    const fetch_order& order_;
    source& here_;
    std::shared_ptr<const peer::peer_book> book_;
    std::optional<filter::key_hash> peer_key_;
    std::optional<peer::homes::home> home_;  // of the book; none: it is not asked, or no more
    std::vector<std::size_t> parents_;       // of the book, in the order to be tried
    std::size_t parent_at_ = 0;              // the one in hand; behind the last: the origin itself
    std::optional<std::size_t> settled_on_;  // parent_at_, once it is known who is asked there
};

}  // namespace reprise::proxy::fetch
