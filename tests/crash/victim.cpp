#include "tests/crash/victim.hpp"

#include "tests/support/temp_dir.hpp"
#include "tests/support/waiting.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reprise::tests::crash {

namespace {

// It starts, serves and ends at once on a machine that has time for it. A run of half an hour does
// not fail because a machine has none for ten seconds.
constexpr std::chrono::minutes busy_machine{1};

pid_t spawn(const std::vector<std::string>& words,
            const std::string& output,
            const std::string& errors) {
    std::vector<std::string> copies{words};
    std::vector<char*> argv;
    for (auto& word : copies) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
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
        ::execvp(argv.front(), argv.data());
        ::_exit(127);
    }
    return child;
}

std::uint16_t port_in(const std::string& endpoint) {
    return static_cast<std::uint16_t>(std::stoul(endpoint.substr(endpoint.rfind(':') + 1)));
}

// The one child of a process, as proc(5) names it; the process itself while it has none.
pid_t child_of(pid_t parent) {
    const auto id = std::to_string(parent);
    std::ifstream in{"/proc/" + id + "/task/" + id + "/children"};
    pid_t child = parent;
    in >> child;
    return child;
}

std::uint64_t number_at(const json& stats, const char* place) {
    const json::json_pointer at{place};
    return stats.contains(at) && stats.at(at).is_number() ? stats.at(at).get<std::uint64_t>() : 0;
}

}  // namespace

victim::victim(const victim_options& options) : directory_{options.directory} {
    const auto file = [&](const char* name) { return directory_ + "/" + name; };
    std::ofstream{file("settings.json")} << options.settings.dump(2);
    std::filesystem::remove(file("ports.json"));
    auto words = options.prefix;
    for (const auto& word : {options.program,
                             std::string{"--config"},
                             file("settings.json"),
                             std::string{"--ports-file"},
                             file("ports.json")}) {
        words.push_back(word);
    }
    child_ = spawn(words, file("out"), file("err"));
    std::string ports;
    const bool told = eventually(
        [&] {
            ports = read_file(file("ports.json"));
            return !ports.empty() || wait(std::chrono::milliseconds{0});
        },
        busy_machine);
    if (ports.empty()) {
        if (!reaped_) {
            ::kill(child_, SIGKILL);
            (void)wait(patience);
        }
        throw std::runtime_error((told ? "it ended at once:\n" : "it was not ready in time:\n") +
                                 printed());
    }
    pid_ = options.prefix.empty() ? child_ : child_of(child_);
    const auto parsed = json::parse(ports);
    port_ = port_in(parsed.at("listeners").at(0).get<std::string>());
    admin_port_ = port_in(parsed.at("admin").get<std::string>());
}

victim::~victim() {
    if (!reaped_) {
        ::kill(pid_, SIGKILL);
        if (!wait(patience)) {
            ::kill(child_, SIGKILL);
            (void)wait(patience);
        }
    }
}

std::string victim::printed() const {
    const auto text = read_file(directory_ + "/err");
    constexpr std::size_t most = 6'000;
    return text.size() <= most ? text : "..." + text.substr(text.size() - most);
}

std::optional<int> victim::wait(std::chrono::milliseconds limit) {
    int status = 0;
    pid_t got = 0;
    const bool ended = eventually(
        [&] {
            got = ::waitpid(child_, &status, WNOHANG);
            return got != 0;
        },
        limit);
    if (!ended || got < 0) {
        return std::nullopt;
    }
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

store_figures victim::figures() const {
    client one{admin_port_};
    const auto answer = one.ask("GET /stats HTTP/1.1\r\nHost: 127.0.0.1:" +
                                std::to_string(admin_port_) + "\r\nConnection: close\r\n\r\n");
    const auto stats = json::parse(answer.body, nullptr, false);
    if (answer.status != 200 || stats.is_discarded()) {
        throw std::runtime_error("/stats answered " + std::to_string(answer.status));
    }
    store_figures out;
    const json::json_pointer state{"/disk/state"};
    if (stats.contains(state) && stats.at(state).is_string()) {
        out.state = stats.at(state).get<std::string>();
    }
    out.objects = number_at(stats, "/disk/objects");
    out.written = number_at(stats, "/disk/written_bytes");
    out.puts = number_at(stats, "/disk/puts");
    out.skipped = number_at(stats, "/disk/skipped");
    out.evicted = number_at(stats, "/disk/evicted");
    out.damaged = number_at(stats, "/disk/damaged");
    out.carried = number_at(stats, "/disk/carried");
    out.invalidated = number_at(stats, "/disk/invalidated");
    out.errors = number_at(stats, "/disk/errors/read") + number_at(stats, "/disk/errors/write");
    out.segments = number_at(stats, "/disk/segments");
    out.capacity = number_at(stats, "/disk/capacity_bytes");
    return out;
}

bool victim::wait_until_loaded() const {
    return eventually([&] { return figures().state != "loading"; }, busy_machine);
}

void victim::kill() {
    if (wait(std::chrono::milliseconds{0})) {
        throw std::runtime_error("it ended by itself:\n" + printed());
    }
    ::kill(pid_, SIGKILL);
    const auto status = wait(busy_machine);
    if (status != 128 + SIGKILL) {
        throw std::runtime_error("it ended by itself:\n" + printed());
    }
}

void victim::stop() {
    if (wait(std::chrono::milliseconds{0})) {
        throw std::runtime_error("it ended by itself:\n" + printed());
    }
    ::kill(pid_, SIGTERM);
    const auto status = wait(busy_machine);
    const auto text = printed();
    if (status != 0 || text.find("Sanitizer:") != std::string::npos ||
        text.find("runtime error:") != std::string::npos) {
        throw std::runtime_error("it ended with status " + std::to_string(status.value_or(-1)) +
                                 ":\n" + text);
    }
}

}  // namespace reprise::tests::crash
