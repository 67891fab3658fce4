#pragma once
// Fetches siblings' digests on one event loop, and hands what is good to all threads.
//
// One coroutine for each digest of a sibling does what its digest_follower says: a GET on a connection of the loop's
// origin pool (peers pass the destination guard), the body bounded and timed, the answer judged,
// the sibling_table told. Only the GET runs on the loop, one at a time, that of a sibling which tells news
// for as long as there is none: what a sibling sent may take seconds to decode and to put in the
// table, so that is a side thread's; a short piece of news is taken where it comes. What it saw lately is told with its digest,
// in one answer, once both are followed by news.

#include "config/options.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/net/side_thread.hpp"
#include "proxy/peer/bounded_get.hpp"
#include "proxy/peer/catching_up.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/members_source.hpp"
#include "proxy/peer/secret.hpp"
#include "proxy/peer/seen_source.hpp"
#include "proxy/peer/sibling_table.hpp"
#include "proxy/peer/signature.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Where a sibling's name leads now. It is no part of who the sibling is: a name that moves takes it along.
struct whereabouts {
    std::vector<std::string> ends;  ///< as endpoint_text has them; none: it is not known
    [[nodiscard]] bool may_be(std::string_view end) const noexcept {
        return ends.empty() || std::find(ends.begin(), ends.end(), end) != ends.end();
    }
    bool operator==(const whereabouts&) const noexcept { return true; }
};

/// A sibling as it is to be followed.
struct followed {
    std::string name;
    std::string host;  ///< lower case, without brackets
    std::uint16_t port = 0;
    bool https = false;  ///< its certificate must be valid for `host`
    bool squid = false;
    bool seen = false;     ///< its seen-filter too
    bool of_site = false;  ///< it is another site's gateway
    bool members = false;  ///< and this is the digest of its siblings, not its own
    std::chrono::milliseconds refresh{10'000};
    std::chrono::milliseconds timeout{
        30'000};  ///< for one whole fetch, beside what it waits for news
    whereabouts where{};

    /// Host and port as a Host field says them: the scheme's own port is left out.
    [[nodiscard]] std::string authority() const;
    bool operator==(const followed&) const = default;
};

/// What all fetches of one loop work with; outlives them.
struct follow_context {
    asio::io_context& io;
    net::deadlines& timer;
    net::origin_pool& pool;
    net::side_thread& aside;  ///< decodes; finish() it before the loop and the table go
    const fleet_secret& secret;
    sibling_table& table;
    seen_elsewhere* seen = nullptr;         ///< null: nobody shares
    catching_up* catching = nullptr;        ///< hears when all siblings have been heard
    std::chrono::milliseconds budget{100};  ///< peering.budget, as it is at the start
    members_source* members =
        nullptr;       ///< hears of the siblings' digests; null: this is no gateway
    std::string node;  ///< this instance's pseudonym: Via, and to know itself
    std::function<std::uint64_t()> random;
    unsigned site_nodes = 1;            ///< digest.site_nodes, of this node's own siblings
    std::chrono::milliseconds news{0};  ///< peering.news: 0 follows nobody by it
    std::chrono::milliseconds itself_again = follow_plan{}.itself_again;
    /// is_itself() of one is another than it was. On the loop.
    std::function<void()> changed = [] {};
};

/// The head of the request for a digest, on a connection to `endpoint`.
[[nodiscard]] std::string digest_request(const followed& of,
                                         std::string_view endpoint,
                                         std::string_view path,
                                         const digest_follower::question& question,
                                         const fleet_secret& secret,
                                         std::string_view node,
                                         wall_time now,
                                         const nonce& fresh);

/// Follows a list of siblings that may change.
///
/// Itself    one that proves to be this very instance has no slot of the table, which the first of
///           those that were left out has in its place. It is asked on, now and then, since its
///           address may become another's.
///
/// Threads   the loop's, but figures(): any.
class digest_fetcher {
public:
    explicit digest_fetcher(follow_context context);
    /// @pre stop() was called and the loop has run out since, or runs no more; the side thread is
    ///      finished
    ~digest_fetcher();
    digest_fetcher(const digest_fetcher&) = delete;
    digest_fetcher& operator=(const digest_fetcher&) = delete;

    /// From now on these. A sibling that stays as it was goes on as before, but that what is asked where
    /// its name leads no more is asked anew; one that went is dismissed from the table. Those beyond
    /// most_slots are left out, by name, until there is room.
    void follow(std::vector<followed> siblings);
    /// Whether it has proved to be this very instance. The loop's thread.
    [[nodiscard]] bool is_itself(const std::string& name) const;

    /// Ends every fetch; the coroutines end at the loop's next turns, one of them when the side
    /// thread is done with what it is at.
    void stop();

    struct figures_of_one {
        std::string name;
        std::optional<unsigned> slot;  ///< none: it is this instance itself
        bool https = false;
        bool of_site = false, members = false;  ///< as followed says
        follow_figures digest, seen;
        std::uint64_t bits = 0, bits_on = 0;
        double estimated_objects = 0, false_positive_rate = 0;
        filter::digest_generation generation;
        std::shared_ptr<const filter::digest_replica> held;
        std::shared_ptr<const filter::squid_digest> held_squid;
    };
    [[nodiscard]] std::vector<figures_of_one> figures() const;
    /// This node was asked for something of peer/resource by a sibling that calls itself so, and may: if it is one
    /// that could not be had, it is asked again soon (digest_follower::heard). One that never said its name is meant by
    /// any name that is nobody's. Any thread; one load while all can be had, else a lock for a moment.
    void heard_of(std::string_view node);
    /// This node was stopped, and was so at `away_at`: what siblings said before is old (catching_up). Any thread; a
    /// lock for a moment.
    void came_back(steady_time away_at, steady_time now, std::chrono::milliseconds budget);
    /// Siblings followed, and those of them that are not this very instance. Any thread; one load.
    [[nodiscard]] std::size_t followed_count() const noexcept;
    [[nodiscard]] std::size_t others() const noexcept;

private:
    struct pursuit;
    struct one;
    struct shared;
    static void start(const std::shared_ptr<shared>& all, const std::shared_ptr<one>& sibling);
    static void follow_left_out(const std::shared_ptr<shared>& all);
    static void begin_left_out(const std::shared_ptr<shared>& all);
    static void tell_changed(const std::shared_ptr<shared>& all);
    static bool settle_slot(const std::shared_ptr<shared>& all,
                            const std::shared_ptr<one>& sibling);
    static awaitable<void> run(std::shared_ptr<shared> all,
                               std::shared_ptr<one> sibling,
                               bool seen);
    static awaitable<void> take_turn(std::shared_ptr<shared> all,
                                     std::shared_ptr<one> sibling,
                                     bool seen);
    static awaitable<got_response> fetch(shared& all, one& sibling, bool seen);
    static awaitable<void> find_the_quiet(std::shared_ptr<shared> all);
    static awaitable<void> take_aside(std::shared_ptr<shared> all,
                                      std::shared_ptr<one> sibling,
                                      bool seen,
                                      std::optional<got_response> got);

    std::shared_ptr<shared> shared_;
};

}  // namespace reprise::proxy::peer
