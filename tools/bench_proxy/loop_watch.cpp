#include "tools/bench_proxy/loop_watch.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace reprise::bench {

namespace {

std::string name_of(const loop_times::slot& slot) {
    char name[17] = {};
    for (std::size_t i = 0; i < 2; ++i) {
        const auto word = slot.name[i].load(std::memory_order_relaxed);
        std::memcpy(name + 8 * i, &word, sizeof word);
    }
    return name;
}

/// The function that an address of the program's is in, where binutils are there to say so.
std::string function_at(const std::string& program, std::uint64_t address) {
    std::array<char, 1000> text{};
    std::snprintf(text.data(),
                  text.size(),
                  "addr2line -fCse '%s' 0x%llx 2>/dev/null",
                  program.c_str(),
                  static_cast<unsigned long long>(address - 1));
    std::string out;
    if (FILE* const pipe = ::popen(text.data(), "r")) {
        if (std::fgets(text.data(), text.size(), pipe) != nullptr) {
            out = text.data();
        }
        ::pclose(pipe);
    }
    if (out.empty() || out.front() == '?') {
        std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(address));
        out = text.data();
    }
    return out.substr(0, out.find_first_of("(\n"));
}

}  // namespace

std::vector<std::string> longest_waits(const std::map<std::uint64_t, loop_figures::waits>& at,
                                       const std::string& program,
                                       std::size_t most) {
    std::vector<std::pair<std::uint64_t, loop_figures::waits>> sorted{at.begin(), at.end()};
    std::sort(sorted.begin(), sorted.end(), [](const auto& one, const auto& other) {
        return one.second.longest > other.second.longest;
    });
    sorted.resize(std::min(sorted.size(), most));
    std::vector<std::string> out;
    for (const auto& [place, waits] : sorted) {
        std::array<char, 100> text{};
        std::snprintf(text.data(),
                      text.size(),
                      "of %llu waits the longest %.3f ms in ",
                      static_cast<unsigned long long>(waits.count),
                      static_cast<double>(waits.longest) / 1e6);
        out.push_back(text.data() + function_at(program, place));
    }
    return out;
}

loop_watch::loop_watch(std::string file) : file_{std::move(file)} {
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    void* at = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, sizeof(loop_times)) == 0) {
        at = ::mmap(nullptr, sizeof(loop_times), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        ::close(fd);
    }
    if (at == MAP_FAILED) {
        throw std::runtime_error("cannot map " + file_);
    }
    times_ = static_cast<loop_times*>(at);
}

loop_watch::~loop_watch() {
    ::munmap(times_, sizeof(loop_times));
}

void loop_watch::begin_turn() noexcept {
    times_->turn.fetch_add(1, std::memory_order_release);
}

std::unique_ptr<loop_figures> loop_watch::figures(const std::string& thread_name) const {
    auto out = std::make_unique<loop_figures>();
    const auto turn = times_->turn.load(std::memory_order_acquire);
    for (const auto& slot : times_->threads) {
        if (slot.turn.load(std::memory_order_acquire) != turn ||
            (!thread_name.empty() && name_of(slot) != thread_name)) {
            continue;
        }
        if (slot.held.longest() >= out->held.longest()) {
            out->events_at_longest = slot.events_at_longest.load(std::memory_order_relaxed);
        }
        const auto longs = std::min<std::uint64_t>(slot.longs.load(std::memory_order_relaxed),
                                                   loop_times::long_spans);
        for (std::size_t i = 0; i < longs; ++i) {
            const auto& one = slot.last_longs[i];
            out->longs.push_back({.thread = slot.thread.load(std::memory_order_relaxed),
                                  .began = one.began.load(std::memory_order_relaxed),
                                  .ended = one.ended.load(std::memory_order_relaxed),
                                  .held = one.held.load(std::memory_order_relaxed),
                                  .events = one.events.load(std::memory_order_relaxed)});
        }
        out->held.take_in(slot.held);
        out->held_by_few.take_in(slot.held_by_few);
        out->passed.take_in(slot.passed);
        out->waited.take_in(slot.waited);
        out->locks += slot.locks.load(std::memory_order_relaxed);
        for (const auto& place : slot.where) {
            const auto waits = place.waits.load(std::memory_order_relaxed);
            if (waits > 0) {
                auto& at = out->waits_at[place.caller.load(std::memory_order_relaxed)];
                at.count += waits;
                at.longest = std::max(at.longest, place.longest.load(std::memory_order_relaxed));
            }
        }
    }
    return out;
}

}  // namespace reprise::bench
