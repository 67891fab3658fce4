#include "tools/bench_proxy/child.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace reprise::bench {

namespace {

pid_t fork_for(processor where) {
    const pid_t pid = ::fork();
    if (pid < 0) {
        throw std::runtime_error("no process can be made");
    }
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        std::signal(SIGINT, SIG_IGN);  // the bench is told, and stops its children
        std::signal(SIGTERM, SIG_DFL);
        stay_on(where);
    }
    return pid;
}

std::vector<pid_t> family_of(pid_t pid) {
    std::vector<pid_t> out{pid};
    const auto id = std::to_string(pid);
    std::ifstream children{"/proc/" + id + "/task/" + id + "/children"};
    for (pid_t one = 0; children >> one;) {
        const auto below = family_of(one);
        out.insert(out.end(), below.begin(), below.end());
    }
    return out;
}

}  // namespace

void stay_on(processor where) noexcept {
    const auto count = ::sysconf(_SC_NPROCESSORS_CONF);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count && i < CPU_SETSIZE; ++i) {
        if (where == processor::any || count < 2 || i == (where == processor::first ? 0 : 1)) {
            CPU_SET(i, &set);
        }
    }
    ::sched_setaffinity(0, sizeof set, &set);
}

child child::of_program(const start_of_program& start) {
    std::vector<char*> words;
    for (const auto& word : start.words) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    const pid_t pid = fork_for(start.where);
    if (pid == 0) {
        for (const auto& [name, value] : start.environment) {
            ::setenv(name.c_str(), value.c_str(), 1);
        }
        const int log = ::open(start.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        ::execvp(words[0], words.data());
        std::_Exit(127);
    }
    return child{pid};
}

child child::of_work(processor where, const std::function<void()>& work) {
    const pid_t pid = fork_for(where);
    if (pid == 0) {
        work();
        std::_Exit(0);
    }
    return child{pid};
}

child& child::operator=(child&& other) noexcept {
    if (this != &other) {
        stop();
        pid_ = std::exchange(other.pid_, -1);
    }
    return *this;
}

bool child::is_running() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
    }
    return pid_ > 0;
}

void child::stop() noexcept {
    if (pid_ <= 0) {
        return;
    }
    ::kill(pid_, SIGTERM);
    for (int i = 0; i < 1000 && is_running(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
}

double processor_seconds(pid_t pid) {
    double out = 0;
    for (const auto one : family_of(pid)) {
        clockid_t clock{};
        timespec used{};
        if (::clock_getcpuclockid(one, &clock) == 0 && ::clock_gettime(clock, &used) == 0) {
            out += static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
        }
    }
    return out;
}

double resident_bytes(pid_t pid) {
    double kib = 0;
    for (const auto one : family_of(pid)) {
        std::ifstream rollup{"/proc/" + std::to_string(one) + "/smaps_rollup"};
        for (std::string word; rollup >> word;) {
            double value = 0;
            if (word == "Rss:" && rollup >> value) {
                kib += value;
                break;
            }
        }
    }
    return kib * 1024;
}

}  // namespace reprise::bench
