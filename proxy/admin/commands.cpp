#include "proxy/admin/commands.hpp"

#include "proxy/admin/admin_client.hpp"
#include "proxy/admin/admin_server.hpp"
#include "proxy/admin/summary.hpp"
#include "proxy/admin/terminal_pages.hpp"
#include "proxy/base/clock.hpp"

#include <boost/system/error_code.hpp>
#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <vector>

// The command line is parsed into what_was_said; run() comes later, when the settings are read that
// say at which door to ask. A command is one question and one page, made of the JSON that came
// (terminal_pages).
//
// The settings are the file's as it is now, and the program that is asked may have been given others: a mistake in the
// file must not make it look dead, least of all to a health check, by which it would be started anew with that file.

namespace reprise::proxy::admin {

namespace {

using boost::beast::http::verb;
using nlohmann::json;

constexpr std::chrono::seconds between_looks{2};
// It is more than the proxy waits for its own reload, and less than systemd gives an ExecReload (TimeoutStartSec, 90 s),
// so that what reloads says why before it is ended.
constexpr auto patience_with_reload = most_for_reload + std::chrono::seconds{5};

std::string percent_encoded(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            out.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out.append({'%', digits[byte / 16], digits[byte % 16]});
    }
    return out;
}

// Mistakes of the hand, told before anybody is asked.
std::string why_no_url(const std::string& text) {
    return text.find("://") != std::string::npos
               ? ""
               : "URL must begin with http:// or https://: '" + text + "'";
}

std::string why_no_field(const std::string& text) {
    const auto colon = text.find(':');
    return colon != std::string::npos && colon > 0
               ? ""
               : "--header is \"Name: value\", and '" + text + "' has no colon behind a name";
}

int say_wrong(const std::string& why) {
    std::cerr << "reprise: " << for_terminal(why) << '\n';
    return commands::wrong_usage;
}

// A terminal's columns; 80 where there is none, or it does not say.
std::size_t width_of_terminal() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 80;
}

// An answer that is not the page which was asked for, in a line.
std::string refusal(const admin_told& told) {
    return std::to_string(told.status) + ": " +
           for_terminal(told.body.substr(0, told.body.find_last_not_of('\n') + 1)) + '\n';
}

// Of several lines, one each.
std::string lines_for_terminal(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        out.append(for_terminal(line)).append("\n");
    }
    return out;
}

// What a page says, by `page`, or as it came; `no` where it is no JSON, or none of these statuses.
template <class Page>
int print(const admin_told& told, bool as_json, bool is_answer, Page page) {
    const auto said = json::parse(told.body, nullptr, false);
    if (!is_answer || said.is_discarded()) {
        std::cerr << "reprise: " << refusal(told);
        return commands::no;
    }
    std::cout << (as_json ? told.body : page(said)) << std::flush;
    return commands::done;
}

}  // namespace

struct commands::what_was_said {
    CLI::App* status = nullptr;
    CLI::App* explain = nullptr;
    CLI::App* purge = nullptr;
    CLI::App* reload = nullptr;
    std::string socket;
    bool as_json = false;
    bool watch = false;
    bool alive = false;
    unsigned times = 0;
    std::string url, method = "GET", prefix, origin;
    std::vector<std::string> fields, tags;
    unsigned listener = 0;
    bool soft = false;
    pid_t process = 0;  ///< of the proxy; 0: not named

    [[nodiscard]] int show_status(const admin_door& at) const;
    [[nodiscard]] int show_life(const admin_door& at) const;
    [[nodiscard]] int watch_status(const admin_door& at) const;
    [[nodiscard]] int explain_url(const admin_door& at) const;
    [[nodiscard]] int purge_stored(const admin_door& at) const;
    [[nodiscard]] int reload_settings(const std::optional<admin_door>& at) const;
    [[nodiscard]] int signal_process(const std::string& why) const;
    [[nodiscard]] int say_no_door(const std::string& why) const;
};

