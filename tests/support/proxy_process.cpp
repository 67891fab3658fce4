#include "tests/support/proxy_process.hpp"

#include "tests/support/complaint.hpp"
#include "tests/support/under_test.hpp"
#include "tests/support/waiting.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#ifndef REPRISE_PROGRAM
#error "REPRISE_PROGRAM must be the path of the program under test"
#endif

namespace reprise::tests {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (auto& word : words) {
        out.push_back(word.data());
    }
    return out;
}

/// Starts a program, looked for in PATH, with its output in files. It dies with the thread that
/// started it.
pid_t spawn(std::vector<std::string> words,
            const std::string& output,
            const std::string& errors,
            std::vector<std::string> environment = {}) {
    auto argv = pointers_to(words);
    argv.push_back(nullptr);
    auto envp = pointers_to(environment);
    for (char** inherited = environ; *inherited != nullptr; ++inherited) {
        envp.push_back(*inherited);
    }
    envp.push_back(nullptr);

    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
        throw std::runtime_error("fork failed");
    }
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(126);
        }
        const int in = ::open("/dev/null", O_RDONLY);
        const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        const int err = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        if (in < 0 || out < 0 || err < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 ||
            ::dup2(err, 2) < 0) {
            ::_exit(126);
        }
        ::execvpe(argv.front(), argv.data(), envp.data());
        ::_exit(127);
    }
    return child;
}

int status_of(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

std::optional<int> wait_for(pid_t child, std::chrono::milliseconds limit) {
    int status = 0;
    pid_t got = 0;
    const bool ended = eventually(
        [&] {
            got = ::waitpid(child, &status, WNOHANG);
            return got != 0;
        },
        limit);
    if (!ended || got < 0) {
        return std::nullopt;
    }
    return status_of(status);
}

/// The one child of a process, as proc(5) names it; the process itself while it has none.
pid_t child_of(pid_t parent) {
    const auto id = std::to_string(parent);
    std::ifstream in{"/proc/" + id + "/task/" + id + "/children"};
    pid_t child = parent;
    in >> child;
    return child;
}

std::uint16_t port_in(const std::string& endpoint) {
    return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
}

std::size_t status_kibibytes(pid_t pid, std::string_view name) {
    std::ifstream in{"/proc/" + std::to_string(pid) + "/status"};
    std::string word;
    while (in >> word) {
        if (word == name) {
            std::size_t kibibytes = 0;
            in >> kibibytes;
            return kibibytes;
        }
    }
    return 0;
}

}  // namespace

std::string program_under_test() {
    return told("REPRISE_PROGRAM", REPRISE_PROGRAM);
}

json basic_settings() {
    return json{
        {"listeners", json::array({json{{"address", "127.0.0.1:0"}}})},
        {"admin", {{"address", "127.0.0.1:0"}}},
        {"threads", 2},
        {"access", {{"allow_destinations", json::array({"127.0.0.0/8"})}}},
        {"timeouts", {{"drain", "500ms"}}},
        {"log", {{"access", "-"}, {"level", "info"}}},
    };
}

json storing_settings() {
    auto settings = basic_settings();
    settings["admission"] = "always";
    return settings;
}

json disk_of_all_admitted(const std::string& path, const std::string& size) {
    return {{"path", path},
            {"size", size},
            {"write", "admission"},
            {"carry", 0.25},
            {"selective", false}};
}

json tls_listener(const temp_dir& files, const made_certificate& made) {
    return {{"address", "127.0.0.1:0"},
            {"tls",
             {{"certificate", files.write("certificate.pem", made.certificate)},
              {"key", files.write("key.pem", made.key)}}}};
}

finished_program run_to_its_end(const std::vector<std::string>& words,
                                std::chrono::milliseconds limit) {
    const temp_dir directory;
    const auto child = spawn(words, directory.file("out"), directory.file("err"));
    const auto status = wait_for(child, limit);
    if (!status) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        throw std::runtime_error(words.front() + " did not end in time");
    }
    return {*status, read_file(directory.file("out")), read_file(directory.file("err"))};
}

finished_program run_reprise(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), program_under_test());
    return run_to_its_end(arguments);
}

proxy_process::proxy_process(const json& settings, const std::vector<std::string>& environment)
    : proxy_process{settings, start_options{.environment = environment}} {}

proxy_process::proxy_process(const json& settings, start_options how) : how_{std::move(how)} {
    directory_.write("settings.json", settings.dump(2));
    start();
}

