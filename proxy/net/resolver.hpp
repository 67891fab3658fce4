#pragma once
// Host names to addresses, without blocking and without asking twice.
// Answers are cached for as long as their TTL says, "no such name" for a set time; questions for
// one name that come while it is being asked wait for the one answer. The hosts file is kept in
// memory, since reading it for each name would block the loop.

#include "config/options.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/deadlines.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::net {

/// At least one address, at most resolver::most_addresses; both families mixed in the server's
/// order (dial interleaves them).
struct resolution {
    std::vector<asio::ip::address> addresses;
    steady_time valid_until;
    /// The name may have addresses of this family too: its answer is late or lost, or its question
    /// failed. None: these are all that it has.
    std::optional<ip_family> unheard{};
};
using resolved = std::shared_ptr<const resolution>;

/// One for each thread; nothing in it is shared.
///
/// Memory    at most most_names names and their addresses (kept_answers) and most_questions questions
///           under way, which may outlive whoever asked; most_questions_of_one of them by one client.
/// Answers   numeric hosts and "localhost" (RFC 6761 6.3) itself, then the hosts file, the cache,
///           and the name servers. A and AAAA are asked side by side; when one of them has
///           addresses the other is waited for at most some 50-150 ms more (RFC 8305 3), which is
///           right for whoever connects: one address is enough. For whoever is to know all of them
///           there is resolve_whole(). Of one family alone an answer is kept for half a minute, or
///           dns.min_ttl.
/// Errors    dns_not_found (no such name, no address, or no name at all), dns_error (the servers
///           failed or refused, too many questions, shutting down), dns_timeout, client_share_used.
class resolver {
public:
    /// Both families together; enough for 256 siblings under one name, each in both.
    static constexpr std::size_t most_addresses = 512;
    static constexpr std::size_t most_names = 10'000;
    static constexpr std::size_t most_questions = 1'000;
    static constexpr std::size_t most_questions_of_one = most_questions / 4;

    /// @throws std::runtime_error when the servers can't be set or c-ares can't start
    resolver(deadlines& timer, const config::dns_options& options);
    ~resolver();
    resolver(const resolver&) = delete;
    resolver& operator=(const resolver&) = delete;

    /// Waits until `until` or dns.timeout from now, whichever is earlier. A question that is as old as
    /// that without an answer is asked anew, whatever becomes of it.
    /// @param asker  whose share of the questions a new one is taken from
    [[nodiscard]] awaitable<attempt<resolved>> resolve(std::string host,
                                                       steady_time until,
                                                       share_holder asker = {});

    /// As resolve(), for whom half of an answer is not enough, since it says who somebody is: both families
    /// are waited for, and what is kept of one alone is asked for anew. Where that brings less, what is kept
    /// stays.
    /// Errors: as above; dns_not_found only where both families were heard, since a server that knows of no
    /// such name in one of them may know of it in the other (RFC 4074 4.2).
    [[nodiscard]] awaitable<attempt<resolved>> resolve_whole(std::string host, steady_time until);

    /// What name servers have said when all that they are being asked of this host was heard, or `until` has come,
    /// or that question's time is over. None: nothing. Asks nobody: for whom an answer that a family was missing from
    /// (resolution::unheard, or dns_not_found) has led nowhere.
    [[nodiscard]] awaitable<std::optional<attempt<resolved>>> resolve_rest(std::string host,
                                                                           steady_time until);

    /// What resolve() would answer without waiting: addresses or a known failure; none when a
    /// server must be asked. Spares the coroutine.
    [[nodiscard]] std::optional<attempt<resolved>> known(std::string_view host);

    /// For how long an answer may be gone by: dns.max_ttl.
    [[nodiscard]] std::chrono::seconds longest_kept() const noexcept;

    /// The addresses that this machine gives a host by itself: numeric, the hosts file's,
    /// localhost's; an empty list, where it is no host name. None: name servers are asked.
    [[nodiscard]] std::optional<std::vector<asio::ip::address>> local(std::string_view host);

    /// Ends every question with dns_error, and every later one at once.
    void stop();

    [[nodiscard]] deadlines& timer() const noexcept;

    /// How many questions went to a name server, for tests and figures. Any thread.
    [[nodiscard]] std::uint64_t asked() const noexcept;
    /// How many names were answered by the hosts file or the cache, failures known of included. Any
    /// thread.
    [[nodiscard]] std::uint64_t answered_from_cache() const noexcept;
    /// How many questions brought no address. Any thread.
    [[nodiscard]] std::uint64_t failures() const noexcept;

private:
    struct state;
    std::shared_ptr<state> state_;
};

}  // namespace reprise::proxy::net
