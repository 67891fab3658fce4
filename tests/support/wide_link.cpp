#include "tests/support/wide_link.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <future>
#include <list>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

// Each direction of a connection is a reader, which dates what it reads, and a writer, which delivers it
// on that date. A timer that is never reached stands for a condition: whoever cancels it says that
// something has changed.

namespace reprise::tests {

namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using steady = std::chrono::steady_clock;
constexpr auto as_values = asio::as_tuple(asio::use_awaitable);

/// What travels: bytes, or the end of them.
struct piece {
    enum class kind : std::uint8_t { bytes, fin, rst };
    kind what = kind::bytes;
    std::string bytes;
    steady::time_point due;
};

struct direction {
    explicit direction(asio::io_context& io) : changed{io, steady::time_point::max()} {}
    std::deque<piece> on_way;
    std::size_t bytes = 0;           // of these
    steady::time_point first_due{};  // nothing arrives before that
    asio::steady_timer changed;
};

void reset(tcp::socket& one) {
    error_code ignored;
    one.set_option(asio::socket_base::linger{true, 0}, ignored);
    one.close(ignored);
}

awaitable<void> reach(asio::steady_timer& timer) {
    co_await timer.async_wait(as_values);
}

}  // namespace

struct wide_link::state {
    explicit state(link_options of)
        : options{std::move(of)},
          delay{options.delay},
          acceptor{io, tcp::endpoint{asio::ip::make_address(options.address), 0}},
          mended{io, steady::time_point::max()},
          port{acceptor.local_endpoint().port()} {
        asio::co_spawn(io, accept_all(), asio::detached);
        thread = std::thread{[this] { io.run(); }};
    }
    ~state() {
        in_loop([this] {
            for (const auto& one : connections) {
                reset(one->near);
                reset(one->far);
            }
            io.stop();
        });
        thread.join();
    }
    state(const state&) = delete;
    state& operator=(const state&) = delete;

    struct connection {
        connection(state& of, tcp::socket accepted)
            : near{std::move(accepted)},
              far{of.io},
              there{of.io},
              back{of.io} {}
        tcp::socket near, far;  // whoever connected, and whom the link leads to
        direction there, back;
    };
    using shared_connection = std::shared_ptr<connection>;

    /// Runs it on the link's thread, and waits until it has.
    template <class Work>
    void in_loop(Work work) {
        std::promise<void> done;
        asio::post(io, [&] {
            work();
            done.set_value();
        });
        done.get_future().wait();
    }

    void cut() {
        if (std::exchange(is_cut, true)) {
            return;
        }
        acceptor.cancel();
        // Linux does not answer a SYN while more connections than the backlog wait to be accepted.
        ::listen(acceptor.native_handle(), 0);
        for (int i = 0; i < 2; ++i) {
            auto& one = fillers.emplace_back(io, acceptor.local_endpoint().protocol());
            one.native_non_blocking(true);
            // Asio would wait for the end of it.
            const auto to = acceptor.local_endpoint();
            (void)::connect(one.native_handle(), to.data(), static_cast<socklen_t>(to.size()));
        }
    }

    void mend() {
        if (!std::exchange(is_cut, false)) {
            return;
        }
        for (auto& one : fillers) {
            error_code unbound;
            const auto own = one.local_endpoint(unbound);
            if (!unbound) {
                filler_ports.push_back(own.port());
            }
            one.close();
        }
        fillers.clear();
        ::listen(acceptor.native_handle(), SOMAXCONN);
        mended.cancel();
    }

    awaitable<void> while_cut() {
        while (is_cut) {
            co_await reach(mended);
        }
    }

    awaitable<void> accept_all() {
        while (acceptor.is_open()) {
            co_await while_cut();
            auto [failed, accepted] = co_await acceptor.async_accept(as_values);
            error_code gone;
            const auto from = failed ? tcp::endpoint{} : accepted.remote_endpoint(gone);
            if (failed || gone || std::erase(filler_ports, from.port()) > 0) {
                continue;
            }
            accepted.set_option(tcp::no_delay{true}, gone);
            ++taken;
            const auto one = std::make_shared<connection>(*this, std::move(accepted));
            connections.push_back(one);
            asio::co_spawn(io, carry(one), asio::detached);
        }
    }