void proxy_process::start() {
    const auto ports_file = directory_.file("ports.json");
    auto words = how_.run_by;
    words.insert(words.end(),
                 {how_.program.empty() ? program_under_test() : how_.program,
                  "--config",
                  directory_.file("settings.json"),
                  "--ports-file",
                  ports_file,
                  "--pid-file",
                  directory_.file("pid")});
    // The system's authorities vouch for no origin here, and take a sanitizer half a second to read.
    auto environment = how_.environment;
    environment.push_back("SSL_CERT_FILE=/dev/null");  // of two, the first counts
    child_ = pid_ = spawn(words, directory_.file("out"), directory_.file("err"), environment);
    std::string ports;
    const bool ready = eventually(
        [&] {
            ports = read_file(ports_file);
            return !ports.empty() || !is_running();
        },
        how_.limit);
    if (ports.empty()) {
        const auto what = ready ? "ended with status " + std::to_string(exit_status_.value_or(-1))
                                : std::string{"was not ready in time"};
        if (!exit_status_) {
            ::kill(child_, SIGKILL);
            ::waitpid(child_, nullptr, 0);
        }
        throw std::runtime_error("reprise " + what + ":\n" + errors());
    }
    if (!how_.run_by.empty()) {
        pid_ = child_of(child_);
    }
    const auto parsed = json::parse(ports);
    for (const auto& listener : parsed.at("listeners")) {
        ports_.push_back(port_in(listener.get<std::string>()));
    }
    if (parsed.contains("admin") && parsed.at("admin").is_string()) {
        admin_port_ = port_in(parsed.at("admin").get<std::string>());
    }
}

proxy_process::~proxy_process() {
    const int status = stop();
    const auto printed = errors();
    // Whoever kills what has ended already, with a status that was looked at, means that, too.
    const bool was_meant = killed_ && (status == 128 + SIGKILL || status == 1);
    if (status != 0 && !was_meant) {
        complain("reprise ended with status " + std::to_string(status) + ":\n" + printed);
    } else if (has_sanitizer_report()) {
        complain("a sanitizer reported:\n" + printed);
    }
}

void proxy_process::kill() {
    killed_ = true;
    signal(SIGKILL);
    (void)wait();
}

void proxy_process::signal(int number) const {
    ::kill(pid_, number);
}

std::optional<int> proxy_process::wait() {
    return wait(how_.limit);
}

std::optional<int> proxy_process::wait(std::chrono::milliseconds limit) {
    if (!exit_status_) {
        exit_status_ = wait_for(child_, limit);
    }
    return exit_status_;
}

bool proxy_process::is_running() {
    return !wait(std::chrono::milliseconds{0});
}

bool proxy_process::upgrade() {
    // What our child starts is ours once the child has ended.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    const auto said = errors().size();
    signal(SIGUSR2);
    pid_t next = pid_;
    (void)eventually(
        [&] {
            const auto serves = "upgrade: process " + read_file(directory_.file("pid"));
            const auto drains = serves.substr(0, serves.find('\n')) + " serves; draining";
            if (errors().find(drains, said) != std::string::npos) {
                std::ifstream{directory_.file("pid")} >> next;
            }
            const auto answered = errors().substr(said);
            return next != pid_ || answered.find("this program goes on") != std::string::npos ||
                   answered.find(": not now") != std::string::npos || !is_running();
        },
        how_.limit);
    if (next == pid_) {
        return false;
    }
    if (const auto ended = std::exchange(exit_status_, std::nullopt); !ended) {
        before_.push_back(pid_);
    } else if (*ended != 0) {
        complain("a program that another took over from did not end well:\n" + errors());
    }
    child_ = pid_ = next;
    return true;
}

bool proxy_process::have_others_ended(std::chrono::milliseconds limit) {
    bool well = true;
    for (const auto one : std::exchange(before_, {})) {
        const auto status = wait_for(one, limit);
        if (!status) {
            ::kill(one, SIGKILL);
            (void)wait_for(one, limit);
        }
        well = well && status == 0;
    }
    return well;
}

int proxy_process::stop() {
    for (const auto one : before_) {
        ::kill(one, SIGTERM);
    }
    if (!have_others_ended(how_.limit)) {
        complain("a program that another took over from did not end well:\n" + errors());
    }
    if (is_running()) {
        signal(SIGTERM);
        if (!wait()) {
            signal(SIGKILL);
            (void)wait();
        }
    }
    return exit_status_.value_or(-1);
}

