#include "proxy/server/conversation.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <utility>

// A message is one datagram, with at most one descriptor beside it. Whoever sends puts it into a queue
// and wakes the thread in next(), which alone writes and reads.
//
// The other may have told of purges and ended before it read what it was told. So that nothing can be sent any more ends
// nothing, nor does a reset: what lies in the socket is read to its end.

namespace reprise::proxy::server {

namespace {

union one_descriptor {
    cmsghdr header;
    std::array<char, CMSG_SPACE(sizeof(int))> room;
};

// False: not now, where `wrong` is 0; else why not at all.
bool send_now(int to, const std::string& bytes, int with, int& wrong) {
    iovec place{const_cast<char*>(bytes.data()), bytes.size()};  // which sendmsg does not change
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    one_descriptor extra{};
    if (with >= 0) {
        message.msg_control = extra.room.data();
        message.msg_controllen = extra.room.size();
        auto* const says = CMSG_FIRSTHDR(&message);
        says->cmsg_level = SOL_SOCKET;
        says->cmsg_type = SCM_RIGHTS;
        says->cmsg_len = CMSG_LEN(sizeof with);
        std::memcpy(CMSG_DATA(says), &with, sizeof with);
    }
    while (::sendmsg(to, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN || errno == ENOBUFS) {
            return false;
        }
        if (errno != EINTR) {
            wrong = errno;
            return false;
        }
    }
    return true;
}

int milliseconds_until(steady_time until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_now()).count();
    return static_cast<int>(
        std::clamp<std::int64_t>(left, 0, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

conversation::conversation(descriptor end)
    : end_{std::move(end)},
      wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!wake_) {
        throw std::system_error{errno, std::system_category(), "eventfd"};
    }
}

void conversation::push(outgoing one) {
    {
        const std::lock_guard lock{guard_};
        if (over_ || mute_) {
            return;
        }
        if (waiting_.size() >= most_waiting) {
            if (!std::exchange(said_that_it_is_full_, true)) {
                log::error("upgrade: the other program does not answer: it is not told of purges");
            }
            return;
        }
        waiting_.push_back(std::move(one));
    }
    wake();
}

void conversation::wake() const noexcept {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
}

void conversation::send(const handover_message& message, descriptor with) {
    push({encode(message), std::move(with)});
}

void conversation::interrupt() noexcept {
    {
        const std::lock_guard lock{guard_};
        interrupted_ = true;
    }
    wake();
}

bool conversation::is_interrupted() const {
    const std::lock_guard lock{guard_};
    return interrupted_;
}

bool conversation::is_over() const {
    const std::lock_guard lock{guard_};
    return over_;
}

void conversation::end() noexcept {
    std::vector<std::pair<std::uint64_t, std::function<void()>>> waiters;
    {
        const std::lock_guard lock{guard_};
        over_ = ended_ = true;
        told_.clear();
        waiting_.clear();
        waiters = std::exchange(waiters_, {});
    }
    for (const auto& one : waiters) {
        try {
            one.second();
        } catch (const std::exception&) {
            // Whoever waits hears of it when its time is over.
        }
    }
}

// False: it is over.
bool conversation::flush() {
    const std::lock_guard lock{guard_};
    while (!over_ && !waiting_.empty()) {
        int wrong = 0;
        const auto& next = waiting_.front();
        if (!send_now(end_.get(), next.bytes, next.with.get(), wrong)) {
            if (wrong == EPIPE || wrong == ECONNRESET ||
                wrong == ENOTCONN) {  // the other has ended
                mute_ = true;
                waiting_.clear();
            } else if (wrong != 0) {  // it lives, and would wait for what it is not told
                over_ = true;
            }
            break;
        }
        waiting_.pop_front();
    }
    return !over_;
}

std::optional<conversation::heard> conversation::next(steady_time until) {
    for (;;) {
        if (!flush()) {
            return std::nullopt;
        }
        bool more = false;
        {
            const std::lock_guard lock{guard_};
            if (interrupted_) {
                return std::nullopt;
            }
            more = !waiting_.empty();
        }
        std::array<pollfd, 2> looks{
            {{end_.get(), static_cast<short>(more ? POLLIN | POLLOUT : POLLIN), 0},
             {wake_.get(), POLLIN, 0}}};
        const auto found = ::poll(looks.data(), looks.size(), milliseconds_until(until));
        if (found < 0 && errno != EINTR) {
            return std::nullopt;
        }
        if (found == 0 && steady_now() >= until) {
            return std::nullopt;
        }
        if (looks[1].revents != 0) {
            std::uint64_t ignored = 0;
            (void)!::read(wake_.get(), &ignored, sizeof ignored);
        }
        if (looks[0].revents != 0) {
            if (auto got = receive()) {
                return got;
            }
        }
    }
}

void conversation::attend() noexcept {
    while (!is_over() && !is_interrupted()) {
        try {
            (void)next(steady_now() + std::chrono::hours{1});
        } catch (const std::exception&) {
            std::this_thread::sleep_for(until_memory);
        }
    }
}

// One message; none: it was a purge's, or of no known kind, or there is none.
std::optional<conversation::heard> conversation::receive() {
    std::array<char, handover_piece + 9> bytes;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    iovec place{bytes.data(), bytes.size()};
    one_descriptor extra{};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_control = extra.room.data();
    message.msg_controllen = extra.room.size();
    const auto read_now = [&] {
        return ::recvmsg(end_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    };
    auto size = read_now();
    if (size < 0 && errno == ECONNRESET) {
        size = read_now();  // it is told once, in front of what lies there
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return std::nullopt;
    }
    if (size <= 0) {
        const std::lock_guard lock{guard_};
        over_ = true;
        return std::nullopt;
    }
    descriptor with;
    if (const auto* const says = CMSG_FIRSTHDR(&message);
        says != nullptr && says->cmsg_level == SOL_SOCKET && says->cmsg_type == SCM_RIGHTS &&
        says->cmsg_len == CMSG_LEN(sizeof(int))) {
        int got = -1;
        std::memcpy(&got, CMSG_DATA(says), sizeof got);
        with = descriptor{got};
    }
    if ((message.msg_flags & MSG_TRUNC) != 0) {
        return std::nullopt;  // longer than any that this release knows
    }
    const bool lacked = std::exchange(lacks_a_piece_, true);  // unless it is where it belongs
    auto read = decode_handover({bytes.data(), static_cast<std::size_t>(size)});
    if (read) {
        gather(*read);
    }
    lacks_a_piece_ = lacked;
    if (!read) {
        return std::nullopt;
    }
    switch (read->kind) {
    case handover_kind::purge:
    case handover_kind::more:
    case handover_kind::heard: take(*read); return std::nullopt;
    case handover_kind::hello:
    case handover_kind::listener:
    case handover_kind::admin:
    case handover_kind::prepared:
    case handover_kind::yours:
    case handover_kind::history:
    case handover_kind::serving: break;
    }
    return heard{std::move(*read), std::move(with)};
}

// A piece of an order; else it is none.
void conversation::gather(const handover_message& piece) {
    if (piece.kind != handover_kind::more && piece.kind != handover_kind::purge) {
        return;
    }
    if (piece.number != order_number_) {
        order_.clear();  // whoever told the beginning of that one had no memory for its end
        order_number_ = piece.number;
    }
    if (order_.size() + piece.bytes.size() <= largest_order) {
        order_ += piece.bytes;
    }
}

void conversation::take(const handover_message& message) {
    if (message.kind == handover_kind::heard) {
        note_heard(message.number);
        return;
    }
    if (message.kind == handover_kind::more) {
        return;
    }
    const auto whole = std::exchange(order_, {});
    if (std::exchange(lacks_a_piece_, false)) {
        log::error("upgrade: out of memory: a purge of the other program's is not carried out");
        return;  // and whoever asked there is told so
    }
    if (carry_out_) {
        carry(message.number, whole);
    } else if (early_.size() < most_waiting) {
        early_.emplace_back(message.number, whole);
    }
}

void conversation::carry(std::uint64_t number, const std::string& bytes) {
    const auto order = thread::decode_purge(bytes);
    if (!order) {
        log::error("upgrade: the other program's purge cannot be read");
        return;  // and whoever asked there is told that it is not carried out
    }
    carry_out_(*order, [self = weak_from_this(), number] {
        if (const auto there = self.lock()) {
            there->send({handover_kind::heard, number});
        }
    });
}

void conversation::on_purge(carry_out by) {
    carry_out_ = std::move(by);
    for (const auto& [number, bytes] : std::exchange(early_, {})) {
        carry(number, bytes);
    }
}

void conversation::tell(const thread::purge_order& order) {
    const auto bytes = encode(order);
    std::uint64_t number = 0;
    // The pieces of an order follow each other.
    {
        const std::lock_guard lock{guard_};
        if (ended_) {
            return;
        }
        number = ++last_number_;
        const bool is_full = bytes.size() > largest_order ||
                             waiting_.size() + bytes.size() / handover_piece >= most_waiting;
        // One that nobody will say to have heard holds back all that come after it: the first is enough.
        const bool is_deaf = over_ || mute_;
        if ((!is_deaf && !is_full) || !std::exchange(lost_one_, true)) {
            told_.insert(number);
        }
        if (is_deaf) {
            return;
        }
        if (is_full) {
            if (!std::exchange(said_that_it_is_full_, true)) {
                log::error("upgrade: the other program does not answer: it is not told of purges");
            }
            return;
        }
        std::string_view left{bytes};
        for (; left.size() > handover_piece; left.remove_prefix(handover_piece)) {
            waiting_.push_back(
                {encode(handover_message{
                     handover_kind::more, number, std::string{left.substr(0, handover_piece)}}),
                 {}});
        }
        waiting_.push_back(
            {encode(handover_message{handover_kind::purge, number, std::string{left}}), {}});
    }
    wake();
}

void conversation::note_heard(std::uint64_t number) {
    std::vector<std::pair<std::uint64_t, std::function<void()>>> done;
    {
        const std::lock_guard lock{guard_};
        told_.erase(number);
        const auto first = told_.empty() ? last_number_ + 1 : *told_.begin();
        const auto still = std::partition(
            waiters_.begin(), waiters_.end(), [&](const auto& one) { return one.first >= first; });
        std::move(still, waiters_.end(), std::back_inserter(done));
        waiters_.erase(still, waiters_.end());
    }
    for (const auto& one : done) {
        one.second();
    }
}

void conversation::when_carried_out(std::function<void()> carried_out) {
    {
        const std::lock_guard lock{guard_};
        if (!told_.empty()) {
            constexpr std::size_t most = 1u << 16;  // beyond it the earlier have timed out
            if (waiters_.size() >= most) {
                waiters_.clear();
            }
            waiters_.emplace_back(last_number_, std::move(carried_out));
            return;
        }
    }
    carried_out();
}

}  // namespace reprise::proxy::server
