#include "tests/judge/starver.hpp"

#include "tests/support/temp_dir.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <vector>

namespace reprise::tests::judge {

namespace {

std::vector<pid_t> workers_of(pid_t program) {
    std::vector<pid_t> out;
    std::error_code bad;
    const std::filesystem::path tasks = "/proc/" + std::to_string(program) + "/task";
    for (const auto& one : std::filesystem::directory_iterator{tasks, bad}) {
        if (read_file(one.path() / "comm").starts_with("worker")) {
            out.push_back(std::stoi(one.path().filename().string()));
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

starver::starver(pid_t program,
                 std::size_t worker,
                 std::chrono::milliseconds halted,
                 std::chrono::milliseconds running) {
    const auto threads = workers_of(program);
    if (!threads.empty()) {
        const auto one = threads[worker % threads.size()];
        tracer_ = std::thread{[this, one, halted, running] { starve(one, halted, running); }};
    }
}

starver::~starver() {
    stop_ = true;
    if (tracer_.joinable()) {
        tracer_.join();
    }
}

void starver::starve(pid_t thread,
                     std::chrono::milliseconds halted,
                     std::chrono::milliseconds running) {
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
        return;
    }
    while (!stop_) {
        if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) {
            return;
        }
        int status = 0;
        if (::waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
            return;
        }
        std::this_thread::sleep_for(halted);
        // A stop for a signal gives it on; that of our own interruption has none.
        const bool ours = status >> 16 == PTRACE_EVENT_STOP;
        const auto signal = ours ? 0 : WSTOPSIG(status);
        if (stop_ ? ::ptrace(PTRACE_DETACH, thread, nullptr, signal) != 0
                  : ::ptrace(PTRACE_CONT, thread, nullptr, signal) != 0) {
            return;
        }
        if (stop_) {
            return;
        }
        std::this_thread::sleep_for(running);
    }
    // Detaching needs a thread that has stopped; the end of the tracer detaches as well.
}

}  // namespace reprise::tests::judge
