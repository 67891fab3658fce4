#pragma once
// The program itself, as a child process on ports that the system picked; the one way in which
// tests and tools start it, but for shell scripts (tests/clients/harness.sh) and tools/bench_proxy, which
// starts other servers alike. They see what an operator sees: settings in, ports file, log lines,
// signals and exit status. A sanitizer's report or a bad exit status is complained of
// (complaint.hpp), with what the program printed.

#include "tests/support/certificates.hpp"
#include "tests/support/client.hpp"
#include "tests/support/temp_dir.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reprise::tests {

using nlohmann::json;

/// One forward listener, an admin listener, two threads, loopback origins allowed, no patience with
/// what is still running at SIGTERM.
[[nodiscard]] json basic_settings();
/// basic_settings() that store at the first request.
[[nodiscard]] json storing_settings();
/// Settings of a store on disk: each response is written as it is admitted, whatever it is worth.
[[nodiscard]] json disk_of_all_admitted(const std::string& path, const std::string& size);
/// A forward listener with this certificate, which is written to `files` as certificate.pem and key.pem.
[[nodiscard]] json tls_listener(const temp_dir& files, const made_certificate& made);

/// A program that was run to its end.
struct finished_program {
    int exit_status = -1;  ///< 128 + signal when one killed it
    std::string output, errors;
};
/// Runs a program, looked for in PATH, with its arguments.
/// @throws std::runtime_error when it does not end in time
[[nodiscard]] finished_program run_to_its_end(const std::vector<std::string>& words,
                                              std::chrono::milliseconds limit = patience);
/// The path of the program under test.
[[nodiscard]] std::string program_under_test();
/// Runs `reprise` with these arguments.
[[nodiscard]] finished_program run_reprise(std::vector<std::string> arguments);

/// How the program is started, where that is not as usual.
struct start_options {
    std::vector<std::string> environment{};  ///< "NAME=value", beside the test's own
    std::string program{};                   ///< another one than the one under test; empty: that
    std::vector<std::string> run_by{};  ///< what runs it: strace or taskset, and their arguments
    std::chrono::milliseconds limit = patience;  ///< for its start, and for its end
};

class proxy_process {
public:
    /// Starts and waits until it is ready.
    /// @throws std::runtime_error with what it printed, when it does not start
    explicit proxy_process(const json& settings = basic_settings(),
                           const std::vector<std::string>& environment = {});
    proxy_process(const json& settings, start_options how);
    proxy_process(const proxy_process&) = delete;
    proxy_process& operator=(const proxy_process&) = delete;
    /// Stops it; a bad end is complained of.
    ~proxy_process();

    [[nodiscard]] std::uint16_t port(std::size_t listener = 0) const { return ports_.at(listener); }
    [[nodiscard]] std::uint16_t admin_port() const { return admin_port_; }
    /// Of the program itself, whatever it is run by.
    [[nodiscard]] pid_t pid() const { return pid_; }

    void signal(int number) const;
    [[nodiscard]] bool is_running();
    /// SIGTERM, a bounded wait, SIGKILL if that was not enough. The exit status.
    int stop();
    /// SIGKILL: the end that gives no time for anything. No failure of the test's.
    void kill();
    /// Waits for its end without asking for it, as long as it was said at the start.
    [[nodiscard]] std::optional<int> wait();
    [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds limit);

    /// SIGUSR2, and waits until the next program serves: from then on this is that one, and what was
    /// before ends by itself, later. False: the one that runs says that it goes on.
    [[nodiscard]] bool upgrade();
    /// Waits until those before have ended, all with status 0.
    [[nodiscard]] bool have_others_ended(std::chrono::milliseconds limit = patience);

    /// Rewrites the settings file in place, listeners with the ports that were picked.
    void rewrite_settings(const json& settings) const;
    void rewrite_settings_text(std::string_view text) const;
    /// SIGHUP with these: they are in force at its return, unless something is wrong with them.
    void reload(const json& settings) const;
    [[nodiscard]] const temp_dir& directory() const { return directory_; }

    /// Resident memory, from /proc.
    [[nodiscard]] std::size_t resident_bytes() const;
    /// The most it ever was.
    [[nodiscard]] std::size_t peak_resident_bytes() const;
    /// Sets the peak back to the present.
    void forget_peak() const;

    [[nodiscard]] std::string output() const;  ///< standard output: the access log
    [[nodiscard]] std::string errors() const;  ///< standard error
    /// Standard error has this text, or comes to have it: what the program does is often seen before
    /// what it says of it.
    [[nodiscard]] bool says(std::string_view text) const;
    /// A sanitizer said something.
    [[nodiscard]] bool has_sanitizer_report() const;
    /// The access log's lines; one that is not JSON is complained of.
    [[nodiscard]] std::vector<json> access_log() const;
    /// The first line whose `url` contains this text, once it is there.
    [[nodiscard]] json logged(std::string_view url_part) const;

    /// A GET on the admin listener.
    [[nodiscard]] response admin(std::string_view path) const;
    /// /stats.
    [[nodiscard]] json stats() const;

    /// A new connection to the first listener, on which this is sent at once.
    [[nodiscard]] client connect(std::string_view first = {}) const;
    /// One GET of an absolute URL on a connection of its own.
    [[nodiscard]] response get(std::string_view url, std::string_view fields = "") const;
    [[nodiscard]] response ask(std::string_view method,
                               std::string_view url,
                               std::string_view fields = "") const;

private:
    void start();

    start_options how_;
    temp_dir directory_;
    pid_t child_ = -1;  // the program, or what runs it
    pid_t pid_ = -1;
    std::vector<pid_t> before_;  // programs that this one took over from
    std::optional<int> exit_status_;
    bool killed_ = false;
    std::vector<std::uint16_t> ports_;
    std::uint16_t admin_port_ = 0;
};

/// A request in absolute form with Host; `fields` are lines ended by CRLF.
[[nodiscard]] std::string absolute_request(std::string_view method,
                                           std::string_view url,
                                           std::string_view fields = "",
                                           std::string_view body = "");

}  // namespace reprise::tests
