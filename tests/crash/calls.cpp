#include "tests/crash/calls.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace reprise::tests::crash {

namespace {

constexpr std::array always_forbidden{
    "open",     "openat",    "openat2", "creat",      "fsync",      "fdatasync",       "sync",
    "syncfs",   "msync",     "unlink",  "unlinkat",   "rename",     "renameat",        "renameat2",
    "truncate", "ftruncate", "link",    "linkat",     "fallocate",  "mkdir",           "mkdirat",
    "rmdir",    "stat",      "lstat",   "newfstatat", "getdents64", "sync_file_range", "flock",
};
// Never forbidden: they show that the threads in question are seen at all.
constexpr std::array of_sockets{"recvmsg", "sendmsg", "recvfrom", "sendto"};
constexpr std::array forbidden_on_files{
    "read",
    "readv",
    "pread64",
    "preadv",
    "preadv2",
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "sendfile",
    "copy_file_range",
    "splice",
};

template <class Names>
bool is_one_of(const Names& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// The first descriptor of the call is a file with a path that is no device: "pread64(7</a/b>, ...".
// Sockets and pipes have no slash there.
bool is_on_file(std::string_view arguments) {
    const auto at = arguments.find('<');
    const auto comma = arguments.find(',');
    if (at == std::string_view::npos || at > comma) {
        return false;
    }
    const auto path = arguments.substr(at + 1);
    return path.starts_with('/') && !path.starts_with("/dev/");
}

}  // namespace

call_figures& call_figures::operator+=(const call_figures& other) {
    seen += other.seen;
    no_wait += other.no_wait;
    of_others += other.of_others;
    for (const auto& [name, count] : other.by_name) {
        by_name[name] += count;
    }
    forbidden.insert(forbidden.end(), other.forbidden.begin(), other.forbidden.end());
    forbidden_count += other.forbidden_count;
    return *this;
}

std::vector<std::string> strace_words(const std::string& log) {
    std::string names;
    for (const auto* name : always_forbidden) {
        names += std::string{names.empty() ? "" : ","} + "?" + name;
    }
    for (const auto* name : forbidden_on_files) {
        names += std::string{",?"} + name;
    }
    for (const auto* name : of_sockets) {
        names += std::string{",?"} + name;
    }
    return {"strace",
            "--follow-forks",
            "--seccomp-bpf",

            "--decode-fds=path",
            "--quiet=all",
            "--string-limit=0",
            "--output=" + log,
            "--trace=" + names};
}

call_figures read_calls(const std::string& log, const std::set<pid_t>& loops) {
    call_figures out;
    std::ifstream in{log};
    std::map<pid_t, std::string> begun;  // calls that another thread's came between
    // "1234 pread64(7</store/s-00000001>, ...", in two lines if another thread's call came between:
    // "1234 preadv2(7</store/s-00000001>,  <unfinished ...>", "1234 <... preadv2 resumed>[...".
    for (std::string line; std::getline(in, line);) {
        const auto thread = static_cast<pid_t>(std::atol(line.c_str()));
        if (const auto cut = line.find(" <unfinished ...>"); cut != std::string::npos) {
            begun[thread] = line.substr(0, cut);
            continue;
        }
        if (line.find(" <... ") != std::string::npos) {
            line = begun[thread] + line.substr(std::min(line.find('>') + 1, line.size()));
        }
        const auto space = line.find(' ');
        const auto paren = line.find('(');
        if (space == std::string::npos || paren == std::string::npos) {
            continue;  // a signal, an end
        }
        const auto begin = line.find_first_not_of(' ', space);
        if (!loops.contains(thread)) {
            ++out.of_others;
            continue;
        }
        const auto name = line.substr(begin, paren - begin);
        const auto arguments = std::string_view{line}.substr(paren + 1);
        ++out.seen;
        ++out.by_name[name];
        const bool no_wait = name == "preadv2" &&
                             arguments.find("RWF_NOWAIT") != std::string_view::npos;
        out.no_wait += no_wait ? 1 : 0;
        if (is_one_of(always_forbidden, name) ||
            (is_one_of(forbidden_on_files, name) && is_on_file(arguments) && !no_wait)) {
            ++out.forbidden_count;
            if (out.forbidden.size() < 10) {
                out.forbidden.push_back(line);
            }
        }
    }
    return out;
}

}  // namespace reprise::tests::crash
