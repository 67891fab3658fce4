#pragma once
// A reply sink that keeps what it is sent: a client for tests, who takes as much as he is told to.

#include "proxy/net/asio.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/serve/reply_sink.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace reprise::proxy::serve::test {

/// What a connection promises of replies (reply_sink.hpp), without one. No time passes in it: a
/// client who takes nothing is waited for until somebody says that he takes more, or has left.
class kept_sink final : public reply_sink {
public:
    static constexpr auto any = std::numeric_limits<std::uint64_t>::max();

    explicit kept_sink(net::deadlines& timer) : reply_sink{timer}, more_{timer} {}

    std::string sent;                 ///< every byte that has gone out
    std::uint64_t at_once = any;      ///< as many bytes go in one step
    std::uint64_t fails_after = any;  ///< and the next one fails
    unsigned sends = 0;               ///< how often there was something to wait for
    unsigned wholes = 0;              ///< how often it was said to be whole
    bool ends_with_connection = false;
    bool broken_off = false;
    bool said_end = false;
    const net::client_stream* input = nullptr;  ///< whose bytes are taken; null: nobody's

    /// He takes `bytes` more, and then nothing. Before the first call he takes everything.
    void takes(std::uint64_t bytes) {
        room_ = room_ == any ? bytes : room_ + bytes;
        more_.notify();
    }
    void leaves() {
        left_ = true;
        more_.notify();
        wakeup.notify();
    }

    bool send_now(pieces& what) override {
        (void)take(what);
        return what.empty() || failed_;
    }
    awaitable<ended> send(pieces& what, pace) override {
        for (++sends; !what.empty() && !failed_;) {
            if (left_) {
                failed_ = true;
            } else if (take(what) == 0 && !failed_) {
                (void)co_await more_.wait(steady_time::max());
            }
        }
        co_return failed_ ? ended::gone : ended::keep;
    }
    awaitable<ended> end_sending(pace) override {
        said_end = true;
        co_return failed_ ? ended::gone : ended::keep;
    }
    awaitable<ended> wait(steady_time until) override {
        if (!left_) {
            (void)co_await wakeup.wait(until);
        }
        co_return left_ ? ended::gone : ended::keep;
    }

    void ends_by_closing() noexcept override { ends_with_connection = true; }
    void is_whole() noexcept override {
        whole_until_ = sent.size();
        ++wholes;
    }
    void break_off() noexcept override {
        broken_off = failed_ = true;
        more_.notify();
    }
    bool under_way() const noexcept override { return sent.size() != whole_until_; }
    bool failed() const noexcept override { return failed_; }
    std::uint64_t bytes_out() const noexcept override { return sent.size(); }
    std::uint64_t bytes_in() const noexcept override {
        return input != nullptr ? input->bytes_in() - input->input().size() : 0;
    }
    tcp::endpoint local_endpoint() override { return {}; }

private:
    std::size_t take(pieces& what) {
        if (failed_) {
            return 0;
        }
        const auto wanted = asio::buffer_size(what);
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(
            {wanted,
             at_once,
             room_,
             fails_after - std::min<std::uint64_t>(fails_after, sent.size())}));
        for (auto left = count; left > 0;) {
            auto& first = what.front();
            const auto some = std::min(left, first.size());
            sent.append(static_cast<const char*>(first.data()), some);
            first += some;
            left -= some;
            if (first.size() == 0) {
                what.erase(what.begin());
            }
        }
        room_ -= room_ == any ? 0 : count;
        failed_ = failed_ || (count < wanted && sent.size() >= fails_after);
        return count;
    }

    net::wakeup more_;
    std::uint64_t room_ = any;
    std::size_t whole_until_ = 0;
    bool left_ = false;
    bool failed_ = false;
};

}  // namespace reprise::proxy::serve::test
