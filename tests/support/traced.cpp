#include "tests/support/traced.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace reprise::tests {

bool can_strace() {
    return std::system("strace --follow-forks --seccomp-bpf --output=/dev/null "
                       "true >/dev/null 2>&1") == 0;
}

std::set<pid_t> threads_named(pid_t program, const std::string& name) {
    std::set<pid_t> out;
    const auto tasks = "/proc/" + std::to_string(program) + "/task";
    for (const auto& one : std::filesystem::directory_iterator{tasks}) {
        std::string comm;
        std::getline(std::ifstream{one.path() / "comm"} >> std::ws, comm);
        if (comm == name) {
            out.insert(static_cast<pid_t>(std::stol(one.path().filename())));
        }
    }
    return out;
}

}  // namespace reprise::tests
