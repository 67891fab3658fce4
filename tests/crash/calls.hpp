#pragma once
// Which system calls the threads of the program made, as strace wrote them down, and which of
// those an event loop must not make: whatever opens, syncs, unlinks, renames or resizes a file, and
// reading or writing one where that may wait for a disk.
//
// Allowed: preadv2 with RWF_NOWAIT, which does not wait; sockets, pipes, eventfds and devices,
// which are no files on a disk.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reprise::tests::crash {

/// How strace is to be run so that read_calls understands it. `log` is the file that it writes.
[[nodiscard]] std::vector<std::string> strace_words(const std::string& log);

struct call_figures {
    std::uint64_t seen = 0;                        ///< calls of the threads in question
    std::uint64_t no_wait = 0;                     ///< of these, preadv2 with RWF_NOWAIT
    std::uint64_t of_others = 0;                   ///< calls of all other threads
    std::map<std::string, std::uint64_t> by_name;  ///< of the threads in question
    std::vector<std::string> forbidden;            ///< lines of the log, the first few
    std::uint64_t forbidden_count = 0;

    call_figures& operator+=(const call_figures& other);
};
/// `loops`: the ids of the threads in question.
[[nodiscard]] call_figures read_calls(const std::string& log, const std::set<pid_t>& loops);

}  // namespace reprise::tests::crash
