// What the preloaded library of tools/bench_proxy is tried on: one thread, called "worker", that
// looks at its events a known number of times and once computes between two looks; and another
// that has to wait for a mutex, once.

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

namespace {

double processor_ms() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) * 1e3 + static_cast<double>(used.tv_nsec) / 1e6;
}

/// Whether another thread sleeps for it: what glibc keeps in the mutex then.
bool is_waited_for(std::mutex& mutex) {
    return __atomic_load_n(&mutex.native_handle()->__data.__lock, __ATOMIC_RELAXED) == 2;
}

}  // namespace

int main() {
    ::prctl(PR_SET_NAME, "worker");
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event ready{};
    for (int look = 0; look < 101; ++look) {
        ::epoll_wait(poll, &ready, 1, 0);
        if (look == 50) {
            for (const auto begin = processor_ms(); processor_ms() - begin < 20;) {
            }
        }
    }

    std::mutex mutex;
    mutex.lock();
    std::thread other{[&] {
        ::prctl(PR_SET_NAME, "other");
        const std::lock_guard lock{mutex};
    }};
    const auto most = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (!is_waited_for(mutex) && std::chrono::steady_clock::now() < most) {
        std::this_thread::yield();
    }
    mutex.unlock();
    other.join();
}
