#pragma once
// The old program's side of an upgrade: starts the next program, gives it what it has, and takes it
// back where that fails (UPGRADE.md).

#include "proxy/server/conversation.hpp"
#include "proxy/server/given_sockets.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace reprise::proxy::server {

/// What an upgrade does with the program that runs. Called on the successor's thread.
struct estate {
    std::string pseudonym;
    std::vector<given_socket> sockets;  ///< copies
    /// Sets the process that is told of purges; null: nobody.
    std::function<void(std::shared_ptr<conversation>)> tell_purges_to;
    /// Gives the store up, or says why not within a time.
    std::function<std::string(std::chrono::milliseconds)> lend_store;
    std::function<bool()> take_store_back;
    /// Calls its argument once the journal has all purges so far.
    std::function<void(std::function<void()>)> keep_purges;
    std::function<std::vector<std::byte>()> admission;
    std::function<std::string(steady_time)> history;  ///< history_json, as of then
    /// The other program accepts.
    std::function<void(pid_t)> succeeded;
};

/// How long each step may take.
struct patience_with_successor {
    std::chrono::milliseconds prepared{30'000}, store{10'000}, serving{60'000}, end{5'000};
};

/// Threads   construct, destroy, abandon: one. It has a thread of its own, which may wait for files.
class successor {
public:
    /// `words`: the program, looked for in PATH where it has no slash, and its arguments.
    /// @throws std::system_error: there are no descriptors, or no threads
    successor(std::vector<std::string> words,
              estate of,
              conversation::carry_out purges,
              patience_with_successor patience = {});
    ~successor();  ///< abandon()
    successor(const successor&) = delete;
    successor& operator=(const successor&) = delete;

    /// False: it failed, and the program that runs goes on.
    [[nodiscard]] bool is_under_way() const noexcept { return under_way_; }
    /// The next program accepts: there is no way back.
    [[nodiscard]] bool serves() const noexcept { return serves_; }
    /// Ends the next program unless it serves already; all is as before at its return. Waits as long as
    /// patience.end and the store take.
    void abandon();

private:
    void run();
    [[nodiscard]] std::string hand_over();
    void send_file(const handover_message& message,
                   const char* name,
                   std::string_view what,
                   std::span<const std::byte> bytes);
    void tell_succeeded() noexcept;
    [[nodiscard]] std::string wait_for(handover_kind what,
                                       std::chrono::milliseconds most,
                                       std::string_view doing);
    void give_up(std::string why) noexcept;
    void take_back();
    [[nodiscard]] bool takes_store_back() noexcept;
    [[nodiscard]] std::string end_it();

    const std::vector<std::string> words_;
    estate estate_;
    conversation::carry_out purges_;
    const patience_with_successor patience_;
    std::shared_ptr<conversation> with_;
    descriptor end_;  // the next program's
    pid_t child_ = -1;
    bool lent_ = false;
    std::atomic<bool> under_way_{true}, serves_{false}, abandoned_{false};
    std::thread thread_;
};

}  // namespace reprise::proxy::server
