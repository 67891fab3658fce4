#include "tests/crash/figures.hpp"

#include "tests/support/waiting.hpp"

#include <csignal>
#include <stdexcept>

namespace reprise::tests::crash {

namespace {

[[noreturn]] void fail(const proxy_process& program, const std::string& what) {
    const auto text = program.errors();
    constexpr std::size_t most = 6'000;
    throw std::runtime_error(
        what + ":\n" + (text.size() <= most ? text : "..." + text.substr(text.size() - most)));
}

}  // namespace

store_figures figures_of(const proxy_process& program) {
    const auto stats = program.stats();
    const auto at = [&](const char* place) {
        return stats.value(json::json_pointer{place}, std::uint64_t{0});
    };
    store_figures out;
    out.state = stats.value(json::json_pointer{"/disk/state"}, out.state);
    out.objects = at("/disk/objects");
    out.written = at("/disk/written_bytes");
    out.puts = at("/disk/puts");
    out.skipped = at("/disk/skipped");
    out.evicted = at("/disk/evicted");
    out.damaged = at("/disk/damaged");
    out.carried = at("/disk/carried");
    out.invalidated = at("/disk/invalidated");
    out.errors = at("/disk/errors/read") + at("/disk/errors/write");
    out.segments = at("/disk/segments");
    out.behind = stats.value(json::json_pointer{"/disk/behind_seconds"}, 0.0);
    return out;
}

bool wait_until_loaded(const proxy_process& program) {
    return eventually([&] { return figures_of(program).state != "loading"; }, busy_machine);
}

void kill(proxy_process& program) {
    program.kill();
    if (program.wait() != 128 + SIGKILL) {
        fail(program, "it ended by itself");
    }
}

void stop(proxy_process& program) {
    if (!program.is_running()) {
        fail(program, "it ended by itself");
    }
    if (const int status = program.stop(); status != 0 || program.has_sanitizer_report()) {
        fail(program, "it ended with status " + std::to_string(status));
    }
}

}  // namespace reprise::tests::crash
