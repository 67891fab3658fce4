#include "tools/replay/run.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace reprise::replay {

namespace {

// Small enough for a batch to stay in a core's cache while model after model goes over it.
constexpr std::size_t batch_size = 1u << 15;

// Threads that take models one by one, a batch at a time. Whoever starts a batch may do other work
// before it waits for the end, which includes working on the batch.
class crew {
public:
    crew(std::span<const std::unique_ptr<model>> models, unsigned threads)
        : models_{models},
          seconds_(models.size()) {
        const auto helpers = std::min<std::size_t>(std::max(threads, 1u) - 1, models.size());
        for (std::size_t i = 0; i < helpers; ++i) {
            threads_.emplace_back([this] { serve(); });
        }
    }

    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;

    ~crew() {
        {
            const std::lock_guard lock{guard_};
            closing_ = true;
        }
        changed_.notify_all();
        for (auto& thread : threads_) {
            thread.join();
        }
    }

    void start(const recorded_trace::batch& batch) {
        {
            const std::lock_guard lock{guard_};
            batch_ = &batch;
            taken_ = 0;
            left_ = models_.size();
        }
        changed_.notify_all();
    }

    void finish() {
        std::unique_lock lock{guard_};
        while (take_one(lock)) {
        }
        changed_.wait(lock, [this] { return left_ == 0; });
        batch_ = nullptr;
        if (failed_) {
            std::rethrow_exception(std::exchange(failed_, nullptr));
        }
    }

    /// That each model took. After finish().
    [[nodiscard]] const std::vector<double>& seconds() const noexcept { return seconds_; }

private:
    void serve() {
        std::unique_lock lock{guard_};
        for (;;) {
            changed_.wait(lock, [this] {
                return closing_ || (batch_ != nullptr && taken_ < models_.size());
            });
            if (closing_) {
                return;
            }
            take_one(lock);
        }
    }

    bool take_one(std::unique_lock<std::mutex>& lock) {
        if (batch_ == nullptr || taken_ == models_.size()) {
            return false;
        }
        const auto index = taken_++;
        auto& mine = *models_[index];
        const auto& batch = *batch_;
        lock.unlock();
        const auto began = std::chrono::steady_clock::now();
        std::exception_ptr error;
        try {
            mine.feed(batch.requests, batch.objects);
        } catch (...) {
            error = std::current_exception();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        lock.lock();
        seconds_[index] += took.count();
        if (error && !failed_) {
            failed_ = error;
        }
        if (--left_ == 0) {
            changed_.notify_all();
        }
        return true;
    }

    std::span<const std::unique_ptr<model>> models_;
    std::vector<double> seconds_;
    std::vector<std::thread> threads_;
    std::mutex guard_;
    std::condition_variable changed_;
    const recorded_trace::batch* batch_ = nullptr;
    std::size_t taken_ = 0, left_ = 0;
    bool closing_ = false;
    std::exception_ptr failed_;
};

void tell(const std::function<void(double)>& progress, double share) {
    if (progress) {
        progress(share);
    }
}

// By a hash of the hash: sketches and filters find their places by bits of the key's, which must
// not all be alike.
bool is_in_sample(const request& one, double sample) noexcept {
    auto mixed = (one.key.low ^ (one.key.high >> 32)) * 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
    return static_cast<double>(mixed >> 32) < sample * 0x1p32;
}

}  // namespace

std::uint64_t recorded_trace::halve() {
    sample_ /= 2;
    std::uint64_t left = 0;
    for (auto& one : batches_) {
        std::erase_if(one.requests,
                      [this](const request& each) { return !is_in_sample(each, sample_); });
        one.requests.shrink_to_fit();
        left += one.requests.size();
    }
    return left;
}

void recorded_trace::number_anew(std::size_t objects) {
    constexpr auto none = ~object_number{0};
    std::vector<object_number> numbers(objects, none);
    object_number next = 0;
    for (auto& one : batches_) {
        for (auto& each : one.requests) {
            auto& number = numbers[each.object];
            if (number == none) {
                number = next++;
            }
            each.object = number;
        }
        one.objects = next;
    }
}

recorded_trace::recorded_trace(trace& from,
                               const std::function<void(double)>& progress,
                               std::uint64_t most) {
    constexpr double least_sample = 0x1p-20;
    std::uint64_t kept = 0;
    for (;;) {
        batch next;
        from.next(next.requests, batch_size);
        if (next.requests.empty()) {
            break;
        }
        next.objects = from.objects().size();
        if (sample_ < 1) {
            std::erase_if(next.requests,
                          [this](const request& each) { return !is_in_sample(each, sample_); });
            next.requests.shrink_to_fit();
        }
        kept += next.requests.size();
        batches_.push_back(std::move(next));
        while (kept > most && sample_ > least_sample) {
            kept = halve();
        }
        tell(progress, from.share_read());
    }
    if (sample_ < 1) {
        number_anew(from.objects().size());
    }
}

std::vector<double> run(const recorded_trace& requests,
                        std::span<const std::unique_ptr<model>> models,
                        unsigned threads,
                        const std::function<void(double)>& progress) {
    crew workers{models, threads};
    const auto batches = requests.batches();
    for (std::size_t i = 0; i < batches.size(); ++i) {
        workers.start(batches[i]);
        workers.finish();
        tell(progress, static_cast<double>(i + 1) / static_cast<double>(batches.size()));
    }
    return workers.seconds();
}

std::vector<double> run(trace& requests,
                        std::span<const std::unique_ptr<model>> models,
                        unsigned threads,
                        const std::function<void(double)>& progress) {
    crew workers{models, threads};
    recorded_trace::batch now, next;
    requests.next(now.requests, batch_size);
    now.objects = requests.objects().size();
    while (!now.requests.empty()) {
        workers.start(now);
        // Whatever happens, nobody may be left working on a batch that is gone.
        std::exception_ptr error;
        try {
            requests.next(next.requests, batch_size);
        } catch (...) {
            error = std::current_exception();
        }
        workers.finish();
        if (error) {
            std::rethrow_exception(error);
        }
        next.objects = requests.objects().size();
        std::swap(now, next);
        tell(progress, requests.share_read());
    }
    return workers.seconds();
}

}  // namespace reprise::replay
