#pragma once
// This instance as a peer: what it tells siblings, what it knows of them, and the threads and loops
// that keep both true. The parts are in peer/; here they are put together.
//
//     store ──events──> digest_source ──keeper's thread──> what /.well-known/reprise/digest serves
//     sights ─────────> seen filter ────keeper's thread──> what /.well-known/reprise/seen serves
//     siblings' digests ──> members_source ──keeper's───> what /.well-known/reprise/members serves
//     settings, DNS ──home loop──> siblings' answers ──side thread──> sibling_table, seen_elsewhere
//                              └─> peer_book ──> every worker
//
// Threads   the home loop is one worker's; the keeper's and the side thread are this object's own:
//           no loop makes, decodes or indexes a digest. What requests use is lock-free or behind a
//           short lock, but for the book, of which each worker has its own reference.

#include "config/options.hpp"
#include "filter/admission.hpp"
#include "proxy/cache/admission/resizable_admission.hpp"
#include "proxy/cache/contents_listener.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/net/side_thread.hpp"
#include "proxy/peer/any_digest.hpp"
#include "proxy/peer/catching_up.hpp"
#include "proxy/peer/digest_source.hpp"
#include "proxy/peer/discovery.hpp"
#include "proxy/peer/fleet_exchange.hpp"
#include "proxy/peer/keeper.hpp"
#include "proxy/peer/members_source.hpp"
#include "proxy/peer/news_waits.hpp"
#include "proxy/peer/peer_book.hpp"
#include "proxy/peer/peer_report.hpp"
#include "proxy/peer/refusals_told.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/secret.hpp"
#include "proxy/peer/seen_source.hpp"
#include "proxy/peer/sibling_table.hpp"
#include "proxy/peer/signature.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

class peering final : public cache::contents_listener {
public:
    using book_ptr = std::shared_ptr<const peer::peer_book>;

    /// Whether these settings need one: there are peers.
    [[nodiscard]] static bool is_wanted(const config::options& options) noexcept {
        return !options.peers.empty();
    }

    /// Reads digest.secret_file. `node`: this instance's name in Via.
    /// @throws std::runtime_error naming the setting and what is wrong with the file
    peering(const config::options& options, std::string node, wall_time now);
    ~peering() override;  ///< @pre stop() was called, or begin() was not

    // What the store holds.
    void held(cache::holder by,
              const filter::key_hash& key,
              std::string_view url,
              wall_time until) noexcept override;
    void gone(cache::holder by, const filter::key_hash& key) noexcept override;
    void outdated(const filter::key_hash& key) noexcept override;
    void loaded() noexcept override { source_.loaded(); }

    /// Begins to follow the siblings, on the loop of these, and to publish. `publish` hears each
    /// new book, on that loop; the first, with the peers whose addresses are in the settings, from
    /// within this call.
    /// Reads peers[].credentials_file.
    /// @throws std::runtime_error naming the setting and what is wrong with the file
    /// @pre the home loop does not run yet
    void begin(asio::io_context& home,
               net::deadlines& timer,
               net::resolver& names,
               net::origin_pool& pool,
               const config::options& options,
               std::function<void(book_ptr)> publish);
    /// Other peers, and what its parents are told of who this is. Home loop.
    /// @throws std::bad_alloc: some of it may be in force; the same again makes it all
    void adopt(const config::options& options, parent_credentials credentials);
    /// Ends what runs on the home loop. Home loop.
    void leave();
    /// Ends the threads. @pre the home loop still exists, and runs no more
    void stop();

    /// True: a listed Squid asks for a digest that is not there yet, and should be kept waiting:
    /// after a refusal it asks again only in five minutes, then ten. Just after a start no peer's
    /// address may be known: for some seconds any client that access.clients allows (not `refused`)
    /// counts as one.
    [[nodiscard]] bool should_wait(const http::request_head& request,
                                   const asio::ip::address& client,
                                   bool refused,
                                   const peer::peer_book& book,
                                   steady_time now) const;
    /// Who asks for one of peer/resource's resources. Once for each request: a signature is good once.
    /// `reached_at`: our end of the connection. `secure`: it has TLS.
    [[nodiscard]] peer::asker identify(const http::request_head& request,
                                       const asio::ip::address& client,
                                       const tcp::endpoint& reached_at,
                                       bool secure,
                                       const peer::peer_book& book,
                                       wall_time now);
    /// The answer to such a request, counted. One that is told to wait comes again when it was woken
    /// (wait_for_news), or with `waited` when it waits no longer.
    [[nodiscard]] peer::resource_answer answer(const http::request_head& request,
                                               const peer::asker& who,
                                               bool waited,
                                               bool close,
                                               wall_time now);
    /// @pre `told` is what answer() gave, and says to wait
    [[nodiscard]] peer::news_waits::wait wait_for_news(const http::request_head& request,
                                                       const peer::asker& who,
                                                       const peer::resource_answer& told,
                                                       net::wakeup::signal signal);
    /// What is missed now waits for siblings' word, which is under way (catching_up): this node has just begun,
    /// or was stopped. Any thread; some loads.
    [[nodiscard]] bool is_catching_up(steady_time now, std::chrono::milliseconds budget) {
        const auto away_at = home_timer_ != nullptr ? home_timer_->away_at(now) : steady_time{};
        if (away_at > catching_up_.begun_at()) {
            fetcher_->came_back(away_at, now, budget);
        }
        return catching_up_.is_on(now);
    }
    [[nodiscard]] peer::catching_up& catching_up() noexcept { return catching_up_; }
    /// Ends the waits for news there are, and those to come: the program drains. Any thread.
    void end_waits() { waits_.end_all(true); }