namespace {

constexpr const char* not_to_be_asked =
    "by these settings the proxy cannot be asked: admin.socket and admin.address are both off";

int say_not_reached(const not_reached& what) {
    std::cerr << "reprise: " << what.why << '\n';
    return commands::no_answer;
}

// What is asked goes on without that file; whoever asks should hear what a restart would come to.
void warn_of(const std::vector<config::mistake>& mistakes, const std::string& file) {
    if (mistakes.empty()) {
        return;
    }
    if (mistakes.front()
            .path.empty()) {  // by whoever types this, who need not be the one that starts it
        std::cerr << "warning: " << config::to_string(mistakes.front()) << '\n';
        return;
    }
    std::cerr << file << ": warning: a start or a reload would fail: ";
    if (mistakes.size() > config::report::most) {  // the last one counts the rest
        std::cerr << "more than " << config::report::most << " mistakes, the first: ";
    } else if (mistakes.size() > 1) {
        std::cerr << mistakes.size() << " mistakes, the first: ";
    }
    std::cerr << config::to_string(mistakes.front()) << '\n';
}

}  // namespace

commands::commands(CLI::App& app, std::string& config_path)
    : said_{std::make_unique<what_was_said>()} {
    auto& to = *said_;
    app.require_subcommand(0, 1);
    const auto add = [&](const char* name, const char* about) {
        auto* one = app.add_subcommand(name, about);
        one->fallthrough();  // --version and the like belong to all of them
        one->add_option("--config",
                        config_path,
                        "file of settings, which say where the proxy is asked; may stand before "
                        "the command too");
        one->add_option(
            "--socket", to.socket, "the proxy's admin.socket, whatever the settings say");
        one->add_flag("--json", to.as_json, "print what the admin listener says, as it is");
        return one;
    };
    to.status = add("status", "say whether a running proxy is well, and what it saves");
    auto* watch = to.status->add_flag("--watch", to.watch, "again every 2 seconds, until Ctrl-C");
    to.status
        ->add_flag("--alive", to.alive, "only whether it serves, as a health check asks: 0 or 3")
        ->excludes(watch);
    to.status->add_option("--times", to.times, "with --watch: so often, and no more");
    to.explain = add("explain", "say what a request would get from a running proxy, and why");
    to.explain->add_option("URL", to.url, "absolute; for CONNECT host:port")->required();
    to.explain->add_option("--method", to.method, "of the request (GET)");
    to.explain->add_option(
        "--header", to.fields, "a field of the request, \"Name: value\"; several");
    to.explain->add_option(
        "--listener", to.listener, "which of the settings' listeners it comes by, from 0");
    to.purge = add("purge", "drop what a running proxy has stored");
    auto* url = to.purge->add_option("URL", to.url, "what is stored of this URL");
    auto* prefix = to.purge->add_option("--prefix", to.prefix, "of all URLs that begin so");
    auto* tags = to.purge->add_option("--tag", to.tags, "with this Cache-Tag of --origin; several");
    to.purge->add_option("--origin", to.origin, "http://host, whose tags these are")->needs(tags);
    to.purge->add_flag("--soft", to.soft, "make it stale instead");
    url->excludes(prefix)->excludes(tags);
    prefix->excludes(tags);
    to.reload = add("reload",
                    "have a running proxy read its settings again, and say what became of that; "
                    "it reads the file that it was started with");
    to.reload
        ->add_option("--process",
                     to.process,
                     "the proxy's process: where it can't be asked it is told by SIGHUP, and its "
                     "log says what became of that")
        ->check(CLI::PositiveNumber);
}

commands::~commands() = default;

bool commands::asked() const {
    return said_->status->parsed() || said_->explain->parsed() || said_->purge->parsed() ||
           said_->reload->parsed();
}

bool commands::wants_sound_settings() const {
    return said_->reload->parsed();
}

