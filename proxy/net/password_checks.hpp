#pragma once
// Passwords tried against their hashes, off the loops: a check costs a tenth of a second of a
// processor, by intent, and whoever sends wrong ones must not take that from others.
//
// At most two are tried at once, by threads that give way to others, and few wait; those of one login
// that many connections send at once are tried once. An address that sends wrong ones is made to wait,
// for longer each time; and what comes from one that has sent two is tried by one of the two threads
// alone, which gives way to whatever else there is to do: on a machine without a moment to spare
// others need not wait for that. Behind an address that speaks for many each user's name waits for
// itself: one program with an old password shuts out nobody else. Whoever means it ill there is bounded by
// what one address may have tried at once, and no longer by time. What is known already
// (known_logins) never comes here.
//
// Threads  any, but for finish and destruction.
// Memory   bounded: most_waiting checks, most_asking that wait for them, most_places remembered.

#include "proxy/net/address.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/known_logins.hpp"
#include "proxy/net/secret_name.hpp"
#include "proxy/net/user_list.hpp"

#include <boost/asio/thread_pool.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace reprise::proxy::net {

/// How long a place that wrong passwords have come from has to wait: an address, or a user's name at
/// one. Not locked.
class try_limits {
public:
    static constexpr std::size_t most_places = 4096;
    static constexpr unsigned free_tries = 3;  ///< wrong ones, before it has to wait at all
    static constexpr std::chrono::milliseconds first_wait{500};
    static constexpr std::chrono::seconds longest_wait{60};
    static constexpr std::chrono::minutes forgotten_after{10};

    [[nodiscard]] bool may_try(secret_name where, steady_time now) const;
    /// It has sent more wrong ones than one, which are not forgotten: one may be a slip, of one of many
    /// behind one address.
    [[nodiscard]] bool was_wrong(secret_name where, steady_time now) const;
    void note(secret_name where, bool right, steady_time now);

private:
    struct tries {
        unsigned wrong = 0;
        steady_time last{}, next{};
    };
    void make_room(steady_time now);
    std::unordered_map<secret_name, tries> places_;
};

class password_checks {
public:
    static constexpr std::size_t most_waiting = 64;  ///< checks
    static constexpr std::size_t most_of_address = 8;
    static constexpr std::size_t most_asking = 1024;  ///< connections, for all of them

    struct order {
        login_hash which;
        address_bytes from{};
        user_list_ptr users;
        std::string name, password;
        bool speaks_for_many = false;  ///< the address
    };
    /// Called once, on a thread of the checks': null, it is wrong.
    using call = std::function<void(user_ptr whose)>;

    password_checks() = default;
    ~password_checks() { finish(); }
    password_checks(const password_checks&) = delete;
    password_checks& operator=(const password_checks&) = delete;

    /// False: too much is tried just now, from there or by all, and `told` is not called.
    /// @throws std::bad_alloc, std::system_error (there is no thread to be had): nothing is tried then,
    ///         and `told` is not called
    [[nodiscard]] bool begin(order one, call told, steady_time now);

    /// Waits for what is under way; what waits is not done, and nobody is told.
    void finish() noexcept;

private:
    struct check {
        order of;
        // What waits if it is wrong; and what is tried with less haste, which no other name escapes.
        secret_name where{}, address{};
        std::vector<call> told;
    };
    /// Threads of one check at a time each.
    enum class lane : std::uint8_t {
        prompt,   ///< for those who have sent no wrong one lately
        patient,  ///< for those who have, and where it has less to do
    };
    [[nodiscard]] lane lane_of(secret_name address, steady_time now) const;  // with guard_ held
    void carry_out(const login_hash& which, lane by);
    [[nodiscard]] static bool is_tried_alike(const order& one, const order& other) noexcept;
    /// Ends a check, and says who waits for it; with guard_ held.
    std::vector<call> take_out(const login_hash& which, lane by) noexcept;

    std::mutex guard_;
    std::unordered_map<login_hash, check> under_way_;
    std::size_t asking_ = 0;
    known_logins known_;  // by all loops together: each asks here once
    try_limits limits_;
    std::array<std::size_t, 2> in_lane_{};  // checks, by lane
    std::array<std::optional<boost::asio::thread_pool>, 2>
        threads_;  // from a lane's first check on
    bool finished_ = false;
};

}  // namespace reprise::proxy::net
