#include "proxy/serve/far_end.hpp"

#include "proxy/http/forwarding.hpp"
#include "proxy/net/dial.hpp"
#include "proxy/net/known_refusal.hpp"
#include "proxy/peer/parent_health.hpp"
#include "proxy/thread/worker.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace reprise::proxy::serve {

namespace {

// A tunnel adds no Via: a peer or listener that knows this proxy by address would take the client
// for it, and let it read digests or purge.
std::optional<failure> judge_far_end(const wanted_far_end& to, const tcp::endpoint& far) {
    const auto& own = to.w.common.own_ports;
    const bool is_own = std::find(own.begin(), own.end(), far.port()) != own.end() &&
                        to.settings.guard->is_here(far.address());
    if (!is_own && !(to.w.peers && to.w.peers->book->is_listener(far.address(), far.port(), own))) {
        return std::nullopt;
    }
    return failure{failure_code::destination_refused,
                   net::endpoint_text(far.address(), far.port()) +
                       (is_own ? " is a listener of this proxy" : " is a peer's") +
                       ": no tunnel leads there"};
}

steady_time patience(const wanted_far_end& to) {
    return steady_now() + to.settings.options.timeouts.origin_connect;
}

awaitable<attempt<net::passage>> reach(const wanted_far_end& to) {
    const auto& target = to.target;
    auto dialled = co_await net::dial(to.w.names,
                                      to.settings.guard,
                                      http::connect_host(target),
                                      target.port,
                                      false,
                                      patience(to),
                                      to.asker);
    if (!dialled) {
        co_return std::move(dialled.error());
    }
    error_code gone;
    const auto far = dialled->remote_endpoint(gone);
    if (auto refused = judge_far_end(to, far)) {
        co_return std::move(*refused);
    }
    co_return net::passage{std::move(*dialled), {}};
}

// What Via says to a parent: the client's, and this proxy, so that a way that leads back is seen.
std::string via(const wanted_far_end& to) {
    std::string all;
    for (const auto& line : to.head.fields) {
        if (line.id == http::field_id::via && !line.value.empty()) {
            all.append(line.value).append(", ");
        }
    }
    return all + (to.head.version == 10 ? "1.0 " : "1.1 ") + to.w.common.pseudonym;
}

// One parent after another, until one can be reached: what that says is the answer.
awaitable<attempt<net::passage>> reach_by_parents(const wanted_far_end& to) {
    const net::far_end end{http::connect_host(to.target), to.target.port, via(to)};
    if (auto refused = net::known_refusal(*to.settings.guard, to.w.names, end.host, end.port)) {
        co_return std::move(*refused);
    }
    if (const auto literal = net::read_numeric_host(end.host)) {
        if (auto refused = judge_far_end(to, {*literal, end.port})) {
            co_return std::move(*refused);
        }
    }
    failure why{failure_code::no_parent, "no parent is known now"};
    const auto book = to.w.peers ? to.w.peers->book : nullptr;
    if (!book || !book->choice) {
        co_return why;
    }
    const bool has_via = http::has_via(to.head.fields);
    const auto key = to.w.common.peers->key_of(end.host + ':' + std::to_string(end.port));
    const net::trust_of_the_day trust = [&w = to.w] { return w.current->trust; };
    auto order = book->choice->order(key, steady_now());
    for (std::size_t next = 0; next < order.size(); ++next) {
        // Where none may be asked the best is asked all the same.
        const auto on_trial = book->choice->put_first(std::span{order}.subspan(next),
                                                      steady_now(),
                                                      to.settings.options.timeouts.origin_connect);
        const auto at = order[next];
        const auto& parent = book->parents[at];
        const auto begun = steady_now();
        auto made = co_await net::connect_through(
            to.w.names, to.settings.guard, trust, parent.way, end, patience(to));
        if (made) {
            peer::note_parent_works(*book, at);
        } else if (made.error().code == failure_code::parent_refused) {
            peer::note_parent_refused(*book, at);
        }
        to.book.peer = parent.name;
        if (made || !peer::may_ask_another(made.error().code, has_via)) {
            co_return std::move(made);
        }
        why = std::move(made.error());
        peer::note_parent_failed(*book, at, begun, why);
        if (to.w.timer.stopped()) {
            break;
        }
    }
    co_return why;
}

}  // namespace

awaitable<attempt<net::passage>> reach_far_end(wanted_far_end to) {
    if (to.settings.leaves) {
        to.book.reason = to.why;
    }
    auto reaching = to.settings.options.peering.never_direct ? reach_by_parents(to) : reach(to);
    auto reached = co_await std::move(reaching);
    if (reached) {
        error_code gone;
        const auto far = reached->stream.remote_endpoint(gone);
        to.book.origin = net::endpoint_text(far.address(), far.port());
    }
    co_return std::move(reached);
}

}  // namespace reprise::proxy::serve
