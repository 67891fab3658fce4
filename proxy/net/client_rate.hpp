#pragma once
// How fast one client may receive (limits.client_rate): a token bucket for each client, which all
// its connections share, on whatever thread they are.
//
// A bucket is one word, the time until which it has been paid for: what goes out moves it on by
// what that costs at the rate, and it lies no further back than a full bucket would. Whoever finds
// too little in it pays for one piece ahead and sends it when its time has come, so that a client's
// connections take their turns in the order in which they asked, and a timer that is late costs
// nothing while the bucket is not full.

#include "proxy/base/clock.hpp"
#include "proxy/base/counters.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"

#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace reprise::proxy::net {

/// Whose a bucket is: the user's, else the address's.
class client_name {
public:
    /// @param at    an IPv6 client is its /64
    /// @param user  empty: nobody was asked; outlives this
    client_name(const address_bytes& at, std::string_view user) noexcept;

    [[nodiscard]] const address_bytes& at() const noexcept { return at_; }
    [[nodiscard]] std::string_view user() const noexcept { return user_; }
    bool operator==(const client_name&) const = default;

private:
    address_bytes at_{};  // zeros where there is a user
    std::string_view user_;
};

/// One client's. Threads: any number. Lifetime: that of its client_rates at most.
class client_bucket {
public:
    /// Bytes per second; 0: no limit. What was paid for at a rate that has changed since is forgotten:
    /// its price is no longer known.
    struct rate {
        std::atomic<std::uint64_t> bytes;
        std::atomic<std::uint64_t> changes{0};
    };

    /// Full. @param now_set  outlives it
    client_bucket(const rate& now_set, const client_name& whose);
    client_bucket(const client_bucket&) = delete;
    client_bucket& operator=(const client_bucket&) = delete;

    [[nodiscard]] client_name whose() const noexcept { return {at_, user_}; }
    [[nodiscard]] bool is_limited() const noexcept { return rate_.bytes.load(relaxed) != 0; }
    [[nodiscard]] std::uint64_t changes() const noexcept { return rate_.changes.load(relaxed); }
    /// Whether who may send from `due` on would have its turn sooner now: others have left.
    [[nodiscard]] bool is_free_before(steady_time due) const noexcept;

    /// Pays for as many of `most` bytes as it has now; none: it has not enough for all, nor for a
    /// piece.
    [[nodiscard]] std::uint64_t take(std::uint64_t most, steady_time now) noexcept;
    struct reservation {
        std::uint64_t bytes = 0;
        steady_time due{};
    };
    /// Pays for one piece of `most` bytes, which may be sent from `due` on.
    [[nodiscard]] reservation reserve(std::uint64_t most, steady_time now) noexcept;
    /// What was paid for and was not sent.
    void give_back(std::uint64_t bytes) noexcept;
    /// Nothing would be lost by forgetting it.
    [[nodiscard]] bool is_full(steady_time now) const noexcept;

private:
    [[nodiscard]] std::int64_t beginning(std::int64_t paid,
                                         steady_time now,
                                         std::uint64_t at) const noexcept;
    /// The rate now; what was paid at another is forgotten.
    [[nodiscard]] std::uint64_t settle(steady_time now) noexcept;

    const rate& rate_;
    const address_bytes at_;
    const std::string user_;
    std::atomic<std::int64_t> paid_until_;  // nanoseconds of the steady clock
    std::atomic<std::uint64_t> settled_;    // rate::changes at which that was paid
};
using client_bucket_ptr = std::shared_ptr<client_bucket>;

/// How much a bucket holds when it is full, and how much of it is paid for ahead. @pre rate > 0
[[nodiscard]] std::uint64_t burst_of(std::uint64_t rate) noexcept;
[[nodiscard]] std::uint64_t piece_of(std::uint64_t rate) noexcept;

