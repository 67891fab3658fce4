#include "proxy/cache/disk/readers.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {
constexpr unsigned looks_of_patience = 4;
constexpr std::chrono::milliseconds memory_may_come_in{5};
}  // namespace

// Nobody else would wake it.
void read_job::wake() const noexcept {
    for (;;) {
        try {
            sleeper_.notify();
            return;
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(memory_may_come_in);
        }
    }
}

reader_pool::reader_pool(limits bounds) : bounds_{bounds} {
    try {
        threads_.reserve(bounds_.threads);
        for (std::size_t i = 0; i < bounds_.threads; ++i) {
            threads_.emplace_back([this] { read(); });
        }
        watcher_ = std::thread{[this] { watch(); }};
    } catch (...) {
        stop();
        throw;
    }
}

reader_pool::~reader_pool() {
    stop();
}

bool reader_pool::submit(std::shared_ptr<read_job> job, bool urgent) noexcept {
    bool first = false;
    jobs added;
    try {
        added.push_back(std::move(job));
    } catch (const std::bad_alloc&) {
        return false;
    }
    {
        const std::lock_guard lock{guard_};
        if (stopping_ || held_up_ >= bounds_.threads ||
            (!urgent && waiting_.size() >= bounds_.most_waiting)) {
            return false;
        }
        added.front()->since_ = looks_;
        waiting_.splice(waiting_.end(), added);
        first = std::exchange(watcher_sleeps_, false);
    }
    work_.notify_one();
    if (first) {
        watched_.notify_one();
    }
    return true;
}

void reader_pool::stop() {
    jobs left;
    {
        const std::lock_guard lock{guard_};
        stopping_ = true;
        left.swap(waiting_);
    }
    work_.notify_all();
    watched_.notify_all();
    for (const auto& job : left) {
        if (job->end_as(read_job::stage::late)) {
            job->wake();
        }
    }
    for (auto& thread : threads_) {
        if (thread.joinable()) {
            thread.join();
        }
    }
    if (watcher_.joinable()) {
        watcher_.join();
    }
}

void reader_pool::read() {
    std::unique_lock lock{guard_};
    for (;;) {
        work_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) {
            return;
        }
        const auto job = waiting_.front();
        if (job->what() != read_job::stage::waiting) {
            waiting_.pop_front();
            continue;
        }
        running_.splice(running_.end(), waiting_, waiting_.begin());
        lock.unlock();
        job->run();
        if (job->end_as(read_job::stage::done)) {
            job->wake();
        }
        lock.lock();
        const auto place = std::find(running_.begin(), running_.end(), job);
        if (place == running_.end()) {
            --held_up_;  // the watcher took it for late
        } else {
            running_.erase(place);
        }
    }
}

void reader_pool::watch() {
    std::unique_lock lock{guard_};
    jobs late;
    while (!stopping_) {
        if (waiting_.empty() && running_.empty()) {
            watcher_sleeps_ = true;
            watched_.wait(lock, [this] { return stopping_ || !watcher_sleeps_; });
            continue;
        }
        watched_.wait_for(lock, bounds_.patience / looks_of_patience, [this] { return stopping_; });
        ++looks_;
        // The first of them may have come right behind the job.
        const auto overdue = [now = looks_](const auto& job) {
            return now - job->since_ > looks_of_patience;
        };
        for (auto job = running_.begin(); job != running_.end();) {
            const auto one = job++;
            if (overdue(*one)) {
                late.splice(late.end(), running_, one);
                ++held_up_;
            }
        }
        while (!waiting_.empty() && overdue(waiting_.front())) {
            late.splice(late.end(), waiting_, waiting_.begin());
        }
        lock.unlock();
        for (const auto& job : late) {
            if (job->end_as(read_job::stage::late)) {
                job->wake();
            }
        }
        late.clear();
        lock.lock();
    }
}

}  // namespace reprise::proxy::cache::disk
