#include "proxy/net/relay.hpp"

#include "proxy/net/io.hpp"
#include "proxy/net/pace.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <array>
#include <vector>

namespace reprise::proxy::net {
namespace {

constexpr std::size_t scratch_bytes = 64 << 10;
constexpr unsigned most_rounds = 16;  // blocks moved before the loop's other work has its turn

/// Filled and emptied between two suspensions only, so that all tunnels of a thread can share it.
std::array<char, scratch_bytes>& scratch() {
    static thread_local std::array<char, scratch_bytes> block;
    return block;
}

struct tunnel {
    byte_stream& a;
    byte_stream& b;
    relay_result& result;
    pace_guard quiet;
    bool broken = false;

    tunnel(byte_stream& first, byte_stream& second, deadlines& timer, relay_result& into)
        : a(first),
          b(second),
          result(into),
          quiet(
              timer, [this] { return moved(); }, [this] { break_off(); }) {}

    std::uint64_t moved() {
        return 2 * (result.a_to_b + result.b_to_a) - not_acknowledged(a) - not_acknowledged(b);
    }
    void close() {
        error_code ignored;
        a.close(ignored);
        b.close(ignored);
    }
    void break_off() {
        broken = true;
        a.reset();
        b.reset();
    }
};

/// Hands everything to the kernel, piece by piece so that a slow receiver counts as progress.
awaitable<bool> push(byte_stream& to, std::string_view bytes, std::uint64_t& moved) {
    while (!bytes.empty()) {
        const auto [error, count] = co_await to.async_write_some(asio::buffer(bytes), use_tuple);
        if (error) {
            co_return false;
        }
        moved += count;
        bytes.remove_prefix(count);
    }
    co_return true;
}

/// One direction, until its source ends or either side breaks off.
awaitable<void> pump(tunnel& whole,
                     byte_stream& from,
                     byte_stream& to,
                     std::string_view first,
                     std::uint64_t& moved) {
    const bool sent = co_await push(to, first, moved);
    if (!sent) {
        whole.break_off();
        co_return;
    }
    for (unsigned rounds = 0;; ++rounds) {
        error_code error;
        const auto count = from.try_read(asio::buffer(scratch()), error);
        if (error == asio::error::eof) {
            const bool told = co_await end_sending(to);
            if (!told) {
                whole.break_off();
            }
            co_return;
        }
        if (error) {
            whole.break_off();
            co_return;
        }
        if (count > 0) {
            const auto taken = to.try_write(asio::buffer(scratch().data(), count), error);
            if (error) {
                whole.break_off();
                co_return;
            }
            moved += taken;
            if (taken < count) {
                const std::vector<char> rest(scratch().data() + taken, scratch().data() + count);
                const std::string_view left{rest.data(), rest.size()};
                const bool pushed = co_await push(to, left, moved);
                if (!pushed) {
                    whole.break_off();
                    co_return;
                }
                rounds = 0;
            }
        }
        if (count == 0 || rounds >= most_rounds) {
            rounds = 0;
            const auto [wait_error] = co_await from.wait_readable(use_tuple);
            if (wait_error) {
                whole.break_off();
                co_return;
            }
        }
    }
}

}  // namespace

awaitable<relay_result> relay(byte_stream& a,
                              byte_stream& b,
                              std::string_view from_a,
                              std::string_view from_b,
                              std::chrono::milliseconds idle,
                              deadlines& timer) {
    using namespace asio::experimental::awaitable_operators;
    relay_result result;
    tunnel whole{a, b, timer, result};
    keep_little_unsent(b.native_handle());
    whole.quiet.begin(0, idle);
    co_await (pump(whole, a, b, from_a, result.a_to_b) && pump(whole, b, a, from_b, result.b_to_a));
    whole.quiet.end();
    whole.close();
    result.end = whole.quiet.expired() ? relay_end::timed_out
                 : whole.broken        ? relay_end::reset
                                       : relay_end::finished;
    co_return result;
}

}  // namespace reprise::proxy::net
