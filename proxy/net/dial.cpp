#include "proxy/net/dial.hpp"

#include "proxy/base/descriptor.hpp"
#include "proxy/net/deadlines.hpp"
#include "proxy/net/io.hpp"
#include "proxy/net/wakeup.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

// Names are resolved, the guard judges the addresses, and what it leaves is connected to: one
// address directly, several in a race. Where they were those of one family, and none could be connected to, the other's
// follow when they are there.

namespace reprise::proxy::net {
namespace {

constexpr std::chrono::milliseconds attempt_delay{250};  // RFC 8305 5
// Under way at once. A name may have five hundred addresses that are all silent: the longest silent gives way.
constexpr std::size_t most_attempts = 8;

std::string shown(const tcp::endpoint& target) {
    return endpoint_text(target.address(), target.port());
}

failure_code code_of(const error_code& error, const tcp::endpoint& target) {
    if (error == asio::error::connection_refused || error == asio::error::connection_reset) {
        return failure_code::connect_refused;
    }
    if (error == asio::error::timed_out) {
        return failure_code::connect_timeout;
    }
    if (nothing_left(error, target)) {
        return failure_code::out_of_memory;
    }
    return failure_code::connect_unreachable;
}

failure failure_of(const error_code& error, const tcp::endpoint& target) {
    const auto code = code_of(error, target);
    return {code, "connecting to " + shown(target) + ": " + error.message()};
}

failure too_late(const tcp::endpoint& target) {
    return {failure_code::connect_timeout,
            "connecting to " + shown(target) + ": no answer in time"};
}

/// False: this machine has no address from which it could send anything there (its IPv6 is switched off). A
/// datagram socket takes no port of those that connections have, and connecting it sends nothing.
bool has_address_for(const tcp::endpoint& target) noexcept {
    const descriptor asking{
        ::socket(target.protocol().family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    return !asking ||
           ::connect(asking.get(), target.data(), static_cast<socklen_t>(target.size())) == 0;
}

/// A connection to a port of this machine that nobody listens on may be picked that very port as
/// its own and so meet itself; what we then send would come back to us.
bool meets_itself(tcp_socket& socket, const tcp::endpoint& target) {
    if (!target.address().is_loopback()) {
        return false;
    }
    error_code error;
    return socket.local_endpoint(error) == target && !error;
}

/// What the guard leaves of the addresses, in the order to try them; or why it left none.
attempt<std::vector<tcp::endpoint>> permitted(const resolution& found,
                                              const destination_guard& guard,
                                              const std::string& host,
                                              std::uint16_t port,
                                              bool exempt) {
    std::vector<tcp::endpoint> targets;
    std::optional<failure> refused;
    for (const auto& each : interleaved(found.addresses)) {
        const auto verdict = guard.check(host, each, port, exempt);
        if (verdict == destination_verdict::allowed) {
            targets.emplace_back(each, port);
        } else if (!refused) {
            refused = refusal_of({each, port}, verdict);
        }
    }
    if (targets.empty() && refused) {
        return std::move(*refused);
    }
    return targets;
}

/// Several addresses at once. Shared by the handlers of all attempts, of which the last may come
/// back after the race was decided.
struct race {
    struct runner {
        runner(deadlines& timer, const tcp::endpoint& to) : socket(timer.io()), target(to) {}
        tcp_socket socket;
        tcp::endpoint target;
        error_code error;
        bool is_given_up = false;
    };

    explicit race(deadlines& timer) : changed(timer) {}

    void start(deadlines& timer, const tcp::endpoint& target, const std::shared_ptr<race>& self);
    void came_back(std::size_t index, const error_code& error);
    void give_up_oldest();
    void end();

    std::vector<std::unique_ptr<runner>> runners;
    std::size_t running = 0;
    std::optional<std::size_t> winner;
    std::optional<failure> worst;  // the one to report: the first that says something, or ours
    wakeup changed;
};

void race::start(deadlines& timer, const tcp::endpoint& target, const std::shared_ptr<race>& self) {
    const auto index = runners.size();
    runners.push_back(std::make_unique<runner>(timer, target));
    auto& each = *runners.back();
    ++running;
    error_code error;
    each.socket.open(target.protocol(), error);
    if (error) {
        came_back(index, error);
        return;
    }
    prepare_socket(each.socket);
    each.socket.async_connect(
        target, [self, index](const error_code& result) { self->came_back(index, result); });
}

void race::came_back(std::size_t index, const error_code& error) {
    auto& each = *runners[index];
    if (each.is_given_up) {
        return;
    }
    each.error = error;
    --running;
    if (!error && !meets_itself(each.socket, each.target)) {
        if (!winner) {
            winner = index;
        }
    } else {
        auto failed = failure_of(error ? error : make_error_code(asio::error::connection_refused),
                                 each.target);
        // A refusal says that the host is there; "no route" is often only our own lack of IPv6. Of an
        // address that could not be tried nobody knows what it would have said.
        if (!worst || is_our_own_lack(failed.code) ||
            (worst->code == failure_code::connect_unreachable &&
             failed.code != failure_code::connect_unreachable)) {
            worst = std::move(failed);
        }
        error_code ignored;
        each.socket.close(ignored);
    }
    changed.notify();
}

// Its handler comes, and is not heard: nobody is to go on to the next at once for it.
void race::give_up_oldest() {
    const auto is_open = [](const auto& one) { return one->socket.is_open(); };
    const auto oldest = std::find_if(runners.begin(), runners.end(), is_open);
    if (oldest != runners.end()) {
        (*oldest)->is_given_up = true;
        --running;
        if (!worst) {
            worst = too_late((*oldest)->target);
        }
        error_code ignored;
        (*oldest)->socket.close(ignored);
    }
}

void race::end() {
    for (auto& each : runners) {
        error_code ignored;
        each->socket.close(ignored);
    }
}

/// However it is left, no socket of it stays behind: what connects holds the race itself until it has come back.
struct race_over {
    explicit race_over(race& over) noexcept : of{over} {}
    ~race_over() { of.end(); }
    race_over(const race_over&) = delete;
    race_over& operator=(const race_over&) = delete;
    race& of;
};

awaitable<attempt<tcp_socket>> run_race(deadlines& timer,
                                        std::vector<tcp::endpoint> targets,
                                        steady_time until) {
    const auto shared = std::make_shared<race>(timer);
    const race_over at_last{*shared};
    std::size_t next = 0;
    bool late = false;
    while (!shared->winner && !late && (next < targets.size() || shared->running > 0)) {
        auto wait_until = until;
        if (next < targets.size() && shared->running >= most_attempts) {
            shared->give_up_oldest();
        }
        auto running = shared->running;
        if (next < targets.size()) {
            shared->start(timer, targets[next++], shared);
            ++running;  // fewer than this, and one has failed: on to the next at once
            if (next < targets.size()) {
                wait_until = std::min(until, steady_now() + attempt_delay);
            }
        }
        while (!shared->winner && shared->running > 0 && shared->running >= running) {
            const bool signalled = co_await shared->changed.wait(wait_until);
            if (!signalled) {
                // A deadline is never early: before its time the wait was given up.
                const auto now = steady_now();
                late = timer.stopped() || wait_until == until || now >= until || now < wait_until;
                break;
            }
        }
    }
    if (shared->winner) {
        co_return std::move(shared->runners[*shared->winner]->socket);
    }
    if (late || !shared->worst) {
        co_return too_late(targets.front());
    }
    co_return std::move(*shared->worst);
}

/// The other family may bring more: it was late, or lost.
bool is_half(const attempt<resolved>& found) noexcept {
    return found ? (*found)->unheard.has_value()
                 : found.error().code == failure_code::dns_not_found;
}

/// The addresses that were not known before; null: none.
resolved what_is_new(const attempt<resolved>& now, const attempt<resolved>& before) {
    if (!now) {
        return nullptr;
    }
    resolution rest{**now};
    std::erase_if(rest.addresses, [&](const asio::ip::address& each) {
        const auto* const known = before ? &(*before)->addresses : nullptr;
        return known != nullptr && std::find(known->begin(), known->end(), each) != known->end();
    });
    return rest.addresses.empty() ? nullptr : std::make_shared<const resolution>(std::move(rest));
}

/// Of some addresses, where others have been tried: a refusal tells more.
bool says_nothing(failure_code code) noexcept {
    return code == failure_code::destination_refused || code == failure_code::connect_unreachable;
}

awaitable<attempt<tcp_socket>> connect_to(resolver& names,
                                          attempt<resolved> found,
                                          const destination_guard& guard,
                                          const std::string& host,
                                          std::uint16_t port,
                                          bool exempt,
                                          steady_time until) {
    auto& timer = names.timer();
    if (found.has_error()) {
        co_return std::move(found.error());
    }
    auto targets = permitted(**found, guard, host, port, exempt);
    if (targets.has_error()) {
        co_return targets.error();
    }
    if (targets->size() > 1) {
        co_return co_await run_race(timer, std::move(*targets), until);
    }

    const auto target = targets->front();
    tcp_socket socket{timer.io()};
    error_code open_error;
    socket.open(target.protocol(), open_error);
    if (open_error) {
        co_return failure_of(open_error, target);
    }
    prepare_socket(socket);
    deadline limit{timer, [&socket] {
                       error_code ignored;
                       socket.close(ignored);
                   }};
    limit.expire_at(until);
    const auto [error] = co_await socket.async_connect(target, use_tuple);
    limit.clear();
    if (limit.expired()) {
        co_return too_late(target);
    }
    if (error) {
        co_return failure_of(error, target);
    }
    if (meets_itself(socket, target)) {
        co_return failure_of(asio::error::connection_refused, target);
    }
    co_return std::move(socket);
}

}  // namespace

bool nothing_left(const error_code& error, const tcp::endpoint& target) noexcept {
    // That an address is not available is said where all local ports are in use, and where it is just that.
    return error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
           error == asio::error::no_memory ||
           error == boost::system::errc::too_many_files_open_in_system ||
           (error == boost::system::errc::address_not_available && has_address_for(target));
}

std::vector<asio::ip::address> interleaved(const std::vector<asio::ip::address>& addresses) {
    std::vector<asio::ip::address> ordered;
    ordered.reserve(addresses.size());
    const auto next_of = [&](std::size_t from, bool v6) {
        while (from < addresses.size() && addresses[from].is_v6() != v6) {
            ++from;
        }
        return from;
    };
    auto six = next_of(0, true);
    auto four = next_of(0, false);
    while (six < addresses.size() || four < addresses.size()) {
        if (six < addresses.size()) {
            ordered.push_back(addresses[six]);
            six = next_of(six + 1, true);
        }
        if (four < addresses.size()) {
            ordered.push_back(addresses[four]);
            four = next_of(four + 1, false);
        }
    }
    return ordered;
}

awaitable<attempt<tcp_socket>> dial(resolver& names,
                                    std::shared_ptr<const destination_guard> guard,
                                    std::string host,
                                    std::uint16_t port,
                                    bool exempt,
                                    steady_time until,
                                    share_holder asker) {
    auto found = names.known(host);
    if (!found) {
        found = co_await names.resolve(host, until, asker);
    }
    // Half of the time is the other family's, which is often late for what makes this one silent.
    const auto begun = steady_now();
    const auto at_first = is_half(*found) && begun < until ? begun + (until - begun) / 2 : until;
    auto socket = co_await connect_to(names, *found, *guard, host, port, exempt, at_first);
    if (socket || !is_half(*found) || is_our_own_lack(socket.error().code) ||
        steady_now() >= until) {
        co_return std::move(socket);
    }
    const bool was_silent = socket.error().code == failure_code::connect_timeout;
    const auto heard_by = was_silent ? steady_now() : until;  // what is there by now, or what comes
    const auto all = co_await names.resolve_rest(host, heard_by);
    attempt<resolved> rest{all ? what_is_new(*all, *found) : nullptr};
    if (*rest == nullptr) {
        if (!was_silent || steady_now() >= until) {
            co_return std::move(socket);
        }
        rest = *found;  // there is no other yet: it has the rest of the time, too
    }
    auto other = co_await connect_to(names, rest, *guard, host, port, exempt, until);
    if (other.has_error() && found->has_value() && says_nothing(other.error().code)) {
        co_return std::move(socket);
    }
    co_return std::move(other);
}

}  // namespace reprise::proxy::net
