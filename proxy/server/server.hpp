#pragma once
// The whole proxy: listeners, workers, the admin server; start, reload, drain, and the next program's
// taking over.
//
// Each worker has its own listening socket on each address (SO_REUSEPORT), so that accepting needs
// no hand-over. What blocks (files, interfaces' addresses) runs on the thread that calls these
// members, never on a worker.

#include "config/options.hpp"
#include "proxy/admin/admin_server.hpp"
#include "proxy/admin/admin_socket.hpp"
#include "proxy/admin/history.hpp"
#include "proxy/admin/windows.hpp"
#include "proxy/net/asio.hpp"
#include "proxy/net/side_thread.hpp"
#include "proxy/server/conversation.hpp"
#include "proxy/server/disk_room.hpp"
#include "proxy/server/given_sockets.hpp"
#include "proxy/server/memory_upkeep.hpp"
#include "proxy/server/successor.hpp"
#include "proxy/thread/worker.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::server {

/// Threads: construct, start, housekeep, reload_aside, hand_over and stop from one thread (main's), which
/// waits for no file then; reload from any thread that may.
class server {
public:
    /// `reload` loads the settings anew, and has server::reload take them over. `from`: what the program before this one left it.
    server(config::options options,
           std::string version,
           std::function<admin::reload_outcome()> reload,
           const thread::taken_over* from = nullptr);
    /// Where something hangs that stop() has left alone, the process ends here.
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    /// What is purged is told there too, and the other way round; null: nobody is told any more.
    void tell_purges_to(std::shared_ptr<conversation> other);
    /// The program before this one, whose the admin's Unix socket was, accepts no more.
    void own_admin_socket();
    /// It has ended: removes the file of its admin's socket where the settings have another.
    void remove_former_sockets();
    /// Waits until the store's index is loaded, or `most` has passed. Before start().
    void wait_for_store(std::chrono::milliseconds most) const;

    /// Binds every address that no given socket is bound to, and starts the threads. Those that it binds
    /// listen last: where an address is taken, or a file is not to be used, nobody has connected in vain.
    /// @throws std::runtime_error naming the address and the setting
    void start(given_sockets given = {});

    [[nodiscard]] const std::vector<config::endpoint>& listening() const noexcept { return bound_; }
    [[nodiscard]] const std::optional<config::endpoint>& admin() const noexcept {
        return admin_bound_;
    }

    /// Takes over what can change live: every request that comes after its return meets the new
    /// settings. Returns what there is to say of the rest: what waits for the next start, and what that
    /// would meet (find_obstacles_of_next_start).
    /// @throws std::runtime_error naming the setting and the file that can't be used as it wants:
    /// nothing is changed
    std::vector<std::string> reload(const config::options& next);

    /// Why these would lose the admin token that is in force; empty: they don't, or there is none. Reads its
    /// file.
    [[nodiscard]] std::string why_token_is_lost(const config::admin_options& next) const;

    /// SIGHUP: calls `reload` on a thread of its own.
    void reload_aside();

    /// SIGUSR2: starts the program that these words name, and has it take over (UPGRADE.md).
    /// `succeeded` is called on a thread of its own, once the other accepts: stop() is to follow.
    /// Nothing but a line in the log where that can't be now.
    void hand_over(std::vector<std::string> words, std::function<void(pid_t)> succeeded);

    /// SIGUSR1.
    void reopen_logs() noexcept { common_.access.reopen(); }

    /// To be called about once a second: saves the admission state when it is due, looks up this
    /// machine's addresses about once a minute.
    /// @throws std::bad_alloc  what was left out waits for its next time
    void housekeep();

    /// Stops accepting, lets requests finish for at most timeouts.drain (timeouts.hand_over where
    /// another program has taken over, and then idle connections may end by themselves), then ends
    /// everything and saves the state, unless that is another's now: in all not longer than drain and eight seconds, whatever hangs; the log
    /// says what was not written. `hurry`, called a hundred times a second, ends the waiting when
    /// it says true (a second SIGTERM). False: something had to be stopped in the middle of what it
    /// did, or hangs yet, and this object must not be destroyed.
    bool stop(const std::function<bool()>& hurry = {});

