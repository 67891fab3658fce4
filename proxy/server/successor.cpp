#include "proxy/server/successor.hpp"

#include "proxy/base/log.hpp"

#include <boost/system/error_code.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

// One thread leads an upgrade from its beginning to its end, a message at a time, with a time for
// each. Whatever goes wrong before the next program accepts, for want of memory too, ends in the same
// place: that program is killed, and this one takes back what it has lent.

namespace reprise::proxy::server {

namespace {

std::string text_of_error(int error) {
    return boost::system::error_code{error, boost::system::system_category()}.message();
}

/// Starts the program with nothing open but the standard files and `end`, as descriptor 3, and with the
/// signals as at a start. 0, or why not.
int spawn(const std::vector<std::string>& words, int end, pid_t& child) {
    std::vector<char*> arguments;
    for (const auto& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));  // which execve does not change
    }
    arguments.push_back(nullptr);
    const std::string name{handover_variable};
    auto named = name + "=3";
    std::vector<char*> environment{named.data()};
    for (char** one = environ; *one != nullptr; ++one) {
        if (!std::string_view{*one}.starts_with(name + "=")) {
            environment.push_back(*one);
        }
    }
    environment.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, end, 3);
    posix_spawn_file_actions_addclosefrom_np(&files, 4);
    sigset_t none;
    sigset_t ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &ignored);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const auto failed = ::posix_spawnp(
        &child, words.front().c_str(), &files, &how, arguments.data(), environment.data());
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/// A file in memory with these bytes; none where there is no such thing to be had.
descriptor file_of(const char* name, std::span<const std::byte> bytes) {
    descriptor out{::memfd_create(name, MFD_CLOEXEC)};
    while (out && !bytes.empty()) {
        const auto count = ::write(out.get(), bytes.data(), bytes.size());
        if (count <= 0 && errno != EINTR) {
            return {};
        }
        bytes = bytes.subspan(static_cast<std::size_t>(count > 0 ? count : 0));
    }
    return out;
}

std::string how_it_ended(int status) {
    return WIFEXITED(status) ? "it ended with status " + std::to_string(WEXITSTATUS(status))
                             : "it was ended by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

successor::successor(std::vector<std::string> words,
                     estate of,
                     conversation::carry_out purges,
                     patience_with_successor patience)
    : words_{std::move(words)},
      estate_{std::move(of)},
      purges_{std::move(purges)},
      patience_{patience} {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::system_error{errno, std::system_category(), "socketpair"};
    }
    end_ = descriptor{ends[1]};
    with_ = std::make_shared<conversation>(descriptor{ends[0]});
    thread_ = std::thread{[this] { run(); }};
    ::pthread_setname_np(thread_.native_handle(), "upgrade");
}

successor::~successor() {
    abandon();
}

void successor::abandon() {
    abandoned_ = true;
    with_->interrupt();
    if (thread_.joinable()) {
        thread_.join();
    }
}

// Two programs and a copy of what admission remembers want more memory than this one has taken so far, so
// a lack of it is as good a reason as any.
void successor::run() {
    std::string why;
    try {
        why = hand_over();
    } catch (const std::bad_alloc&) {
        why = "out of memory";
    } catch (const std::exception& failed) {
        why = failed.what();
    }
    if (!why.empty()) {
        give_up(std::move(why));
        return;
    }
    serves_ = true;
    tell_succeeded();
    // From here on it is told of purges, and tells of them, until one of the two ends.
    with_->attend();
    with_->end();
    int status = 0;
    if (!abandoned_ && ::waitpid(child_, &status, 0) == child_) {
        log::error("upgrade: the next program has ended: ", how_it_ended(status));
    }
}

// Until this program knows it both accept.
void successor::tell_succeeded() noexcept {
    for (bool is_told = false; !is_told && !abandoned_;) {
        try {
            estate_.succeeded(child_);
            is_told = true;
        } catch (const std::exception&) {
            std::this_thread::sleep_for(until_memory);
        }
    }
}

