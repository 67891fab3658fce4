#include "proxy/base/access_log.hpp"

#include "proxy/base/access_formats.hpp"
#include "proxy/base/access_lane.hpp"
#include "proxy/base/line_writer.hpp"
#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

// Threads that log push lines to their lanes. The log's thread empties these a few times a second
// into one queue of whole lines, writes that out, and carries out changes of the target.

namespace reprise::proxy {

namespace {

constexpr int round_ms = 100;                // between two looks at the lanes
constexpr std::chrono::seconds patience{2};  // with a reader that reads nothing, when we must go on
constexpr std::size_t queue_most = 4 << 20;  // bytes; one lane more may be added to it

using lane_ptr = std::shared_ptr<access_lane>;

// The lane of this thread, in the log that it used last. A thread that alternates between two logs
// makes a lane at every change; a program has one.
struct lane_of_thread {
    std::uint64_t log = 0;
    lane_ptr lane;

    ~lane_of_thread() { leave(); }
    void leave() noexcept {
        if (lane) {
            lane->abandoned.store(true, std::memory_order_release);
            lane.reset();
        }
    }
};
thread_local lane_of_thread this_thread;

std::atomic<std::uint64_t> logs_made{0};

}  // namespace

class access_log::writer {
public:
    writer() : wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (wake_fd_ < 0) {
            throw boost::system::system_error{errno, boost::system::system_category(), "eventfd"};
        }
    }
    ~writer() {
        stop();
        ::close(wake_fd_);
    }
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

    // Producers.