/// The buckets of all clients.
///
/// Threads  any number; where there is no limit it costs a relaxed load, else a request's look-up a
///          short lock, unless its connection has the bucket already.
/// Memory   some 200 bytes for each client that has a connection, or had one until its bucket was
///          full again; those that have not are forgotten when there are twice as many as were kept
///          the last time, and when they are counted.
/// Errs     only towards patience: with `most_clients` known, another one's connections have a
///          bucket each.
class client_rates {
public:
    static constexpr std::size_t most_clients = 1u << 17;

    explicit client_rates(std::uint64_t bytes_per_second) noexcept {
        rate_.bytes = bytes_per_second;
    }
    client_rates(const client_rates&) = delete;
    client_rates& operator=(const client_rates&) = delete;

    /// Holds for what is being sent too, and for what waits its turn; not for what began while there was
    /// no limit.
    void set_rate(std::uint64_t bytes_per_second) noexcept {
        if (rate_.bytes.exchange(bytes_per_second) != bytes_per_second) {
            rate_.changes.fetch_add(1);
        }
    }
    [[nodiscard]] bool are_limited() const noexcept { return rate_.bytes.load(relaxed) != 0; }

    /// Never null. @throws std::bad_alloc
    [[nodiscard]] client_bucket_ptr bucket_of(const client_name& whose, steady_time now);
    /// Those who have a connection that was limited, or whose buckets are not full, or were not a second
    /// ago. O(known) once a second.
    [[nodiscard]] std::size_t known(steady_time now);

private:
    struct name_hash {
        [[nodiscard]] std::size_t operator()(const client_name& name) const noexcept {
            return name.user().empty() ? address_hash{}(name.at())
                                       : std::hash<std::string_view>{}(name.user());
        }
    };
    void forget_full(steady_time now);

    client_bucket::rate rate_;
    std::mutex guard_;
    std::size_t forgets_at_ = 1024;
    steady_time next_forget_{};
    std::unordered_map<client_name, client_bucket_ptr, name_hash>
        buckets_;  // names are the buckets'
};

/// One connection's share in its client's bucket.
///
///     may_send   how much may go out now; nothing: wait()
///     note_sent  how much of that has gone
///
/// What was paid for stays so until it is sent, so that a stream which must be offered the same
/// bytes again (byte_stream::try_write) is.
///
/// Threads  its io_context's.
class rate_share {
public:
    /// @param waits  counts how often nothing might go out
    rate_share(asio::io_context& io, counter& waits) : timer_{io}, waits_{waits} {}
    ~rate_share() { limit_to(nullptr); }
    rate_share(const rate_share&) = delete;
    rate_share& operator=(const rate_share&) = delete;

    /// From now on it is this client's; null: nobody's, and not limited. @pre nothing waits
    void limit_to(client_bucket_ptr whose) noexcept;
    [[nodiscard]] bool is_of(const client_name& whose) const noexcept {
        return bucket_ && bucket_->whose() == whose;
    }

    /// How many of `wanted` bytes may go out now; 0: it waits. @pre wanted > 0
    [[nodiscard]] std::size_t may_send(std::size_t wanted, steady_time now = steady_now()) noexcept;
    /// @pre bytes <= what may_send said
    void note_sent(std::size_t bytes) noexcept;

    /// Until something may go out, but no longer than it may take to hear of a reload: then
    /// may_send() is asked again. void(error_code). @pre may_send() has just said 0
    template <class Token>
    auto wait(Token&& token) {
        timer_.expires_at(next_look(steady_now()));
        return timer_.async_wait(std::forward<Token>(token));
    }
    /// Something was to go out, and may not yet.
    [[nodiscard]] bool is_waiting() const noexcept { return is_waiting_; }
    /// Ends a wait, with an error.
    void end_wait() noexcept;

private:
    void give_back() noexcept;
    [[nodiscard]] steady_time next_look(steady_time now) const noexcept;

    asio::steady_timer timer_;
    counter& waits_;
    client_bucket_ptr bucket_;   // null: not limited
    std::uint64_t paid_ = 0;     // and not sent
    steady_time due_{};          // when that may be sent
    std::uint64_t changes_ = 0;  // of the rate at which it was paid
    bool is_waiting_ = false;
};

}  // namespace reprise::proxy::net
