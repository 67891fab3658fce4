#include "proxy/server/predecessor.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace reprise::proxy::server {

namespace {

constexpr std::chrono::seconds hello_patience{10};
// What the old program's disk may take, and a moment more: it decides when it is too long.
constexpr std::chrono::seconds store_patience{60};
// Of a state file: no setting asks for so much.
constexpr std::uint64_t most_state = std::uint64_t{16} << 30;

// Of /history: it has 80 KB.
constexpr std::uint64_t most_history = 4u << 20;

std::optional<std::vector<std::byte>> read_all(const descriptor& from, std::uint64_t most) {
    struct stat facts {};
    if (!from || ::fstat(from.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        static_cast<std::uint64_t>(facts.st_size) > most) {
        return std::nullopt;
    }
    std::vector<std::byte> out(static_cast<std::size_t>(facts.st_size));
    for (std::size_t got = 0; got < out.size();) {
        const auto count = ::pread(
            from.get(), out.data() + got, out.size() - got, static_cast<off_t>(got));
        if (count <= 0 && errno != EINTR) {
            return std::nullopt;
        }
        got += static_cast<std::size_t>(count > 0 ? count : 0);
    }
    return out;
}

}  // namespace

predecessor::predecessor(descriptor end) : with_{std::make_shared<conversation>(std::move(end))} {}

std::unique_ptr<predecessor> predecessor::of_environment() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread runs yet
    const char* const said = std::getenv(handover_variable);
    if (said == nullptr) {
        return nullptr;
    }
    const bool is_known = std::string_view{said} == "3";
    ::unsetenv(handover_variable);  // NOLINT(concurrency-mt-unsafe)
    int kind = 0;
    socklen_t size = sizeof kind;
    if (!is_known || ::getsockopt(3, SOL_SOCKET, SO_TYPE, &kind, &size) != 0 ||
        kind != SOCK_SEQPACKET) {
        throw std::runtime_error{
            "REPRISE_HANDOVER is set, and is not what a running Reprise makes it: "
            "it is not for you to set"};
    }
    ::fcntl(3, F_SETFD, FD_CLOEXEC);
    auto out = std::unique_ptr<predecessor>{new predecessor{descriptor{3}}};
    const auto hello = out->with_->next(steady_now() + hello_patience);
    if (!hello || hello->message.kind != handover_kind::hello) {
        throw std::runtime_error{"the program before this one says nothing"};
    }
    if (hello->message.number != handover_version) {
        throw std::runtime_error{"the program before this one hands over by version " +
                                 std::to_string(hello->message.number) +
                                 " of the protocol, and this one knows version " +
                                 std::to_string(handover_version) +
                                 ": stop that one, and start this one anew"};
    }
    out->state_.pseudonym = hello->message.bytes;
    return out;
}

predecessor::~predecessor() {
    with_->interrupt();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void predecessor::take_over() {
    with_->send({handover_kind::prepared, handover_version});
    const auto until = steady_now() + store_patience;
    while (auto got = with_->next(until)) {
        switch (got->message.kind) {
        case handover_kind::listener:
        case handover_kind::admin:
            if (!got->with) {
                // Clients wait in it, whom nobody would let in when that program has closed its own.
                throw std::runtime_error{"the program before this one has a socket for " +
                                         got->message.bytes +
                                         ", and this one no file descriptor for it"};
            }
            sockets_.push_back({std::move(got->with),
                                got->message.bytes,
                                got->message.kind == handover_kind::admin});
            break;
        case handover_kind::history:
            if (const auto said = read_all(got->with, most_history)) {
                state_.history.assign(reinterpret_cast<const char*>(said->data()), said->size());
                state_.history_at = steady_time{std::chrono::nanoseconds{got->message.number}};
            } else {
                log::warn(
                    "upgrade: the course of the last day did not come whole, and begins anew");
            }
            break;
        case handover_kind::yours:
            state_.admission = read_all(got->with, most_state);
            if (!state_.admission) {
                log::warn("upgrade: what admission remembers did not come whole: admission.state, "
                          "where it is set, is read in its place");
            }
            return;
        case handover_kind::hello:
        case handover_kind::prepared:
        case handover_kind::serving:
        case handover_kind::purge:
        case handover_kind::more:
        case handover_kind::heard: break;
        }
    }
    throw std::runtime_error{with_->is_over() ? "the program before this one goes on, or has ended"
                                              : "the program before this one keeps the store"};
}

void predecessor::begin(std::function<void()> ended) {
    with_->send({handover_kind::serving});
    thread_ = std::thread{[with = with_, ended = std::move(ended)] {
        with->attend();
        with->end();
        try {
            ended();
        } catch (const std::exception& failed) {
            log::error("upgrade: the program before this one has ended: ",
                       std::string_view{failed.what()});
        }
    }};
    ::pthread_setname_np(thread_.native_handle(), "upgrade");
}

}  // namespace reprise::proxy::server