    void write(const access_record& record, config::log_format format, bool query_values) noexcept {
        try {
            auto& lane = lane_here();
            lane.scratch.clear();
            switch (format) {
            case config::log_format::json:
                append_access_line(lane.scratch, record, query_values);
                break;
            case config::log_format::squid:
                append_squid_line(lane.scratch, record, query_values);
                break;
            case config::log_format::combined:
                append_combined_line(lane.scratch, record, query_values);
                break;
            }
            lane.lines.add();  // once it is one: what could not be made is counted by itself
            const bool taken = lane.push(lane.scratch);
            if (!taken) {
                lane.dropped.add();
            }
            if (!taken || lane.half_full()) {
                wake_once();
            }
        } catch (...) {
            // No memory for a lane or a line: a request is worth more than its log line.
            lines_unmade_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    // Whoever configures.

    // False: it was stopped, and nothing is logged any more.
    bool retarget(log_output next) {
        {
            const std::lock_guard lock{mutex_};
            if (stopping_) {
                return false;
            }
            if (!thread_.joinable() && next.is_open()) {
                thread_ = std::thread{[this] { run(); }};
            }
            commands_.push_back({mark_lanes(), std::move(next)});
        }
        wake();
        return true;
    }

    void reopen() {
        {
            const std::lock_guard lock{mutex_};
            commands_.push_back({mark_lanes(), std::nullopt});
        }
        wake();
    }

    void stop() noexcept {
        std::thread ending;
        {
            const std::lock_guard lock{mutex_};
            stopping_ = true;
            ending = std::move(thread_);
        }
        wake();
        if (ending.joinable()) {
            ending.join();
        }
    }

    access_log_figures figures() const noexcept {
        const std::lock_guard lock{mutex_};
        const auto unmade = lines_unmade_.load(std::memory_order_relaxed);
        access_log_figures sum{.lines = lines_of_ended_ + unmade,
                               .dropped = dropped_of_ended_ + unmade +
                                          dropped_writing_.load(std::memory_order_relaxed),
                               .errors = errors_.load(std::memory_order_relaxed) +
                                         round_failures_.load(std::memory_order_relaxed),
                               .last_refusal = last_refusal_};
        for (const auto& lane : lanes_) {
            sum.lines += lane->lines.read();
            sum.dropped += lane->dropped.read();
        }
        return sum;
    }

private:
    access_lane& lane_here() {
        if (this_thread.log != id_) {
            this_thread.leave();
            auto lane = std::make_shared<access_lane>(lane_bytes);
            {
                const std::lock_guard lock{mutex_};
                lanes_.push_back(lane);
            }
            this_thread.lane = std::move(lane);
            this_thread.log = id_;
        }
        return *this_thread.lane;
    }

    void wake() noexcept {
        const std::uint64_t one = 1;
        // Fails only when the count is at its top: then the other end is awake already.
        [[maybe_unused]] const auto wrote = ::write(wake_fd_, &one, sizeof one);
    }

    // One system call between two rounds of the writer, however many lines want it woken.
    void wake_once() noexcept {
        if (!woken_.exchange(true, std::memory_order_relaxed)) {
            wake();
        }
    }

    using marks = std::vector<std::pair<lane_ptr, std::size_t>>;

    // A change of target, with how far each lane had got: lines before that go to the old one.
    struct command {
        marks until;
        std::optional<log_output> next;  ///< none: reopen the file
    };

    // Under the lock.
    marks mark_lanes() const {
        marks until;
        for (const auto& lane : lanes_) {
            until.emplace_back(lane, lane->head());
        }
        return until;
    }

    // The log's thread.

    void run() noexcept {
        sigset_t all;
        sigfillset(&all);  // signals are the main thread's; SIGPIPE becomes EPIPE
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "access-log");
        bool again = false;  // the last round failed, and nobody else will wake us for another
        for (bool last = false; !last;) {
            pollfd wait{wake_fd_, POLLIN, 0};
            ::poll(&wait, 1, lines_.output().is_open() || again ? round_ms : -1);
            std::uint64_t count = 0;
            [[maybe_unused]] const auto read = ::read(wake_fd_, &count, sizeof count);
            if (lines_.queued() == 0) {  // else full lanes would have it spin
                woken_.store(false, std::memory_order_relaxed);
            }
            try {
                again = true;
                last = round();
                say_errors();
                again = false;
            } catch (...) {
                // No memory for the queue: the lanes keep their lines, the next round may do
                // better.
                round_failures_.fetch_add(1, std::memory_order_relaxed);
            }
            dropped_writing_.store(lines_.dropped(), std::memory_order_relaxed);
            errors_.store(lines_.errors() + reopen_failures_, std::memory_order_relaxed);
        }
    }

    // Where a disk is full nobody else tells the operator why lines are lost.
    void say_errors() {
        if (lines_.errors() == errors_said_) {
            return;
        }
        errors_said_ = lines_.errors();
        {
            const std::lock_guard lock{mutex_};
            last_refusal_ = {lines_.last_error(), steady_now()};
        }
        if (const auto more = refused_.due()) {
            log::warn("log.access: lines are lost, since they can't be written: ",
                      lines_.last_error().message(),
                      *more);
        }
    }

    // Empties the lanes once and carries out what was asked; true when it was asked to stop.
    bool round() {
        marks upto;
        std::vector<command> commands;
        bool last = false;
        {
            const std::lock_guard lock{mutex_};
            // What is handed over from here on may stand behind a command that is not among these.
            upto = mark_lanes();
            commands.swap(commands_);
            last = stopping_;
        }
        const auto deadline = std::chrono::steady_clock::now() + patience;
        for (auto& each : commands) {
            for (const auto& [lane, end] : each.until) {
                gather(*lane, end);
            }
            lines_.flush(deadline, -1);
            if (each.next) {
                lines_.replace(std::move(*each.next));
            } else {
                reopen_output();
            }
        }
        if (last) {
            // Once more for what a full queue left behind: to be written or counted as dropped.
            for (bool left = true; left;) {
                for (auto& [lane, end] : upto) {
                    end = lane->head();
                }
                left = gather_all(upto);
                lines_.flush(deadline, -1);
            }
        } else {
            (void)gather_all(upto);
            lines_.flush(std::nullopt, wake_fd_);
        }
        return last;
    }

    // True when something was left in a lane.
    [[nodiscard]] bool gather_all(const marks& upto) {
        bool left = false;
        for (const auto& [lane, end] : upto) {
            // Read before the lane is seen to be empty: nothing can follow then.
            const bool ended = lane->abandoned.load(std::memory_order_acquire);
            gather(*lane, end);
            left = left || !lane->empty();
            if (ended && lane->empty()) {
                forget(lane);
            }
        }
        return left;
    }

    // A lane holds whole lines, so taking all of it keeps the queue in whole lines. What is too
    // much stays in the lane, whose thread then drops its newest lines: memory is bounded.
    void gather(access_lane& lane, std::size_t end) {
        if (lines_.queued() > queue_most) {
            return;
        }
        for (auto text = lane.peek(end); !text.empty(); text = lane.peek(end)) {
            lines_.append(text);
            lane.take(text.size());
        }
    }

    void forget(const lane_ptr& lane) {
        const std::lock_guard lock{mutex_};
        if (std::erase(lanes_, lane) > 0) {
            lines_of_ended_ += lane->lines.read();
            dropped_of_ended_ += lane->dropped.read();
        }
    }

    void reopen_output() {
        const auto& path = lines_.output().path();
        if (path.empty()) {
            return;
        }
        auto again = log_output::open(path);
        if (again) {
            lines_.replace(std::move(*again));
            return;
        }
        ++reopen_failures_;
        log::error("log.access: cannot reopen ",
                   path,
                   " (",
                   again.error().message(),
                   "); going on with the old file");
    }

    const std::uint64_t id_ = logs_made.fetch_add(1, std::memory_order_relaxed) + 1;
    const int wake_fd_;
    std::atomic<bool> woken_{false};

    mutable std::mutex mutex_;
    std::vector<lane_ptr> lanes_;
    std::vector<command> commands_;
    bool stopping_ = false;
    std::uint64_t lines_of_ended_ = 0, dropped_of_ended_ = 0;
    std::optional<access_log_figures::refusal> last_refusal_;
    std::thread thread_;

    line_writer lines_;              ///< the log's thread alone
    std::uint64_t errors_said_ = 0;  ///< the same
    log::seldom refused_;
    std::uint64_t reopen_failures_ = 0;  ///< the log's thread alone

    std::atomic<std::uint64_t> lines_unmade_{0};
    std::atomic<std::uint64_t> dropped_writing_{0};
    std::atomic<std::uint64_t> errors_{0};
    std::atomic<std::uint64_t> round_failures_{0};
};

access_log::access_log() : writer_{std::make_unique<writer>()} {}

access_log::~access_log() {
    stop();
}

void access_log::write(const access_record& record) noexcept {
    if (enabled()) {
        writer_->write(record,
                       format_.load(std::memory_order_relaxed),
                       query_values_.load(std::memory_order_relaxed));
    }
}

unsigned access_log::weight_of(outcome how, unsigned status) const noexcept {
    const auto sample = sample_.load(std::memory_order_relaxed);
    const bool failed = how == outcome::client_error || how == outcome::refused ||
                        how == outcome::error || how == outcome::cut_short || status >= 500;
    if (sample <= 1 || failed) {
        return 1;
    }
    thread_local unsigned passed_over = 0;
    if (++passed_over < sample) {
        return 0;
    }
    passed_over = 0;
    return sample;
}

boost::system::error_code access_log::retarget(const config::log_options& wanted) {
    auto output = log_output::open(wanted.access);
    if (!output) {
        return output.error();
    }
    const bool on = output->is_open();
    bool is_taken = false;
    try {
        is_taken = writer_->retarget(std::move(*output));
    } catch (const std::system_error& no_thread) {
        return {no_thread.code().value(), boost::system::system_category()};
    }
    adopt(wanted);
    enabled_.store(is_taken && on, std::memory_order_relaxed);
    return {};
}

void access_log::adopt(const config::log_options& wanted) noexcept {
    query_values_.store(wanted.query_values, std::memory_order_relaxed);
    format_.store(wanted.format, std::memory_order_relaxed);
    sample_.store(wanted.sample, std::memory_order_relaxed);
}

void access_log::reopen() noexcept {
    try {
        writer_->reopen();
    } catch (...) {
        log::error("log.access: no memory to reopen it");
    }
}

void access_log::stop() noexcept {
    enabled_.store(false, std::memory_order_relaxed);
    writer_->stop();
}

access_log_figures access_log::figures() const noexcept {
    return writer_->figures();
}

}  // namespace reprise::proxy