void proxy_process::rewrite_settings(const json& settings) const {
    auto fixed = settings;
    for (std::size_t i = 0; i < ports_.size() && i < fixed["listeners"].size(); ++i) {
        fixed["listeners"][i]["address"] = "127.0.0.1:" + std::to_string(ports_[i]);
    }
    if (admin_port_ != 0) {
        fixed["admin"]["address"] = "127.0.0.1:" + std::to_string(admin_port_);
    }
    rewrite_settings_text(fixed.dump(2));
}

void proxy_process::rewrite_settings_text(std::string_view text) const {
    directory_.write("settings.json", text);
}

void proxy_process::reload(const json& settings) const {
    const auto before = errors().size();
    rewrite_settings(settings);
    signal(SIGHUP);
    (void)eventually([&] {
        const auto said = errors().substr(before);
        return said.find("settings reloaded") != std::string::npos ||
               said.find("settings not changed") != std::string::npos;
    });
}

std::size_t proxy_process::resident_bytes() const {
    return status_kibibytes(pid_, "VmRSS:") * 1024;
}

std::size_t proxy_process::peak_resident_bytes() const {
    return status_kibibytes(pid_, "VmHWM:") * 1024;
}

void proxy_process::forget_peak() const {
    // proc(5): writing 5 resets the peak to the present value.
    std::ofstream{"/proc/" + std::to_string(pid_) + "/clear_refs"} << "5";
}

std::string proxy_process::output() const {
    return read_file(directory_.file("out"));
}
std::string proxy_process::errors() const {
    return read_file(directory_.file("err"));
}

bool proxy_process::says(std::string_view text) const {
    return eventually([&] { return errors().find(text) != std::string::npos; });
}

bool proxy_process::has_sanitizer_report() const {
    const auto text = errors();
    return text.find("Sanitizer:") != std::string::npos ||
           text.find("runtime error:") != std::string::npos;
}

std::vector<json> proxy_process::access_log() const {
    std::istringstream in{output()};
    std::vector<json> out;
    for (std::string line; std::getline(in, line);) {
        if (in.eof()) {
            break;  // the last line is still being written
        }
        auto parsed = json::parse(line, nullptr, false);
        if (parsed.is_discarded()) {
            complain("not JSON in the access log: " + line);
            continue;
        }
        out.push_back(std::move(parsed));
    }
    return out;
}

json proxy_process::logged(std::string_view url_part) const {
    json found;
    (void)eventually([&] {
        for (const auto& line : access_log()) {
            if (line.contains("url") &&
                line["url"].get<std::string>().find(url_part) != std::string::npos) {
                found = line;
                return true;
            }
        }
        return false;
    });
    return found;
}

response proxy_process::admin(std::string_view path) const {
    client one{admin_port_};
    return one.ask("GET " + std::string{path} + " HTTP/1.1\r\nHost: 127.0.0.1:" +
                   std::to_string(admin_port_) + "\r\nConnection: close\r\n\r\n");
}

json proxy_process::stats() const {
    const auto answer = admin("/stats");
    auto parsed = json::parse(answer.body, nullptr, false);
    if (answer.status != 200 || parsed.is_discarded()) {
        throw std::runtime_error("/stats answered " + std::to_string(answer.status) + ": " +
                                 answer.body);
    }
    return parsed;
}

response proxy_process::get(std::string_view url, std::string_view fields) const {
    return ask("GET", url, fields);
}

client proxy_process::connect(std::string_view first) const {
    client one{port()};
    if (!first.empty()) {
        one.send(first);
    }
    return one;
}

response proxy_process::ask(std::string_view method,
                            std::string_view url,
                            std::string_view fields) const {
    auto one = connect();
    return one.ask(absolute_request(method, url, fields));
}

std::string absolute_request(std::string_view method,
                             std::string_view url,
                             std::string_view fields,
                             std::string_view body) {
    auto authority = url.substr(std::min(url.find("://") + 3, url.size()));
    authority = authority.substr(0, authority.find_first_of("/?#"));
    std::string out{method};
    out += " ";
    out += url;
    out += " HTTP/1.1\r\nHost: ";
    out += authority;
    out += "\r\n";
    out += fields;
    if (!body.empty()) {
        out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    out += "\r\n";
    out += body;
    return out;
}

}  // namespace reprise::tests
