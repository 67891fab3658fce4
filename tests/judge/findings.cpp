#include "tests/judge/findings.hpp"

#include <cstdio>

namespace reprise::tests::judge {

void findings::note(counts& in, const std::string& kind) {
    const std::lock_guard lock{guard_};
    ++in[kind];
}

void findings::wrong(const found_in& where, const std::string& kind, const std::string& words) {
    constexpr std::uint64_t enough = 5;  // of one kind in one world
    const std::lock_guard lock{guard_};
    const auto name = where.world + ": " + kind;
    ++wrong_[name];
    if (++told_[name] <= enough && loud_) {
        std::printf("wrong: %s: %s (seed %llu%s%s): %s\n",
                    where.world.c_str(),
                    kind.c_str(),
                    static_cast<unsigned long long>(where.seed),
                    where.circumstances.empty() ? "" : ", ",
                    where.circumstances.c_str(),
                    words.c_str());
        std::fflush(stdout);
    }
}

std::uint64_t findings::count() const {
    const std::lock_guard lock{guard_};
    std::uint64_t out = 0;
    for (const auto& [kind, times] : wrong_) {
        out += times;
    }
    return out;
}

std::string findings::table() const {
    const std::lock_guard lock{guard_};
    std::string out;
    const auto add = [&](const char* title, const counts& of) {
        out += "| " + std::string{title} + " | |\n|---|---|\n";
        for (const auto& [kind, times] : of) {
            out += "| " + kind + " | " + std::to_string(times) + " |\n";
        }
        out += "\n";
    };
    add("judged", judged_);
    add("not certain, so allowed", excused_);
    add("wrong", wrong_);
    return out;
}

}  // namespace reprise::tests::judge
