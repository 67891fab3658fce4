#include "filter/plugins/trafficserver/follower.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <new>
#include <poll.h>
#include <semaphore>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <ts/ts.h>
#include <unistd.h>
#include <utility>

// Each sibling has a thread that asks one question at a time and never ends. A good answer goes to
// the C library's table of siblings; a failure doubles the pause, and is logged when it is another
// than the last.

namespace reprise::trafficserver {

namespace {

using std::chrono::milliseconds;
using clock = std::chrono::steady_clock;

constexpr milliseconds between{1'000};
constexpr milliseconds longest_between{60'000};
/// What is too large for here, or can't be used for another reason, most likely is so again, and it all has to be read before that is known.
constexpr std::chrono::minutes between_refused_large{10};
constexpr milliseconds exchange_time{20'000};
/// For how long a question to a sibling that tells news is left open beside that
/// (proxy/peer/README.md): the answer comes when there is some. Others answer at once.
constexpr std::chrono::seconds news_wait{25};
/// Between two questions to a sibling that tells news, should it have no reason to wait.
constexpr milliseconds between_news{100};
constexpr std::chrono::minutes between_tries_of_news{10};
/// What is held is used for so long after the last good answer.
constexpr milliseconds stale_after{60'000};
constexpr std::size_t most_head = 16 << 10;
constexpr std::size_t most_piece = 16 << 10;
constexpr std::size_t most_body = std::size_t{64} << 20;
/// A body above this waits until fewer than so many of the like are here: a restart asks all siblings for their whole at once.
constexpr std::size_t large_body = std::size_t{1} << 20;
constexpr std::ptrdiff_t most_large = 4;
std::counting_semaphore<most_large> large_places{most_large};

class large_place {
public:
    large_place() noexcept = default;
    large_place(large_place&& other) noexcept : has_(std::exchange(other.has_, false)) {}
    large_place& operator=(large_place&&) = delete;
    ~large_place() {
        if (has_) {
            large_places.release();
        }
    }
    bool take(clock::time_point until) {
        has_ = large_places.try_acquire_until(until);
        return has_;
    }

private:
    bool has_ = false;
};

/// The server takes down what a thread of ours might use: no question is asked from then on, and nothing logged.
std::atomic<bool> is_ending{false};

bool has_ended() noexcept {
    return is_ending.load(std::memory_order_acquire);
}

// ---- one small exchange ----

class socket_handle {
public:
    explicit socket_handle(int handle) noexcept : handle_(handle) {}
    socket_handle(const socket_handle&) = delete;
    socket_handle& operator=(const socket_handle&) = delete;
    ~socket_handle() {
        if (handle_ >= 0) {
            ::close(handle_);
        }
    }
    [[nodiscard]] int get() const noexcept { return handle_; }

private:
    int handle_;
};

struct http_reply {
    unsigned status = 0;  ///< 0: none, and `why`
    std::string body;
    std::string why;
    std::string node{};  ///< who answers, where it says so
    bool tells_news = false;
    large_place place{};  ///< as long as the body is here
};

bool wait_for(int handle, short what, clock::time_point until) {
    for (;;) {
        const auto left = std::chrono::ceil<milliseconds>(until - clock::now()).count();
        if (left <= 0) {
            return false;
        }
        pollfd one{.fd = handle, .events = what, .revents = 0};
        const auto ready = ::poll(&one, 1, static_cast<int>(left));
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return false;
        }
    }
}

http_reply failure(std::string why) {
    http_reply none;
    none.why = std::move(why);
    return none;
}

bool send_all(int handle, std::string_view text, clock::time_point until) {
    while (!text.empty()) {
        const auto sent = ::send(handle, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent > 0) {
            text.remove_prefix(static_cast<std::size_t>(sent));
        } else if ((sent < 0 && errno != EAGAIN && errno != EINTR) ||
                   !wait_for(handle, POLLOUT, until)) {
            return false;
        }
    }
    return true;
}

/// Appends what comes until `enough(out)`; false where it ends, or takes too long, before.
template <class Enough>
bool receive_until(int handle, std::string& out, clock::time_point until, Enough&& enough) {
    std::array<char, most_piece> piece;
    while (!enough(out)) {
        const auto got = ::recv(handle, piece.data(), piece.size(), 0);
        if (got > 0) {
            out.append(piece.data(), static_cast<std::size_t>(got));
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
                   !wait_for(handle, POLLIN, until)) {
            return false;
        }
    }
    return true;
}

/// The value of a field in a head, without spaces around it; empty: none. `name` in lower case.
std::string_view field_in(std::string_view head, std::string_view name) {
    while (!head.empty()) {
        const auto end = std::min(head.find("\r\n"), head.size());
        const auto line = head.substr(0, end);
        head.remove_prefix(std::min(end + 2, head.size()));
        const auto colon = line.find(':');
        const bool is_it = colon == name.size() &&
                           std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
                               return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
                           });
        if (is_it) {
            auto value = line.substr(colon + 1);
            while (value.starts_with(' ') || value.starts_with('\t')) {
                value.remove_prefix(1);
            }
            while (value.ends_with(' ') || value.ends_with('\t')) {
                value.remove_suffix(1);
            }
            return value;
        }
    }
    return {};
}

http_reply fetch_once(const endpoint& with, const std::string& request) {
    // News is waited for where a head is, and nowhere else.
    auto until = clock::now() + exchange_time;
    const socket_handle to{
        ::socket(with.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (to.get() < 0) {
        return failure("no socket is to be had");
    }
    if (::connect(to.get(), reinterpret_cast<const sockaddr*>(&with.address), with.length) != 0) {
        int why = errno;
        if (why == EINPROGRESS && wait_for(to.get(), POLLOUT, until)) {
            socklen_t size = sizeof why;
            ::getsockopt(to.get(), SOL_SOCKET, SO_ERROR, &why, &size);
        }
        if (why != 0) {
            return failure(std::string{"it can't be reached: "} + std::strerror(why));
        }
    }
    if (!send_all(to.get(), request, until)) {
        return failure("it does not take the question");
    }
    until = clock::now() + exchange_time + news_wait;
    std::string came;
    std::size_t head_end = 0;
    const bool has_head = receive_until(to.get(), came, until, [&](const std::string& so_far) {
        head_end = so_far.find("\r\n\r\n");
        return head_end != so_far.npos || so_far.size() > most_head;
    });
    unsigned status = 0;
    const auto is_http = came.starts_with("HTTP/1.") && came.size() > 12 &&
                         std::from_chars(came.data() + 9, came.data() + 12, status).ptr ==
                             came.data() + 12;
    if (!has_head || head_end == came.npos || !is_http || status < 200) {
        return failure("its answer is not HTTP, or broke off");
    }
    const std::string head = came.substr(0, head_end);
    http_reply out{.status = status,
                   .body = came.substr(head_end + 4),
                   .why = {},
                   .node = std::string{field_in(head, "reprise-node")},
                   .tells_news = !field_in(head, "reprise-news").empty(),
                   .place = {}};
    if (status == 304) {
        out.body.clear();
        return out;
    }
    until = clock::now() + exchange_time;
    std::size_t length = 0;
    const auto said = field_in(head, "content-length");
    if (!field_in(head, "transfer-encoding").empty() || said.empty() ||
        std::from_chars(said.data(), said.data() + said.size(), length).ptr !=
            said.data() + said.size()) {
        return failure("its answer does not say how long it is");
    }
    if (length > most_body) {
        return failure("its digest is larger than 64 MiB");
    }
    if (length > large_body && !out.place.take(until)) {
        return failure("too many large digests come at once");
    }
    out.body.reserve(length + most_piece);  // more than it says is not read
    if (!receive_until(to.get(), out.body, until, [&](const std::string& so_far) {
            return so_far.size() >= length;
        })) {
        return failure("its answer broke off");
    }
    out.body.resize(length);
    return out;
}

// ---- a sibling ----

int append_piece(void* to, const void* piece, size_t bytes) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(piece), bytes);
    return 0;
}

class follower {
public:
    explicit follower(const followed& one) : it_(one) {}

    /// One question; for how long to wait then.
    milliseconds step() {
        const auto asked_at = clock::now();
        tells_news_ = false;
        refused_ = 0;
        const auto trouble = ask();
        if (has_ended()) {
            return between;
        }
        const auto now = clock::now();
        if (trouble.empty()) {
            if (!said_.empty()) {
                TSNote("reprise_siblings: the digest of %s is to be had again",
                       it_.whom.name.c_str());
                said_.clear();
            }
            failures_ = 0;
            good_at_ = now;
            const auto took = std::chrono::duration_cast<milliseconds>(now - asked_at);
            return tells_news_ ? std::max(between_news - took, milliseconds{0}) : between;
        }
        it_.whom.count(met::failed_digests);
        if (trouble != said_) {
            TSWarning("reprise_siblings: no digest of %s (%s): %s",
                      it_.whom.name.c_str(),
                      it_.whom.at_text.c_str(),
                      trouble.c_str());
            said_ = trouble;
        }
        const auto pause = pause_after(failures_++, refused_);
        // By the next question it would be as stale as that.
        if (now - good_at_ > stale_after || pause > stale_after) {
            forget();
        }
        return pause;
    }

private:
    void forget() noexcept {
        reprise_siblings_forget(it_.all.digests(), it_.whom.number);
        it_.whom.set(met::digest_keys, 0);
    }

    /// Empty: it was good.
    std::string ask() {
        reprise_sibling held = REPRISE_SIBLING_INIT;
        (void)reprise_siblings_read(it_.all.digests(), it_.whom.number, &held);
        const bool has_one = held.counter != 0 && !whole_next_;
        const auto generation = generation_text(held.epoch, held.counter);
        const bool waits = clock::now() >= without_news_until_;
        std::string query;
        if (has_one) {
            query = "?since=" + generation;
        }
        if (waits) {
            query += (has_one ? "&wait=" : "?wait=") + std::to_string(news_wait.count());
        }
        const std::string target = "/.well-known/reprise/digest" + query;
        std::string request = "GET " + target + " HTTP/1.1\r\nHost: " + it_.whom.authority +
                              "\r\nConnection: close\r\n";
        if (has_one) {
            request += "If-None-Match: \"" + generation + "\"\r\n";
        }
        if (reprise_fleet_signs(it_.fleet) != 0) {
            reprise_request as_signed = REPRISE_REQUEST_INIT;
            as_signed.method = "GET";
            as_signed.target = target.c_str();
            as_signed.authority = it_.whom.authority.c_str();
            reprise_error error = REPRISE_ERROR_INIT;
            if (reprise_fleet_sign(it_.fleet,
                                   &as_signed,
                                   it_.node.c_str(),
                                   it_.whom.at_text.c_str(),
                                   std::time(nullptr),
                                   append_piece,
                                   &request,
                                   &error) != REPRISE_OK) {
                return error.text;
            }
        } else {  // a signature says it
            request += "Reprise-Node: " + it_.node + "\r\n";
        }
        request += "\r\n";
        return judge(fetch_once(it_.whom.at, request), has_one, waits);
    }

    /// `had_one`: it was asked for what came since; else for the whole. `waited`: for news.
    std::string judge(const http_reply& came, bool had_one, bool waited) {
        if (came.status == 0) {
            return came.why;
        }
        if (came.node == it_.node) {
            // What it names, this cache lacks whenever it asks.
            forget();
            return "it calls itself " + it_.node +
                   ", as this node does: it is this node, or one of the two needs another node=";
        }
        tells_news_ = waited && came.tells_news;
        if (came.status == 304) {
            return had_one ? "" : "status 304, and it was asked for the whole";
        }
        if (came.status != 200) {
            constexpr std::size_t longest_word = 160;
            std::string out = "status " + std::to_string(came.status);
            const auto end = std::find_if(
                came.body.begin(), came.body.end(), [](char c) { return c < 0x20 || c > 0x7e; });
            const std::string word{came.body.begin(), end};
            if (!word.empty() && !word.starts_with('<')) {
                out += ": " + word.substr(0, longest_word);
            }
            return out;
        }
        reprise_error error = REPRISE_ERROR_INIT;
        const auto code = reprise_siblings_take(
            it_.all.digests(), it_.whom.number, came.body.data(), came.body.size(), &error);
        whole_next_ = code == REPRISE_ASK_WHOLE;
        if (code == REPRISE_REFUSED && had_one && tells_news_) {
            // There may be no room for the copy that news want (most_bytes): a delta wants none.
            without_news_until_ = clock::now() + between_tries_of_news;
        } else if (code != REPRISE_OK) {
            refused_ = came.body.size();
        }
        if (code == REPRISE_OK) {
            reprise_sibling now = REPRISE_SIBLING_INIT;
            (void)reprise_siblings_read(it_.all.digests(), it_.whom.number, &now);
            it_.whom.set(met::digest_keys, now.keys);
            it_.whom.count(met::digest_bytes, came.body.size());
        }
        // Once it may be a delta to another digest than the one here. Where the whole was asked for, it never will be better.
        return code == REPRISE_OK || (whole_next_ && had_one) ? "" : error.text;
    }

    followed it_;
    bool whole_next_ = false;
    clock::time_point without_news_until_{};
    bool tells_news_ = false;  ///< the one that gave the last answer does
    std::size_t refused_ = 0;  ///< bytes of the last answer, where they could not be used
    unsigned failures_ = 0;
    std::string said_;
    clock::time_point good_at_ = clock::now();
};

void* run(void* data) {
    auto* const one = static_cast<follower*>(data);
    for (;;) {
        milliseconds pause = longest_between;
        try {
            if (!has_ended()) {
                pause = one->step();
            }
        } catch (const std::bad_alloc&) {
            // There may be memory in a minute.
        }
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

std::string generation_text(std::uint64_t epoch, std::uint64_t counter) {
    std::array<char, 40> text;
    auto* at = std::to_chars(text.data(), text.data() + text.size(), epoch, 16).ptr;
    *at++ = '-';
    at = std::to_chars(at, text.data() + text.size(), counter, 16).ptr;
    return {text.data(), at};
}

milliseconds pause_after(unsigned failures, std::size_t refused) noexcept {
    if (refused > large_body) {
        return between_refused_large;
    }
    return std::min(between * (1 << std::min(failures, 6U)), longest_between);
}

void follow(const followed& one) {
    // Never deleted: the thread is there until the process has ended.
    if (TSThreadCreate(run, new follower{one}) == nullptr) {
        throw std::runtime_error{"there is no thread to be had for the digest of " + one.whom.name};
    }
}

void stop_following() noexcept {
    is_ending.store(true, std::memory_order_release);
}

}  // namespace reprise::trafficserver
