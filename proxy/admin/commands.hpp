#pragma once
// What the program does for whoever asks about a proxy that runs: `reprise status`, `reprise
// explain URL`, `reprise purge URL`, `reprise reload`. They ask the admin listener what anybody may ask
// it, at its Unix socket or its address, and print the answer for people, or as it came (--json).
//
// Exit status: 0, it was done, and all is well; 1, it was answered, but something is not well,
// nothing was stored of the URL, or the proxy refused (its settings, too); 2, the command line is wrong; 3, there was no
// answer: nobody listens, or may not be asked, or a mistake in admin.* leaves open where.

#include "config/load.hpp"

#include <memory>
#include <optional>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::proxy::admin {

class commands {
public:
    static constexpr int done = 0, no = 1, wrong_usage = 2, no_answer = 3;

    /// Adds them to the command line, each with `--config` as `app` has it, whose value goes to
    /// `config_path`. Both outlive it, and `app` is not moved.
    commands(CLI::App& app, std::string& config_path);
    ~commands();
    commands(const commands&) = delete;
    commands& operator=(const commands&) = delete;

    /// Whether one of them was asked for.
    [[nodiscard]] bool asked() const;
    /// Whether settings with mistakes refuse it: a reload, which has them read. The others ask a
    /// program that serves by the settings that it was given, whatever has become of the file since.
    [[nodiscard]] bool wants_sound_settings() const;
    /// Does it, and gives the exit status. Of settings with mistakes it takes what could be read,
    /// and warns of them on standard error.
    /// @param file  which they were read from; empty: none was named
    /// @pre `read` has no mistakes where wants_sound_settings()
    [[nodiscard]] int run(const config::reading& read, const std::string& file) const;

private:
    struct what_was_said;
    std::unique_ptr<what_was_said> said_;
};

}  // namespace reprise::proxy::admin
