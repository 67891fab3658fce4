#include "proxy/cache/disk/readers.hpp"

#include <algorithm>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {
constexpr unsigned looks_of_patience = 4;
}  // namespace

reader_pool::reader_pool(limits bounds) : bounds_{bounds} {
    threads_.reserve(bounds_.threads);
    for (std::size_t i = 0; i < bounds_.threads; ++i) {
        threads_.emplace_back([this] { read(); });
    }
    watcher_ = std::thread{[this] { watch(); }};
}

reader_pool::~reader_pool() {
    stop();
}

bool reader_pool::submit(std::shared_ptr<read_job> job, bool urgent) {
    bool first = false;
    {
        const std::lock_guard lock{guard_};
        if (stopping_ || held_up_ >= bounds_.threads ||
            (!urgent && waiting_.size() >= bounds_.most_waiting)) {
            return false;
        }
        job->since_ = looks_;
        waiting_.push_back(std::move(job));
        first = std::exchange(watcher_sleeps_, false);
    }
    work_.notify_one();
    if (first) {
        watched_.notify_one();
    }
    return true;
}

void reader_pool::stop() {
    std::deque<std::shared_ptr<read_job>> left;
    {
        const std::lock_guard lock{guard_};
        stopping_ = true;
        left.swap(waiting_);
    }
    work_.notify_all();
    watched_.notify_all();
    for (const auto& job : left) {
        if (job->end_as(read_job::stage::late)) {
            job->sleeper_.notify();
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
        auto job = std::move(waiting_.front());
        waiting_.pop_front();
        if (job->what() != read_job::stage::waiting) {
            continue;
        }
        running_.push_back(job);
        lock.unlock();
        job->run();
        const bool in_time = job->end_as(read_job::stage::done);
        if (in_time) {
            job->sleeper_.notify();
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
    std::vector<std::shared_ptr<read_job>> late;
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
        for (const auto& job : running_) {
            if (overdue(job)) {
                late.push_back(job);
            }
        }
        held_up_ += late.size();
        std::erase_if(running_, overdue);
        while (!waiting_.empty() && overdue(waiting_.front())) {
            late.push_back(std::move(waiting_.front()));
            waiting_.pop_front();
        }
        lock.unlock();
        for (const auto& job : late) {
            if (job->end_as(read_job::stage::late)) {
                job->sleeper_.notify();
            }
        }
        late.clear();
        lock.lock();
    }
}

}  // namespace reprise::proxy::cache::disk
