#pragma once
// Requests that are kept open until there is news: who waits, for what, and how a waiter is woken.
//
// A wait is a place in a list and a coroutine that sleeps on its own loop (net::wakeup). The keeper's
// thread wakes those that are behind when there is something new, whoever ends waiting ends all.
// Bounded: of one asker's waits for one digest the newer ends the older, as it does of all from one
// address beyond `most_of_address`, and of all together beyond `most`.

#include "filter/digest.hpp"
#include "proxy/net/wakeup.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>

namespace reprise::proxy::peer {

enum class waited_for : std::uint8_t { digest, seen, members };
inline constexpr std::size_t waited_for_count = 3;

/// Threads   any. Outlives its waits.
class news_waits {
public:
    /// What the asker holds of each source; none: it does not wait for that. Counter 0: it wants
    /// the whole.
    using wanted = std::array<std::optional<filter::digest_generation>, waited_for_count>;

private:
    struct waiter {
        wanted what;
        std::string address, name;
        net::wakeup::signal signal;
        bool ended = false;
    };
    using place = std::list<waiter>::iterator;

public:
    static constexpr std::size_t most = 1024, most_of_address = 128;

    /// A wait as long as this lives.
    class wait {
    public:
        wait(wait&& from) noexcept : of_{from.of_}, at_{from.at_} { from.of_ = nullptr; }
        wait& operator=(wait&&) = delete;
        ~wait();
        /// It is to be answered now, whatever there is.
        [[nodiscard]] bool has_ended() const;

    private:
        friend class news_waits;
        wait(news_waits& of, place at) noexcept : of_{&of}, at_{at} {}
        news_waits* of_;
        place at_;
    };

    /// @param name   which of the address's instances it is, as it says itself
    [[nodiscard]] wait enter(const wanted& what,
                             std::string address,
                             std::string name,
                             net::wakeup::signal signal);

    /// Wakes, once each, those that wait for one of these sources and hold something else than its newest.
    void wake_behind(const wanted& newest) noexcept;
    /// Ends all waits there are, and with `for_good` those to come: the program ends.
    void end_all(bool for_good) noexcept;

    [[nodiscard]] std::size_t waiting() const;
    /// How many wait for this and were not ended. No lock.
    [[nodiscard]] std::size_t waiting(waited_for what) const noexcept {
        return of_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
    }

private:
    void end(waiter& one) noexcept;
    void count(const waiter& one, bool comes) noexcept;

    mutable std::mutex guard_;
    std::list<waiter> waiters_;                                    // the oldest first
    std::array<std::atomic<std::size_t>, waited_for_count> of_{};  // written under the guard
    bool over_ = false;
};

}  // namespace reprise::proxy::peer
