#pragma once
// The program under test, which is to be killed: started on one store again and again.
//
// It dies with whoever started it. Its settings, output and errors lie in a directory of the tool's
// own; what it printed is told when it ends by itself.

#include "tests/support/client.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reprise::tests::crash {

using nlohmann::json;

struct victim_options {
    std::string program;
    std::string directory;            ///< for settings, ports and what it prints
    json settings;                    ///< with one listener and an admin listener on port 0
    std::vector<std::string> prefix;  ///< what it is run by, if anything: strace and its arguments
};

/// What the store says of itself.
struct store_figures {
    std::string state = "none";  ///< without a store on disk
    std::uint64_t objects = 0, written = 0, puts = 0, skipped = 0, evicted = 0, damaged = 0;
    std::uint64_t carried = 0, invalidated = 0, errors = 0, segments = 0, capacity = 0;
};

class victim {
public:
    /// Starts it and waits until it serves.
    /// @throws std::runtime_error with what it printed
    explicit victim(const victim_options& options);
    victim(const victim&) = delete;
    victim& operator=(const victim&) = delete;
    ~victim();  ///< kills it

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// Of the program itself, whatever it is run by.
    [[nodiscard]] pid_t pid() const noexcept { return pid_; }

    /// @throws std::runtime_error when it does not answer
    [[nodiscard]] store_figures figures() const;
    /// Waits until the index is loaded. False: it is not in time, or the store does not work.
    [[nodiscard]] bool wait_until_loaded() const;

    /// SIGKILL, now; waits for the end.
    /// @throws std::runtime_error when it had ended by itself
    void kill();
    /// SIGTERM.
    /// @throws std::runtime_error when it does not end well
    void stop();

private:
    [[nodiscard]] std::string printed() const;
    [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds limit);

    std::string directory_;
    pid_t child_ = -1;  // the program, or what runs it
    pid_t pid_ = -1;
    bool reaped_ = false;
    std::uint16_t port_ = 0, admin_port_ = 0;
};

}  // namespace reprise::tests::crash