    // From the moment that a connection was made: SYN, its answer and the first byte take three times
    // the way.
    awaitable<void> carry(shared_connection one) {
        ++open;
        const auto begun = steady::now();
        one->there.first_due = begun + 3 * delay.load();
        asio::steady_timer timer{io, begun + delay.load()};
        co_await reach(timer);
        co_await while_cut();
        const tcp::endpoint to{asio::ip::make_address(options.to_address), options.to};
        const auto [failed] = co_await one->far.async_connect(to, as_values);
        if (failed) {
            timer.expires_after(delay.load());
            co_await reach(timer);
            co_await while_cut();
            reset(one->near);
            leave(one);
            co_return;
        }
        one->far.set_option(tcp::no_delay{true});
        const auto ways = std::make_shared<int>(2);
        const auto go = [&](tcp::socket& from, tcp::socket& into, direction& by, auto& count) {
            asio::co_spawn(io, take(one, from, by), asio::detached);
            asio::co_spawn(io, deliver(one, into, by, count, ways), asio::detached);
        };
        go(one->near, one->far, one->there, there);
        go(one->far, one->near, one->back, back);
    }

    void leave(const shared_connection& one) {
        --open;
        connections.remove(one);
    }

    awaitable<void> take(shared_connection one, tcp::socket& from, direction& by) {
        (void)one;  // keeps it
        std::vector<char> room(64u << 10);
        for (bool goes_on = true; goes_on;) {
            while (by.bytes >= most_on_way && from.is_open()) {
                co_await reach(by.changed);
            }
            co_await while_cut();
            const auto into = asio::buffer(room);
            const auto [failed, got] = co_await from.async_read_some(into, as_values);
            goes_on = !failed;
            piece next;
            next.what = !failed                      ? piece::kind::bytes
                        : failed == asio::error::eof ? piece::kind::fin
                                                     : piece::kind::rst;
            next.bytes.assign(room.data(), got);
            next.due = std::max(steady::now() + delay.load(), by.first_due);
            by.first_due = next.due;
            by.bytes += got;
            by.on_way.push_back(std::move(next));
            by.changed.cancel();
        }
    }

    awaitable<void> deliver(shared_connection one,
                            tcp::socket& into,
                            direction& by,
                            std::atomic<std::uint64_t>& count,
                            std::shared_ptr<int> ways) {
        asio::steady_timer timer{io};
        bool broken = false;
        for (bool goes_on = true; goes_on;) {
            while (by.on_way.empty()) {
                co_await reach(by.changed);
            }
            const auto next = std::move(by.on_way.front());
            by.on_way.pop_front();
            timer.expires_at(next.due);
            co_await reach(timer);
            co_await while_cut();
            error_code failed;
            if (next.what == piece::kind::bytes) {
                const auto what = asio::buffer(next.bytes);
                const auto [error, put] = co_await asio::async_write(into, what, as_values);
                failed = error;
                count += put;
            } else if (next.what == piece::kind::fin) {
                into.shutdown(tcp::socket::shutdown_send, failed);
            }
            by.bytes -= next.bytes.size();
            by.changed.cancel();
            broken = failed || next.what == piece::kind::rst;
            goes_on = !broken && next.what == piece::kind::bytes;
        }
        if (broken) {
            reset(one->near);
            reset(one->far);
        }
        if (--*ways == 0) {
            leave(one);
        }
    }

    const link_options options;
    asio::io_context io{1};
    std::atomic<std::chrono::milliseconds> delay;
    tcp::acceptor acceptor;
    asio::steady_timer mended;
    const std::uint16_t port;
    bool is_cut = false;
    std::list<tcp::socket> fillers;
    std::vector<std::uint16_t> filler_ports;
    std::list<shared_connection> connections;
    std::atomic<std::uint64_t> there{0}, back{0}, taken{0}, open{0};
    std::thread thread;
};

wide_link::wide_link(link_options options) : state_{std::make_unique<state>(std::move(options))} {}

wide_link::~wide_link() = default;

std::uint16_t wide_link::port() const noexcept {
    return state_->port;
}

void wide_link::set_delay(std::chrono::milliseconds each_way) {
    state_->delay = each_way;
}

void wide_link::cut() {
    state_->in_loop([this] { state_->cut(); });
}

void wide_link::mend() {
    state_->in_loop([this] { state_->mend(); });
}

link_counts wide_link::counts() const {
    return {state_->there, state_->back, state_->taken, state_->open};
}

}  // namespace reprise::tests
