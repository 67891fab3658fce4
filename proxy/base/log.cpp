#include "proxy/base/log.hpp"

#include "proxy/base/clock.hpp"
#include "proxy/base/recent_lines.hpp"
#include "proxy/base/stderr_sink.hpp"
#include "proxy/base/text.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <pthread.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>

namespace reprise::proxy {

namespace {

// With longest_line this is at most 8 MiB of lines that wait, some hundred in practice.
constexpr std::size_t queue_lines = 4096;

// For the last lines, when nobody reads standard error.
constexpr std::chrono::milliseconds last_wait{500};

constexpr spdlog::level::level_enum level_of(config::log_level level) noexcept {
    switch (level) {
    case config::log_level::trace: return spdlog::level::trace;
    case config::log_level::debug: return spdlog::level::debug;
    case config::log_level::info: return spdlog::level::info;
    case config::log_level::warn: return spdlog::level::warn;
    case config::log_level::error: return spdlog::level::err;
    case config::log_level::off: break;
    }
    return spdlog::level::off;
}

constexpr const char* name_of(config::log_level level) noexcept {
    switch (level) {
    case config::log_level::trace: return "trace";
    case config::log_level::debug: return "debug";
    case config::log_level::info: return "info";
    case config::log_level::warn: return "warning";
    case config::log_level::error: return "error";
    case config::log_level::off: break;
    }
    return "off";
}

struct running_log {
    std::shared_ptr<stderr_sink> sink;
    std::shared_ptr<spdlog::details::thread_pool> pool;
    std::shared_ptr<spdlog::async_logger> logger;
};

std::atomic<int> least_level{static_cast<int>(config::log_level::info)};
// A log is a program's one global by nature: a line may come from anywhere. Only diagnostic_log
// writes it, before and after the threads that read it.
std::atomic<running_log*> running{nullptr};
std::atomic<std::uint64_t> lines_dropped{0};
constinit recent_lines recent_troubles;

}  // namespace

diagnostic_log::diagnostic_log(config::log_level level) {
    set_log_level(level);
    auto log = std::make_unique<running_log>();
    log->pool = std::make_shared<spdlog::details::thread_pool>(queue_lines, 1, [] {
        sigset_t all;
        sigfillset(&all);  // signals are the main thread's
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
    });
    log->sink = std::make_shared<stderr_sink>();
    log->logger = std::make_shared<spdlog::async_logger>(
        "reprise", log->sink, log->pool, spdlog::async_overflow_policy::overrun_oldest);
    log->logger->set_level(spdlog::level::trace);  // least_level decides, before a line is made
    log->logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l: %v", spdlog::pattern_time_type::utc));
    running.store(log.release(), std::memory_order_release);
}

diagnostic_log::~diagnostic_log() {
    const std::unique_ptr<running_log> log{running.exchange(nullptr)};
    if (log) {
        const auto overrun = log->pool->overrun_counter();
        log->sink->leave(last_wait);
        log->pool.reset();  // its thread writes what is queued and ends: only then may its sink go
        lines_dropped += overrun + log->sink->dropped();
        log->logger.reset();
    }
}

void set_log_level(config::log_level level) noexcept {
    least_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

std::uint64_t log_lines_dropped() noexcept {
    const auto* log = running.load(std::memory_order_acquire);
    return lines_dropped + (log ? log->pool->overrun_counter() + log->sink->dropped() : 0);
}

namespace log {

bool enabled(config::log_level level) noexcept {
    return static_cast<int>(level) >= least_level.load(std::memory_order_relaxed) &&
           level != config::log_level::off;
}

const recent_lines& recent() noexcept {
    return recent_troubles;
}

void write(config::log_level level, std::string_view line) noexcept {
    if (!enabled(level)) {
        return;
    }
    try {
        auto text = printable(line.substr(0, longest_line));
        if (line.size() > longest_line) {
            text.append("...");
        }
        if (level >= config::log_level::warn) {
            recent_troubles.note(wall_now(), level, text);
        }
        if (const auto* log = running.load(std::memory_order_acquire)) {
            log->logger->log(level_of(level), spdlog::string_view_t{text.data(), text.size()});
        } else {
            std::fprintf(stderr, "%s: %s\n", name_of(level), text.c_str());
        }
    } catch (...) {
        // Out of memory: the line is lost.
    }
}

}  // namespace log
}  // namespace reprise::proxy
