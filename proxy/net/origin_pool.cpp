#include "proxy/net/origin_pool.hpp"

#include "proxy/net/dial.hpp"
#include "proxy/net/pool_state.hpp"
#include "proxy/net/tls.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include <string>
#include <utility>

// This is the pool's face; what it keeps and counts is pool_state, which leases and coroutines
// share because the pool may go while they wait. acquire() comes by a connection in one of four
// ways: an idle one, a free slot, the slot of an idle one that may not be used, or its turn.

namespace reprise::proxy::net {

using namespace detail;

namespace {

/// A connection, and by whom the other end was believed.
struct opened {
    byte_stream stream;
    asio::ip::address far;
    tls_trust_ptr believed_by;  // null: no TLS
};

// Trust is taken when a handshake begins, and not before the dial: what it remembers of sessions is
// forgotten by a reload, and would be remembered under the trust of before.
awaitable<attempt<opened>> open_through(pool_state& mine,
                                        std::shared_ptr<const destination_guard> judge,
                                        origin_address to,
                                        steady_time until) {
    const std::string host{to.host};
    far_end far{host, to.port};
    trust_of_the_day trust_now = [&mine] { return mine.trust; };
    auto passed = co_await connect_through(
        mine.names, std::move(judge), std::move(trust_now), to.through, std::move(far), until);
    if (passed.has_error()) {
        co_return std::move(passed.error());
    }
    error_code gone;
    const auto parent = passed->stream.remote_endpoint(gone);
    if (gone) {
        co_return parent_not_reached(to.through->name,
                                     failure{failure_code::origin_closed, gone.message()});
    }
    const auto trust = mine.trust;
    const auto parent_believed_by = passed->believed_by;
    tls_server server{host, to.port, &mine.sessions};
    auto secured = co_await secure_passage(
        std::move(*passed), trust, std::move(server), mine.timer, until);
    if (secured.has_error()) {
        co_return std::move(secured.error());
    }
    // Both ends are believed: kept is what both would be by the trust of the day.
    co_return opened{
        std::move(*secured), parent.address(), parent_believed_by ? parent_believed_by : trust};
}

awaitable<attempt<opened>> open_directly(pool_state& mine,
                                         std::shared_ptr<const destination_guard> judge,
                                         origin_address to,
                                         steady_time until,
                                         share_holder asker) {
    const std::string host{to.host};
    // What the settings name is asked for on everybody's behalf.
    const auto whose = to.exempt ? share_holder{} : asker;
    auto socket = co_await dial(
        mine.names, std::move(judge), host, to.port, to.exempt, until, whose);
    if (socket.has_error()) {
        co_return std::move(socket.error());
    }
    error_code gone;
    const auto far = socket->remote_endpoint(gone);
    if (gone) {
        co_return failure{failure_code::connect_refused, host + " closed the connection at once"};
    }
    if (!to.tls) {
        co_return opened{byte_stream{std::move(*socket)}, far.address(), nullptr};
    }
    const auto trust = mine.trust;
    tls_server server{host, to.port, &mine.sessions};
    auto secured = co_await connect_tls(
        std::move(*socket), trust, std::move(server), mine.timer, until);
    if (secured.has_error()) {
        co_return std::move(secured.error());
    }
    co_return opened{std::move(*secured), far.address(), trust};
}

}  // namespace

origin_lease::origin_lease() noexcept = default;
origin_lease::origin_lease(origin_lease&& other) noexcept = default;

origin_lease& origin_lease::operator=(origin_lease&& other) noexcept {
    if (this != &other) {
        close();
        pool_ = std::move(other.pool_);
        connection_ = std::move(other.connection_);
    }
    return *this;
}

origin_lease::origin_lease(std::shared_ptr<pool_state> pool, connection_ptr connection) noexcept
    : pool_(std::move(pool)),
      connection_(std::move(connection)) {}

origin_lease::~origin_lease() {
    close();
}

byte_stream& origin_lease::socket() noexcept {
    return connection_->socket;
}
read_buffer& origin_lease::buffer() noexcept {
    return connection_->buffer;
}
bool origin_lease::reused() const noexcept {
    return connection_->reused;
}
const std::string& origin_lease::endpoint() const noexcept {
    return connection_->endpoint;
}

void origin_lease::note_kept(std::string_view name) {
    auto& mine = *connection_;
    if (mine.reused) {
        mine.kept[mine.kept_count++ % mine.kept.size()] = name;
    }
}

void origin_lease::note_surplus() {
    pool_->caught(*connection_);
}

void origin_lease::give_back() {
    if (connection_) {
        pool_->put_back(std::move(connection_));
    }
    pool_.reset();
}

void origin_lease::close() noexcept {
    if (connection_) {
        pool_->discard(std::move(connection_));
    }
    pool_.reset();
}

origin_pool::origin_pool(deadlines& timer,
                         resolver& names,
                         std::shared_ptr<const destination_guard> guard,
                         const config::origin_options& options)
    : state_(std::make_shared<pool_state>(timer, names, std::move(guard), options)) {}

origin_pool::~origin_pool() {
    stop();
}

owned_connections::owned_connections(const origin_pool& of)
    : of_{of.state_},
      owner_{[] {
          static std::atomic<std::uint64_t> given{0};
          return given.fetch_add(1, std::memory_order_relaxed) + 1;
      }()} {
    of.state_->owners.insert(owner_);
}

owned_connections::~owned_connections() {
    if (const auto pool = of_.lock()) {
        pool->owners.erase(owner_);
        pool->close_idle_of(owner_);
    }
}

void origin_pool::stop() {
    state_->stop();
}

void origin_pool::set_guard(std::shared_ptr<const destination_guard> guard) {
    state_->guard = std::move(guard);
}

void origin_pool::set_options(const config::origin_options& options) {
    state_->adopt(options);
}

void origin_pool::set_distrusted(std::shared_ptr<distrusted_origins> known, surplus_listener told) {
    state_->distrusted = std::move(known);
    state_->told = std::move(told);
}

void origin_pool::set_trust(tls_trust_ptr trust) {
    if (state_->trust != trust) {
        state_->sessions.forget();
    }
    state_->trust = std::move(trust);
}

const origin_figures& origin_pool::figures() const noexcept {
    return state_->figures;
}

origin_lease origin_pool::try_acquire(const origin_address& to, const share_holder& holder) {
    if (auto connection = state_->take_idle(to, holder)) {
        return {state_, std::move(connection)};
    }
    return {};
}

bool origin_pool::any_used_up() const noexcept {
    return state_->used_up > 0;
}

bool origin_pool::is_used_up(const origin_address& to, const share_holder& holder) const {
    if (!holder || !any_used_up()) {
        return false;
    }
    const auto* const group = state_->find_group(to);
    if (group == nullptr) {
        return false;
    }
    const auto share = group->shares.find(*holder);
    return share != group->shares.end() && !state_->has_room(&share->second);
}

bool origin_pool::must_wait(const origin_address& to, const share_holder& holder) const {
    const auto* const group = state_->find_group(to);
    return is_used_up(to, holder) ||
           (group != nullptr && group->idle.empty() && group->open >= state_->options.connections);
}

awaitable<attempt<origin_lease>> origin_pool::acquire(origin_address to,
                                                      bool fresh_only,
                                                      steady_time until,
                                                      share_holder holder) {
    const auto mine = state_;  // the pool may go while we wait
    if (!fresh_only) {
        if (auto connection = mine->take_idle(to, holder)) {
            co_return origin_lease{mine, std::move(connection)};
        }
    }
    const failure stopping{failure_code::draining, "the proxy is shutting down"};
    if (mine->stopped) {
        co_return stopping;
    }
    const std::string name{to.host};
    to.host = name;
    auto& group = mine->group_for(to);
    auto* const share = mine->share_of(group, holder);

    // Each way to a slot: a free one, that of an idle connection we may not use, or our turn.
    const bool may_have = mine->has_room(share);
    if (may_have && group.open < mine->options.connections) {
        ++group.open;
        mine->charge(share);
    } else if (may_have && !group.idle.empty()) {
        mine->close_keeping_slot(mine->unlist(group, 0));
        mine->charge(share);
    } else {
        using handed = pool_waiter::handed;
        pool_waiter me{*mine, group, share, to.owner, mine->timer, fresh_only};
        while (me.has == handed::nothing && !mine->stopped) {
            const bool signalled = co_await me.freed.wait(until);
            if (!signalled) {
                break;
            }
        }
        if (mine->stopped) {
            co_return stopping;
        }
        if (me.has == handed::nothing) {
            const bool own = !mine->has_room(share);
            const auto most = own ? mine->options.connections_per_client
                                  : mine->options.connections;
            co_return failure{own ? failure_code::client_share_used
                                  : failure_code::origin_connection_limit,
                              "all " + std::to_string(most) + " connections" +
                                  (own ? " of one client to " : " to ") + name + ':' +
                                  std::to_string(to.port) + " are in use"};
        }
        if (std::exchange(me.has, handed::taken) == handed::connection) {
            if (mine->usable(*me.connection)) {
                me.connection->reused = true;
                mine->add(mine->figures.reuses, 1);
                co_return origin_lease{mine, std::move(me.connection)};
            }
            mine->close_keeping_slot(std::move(me.connection));
        }
    }

    pool_slot slot{*mine, group, share};
    const auto judge = mine->guard;
    mine->add(mine->figures.dials, 1);
    auto opening = to.through ? open_through(*mine, judge, to, until)
                              : open_directly(*mine, judge, to, until, holder);
    auto made = co_await std::move(opening);
    if (made.has_error()) {
        // That nobody waits any more is no failure of the origin's.
        const auto told = co_await asio::this_coro::cancellation_state;
        const bool was_given_up = told.cancelled() != asio::cancellation_type::none;
        mine->add(mine->figures.failures, was_given_up ? 0 : 1);
        co_return std::move(made.error());
    }
    auto connection = std::make_unique<pool_connection>(
        std::move(made->stream), made->far, group, to.owner, holder);
    slot.hand_over();
    connection->share = share;
    connection->judged_by = judge;
    connection->believed_by = std::move(made->believed_by);
    mine->add(mine->figures.opened, 1);
    mine->add(mine->figures.open, 1);
    co_return origin_lease{mine, std::move(connection)};
}

}  // namespace reprise::proxy::net