    [[nodiscard]] peer::sibling_table& siblings() noexcept { return table_; }
    [[nodiscard]] const peer::seen_elsewhere& seen_elsewhere() const noexcept {
        return seen_elsewhere_;
    }
    /// The hash of a URL that digests and seen filters are asked for.
    [[nodiscard]] filter::key_hash key_of(std::string_view url) const noexcept {
        return peer::key_of(peer::name_of(url, secret_), secret_);
    }

    /// It speaks and asks for its siblings, where another site asks (peering.gateway_for).
    [[nodiscard]] bool is_gateway() const noexcept { return members_ != nullptr; }

    /// Siblings are told which URLs were asked for here (admission.share, and there is a secret).
    [[nodiscard]] bool shares() const noexcept { return seen_ != nullptr; }
    /// `url` was asked for. @pre shares()
    void note_seen(std::string_view url, wall_time now) noexcept;
    /// Once a second: remembers what was asked for as long as `own` (the admission filter's
    /// settings) says; says who lives, by which URLs have their homes; logs once which sibling answers in our
    /// name. Any thread, one at a time.
    /// @throws std::bad_alloc: the next call does what this did not
    void housekeep(const filter::admission_settings& own, wall_time now);

    /// What the fleet is told of this node from now on (FLEET.md); what digests know is filled in here.
    /// Once a second. Any thread, one at a time.
    void note_figures(node_figures figures, steady_time now);

    /// Whether a response of this key's text is to be on this node's disk: all but those that have
    /// a home elsewhere (peering.homes). Any thread; a lock for a moment.
    [[nodiscard]] bool belongs_here(std::string_view url) const;
    /// The sibling that the URL belongs to, by its pseudonym; empty: this instance has it. Any thread.
    [[nodiscard]] std::string home_of(std::string_view url) const;

    [[nodiscard]] peer::peer_report report(const peer::peer_book& book) const;
    /// The names of the siblings among these whose digests list the URL. Any thread; a lock and an
    /// allocation.
    [[nodiscard]] std::vector<std::string> siblings_with(std::string_view url,
                                                         const slot_set& among);
    /// The digest last published (an empty name), or a sibling's as it is held. Any thread.
    [[nodiscard]] std::optional<peer::any_digest> digest_of(std::string_view name) const;
    /// Why none is held of this sibling, to be appended: ": refused (status 403), ..."; empty: nobody
    /// of that name is followed. Any thread.
    [[nodiscard]] std::string why_no_digest_of(std::string_view name, steady_time now) const;
    /// Our own as Squids get it; none where they do not, or it is not there yet.
    [[nodiscard]] std::optional<peer::any_digest> squid_digest() const;
    [[nodiscard]] const peer::fleet_secret& secret() const noexcept { return secret_; }

private:
    [[nodiscard]] std::shared_ptr<const filter::digest> own_digest() const;
    void count_answer(const resource_answer& answer) noexcept;
    [[nodiscard]] keeper::plan look() noexcept;
    [[nodiscard]] peer::source_signals signals_for(peer::waited_for what);
    /// Null: there is none, or it is told by no news.
    [[nodiscard]] news_shelf* news_of(peer::waited_for what);
    void warn_of_namesakes();
    void note_who_lives();
    void take_who_lives(const std::vector<live_node>& live);
    void publish_book();

    const peer::fleet_secret secret_;
    const std::string node_;
    const bool serves_squid_;
    const steady_time started_ = steady_now();
    const std::chrono::seconds publish_after_;
    const std::chrono::milliseconds news_;
    const unsigned site_nodes_;
    // What the sources signal to, and so before them; stop() ends the keeper.
    peer::keeper keeper_;
    peer::news_waits waits_;
    news_waits::wanted told_;  // the keeper's: what has come in this look
    peer::digest_source source_;
    std::unique_ptr<cache::resizable_admission> seen_;  // null: not shared
    std::unique_ptr<peer::seen_source> seen_source_;
    std::unique_ptr<members_source> members_;           // null: it is no gateway
    std::unique_ptr<peer::signature_checker> checker_;  // null: nothing is signed
    peer::sibling_table table_;
    peer::catching_up catching_up_;
    peer::seen_elsewhere seen_elsewhere_;
    net::side_thread aside_{"siblings"};  // decodes siblings' digests and indexes them

    fleet_exchange fleet_;

    // The home loop's.
    std::unique_ptr<peer::digest_fetcher> fetcher_;
    std::unique_ptr<peer::sibling_discovery> discovery_;
    // The home loop's: what the book is made of.
    std::vector<config::peer_options> peers_;
    const std::vector<config::network> guests_;
    parent_credentials credentials_;
    std::vector<followed> siblings_;
    std::vector<peer_address> addresses_;
    std::function<void(book_ptr)> publish_;
    book_ptr book_;
    std::optional<std::vector<live_node>> live_;  // none: URLs have no homes
    asio::io_context* home_loop_ = nullptr;
    const net::deadlines* home_timer_ = nullptr;
    bool left_ = false;

    std::array<std::atomic<std::uint64_t>, peer::answered_count> answers_{}, answer_bytes_{};

    peer::refusals_told refusals_told_;
    std::vector<std::string> namesakes_;  // housekeep's: warned of already
    who_is_who who_is_who_;               // housekeep's
    std::vector<live_node> lived_;        // housekeep's: as it said last
    std::atomic<bool> have_homes_{false}, tell_who_lives_{false};
    mutable std::mutex homes_guard_;      // of what follows, for a moment
    std::shared_ptr<const homes> homes_;  // the book's; for whoever has no book
};

}  // namespace reprise::proxy::peer
