#include "tools/bench_proxy/load.hpp"

#include "tools/bench_proxy/sockets.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <deque>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string_view>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

namespace reprise::bench {

namespace {

using clock_type = std::chrono::steady_clock;
using time_point = clock_type::time_point;

struct connection {
    socket_handle socket;
    std::string head;  ///< of the answer, until it is whole
    std::size_t body_left = 0;
    bool in_body = false, is_right = false;
    time_point intended;  ///< of the request under way
};

constexpr std::string_view length_field = "\r\nContent-Length: ";

class loading {
public:
    explicit loading(const load_plan& plan)
        : plan_{plan},
          poll_{::epoll_create1(EPOLL_CLOEXEC)},
          all_(plan.connections) {
        ::prctl(PR_SET_TIMERSLACK, 1);  // wake at the time that was said
        for (auto& one : all_) {
            one.socket = connect_to(plan.port);
            epoll_event interest{};
            interest.events = EPOLLIN;
            interest.data.ptr = &one;
            ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, one.socket.get(), &interest);
            idle_.push_back(&one);
        }
        begin_ = clock_type::now();
    }

    load_outcome run() {
        auto last_answer = begin_;
        while (true) {
            const auto now = clock_type::now();
            send_what_is_due(now);
            if (under_way_ == 0 && (is_over(now) || sent_ >= plan_.count)) {
                break;
            }
            std::array<epoll_event, 128> ready;
            const auto wait = until_next(now);
            const int count = ::epoll_pwait2(
                poll_.get(), ready.data(), ready.size(), &wait, nullptr);
            const auto woken = clock_type::now();
            for (int i = 0; i < count; ++i) {
                read_from(*static_cast<connection*>(ready[static_cast<std::size_t>(i)].data.ptr),
                          woken);
            }
            if (count > 0 || under_way_ == 0) {
                last_answer = woken;
            } else if (woken - last_answer > std::chrono::seconds{10}) {
                throw std::runtime_error("no answer came for ten seconds");
            }
        }
        outcome_.seconds = std::chrono::duration<double>(clock_type::now() - begin_).count();
        return std::move(outcome_);
    }

private:
    [[nodiscard]] bool is_over(time_point now) const {
        return (plan_.stop != nullptr && plan_.stop->load(std::memory_order_relaxed)) ||
               std::chrono::duration<double>(now - begin_).count() >= plan_.seconds;
    }

    [[nodiscard]] time_point time_of(std::uint64_t number) const {
        const std::chrono::duration<double> after{static_cast<double>(number) / plan_.rate};
        return begin_ + std::chrono::duration_cast<clock_type::duration>(after);
    }

    void send_what_is_due(time_point now) {
        if (is_over(now)) {
            return;
        }
        while (!idle_.empty() && sent_ < plan_.count) {
            const auto intended = plan_.rate > 0 ? time_of(sent_) : now;
            if (intended > now) {
                return;
            }
            auto* const one = idle_.front();
            idle_.pop_front();
            one->intended = intended;
            send_all(one->socket.get(), plan_.request(sent_));
            ++sent_;
            ++under_way_;
        }
    }

    [[nodiscard]] timespec until_next(time_point now) const {
        auto wait = std::chrono::nanoseconds{std::chrono::milliseconds{100}};
        if (plan_.rate > 0 && !idle_.empty() && sent_ < plan_.count) {
            wait = std::clamp<std::chrono::nanoseconds>(
                time_of(sent_) - now, std::chrono::nanoseconds{0}, wait);
        }
        return {0, static_cast<long>(wait.count())};
    }

    void read_from(connection& one, time_point now) {
        static thread_local std::array<char, 256 << 10> bytes;
        const auto got = ::recv(one.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got <= 0) {
            throw std::runtime_error("a connection was ended");
        }
        std::string_view piece{bytes.data(), static_cast<std::size_t>(got)};
        if (!one.in_body) {
            one.head += piece;
            const auto end = one.head.find("\r\n\r\n");
            if (end == std::string::npos) {
                return;
            }
            piece.remove_prefix(piece.size() - (one.head.size() - end - 4));
            one.head.resize(end + 2);
            begin_body(one);
        }
        if (piece.size() > one.body_left) {
            throw std::runtime_error("an answer is longer than it says");
        }
        one.body_left -= piece.size();
        if (one.body_left == 0) {
            end_of(one, now);
        }
    }

    static void begin_body(connection& one) {
        const auto at = one.head.find(length_field);
        if (at == std::string::npos) {
            throw std::runtime_error("an answer does not say how long it is");
        }
        const char* const first = one.head.data() + at + length_field.size();
        std::from_chars(first, one.head.data() + one.head.size(), one.body_left);
        one.is_right = one.head.rfind("HTTP/1.1 200 ", 0) == 0;
        one.in_body = true;
    }

    void end_of(connection& one, time_point now) {
        (one.is_right ? outcome_.right : outcome_.wrong) += 1;
        if (plan_.rate > 0) {
            outcome_.latencies.push_back(
                std::chrono::duration<double, std::milli>(now - one.intended).count());
        }
        one.head.clear();
        one.in_body = false;
        --under_way_;
        idle_.push_back(&one);
    }

    const load_plan& plan_;
    socket_handle poll_;
    std::vector<connection> all_;
    std::deque<connection*> idle_;
    time_point begin_;
    std::uint64_t sent_ = 0, under_way_ = 0;
    load_outcome outcome_;
};

/// This thread before all others of its processor, until it is over; nothing where that is refused.
class going_first {
public:
    explicit going_first(bool wanted) : is_{wanted && set(SCHED_FIFO, 1)} {}
    going_first(const going_first&) = delete;
    going_first& operator=(const going_first&) = delete;
    ~going_first() {
        if (is_) {
            set(SCHED_OTHER, 0);
        }
    }

private:
    static bool set(int policy, int priority) {
        const sched_param how{.sched_priority = priority};
        return ::pthread_setschedparam(::pthread_self(), policy, &how) == 0;
    }
    bool is_;
};

}  // namespace

double load_outcome::latency(double quantile) const {
    if (latencies.empty()) {
        return 0;
    }
    auto sorted = latencies;
    const auto rank = std::ceil(quantile * static_cast<double>(sorted.size()));
    const auto index =
        std::min(sorted.size(), std::max<std::size_t>(1, static_cast<std::size_t>(rank))) - 1;
    std::nth_element(
        sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(index), sorted.end());
    return sorted[index];
}

load_outcome run_load(const load_plan& plan) {
    const going_first before_others{plan.goes_first};
    return loading{plan}.run();
}

std::string get_request(const std::string& url, const std::string& authority) {
    return "GET " + url + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
}

simple_answer exchange_once(std::uint16_t port,
                            const std::string& method,
                            const std::string& target,
                            const std::string& fields) {
    const auto socket = connect_to(port);
    send_all(socket.get(),
             method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                 "\r\nConnection: close\r\nContent-Length: 0\r\n" + fields + "\r\n");
    std::string all;
    std::array<char, 65536> bytes;
    for (ssize_t got = 0; (got = ::recv(socket.get(), bytes.data(), bytes.size(), 0)) > 0;) {
        all.append(bytes.data(), static_cast<std::size_t>(got));
    }
    const auto end = all.find("\r\n\r\n");
    if (end == std::string::npos || all.rfind("HTTP/1.1 ", 0) != 0) {
        throw std::runtime_error("no answer to " + method + " " + target);
    }
    simple_answer out;
    std::from_chars(all.data() + 9, all.data() + 12, out.status);
    out.body = all.substr(end + 4);
    return out;
}

}  // namespace reprise::bench