void successor::give_up(std::string why) noexcept {
    try {
        why += end_it();
    } catch (const std::exception&) {
        // It has ended, and how there is no memory to say.
    }
    take_back();
    under_way_ = false;  // before it is said: whoever reads it may ask for the next upgrade at once
    // What the next program said of itself is in the log already, since it has our standard error.
    log::error("upgrade: ", why, "; this program goes on");
}

// Empty: the next program serves. Otherwise why not.
std::string successor::hand_over() {
    const auto failed = spawn(words_, end_.get(), child_);
    end_ = {};
    if (failed != 0) {
        child_ = -1;
        return "cannot start " + words_.front() + ": " + text_of_error(failed);
    }
    log::info("upgrade: started ", words_.front(), " as process ", child_);
    with_->send({handover_kind::hello, handover_version, estate_.pseudonym});
    for (auto& one : estate_.sockets) {
        with_->send({one.admin ? handover_kind::admin : handover_kind::listener, 0, one.setting},
                    std::move(one.socket));
    }
    if (auto why = wait_for(handover_kind::prepared, patience_.prepared, "prepared");
        !why.empty()) {
        return why;
    }
    with_->on_purge(purges_);
    estate_.tell_purges_to(with_);
    if (auto why = estate_.lend_store(patience_.store); !why.empty()) {
        return "the store is not to be given up: " + why;
    }
    lent_ = true;
    {
        const auto now = steady_now();
        const auto at = std::chrono::nanoseconds{now.time_since_epoch()}.count();
        const auto history = estate_.history(now);
        send_file({handover_kind::history, static_cast<std::uint64_t>(at)},
                  "reprise-history",
                  "the course of the last day",
                  std::as_bytes(std::span{history}));
        // As large as the filter; the file is what the next program reads.
        const auto remembered = estate_.admission();
        send_file(
            {handover_kind::yours}, "reprise-admission", "what admission remembers", remembered);
    }
    return wait_for(handover_kind::serving, patience_.serving, "serving");
}

// Sent without its file it says all the same that what comes behind it may come.
void successor::send_file(const handover_message& message,
                          const char* name,
                          std::string_view what,
                          std::span<const std::byte> bytes) {
    auto file = file_of(name, bytes);
    if (!file) {
        log::warn("upgrade: ", what, " can't be handed over: ", text_of_error(errno));
    }
    with_->send(message, std::move(file));
}

std::string successor::wait_for(handover_kind what,
                                std::chrono::milliseconds most,
                                std::string_view doing) {
    const auto until = steady_now() + most;
    while (const auto got = with_->next(until)) {
        if (got->message.kind == what) {
            return {};
        }
    }
    if (abandoned_) {
        return "this program was told to stop";
    }
    if (with_->is_over()) {
        return "the next program ended before it was " + std::string{doing};
    }
    return "the next program was not " + std::string{doing} + " within " +
           std::to_string(most.count()) + " ms";
}

// How it ended.
std::string successor::end_it() {
    if (child_ < 0) {
        return {};
    }
    ::kill(child_, SIGKILL);
    const auto until = steady_now() + patience_.end;
    int status = 0;
    for (;;) {
        const auto got = ::waitpid(child_, &status, WNOHANG);
        if (got == child_) {
            const bool by_us = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            return by_us ? std::string{} : " (" + how_it_ended(status) + ")";
        }
        if (got < 0 || steady_now() >= until) {
            return {};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

void successor::take_back() {
    estate_.sockets.clear();  // or clients would wait in them when this program's own are closed
    if (lent_) {
        const auto until = steady_now() + patience_.end;
        bool back = takes_store_back();
        while (!back && steady_now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            back = takes_store_back();
        }
        if (!back) {
            log::error("upgrade: the next program does not end, and has the store: until a restart "
                       "nothing is stored on disk");
        }
    }
    try {
        estate_.tell_purges_to(nullptr);
        estate_.keep_purges([with = with_] { with->end(); });
    } catch (const std::exception&) {
        // Whoever waits for a purge is told when his time is over that it may not be kept.
    }
}

bool successor::takes_store_back() noexcept {
    try {
        return estate_.take_store_back();
    } catch (const std::exception&) {
        return false;
    }
}

}  // namespace reprise::proxy::server
