#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "tests/support/caught_stderr.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;

namespace {

// What standard error gets while `work` runs.
template <class Work>
std::string caught_from_stderr(Work work) {
    const tests::caught_stderr caught;
    work();
    return caught.text();
}

}  // namespace

TEST_SUITE("base/log") {
    TEST_CASE(
        "a line that can come at any rate comes once a minute, and says how often it did not") {
        log::seldom line;
        const steady_time start{std::chrono::hours{1}};
        CHECK(line.due(start) == "");
        for (int i = 0; i < 100; ++i) {
            CHECK_FALSE(line.due(start + std::chrono::milliseconds{599 * i}));
        }
        CHECK(line.due(start + std::chrono::seconds{60}) ==
              " (and 100 times since this was said last)");
        CHECK_FALSE(line.due(start + std::chrono::seconds{119}));
        CHECK(line.due(start + std::chrono::seconds{200}) ==
              " (and 1 times since this was said last)");
        CHECK(line.due(start + std::chrono::seconds{400}) == "");
    }

    TEST_CASE("lines below the level are not written, and the level can change") {
        const auto text = caught_from_stderr([] {
            const diagnostic_log running{config::log_level::warn};
            log::info("hidden");
            log::warn("shown ", 42, " of ", std::string{"these"});
            set_log_level(config::log_level::debug);
            log::debug("now shown");
            set_log_level(config::log_level::off);
            log::error("hidden too");
        });
        CHECK(text.find("warning: shown 42 of these\n") != std::string::npos);
        CHECK(text.find("debug: now shown\n") != std::string::npos);
        CHECK(text.find("hidden") == std::string::npos);
        set_log_level(config::log_level::info);
    }

    TEST_CASE("what a stranger sent can neither forge a line nor drive a terminal") {
        const auto text = caught_from_stderr([] {
            const diagnostic_log running{config::log_level::info};
            log::info("got ", "x\n2024 error: forged\x1b[2J {} %s");
        });
        CHECK(text.ends_with("got x\\x0a2024 error: forged\\x1b[2J {} %s\n"));
    }

    TEST_CASE("without a running log lines go straight out") {
        const auto text = caught_from_stderr([] { log::error("early"); });
        CHECK(text == "error: early\n");
    }

    TEST_CASE("long lines are cut") {
        const auto text = caught_from_stderr([] { log::error(std::string(100'000, 'x')); });
        CHECK(text == "error: " + std::string(log::longest_line, 'x') + "...\n");
    }

    TEST_CASE("many threads may log at once; what is not overrun is whole") {
        const auto text = caught_from_stderr([] {
            const diagnostic_log running{config::log_level::info};
            std::vector<std::jthread> threads;
            for (int i = 0; i < 4; ++i) {
                threads.emplace_back([] {
                    for (int n = 0; n < 500; ++n) {
                        log::info("line ", n, " ends");
                    }
                });
            }
            threads.clear();
        });
        std::size_t lines = 0, whole = 0;
        for (std::size_t at = 0; at < text.size(); ++lines) {
            const auto end = text.find('\n', at);
            whole += text.substr(at, end - at).ends_with(" ends");
            at = end + 1;
        }
        CHECK(lines == 2000);  // fewer than the queue holds
        CHECK(whole == lines);
        CHECK(log_lines_dropped() == 0);
    }

    TEST_CASE("a standard error that nobody reads does not hold up the end") {
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const int saved = ::dup(STDERR_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        const auto before = log_lines_dropped();
        {
            const diagnostic_log running{config::log_level::info};
            for (int i = 0; i < 200; ++i) {
                log::info(std::string(1000, 'x'));  // more than any pipe holds by default
            }
        }
        ::dup2(saved, STDERR_FILENO);
        ::close(saved);
        CHECK(log_lines_dropped() > before);
        ::close(ends[0]);
        ::close(ends[1]);
    }

}  // TEST_SUITE