    /// What a stop() that begins now may take, for whoever would kill the process that lasts longer:
    /// timeouts.drain, and a minute for what follows, which is more than it takes.
    [[nodiscard]] std::chrono::milliseconds time_to_stop();

private:
    struct listening_worker;
    void start_admin(const config::admin_options& options, given_sockets& given);
    [[nodiscard]] admin::stats_inputs stats();
    [[nodiscard]] admin::readiness readiness_now() const noexcept;
    [[nodiscard]] admin::tally tally_now() const;
    [[nodiscard]] peer::node_figures figures_for_fleet(steady_time now) const;
    [[nodiscard]] std::string history_at(steady_time now);
    [[nodiscard]] admin::admin_response purge(const admin::admin_request& asked);
    [[nodiscard]] thread::settings_ptr current();
    [[nodiscard]] peer::peering::book_ptr current_book();
    /// False: it was to be written, and was not; the log says why.
    bool save_state();
    void save_aside();
    void look_at_own_addresses(steady_time now);
    [[nodiscard]] std::optional<std::chrono::seconds> eviction_age() const;
    /// Of all threads, along with the newest book of peers.
    void publish(thread::settings_ptr next);
    struct peers_to_adopt;
    /// Has the peers of these settings in that book, of which nobody is told before publish(). Waits for
    /// the loop that minds them, not for ever: then they come later, and so they do where there is no memory for
    /// them: a remark says that. @pre turn_guard_ is held, and peers
    [[nodiscard]] std::string_view tell_peers(const thread::settings_ptr& next,
                                              peer::parent_credentials credentials);
    [[nodiscard]] awaitable<void> adopt_peers(std::shared_ptr<peers_to_adopt> told);
    void free_former_settings();
    std::vector<std::string> take_over(config::options next);
    [[nodiscard]] std::vector<std::string> remarks_on(const config::options& next);
    [[nodiscard]] bool loses_token(const admin::admin_gate& next) const;
    [[nodiscard]] bool wait_for_workers();
    /// False: one was stopped in the middle of what it did, or hangs yet.
    [[nodiscard]] bool end_workers(steady_time until);
    void bind(std::size_t index, given_sockets& given);
    /// None: there are no descriptors for all of them.
    [[nodiscard]] std::optional<std::vector<given_socket>> copy_sockets();
    [[nodiscard]] conversation::carry_out purges_of_other();

    std::string version_;
    std::function<admin::reload_outcome()> reload_;
    std::mutex turn_guard_;      // held, for long, while settings are taken over
    std::mutex settings_guard_;  // guards the pointers alone
    thread::settings_ptr settings_;
    std::vector<thread::settings_ptr>
        former_;  // until nobody else has them: no loop is to free one
    std::mutex book_guard_;
    peer::peering::book_ptr book_;  // null: start() has not come so far, or nobody is a peer
    bool book_waits_ = false;       // for the settings it comes with
    // The home loop's; null: none.
    std::shared_ptr<peers_to_adopt> peers_to_come_;
    thread::common_state common_;
    std::vector<std::unique_ptr<listening_worker>> workers_;
    std::vector<config::endpoint> bound_;
    std::optional<config::endpoint> admin_bound_;
    // Of the program before this one, each with its file: gone with these, unless another has its name.
    std::vector<admin::admin_socket> former_admin_sockets_;
    steady_time started_;
    admin::ratio_windows windows_;
    std::mutex history_guard_;  // the admin's handlers, and an upgrade
    admin::history history_;
    std::unique_ptr<admin::admin_server> admin_;
    steady_time last_save_;  // or the start
    steady_time next_expiry_look_;
    steady_time next_guard_;
    memory_upkeep memory_upkeep_;
    std::atomic<bool> saving_{false};
    net::side_thread aside_{"settings"};  // what waits for files
    room_watch room_;
    std::atomic<bool> accepts_{false};  // or clients wait until it does, in sockets that were given
    bool running_ = false;
    bool hangs_ = false;  // a thread that uses this was left alone
    std::unique_ptr<successor> successor_;
};

}  // namespace reprise::proxy::server
