// The program: options, settings, signals. Everything is built here by hand and waits for a signal.

#include "config/load.hpp"
#include "config/nearest.hpp"
#include "config/reference.hpp"
#include "proxy/admin/commands.hpp"
#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/listening.hpp"
#include "proxy/net/secret_memory.hpp"
#include "proxy/server/obstacles.hpp"
#include "proxy/server/predecessor.hpp"
#include "proxy/server/server.hpp"
#include "proxy/server/service_manager.hpp"
#include "proxy/server/signals.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <malloc.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace {

using namespace reprise;
using namespace reprise::proxy;

config::reading read_settings(const std::string& path) {
    return path.empty() ? config::reading{} : config::read_file(path);
}

/// What can't be used of the files that settings name, for a reload that is refused.
std::vector<std::string> what_ends_a_start(const config::options& options) {
    std::vector<std::string> out;
    for (const auto& one : server::find_file_obstacles(options)) {
        if (one.weight == server::obstacle_weight::ends_start) {
            out.push_back(to_string(one.what));
        }
    }
    return out;
}

/// The setting that a mistake begins with.
std::string_view setting_of(std::string_view mistake) {
    return mistake.substr(0, mistake.find(": "));
}

/// Whoever reloads is told of all that is wrong, not of what was met first, and of each setting once.
admin::reload_outcome load_anew(const std::string& path, server::server& running) {
    const auto read = read_settings(path);
    admin::reload_outcome out;
    for (const auto& one : read.mistakes) {
        out.mistakes.push_back(to_string(one));
    }
    std::string unusable;
    if (out.mistakes.empty()) {
        try {
            out.remarks = running.reload(read.wanted);
            return out;
        } catch (const std::runtime_error& first) {
            unusable = first.what();
        }
    }
    auto files = what_ends_a_start(read.wanted);
    if (auto lost = running.why_token_is_lost(read.wanted.admin); !lost.empty()) {
        files.push_back(std::move(lost));
    }
    const bool is_among = std::any_of(files.begin(), files.end(), [&](const std::string& one) {
        return setting_of(one) == setting_of(unusable);
    });
    if (!unusable.empty() && !is_among) {
        out.mistakes.push_back(std::move(unusable));
    }
    std::move(files.begin(), files.end(), std::back_inserter(out.mistakes));
    return out;
}

// Tells whoever started us with port 0 which ports the system picked. Written whole or not at all.
void write_ports(const std::string& path, const server::server& running) {
    nlohmann::json ports;
    ports["listeners"] = nlohmann::json::array();
    for (const auto& where : running.listening()) {
        ports["listeners"].push_back(net::to_text(where));
    }
    ports["admin"] = running.admin() ? nlohmann::json(net::to_text(*running.admin()))
                                     : nlohmann::json();
    const auto temporary = path + ".new";
    {
        std::ofstream out{temporary};
        out << ports.dump() << '\n';
        if (!out.flush()) {
            throw std::runtime_error{"--ports-file: cannot write " + temporary};
        }
    }
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        throw std::runtime_error{"--ports-file: cannot write " + path};
    }
}

// Each connection is a descriptor: as many as the system lets us have. Where these are fewer than the settings
// want, find_obstacles has said so.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/// What --check-config says of files and addresses. True: a start would fail by them.
bool tell(const std::vector<server::obstacle>& found, const std::string& of) {
    bool ends = false;
    for (const auto& one : found) {
        std::string_view word;
        switch (one.weight) {
        case server::obstacle_weight::ends_start: ends = true; break;
        case server::obstacle_weight::in_use: word = "now in use: "; break;
        case server::obstacle_weight::harms: word = "warning: "; break;
        }
        std::cerr << of << ": " << word << to_string(one.what) << '\n';
    }
    return ends;
}

/// All that ends the start, on standard error. False: nothing does. What is in use is ours to take over
/// where we are given it; if it is not, the start finds out.
bool is_refused(const std::vector<server::obstacle>& found, const std::string& of, bool is_given) {
    using enum server::obstacle_weight;
    bool ends = false;
    for (const auto& one : found) {
        if (one.weight == ends_start || (one.weight == in_use && !is_given)) {
            ends = true;
            std::cerr << of << ": " << to_string(one.what) << '\n';
        }
    }
    return ends;
}

std::string what_it_is(const config::listener& one) {
    const auto mode = one.mode == config::listener_mode::forward
                          ? std::string{" (forward proxy"}
                          : " (accelerator of " + one.upstream;
    return mode + (one.tls ? ", TLS)" : ")");
}

// For a new program, until it knows what is in its store; the old one answers meanwhile.
constexpr std::chrono::seconds store_patience{30};

constinit log::seldom no_memory;

