#pragma once
// The bench's side of loop_times.hpp: a file for one program, and what its threads noted in it.

#include "tools/bench_proxy/loop_times.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reprise::bench {

/// What all threads of one name noted since the turn began.
struct loop_figures {
    span_histogram held, held_by_few, passed, waited;
    std::uint64_t locks = 0;
    std::uint64_t events_at_longest = 0;
    struct long_span {
        pid_t thread = 0;
        std::uint64_t began = 0, ended = 0, held = 0, events = 0;
    };
    std::vector<long_span> longs;
    struct waits {
        std::uint64_t count = 0, longest = 0;
    };
    std::map<std::uint64_t, waits> waits_at;  ///< by the address that called the lock
};

/// The places that waited for longest, "of N waits the longest 0.120 ms in FUNCTION": by the name of
/// the function in `program` where binutils are there to say it, else by its address.
[[nodiscard]] std::vector<std::string> longest_waits(
    const std::map<std::uint64_t, loop_figures::waits>& at,
    const std::string& program,
    std::size_t most);

class loop_watch {
public:
    /// Makes the file. @throws std::runtime_error
    explicit loop_watch(std::string file);
    loop_watch(const loop_watch&) = delete;
    loop_watch& operator=(const loop_watch&) = delete;
    ~loop_watch();

    [[nodiscard]] const std::string& file() const noexcept { return file_; }
    /// From now on spans are noted; what was noted before is forgotten.
    void begin_turn() noexcept;
    /// The figures of the threads with that name; "" is all of them.
    [[nodiscard]] std::unique_ptr<loop_figures> figures(const std::string& thread_name) const;

private:
    std::string file_;
    loop_times* times_ = nullptr;
};

}  // namespace reprise::bench
