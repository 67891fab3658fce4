// Preloaded into a program under measurement: notes for how long each thread's event loop is held
// between two looks at its events (epoll_wait, epoll_pwait), and how often a thread has to wait for
// a mutex. The program itself is unchanged. Two readings of the thread's processor clock a look
// (some 0.3 us each) are what it adds; so nothing that is measured in processor time a request is
// measured with it.

#include "tools/bench_proxy/loop_times.hpp"

#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace {

using reprise::bench::loop_times;

loop_times* times() noexcept {
    static loop_times* const mapped = []() -> loop_times* {
        const char* const file = std::getenv(reprise::bench::loop_times_variable);
        const int fd = file != nullptr ? ::open(file, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) {
            return nullptr;
        }
        void* const at = ::mmap(
            nullptr, sizeof(loop_times), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return at == MAP_FAILED ? nullptr : static_cast<loop_times*>(at);
    }();
    return mapped;
}

// While the environment is there: some programs (nginx) clear theirs when they begin.
__attribute__((constructor)) void map_at_once() {
    (void)times();
}

std::uint64_t now(clockid_t clock) noexcept {
    timespec at{};
    ::clock_gettime(clock, &at);
    return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(at.tv_nsec);
}

// Plain data: such a thread_local has no destructor that could run before the thread's last lock.
struct this_thread {
    loop_times::slot* slot;
    bool asked;                     ///< for a slot; there may be none left
    bool looked;                    ///< the two below were set in this turn
    std::uint64_t processor, wall;  ///< when the last look ended
    int events;                     ///< that it brought
};
thread_local this_thread mine;

void clear(loop_times::slot& slot) noexcept {
    slot.held.clear();
    slot.held_by_few.clear();
    slot.passed.clear();
    slot.waited.clear();
    slot.locks.store(0, std::memory_order_relaxed);
    slot.events_at_longest.store(0, std::memory_order_relaxed);
    slot.longs.store(0, std::memory_order_relaxed);
    slot.thread.store(::gettid(), std::memory_order_relaxed);
    for (auto& place : slot.where) {
        place.caller.store(0, std::memory_order_relaxed);
        place.waits.store(0, std::memory_order_relaxed);
        place.longest.store(0, std::memory_order_relaxed);
    }
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    std::uint64_t words[2];
    std::memcpy(words, name, sizeof words);
    slot.name[0].store(words[0], std::memory_order_relaxed);
    slot.name[1].store(words[1], std::memory_order_relaxed);
}

/// This thread's slot, of the present turn; none while nothing is measured.
loop_times::slot* slot_of_this_turn() noexcept {
    auto* const all = times();
    if (all == nullptr) {
        return nullptr;
    }
    const auto turn = all->turn.load(std::memory_order_acquire);
    if (turn == 0) {
        return nullptr;
    }
    if (!mine.asked) {
        mine.asked = true;
        const auto number = all->taken.fetch_add(1, std::memory_order_relaxed);
        mine.slot = number < loop_times::slots ? &all->threads[number] : nullptr;
    }
    if (mine.slot != nullptr && mine.slot->turn.load(std::memory_order_relaxed) != turn) {
        clear(*mine.slot);
        mine.looked = false;
        mine.slot->turn.store(turn, std::memory_order_release);
    }
    return mine.slot;
}

void note_long(loop_times::slot& slot, std::uint64_t held, std::uint64_t ended) noexcept {
    const auto number = slot.longs.load(std::memory_order_relaxed);
    auto& one = slot.last_longs[number % loop_times::long_spans];
    one.began.store(mine.wall, std::memory_order_relaxed);
    one.ended.store(ended, std::memory_order_relaxed);
    one.held.store(held, std::memory_order_relaxed);
    one.events.store(static_cast<std::uint64_t>(mine.events), std::memory_order_relaxed);
    slot.longs.store(number + 1, std::memory_order_relaxed);
}

void before_look() noexcept {
    auto* const slot = slot_of_this_turn();
    if (slot == nullptr || !mine.looked) {
        return;
    }
    const auto held = now(CLOCK_THREAD_CPUTIME_ID) - mine.processor;
    const auto wall = now(CLOCK_MONOTONIC);
    if (held > slot->held.longest()) {
        slot->events_at_longest.store(static_cast<std::uint64_t>(mine.events),
                                      std::memory_order_relaxed);
    }
    if (held >= loop_times::long_from) {
        note_long(*slot, held, wall);
    }
    slot->held.note(held);
    if (static_cast<std::uint64_t>(mine.events) <= loop_times::few) {
        slot->held_by_few.note(held);
    }
    slot->passed.note(wall - mine.wall);
}

void after_look(int events) noexcept {
    if (slot_of_this_turn() != nullptr) {
        mine.events = events > 0 ? events : 0;
        mine.processor = now(CLOCK_THREAD_CPUTIME_ID);
        mine.wall = now(CLOCK_MONOTONIC);
        mine.looked = true;
    }
}

template <class Function>
Function next_of(const char* name) noexcept {
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void note_wait(loop_times::slot& slot, const void* caller, std::uint64_t span) noexcept {
    slot.waited.note(span);
    Dl_info file{};
    const auto address = reinterpret_cast<std::uint64_t>(caller);
    const auto base = ::dladdr(caller, &file) != 0 ? reinterpret_cast<std::uint64_t>(file.dli_fbase)
                                                   : std::uint64_t{0};
    for (auto& place : slot.where) {
        const auto known = place.caller.load(std::memory_order_relaxed);
        if (known == 0 || known == address - base) {
            place.caller.store(address - base, std::memory_order_relaxed);
            place.waits.store(place.waits.load(std::memory_order_relaxed) + 1,
                              std::memory_order_relaxed);
            if (span > place.longest.load(std::memory_order_relaxed)) {
                place.longest.store(span, std::memory_order_relaxed);
            }
            return;
        }
    }
}

}  // namespace

extern "C" int epoll_wait(int poll, epoll_event* events, int most, int timeout) {
    static const auto real = next_of<int (*)(int, epoll_event*, int, int)>("epoll_wait");
    before_look();
    const int ready = real(poll, events, most, timeout);
    after_look(ready);
    return ready;
}

extern "C" int epoll_pwait(
    int poll, epoll_event* events, int most, int timeout, const sigset_t* mask) {
    static const auto real = next_of<int (*)(int, epoll_event*, int, int, const sigset_t*)>(
        "epoll_pwait");
    before_look();
    const int ready = real(poll, events, most, timeout, mask);
    after_look(ready);
    return ready;
}

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
    static const auto real = next_of<int (*)(pthread_mutex_t*)>("pthread_mutex_lock");
    static const auto attempt = next_of<int (*)(pthread_mutex_t*)>("pthread_mutex_trylock");
    auto* const slot = slot_of_this_turn();
    if (slot == nullptr) {
        return real(mutex);
    }
    slot->locks.store(slot->locks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (attempt(mutex) == 0) {
        return 0;
    }
    const auto began = now(CLOCK_MONOTONIC);
    const int result = real(mutex);
    note_wait(*slot, __builtin_return_address(0), now(CLOCK_MONOTONIC) - began);
    return result;
}
