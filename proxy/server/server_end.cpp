#include "proxy/base/log.hpp"
#include "proxy/server/endings.hpp"
#include "proxy/server/listening_worker.hpp"
#include "proxy/server/server.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

// The end, in an order in which nothing outlives what it uses: clients, workers, what memory leaves
// to the disk, and what writes files. Each has its own patience, and the process ends whatever hangs.

namespace reprise::proxy::server {

namespace {

/// Beside what timeouts.drain has left: for workers, and for what writes files.
constexpr std::chrono::seconds workers_patience{3}, files_patience{5};
/// Of the former: for a loop that did not come to its end by itself, and is stopped.
constexpr std::chrono::milliseconds time_to_stop_loops{500};
/// Of the latter: for what memory leaves to the disk, and at the least for closing it.
constexpr std::chrono::seconds time_to_leave{5}, time_to_close_files{3};
/// What a service manager gives beside the drain: all of the above, an upgrade that is given up, and the return
/// of a memory store of any size to the system. The unit's own TimeoutStopSec is as long, and so the least that
/// is ever given.
constexpr std::chrono::seconds time_after_drain{60};

}  // namespace

std::chrono::milliseconds server::time_to_stop() {
    return current()->options.timeouts.drain + time_after_drain;
}

// A handler that does not return (a file system that hangs is one that `stat` waits for) does so however its loop is
// stopped: its thread is left alone then, with all that it may use.
bool server::end_workers(steady_time until) {
    const auto has_ended = [](const listening_worker& one, steady_time by) {
        while (!one.ended.load(std::memory_order_acquire)) {
            if (steady_now() >= by) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
        }
        return true;
    };
    bool at_rest = true;
    for (auto& one : workers_) {
        // Those without a thread: there was none to be had.
        if (one->thread.joinable() && !has_ended(*one, until - time_to_stop_loops)) {
            log::error("a worker did not come to rest; it is stopped");
            one->w.io.stop();
            at_rest = false;
        }
    }
    for (auto& one : workers_) {
        if (!one->thread.joinable()) {
            continue;
        }
        if (has_ended(*one, until)) {
            one->thread.join();
        } else {
            log::error("stopping: not waited for any longer: a worker");
            one->thread.detach();
            hangs_ = true;
        }
    }
    return at_rest;
}

bool server::stop(const std::function<bool()>& hurry) {
    if (!running_) {
        return true;
    }
    running_ = false;
    bool at_rest = true;
    const auto give_up_on = [this, &at_rest](endings& some, steady_time until, auto also) {
        for (const auto& what : some.wait(until)) {
            log::error("stopping: not waited for any longer: ", what);
            also(what);
            at_rest = false;
            hangs_ = true;
        }
    };
    if (successor_ && !successor_->serves()) {
        endings upgrade;  // which may be at the disk
        upgrade.begin("an upgrade", [this] { successor_->abandon(); });
        give_up_on(upgrade, steady_now() + files_patience, [](const std::string&) {});
    }
    const bool succeeded = successor_ && successor_->serves();
    common_.succeeded.store(succeeded, std::memory_order_relaxed);
    common_.draining.store(true, std::memory_order_relaxed);
    if (common_.peers) {
        common_.peers->end_waits();
    }
    const auto& timeouts = current()->options.timeouts;
    const auto drain = succeeded ? timeouts.hand_over : timeouts.drain;
    for (auto& one : workers_) {
        asio::post(one->w.io, [own = one.get(), succeeded] {
            for (auto& listener : own->listeners) {
                listener->close();
            }
            if (!succeeded) {
                own->w.drain();
            }
        });
    }
    if (succeeded) {
        admin_->leave();
    }
    const auto all_quiet = [this] {
        // Idle origin connections and timers keep a loop alive; clients' connections are what is waited for,
        // those that shake hands yet, and those whose session is over and has left bytes to be carried.
        return common_.counters.snapshot().client_open == 0;
    };
    const auto until = steady_now() + drain;
    const auto is_hurried = [&hurry] { return hurry && hurry(); };
    while (steady_now() < until && !all_quiet() && !is_hurried()) {
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    if (common_.peers) {
        asio::post(workers_.front()->w.io, [this] { common_.peers->leave(); });
    }
    for (auto& one : workers_) {
        asio::post(one->w.io, [own = one.get()] { own->w.abort(); });
    }
    at_rest = end_workers(steady_now() + workers_patience) && at_rest;
    auto files_until = std::max(until, steady_now() + files_patience);
    if (!succeeded && is_hurried() && common_.store.disk() != nullptr) {
        log::warn("disk: asked to end at once: what memory alone held is lost");
    } else if (!succeeded && at_rest) {
        const auto most = std::min(steady_now() + time_to_leave, files_until - time_to_close_files);
        if (const auto left = common_.store.leave_to_disk(most, is_hurried); left > 0) {
            log::warn("disk: there was no time to write ", left, " bytes that memory held");
        }
    }
    // To go through all of a large memory may take longer than it was given, and the files are to have theirs.
    files_until = std::max(files_until, steady_now() + time_to_close_files);
    // Shared with a thread that may be waited for no longer.
    const auto is_saved = std::make_shared<std::atomic<bool>>(true);
    endings ends;
    ends.begin("the admin listener", [this] { admin_->stop(); });
    ends.begin("passwords", [this] { common_.passwords.finish(); });
    ends.begin("the digest", [this] {
        if (common_.peers) {
            common_.peers->stop();
        }
    });
    ends.begin("admission.state, or a reload", [this, is_saved] {
        aside_.finish();
        *is_saved = save_state();
    });
    ends.begin("the room in disk.path", [this] { room_.finish(); });
    ends.begin("disk.path", [this] {
        if (auto* disk = common_.store.disk()) {
            disk->stop();
        }
    });
    ends.begin("log.access", [this] { common_.access.stop(); });
    give_up_on(ends, files_until, [this](const std::string& what) {
        if (auto* disk = common_.store.disk(); disk != nullptr && what == "disk.path") {
            const auto left = disk->figures();
            log::error("disk: not written: at least ",
                       left.queued_bytes,
                       " bytes of responses and ",
                       left.queued_purges,
                       " purges; what these met may be back");
        }
    });
    return at_rest && *is_saved;
}

}  // namespace reprise::proxy::server
