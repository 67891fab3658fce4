#pragma once
// A measurement in a process of its own: nothing that another one left in memory counts, and it can
// be killed as a crash would. The parent must have one thread.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

namespace reprise::tools {

/// What a child says, at most once, and to whom it says it.
template <class Result>
class telling {
    static_assert(std::is_trivially_copyable_v<Result>);

public:
    explicit telling(int to) : to_{to} {}
    void operator()(const Result& result) const {
        if (::write(to_, &result, sizeof result) != sizeof result) {
            std::_Exit(1);
        }
    }

private:
    int to_;
};

enum class how_to_end { let_it, kill_it };

/// Runs `work(tell)` in a child and gives what it told. With kill_it the child is killed (SIGKILL)
/// the moment it has told, whatever it is doing then.
/// @throws std::runtime_error when it ends badly or without a word
template <class Result, class Work>
[[nodiscard]] Result in_child(how_to_end end, Work&& work) {
    int ends[2];
    if (::pipe(ends) != 0) {
        throw std::runtime_error("no pipe");
    }
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) {
        throw std::runtime_error("no child");
    }
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(ends[0]);
        try {
            work(telling<Result>{ends[1]});
        } catch (const std::exception& error) {
            std::fprintf(stderr, "bench_disk: %s\n", error.what());
            std::_Exit(1);
        }
        std::_Exit(0);
    }
    ::close(ends[1]);
    Result result{};
    const bool told = ::read(ends[0], &result, sizeof result) == sizeof result;
    ::close(ends[0]);
    if (told && end == how_to_end::kill_it) {
        ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool ended_well = end == how_to_end::kill_it || status == 0;
    if (!told || !ended_well) {
        throw std::runtime_error("a child failed");
    }
    return result;
}

}  // namespace reprise::tools
