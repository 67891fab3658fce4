#pragma once
// The new program's side of an upgrade: what the program before this one gives it (UPGRADE.md).

#include "proxy/server/conversation.hpp"
#include "proxy/server/given_sockets.hpp"
#include "proxy/thread/worker.hpp"

#include <functional>
#include <memory>
#include <thread>

namespace reprise::proxy::server {

/// Threads   all but the destructor's: main's. It has a thread of its own once begin() was called.
class predecessor {
public:
    /// Null: nobody of ours started this program. The variable is removed.
    /// @throws std::runtime_error: it says something else, or the program before is of another kind
    [[nodiscard]] static std::unique_ptr<predecessor> of_environment();
    ~predecessor();
    predecessor(const predecessor&) = delete;
    predecessor& operator=(const predecessor&) = delete;

    /// The settings are good: from its return on the store is ours, and nobody else writes to it.
    /// @throws std::runtime_error when the program before has ended, or keeps it
    void take_over();

    [[nodiscard]] const thread::taken_over& state() const noexcept { return state_; }
    [[nodiscard]] given_sockets take_sockets() { return given_sockets{std::move(sockets_)}; }
    [[nodiscard]] const std::shared_ptr<conversation>& with() const noexcept { return with_; }

    /// Tells and is told of purges until the program before has ended, and then calls `ended`, on a
    /// thread of its own. The program before hears that we serve.
    void begin(std::function<void()> ended);

private:
    explicit predecessor(descriptor end);

    std::shared_ptr<conversation> with_;
    thread::taken_over state_;
    std::vector<given_socket> sockets_;
    std::thread thread_;
};

}  // namespace reprise::proxy::server