int commands::run(const config::reading& read, const std::string& file) const {
    const auto& said = *said_;
    std::optional<admin_door> at;
    if (!said.socket.empty()) {
        at = admin_door{said.socket, {}, {}};
    } else {
        // Nobody's settings: those of the service, where one runs (tools/reprise.service.in).
        const char* const given = std::getenv("RUNTIME_DIRECTORY");
        at = find_door(read.wanted.admin,
                       given != nullptr ? given
                       : file.empty()   ? "/run/reprise"
                                        : "");
    }
    if (said.reload->parsed()) {
        return said.reload_settings(at);
    }
    // A socket was named without a mistake, or is the one in the directory that the program itself was given.
    const auto doubt = std::find_if(read.mistakes.begin(),
                                    read.mistakes.end(),
                                    [](const auto& one) { return leaves_open(one, "admin"); });
    if (doubt != read.mistakes.end() && (!at || at->socket.empty())) {
        return said.say_no_door("where the proxy is asked is not known (--socket says it, too): " +
                                file + ": " + config::to_string(*doubt));
    }
    warn_of(read.mistakes, file);
    if (!at) {
        return said.say_no_door(not_to_be_asked);
    }
    if (said.alive) {
        return said.show_life(*at);
    }
    if (said.status->parsed()) {
        return said.watch ? said.watch_status(*at) : said.show_status(*at);
    }
    return said.explain->parsed() ? said.explain_url(*at) : said.purge_stored(*at);
}

int commands::what_was_said::say_no_door(const std::string& why) const {
    (alive ? std::cout << "no: " : std::cerr << "reprise: ") << why << '\n';
    return no_answer;
}

int commands::what_was_said::show_status(const admin_door& at) const {
    const auto answer = ask(at, verb::get, "/stats");
    if (const auto* failed = std::get_if<not_reached>(&answer)) {
        return say_not_reached(*failed);
    }
    bool well = false;
    const auto shown = print(
        std::get<admin_told>(answer),
        as_json,
        std::get<admin_told>(answer).status == 200,
        [](const json& stats) { return status_page(stats, width_of_terminal()); });
    const auto stats = json::parse(std::get<admin_told>(answer).body, nullptr, false);
    well = !stats.is_discarded() && says_well(stats);
    return shown == done && !well ? no : shown;
}

// A lost sibling or a failing origin is no reason to start a proxy anew, so nothing is said of them. Why
// it is not alive is an answer, and stands where what runs health checks keeps it.
int commands::what_was_said::show_life(const admin_door& at) const {
    const auto answer = ask(at, verb::get, "/healthz");
    if (const auto* failed = std::get_if<not_reached>(&answer)) {
        std::cout << "no: " << failed->why << std::endl;
        return no_answer;
    }
    const auto& told = std::get<admin_told>(answer);
    const auto said = for_terminal(told.body.substr(0, told.body.find_last_not_of('\n') + 1));
    if (told.status == 200) {
        std::cout << said << std::endl;
        return done;
    }
    std::cout << "no: " << at.to_text() << " answers " << told.status << ": " << said << std::endl;
    return no_answer;
}

// On a terminal each look takes the place of the one before; elsewhere it is a line. A proxy that is
// gone for a while is waited for: it may be started anew just now.
int commands::what_was_said::watch_status(const admin_door& at) const {
    const bool redraws = ::isatty(STDOUT_FILENO) != 0 && !as_json;
    int how = done;
    for (unsigned looks = 1;; ++looks) {
        const auto answer = ask(at, verb::get, "/stats");
        std::string page;
        if (const auto* failed = std::get_if<not_reached>(&answer)) {
            if (looks == 1) {
                return say_not_reached(*failed);
            }
            how = no_answer;
            page = failed->why + "\n";
        } else {
            const auto& told = std::get<admin_told>(answer);
            const auto stats = json::parse(told.body, nullptr, false);
            const bool is_page = told.status == 200 && !stats.is_discarded();
            if (!is_page && looks == 1) {
                std::cerr << "reprise: " << refusal(told);
                return no;
            }
            how = is_page && says_well(stats) ? done : no;
            page = !is_page  ? refusal(told)
                   : as_json ? told.body
                   : redraws ? status_page(stats, width_of_terminal())
                             : status_line(stats);
        }
        if (redraws) {
            std::string screen = "\x1b[H";
            for (std::size_t begin = 0; begin < page.size();) {
                const auto end = page.find('\n', begin);
                screen.append(page, begin, end - begin).append("\x1b[K\n");
                begin = end + 1;
            }
            std::cout << screen << "\x1b[J" << std::flush;
        } else if (as_json) {
            std::cout << page << std::flush;
        } else {
            std::cout << utc(wall_now()) << "  " << page << std::flush;
        }
        if (looks == times || !std::cout) {
            return how;
        }
        std::this_thread::sleep_for(between_looks);
    }
}