// Until it is stopped: a moment without memory must not be the program's end.
void run_through(boost::asio::io_context& io) {
    for (;;) {
        try {
            io.run();
            return;
        } catch (const std::bad_alloc&) {
            if (const auto more = no_memory.due()) {
                log::error("keeping house: out of memory", *more);
            }
        }
    }
}

// A word too many; where no command is named, it may be one's name, mistyped.
int say_unexpected(const CLI::App& app, const CLI::ExtrasError& what) {
    const auto extra = app.remaining(true);
    if (!extra.empty() && app.get_subcommands().empty() && !extra.front().starts_with("-")) {
        std::vector<std::string_view> names;
        for (const auto* one : app.get_subcommands([](const CLI::App*) { return true; })) {
            names.emplace_back(one->get_name());
        }
        std::cerr << "reprise: there is no command " << extra.front();
        if (const auto meant = config::nearest(extra.front(), names); !meant.empty()) {
            std::cerr << "; did you mean " << meant << "?";
        }
        std::cerr << "\nRun with --help for more information.\n";
    } else {
        (void)app.exit(what);
    }
    return admin::commands::wrong_usage;
}

/// How the program was started.
struct command {
    std::vector<std::string> words;
    std::string config_path, ports_file, pid_file;
};

int serve(const config::options& options,
          const std::vector<server::obstacle>& found,
          const command& how,
          std::unique_ptr<server::predecessor> before,
          server::given_sockets given) {
    // Bodies are filled on one thread and let go on another. With an arena per thread, glibc would
    // keep what each thread lets go for that thread's use, and a fetch's window would count once
    // per thread. A hit allocates nothing, and small blocks are cached by thread before any arena.
    ::mallopt(M_ARENA_MAX, 1);
    boost::asio::io_context io{1};
    // Before any thread is begun. Those that tell of a fault in a thread stay its own.
    server::signals signals{io, {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}};
    std::optional<diagnostic_log> diagnostics{options.log.level};
    for (const auto& one : found) {
        if (one.weight == server::obstacle_weight::harms) {
            log::warn("settings: ", to_string(one.what));
        }
    }
    ::signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    const server::service_manager manager;  // before clients can have all descriptors
    server::server* running = nullptr;
    std::mutex one_reload;  // or of two the earlier file could be the later one's
    const auto reload = [&] {
        const std::lock_guard turn{one_reload};
        auto how_it_went = load_anew(how.config_path, *running);
        for (const auto& one : how_it_went.remarks) {
            log::warn("settings: ", one);
        }
        for (const auto& one : how_it_went.mistakes) {
            log::error("settings not changed: ", one);
        }
        if (how_it_went.mistakes.empty()) {
            log::info("settings reloaded");
        }
        return how_it_went;
    };
    if (before) {
        before->take_over();
        given = before->take_sockets();
    }
    server::server proxy{options, REPRISE_VERSION, reload, before ? &before->state() : nullptr};
    running = &proxy;
    if (before) {
        // Until then the program before answers.
        proxy.wait_for_store(store_patience);
        proxy.tell_purges_to(before->with());
    }
    proxy.start(std::move(given));
    for (std::size_t i = 0; i < proxy.listening().size(); ++i) {
        const auto& where = proxy.listening()[i];
        log::info("listening on ", where.host, ":", where.port, what_it_is(options.listeners[i]));
    }
    if (proxy.admin()) {
        log::info("admin on ", proxy.admin()->host, ":", proxy.admin()->port);
    }
    boost::asio::steady_timer second{io};
    std::function<void()> keep_house = [&] {
        second.expires_after(std::chrono::seconds{1});
        second.async_wait([&](boost::system::error_code error) {
            if (!error) {
                keep_house();  // first: in what this wait has left
                proxy.housekeep();
            }
        });
    };
    keep_house();
    const auto succeeded = [&](pid_t by) {
        boost::asio::post(io, [&io, &manager, by] {
            log::info("upgrade: process ", by, " serves; draining");
            if (!manager.tell("MAINPID=" + std::to_string(by))) {
                log::error("upgrade: the service manager could not be told that process ",
                           by,
                           " is the main one now: it ends that when this one has drained, unless "
                           "the service is started anew before");
            }
            io.stop();
        });
    };
    signals.tell([&](int number) {
        switch (number) {
        case SIGHUP: proxy.reload_aside(); break;
        case SIGUSR1: proxy.reopen_logs(); break;
        case SIGUSR2: proxy.hand_over(how.words, succeeded); break;
        default:
            log::info("draining");
            (void)manager.tell_stopping(proxy.time_to_stop());
            io.stop();
        }
    });
    // Once ready, for signals too.
    boost::asio::post(io, [&] {
        if (!how.pid_file.empty()) {
            if (const auto wrong = server::write_pid_file(how.pid_file); !wrong.empty()) {
                throw std::runtime_error{wrong};
            }
        }
        if (!how.ports_file.empty()) {
            write_ports(how.ports_file, proxy);
        }
        if (!before) {
            // Once: it hears of the next process by MAINPID.
            (void)manager.tell("READY=1");
        } else {
            before->begin([&proxy, &io] {
                proxy.tell_purges_to(nullptr);
                log::info("upgrade: the program before this one has ended");
                boost::asio::post(io, [&proxy] { proxy.remove_former_sockets(); });
            });
            proxy.own_admin_socket();
        }
    });
    run_through(io);
    bool again = false;
    signals.tell([&](int number) {
        again = again || number == SIGTERM || number == SIGINT;
        switch (number) {
        case SIGHUP: log::warn("settings: this program is ending: not loaded anew"); break;
        case SIGUSR1: proxy.reopen_logs(); break;
        case SIGUSR2: log::warn("upgrade: this program is ending: not now"); break;
        default: break;
        }
    });
    const bool at_rest = proxy.stop([&] {
        io.restart();
        io.poll();
        return again;
    });
    if (!how.pid_file.empty()) {
        server::remove_pid_file(how.pid_file);
    }
    before.reset();
    log::info("stopped");
    if (!at_rest) {
        diagnostics.reset();  // which says why
        std::_Exit(1);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    net::prepare_secret_memory();
    CLI::App app{
        "Reprise: an HTTP caching forward proxy that stores an object at its second request"};
    command how{.words = {argv, argv + argc}, .config_path = {}, .ports_file = {}, .pid_file = {}};
    bool check = false;
    bool help_config = false;
    app.add_option("--config",
                   how.config_path,
                   "file of settings (JSON with comments); without it, the defaults");
    app.add_flag("--check-config",
                 check,
                 "check the settings, and the files and addresses that they name, and exit");
    app.add_flag("--help-config", help_config, "describe every setting and exit");
    app.add_option("--ports-file",
                   how.ports_file,
                   "write the addresses listened on to this file, once ready (JSON)");
    app.add_option("--pid-file",
                   how.pid_file,
                   "write the number of the process that accepts to this file, once ready");
    app.set_version_flag("--version", "reprise " REPRISE_VERSION);
    auto* const checking = app.add_subcommand(
        "check", "check settings, and the files and addresses that they name (--check-config)");
    checking->fallthrough();
    checking->add_option("settings", how.config_path, "file of settings; without it, --config's");
    checking->add_option("--config", how.config_path, "as SETTINGS");
    const admin::commands commands{app, how.config_path};
    try {
        app.parse(argc, argv);
    } catch (const CLI::ExtrasError& what) {
        return say_unexpected(app, what);
    } catch (const CLI::ParseError& what) {
        return app.exit(what) == 0 ? 0 : admin::commands::wrong_usage;
    }
    check = check || checking->parsed();
    try {
        if (help_config) {
            std::cout << config::reference_text();
            return 0;
        }
        std::unique_ptr<server::predecessor> before;
        server::given_sockets given;
        if (!check && !commands.asked()) {
            before = server::predecessor::of_environment();
            given = before ? server::given_sockets{} : server::take_service_sockets();
        }
        const bool is_given = before || !given.empty();
        const std::string settings = how.config_path.empty() ? "the defaults" : how.config_path;
        const auto read = read_settings(how.config_path);
        const auto& options = read.wanted;
        // A program that runs is asked whatever is wrong with the file, and what the file names is not looked at: a
        // health check does this twice a minute.
        if (commands.asked() && (read.mistakes.empty() || !commands.wants_sound_settings())) {
            return commands.run(read, how.config_path);
        }
        if (!read.mistakes.empty()) {
            for (const auto& one : read.mistakes) {
                std::cerr << settings << ": " << to_string(one) << '\n';
            }
            const auto files = server::find_file_obstacles(options);
            (void)(check ? tell(files, settings) : is_refused(files, settings, is_given));
            return 1;
        }
        auto found = server::find_obstacles(options);
        if (check) {
            auto unknown = server::find_unknown_peers(options);
            std::move(unknown.begin(), unknown.end(), std::back_inserter(found));
            if (tell(found, settings)) {
                return 1;
            }
            std::cout << settings
                      << (found.empty() ? ": no mistakes\n" : ": no mistakes that end the start\n");
            return 0;
        }
        return is_refused(found, settings, is_given)
                   ? 1
                   : serve(options, found, how, std::move(before), std::move(given));
    } catch (const std::exception& what) {
        std::cerr << "reprise: " << what.what() << '\n';
        return 1;
    }
}