int commands::what_was_said::explain_url(const admin_door& at) const {
    if (const auto why = why_no_url(url); !why.empty() && method != "CONNECT") {
        return say_wrong(why + "; of a tunnel: --method CONNECT host:port");
    }
    for (const auto& field : fields) {
        if (const auto why = why_no_field(field); !why.empty()) {
            return say_wrong(why);
        }
    }
    auto target = "/explain?url=" + percent_encoded(url) + "&method=" + percent_encoded(method) +
                  "&listener=" + std::to_string(listener);
    for (const auto& field : fields) {
        target += "&header=" + percent_encoded(field);
    }
    const auto answer = ask(at, verb::get, target);
    if (const auto* failed = std::get_if<not_reached>(&answer)) {
        return say_not_reached(*failed);
    }
    const auto& told = std::get<admin_told>(answer);
    return print(told, as_json, told.status == 200, explanation_page);
}

int commands::what_was_said::purge_stored(const admin_door& at) const {
    std::string target;
    for (const auto& text : {url, prefix, origin}) {
        if (const auto why = text.empty() ? "" : why_no_url(text); !why.empty()) {
            return say_wrong(why);
        }
    }
    if (!url.empty()) {
        target = "/purge?url=" + percent_encoded(url);
    } else if (!prefix.empty()) {
        target = "/purge?prefix=" + percent_encoded(prefix);
    } else if (!tags.empty() && !origin.empty()) {
        target = "/purge?origin=" + percent_encoded(origin);
        for (const auto& tag : tags) {
            target += "&tag=" + percent_encoded(tag);
        }
    } else {
        std::cerr << "reprise purge: name a URL, or --prefix, or --tag and --origin\n";
        return wrong_usage;
    }
    if (soft) {
        target += "&soft";
    }
    const auto answer = ask(at, verb::post, target);
    if (const auto* failed = std::get_if<not_reached>(&answer)) {
        return say_not_reached(*failed);
    }
    const auto& told = std::get<admin_told>(answer);
    const auto shown = print(told, as_json, told.status == 200 || told.status == 404, purge_page);
    return told.status == 404 ? no : shown;
}

// For a service manager, to whom a reload that is refused must have failed. Only the proxy can say: it alone may
// read what it is to read, and knows what has to wait for the next start. It is told by a signal where it can't be
// asked, which is no answer, and where it won't be: whoever has its process needs no token.
int commands::what_was_said::reload_settings(const std::optional<admin_door>& at) const {
    if (!at) {
        return signal_process(not_to_be_asked);
    }
    const auto answer = ask(*at, verb::post, "/reload", patience_with_reload);
    if (const auto* failed = std::get_if<not_reached>(&answer)) {
        return signal_process(failed->why);
    }
    const auto& told = std::get<admin_told>(answer);
    const auto said = as_json ? told.body : lines_for_terminal(told.body);
    if (told.status == 200) {
        std::cout << said << std::flush;
        return done;
    }
    if (told.status == 422) {
        std::cerr << "reprise: " << said;
        return no;
    }
    if (told.status == 504) {  // it is under way, and a signal would only begin it again
        std::cerr << "reprise: " << refusal(told);
        return no_answer;
    }
    if (process != 0) {
        return signal_process(at->to_text() + " answers " + std::to_string(told.status));
    }
    std::cerr << "reprise: " << refusal(told);
    return no;
}

int commands::what_was_said::signal_process(const std::string& why) const {
    std::cerr << "reprise: " << why << '\n';
    if (process == 0) {
        return no_answer;
    }
    if (::kill(process, SIGHUP) != 0) {
        const boost::system::error_code error{errno, boost::system::system_category()};
        std::cerr << "reprise: SIGHUP to process " << process << ": " << error.message() << '\n';
        return no_answer;
    }
    std::cerr << "reprise: process " << process
              << " is told by SIGHUP to read its settings; its log says what became of that\n";
    return done;
}

}  // namespace reprise::proxy::admin
