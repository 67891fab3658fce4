#include "proxy/net/pool_state.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

// The bookkeeping of slots, shares and lines, and what idle connections go through: kept, looked
// at, used again or closed. Nothing here waits; the coroutines are in origin_pool.cpp.

namespace reprise::proxy::net::detail {
namespace {

constexpr std::size_t idle_buffer_bytes = 16 << 10;  // what an idle connection may keep
constexpr std::size_t most_unused_shares = 64;       // in a group: spares their making anew

}  // namespace

pool_connection::pool_connection(byte_stream from,
                                 asio::ip::address to,
                                 pool_group& in,
                                 std::uint64_t whose,
                                 const share_holder& asked_by)
    : socket(std::move(from)),
      address(std::move(to)),
      endpoint(
          endpoint_text(address, in.address.through ? in.address.through->port : in.address.port)),
      group(&in),
      owner{whose},
      holder{asked_by} {}

pool_waiter::pool_waiter(pool_state& in,
                         pool_group& at,
                         pool_share* of,
                         std::uint64_t whose,
                         deadlines& timer,
                         bool fresh)
    : pool(in),
      group(at),
      share(of != nullptr ? *of : own),
      owner{whose},
      fresh_only(fresh),
      freed(timer) {
    insert_before(share.waiting);  // whole by now: nothing behind this throws
    ++group.waiting;
    pool.join_line(group, share);
}

pool_waiter::~pool_waiter() {
    switch (has) {
    case handed::nothing:
        unlink();
        --group.waiting;
        if (share.waiting.alone()) {
            share.unlink();
        }
        pool.forget_if_unused(group, charged());
        pool.forget_if_unused(group);
        break;
    case handed::slot:
        pool.discharge(group, charged());
        pool.release_slot(group);
        break;
    case handed::connection: pool.discard(std::move(connection)); break;
    case handed::taken: break;
    }
}

pool_group* pool_state::find_group(const origin_address& to) const {
    if (to.owner != 0) {
        auto all = to;
        all.owner = 0;
        return find_group(all);
    }
    const auto found = groups.find(to);
    return found == groups.end() ? nullptr : found->second.get();
}

pool_group& pool_state::group_for(const origin_address& to) {
    if (auto* const found = find_group(to)) {
        return *found;
    }
    auto fresh = std::make_unique<pool_group>(to);
    auto& group = *fresh;
    groups.emplace(group.address, std::move(fresh));
    return group;
}

void pool_state::forget_if_unused(pool_group& group) noexcept {
    if (group.open == 0 && group.waiting == 0) {
        groups.erase(groups.find(group.address));
    }
}

void pool_state::forget_if_unused(pool_group& group, pool_share* share) noexcept {
    if (share != nullptr && share->in_use == 0 && share->waiting.alone() &&
        group.shares.size() > most_unused_shares) {
        group.shares.erase(address_bytes{share->holder});
    }
}

pool_share* pool_state::share_of(pool_group& group, const share_holder& holder) {
    if (!holder) {
        return nullptr;
    }
    auto& share = group.shares[*holder];
    share.holder = *holder;
    return &share;
}

void pool_state::charge(pool_share* share) noexcept {
    if (share != nullptr && ++share->in_use == options.connections_per_client) {
        ++used_up;
    }
}

// Whoever discharges has a slot or a connection to give away, which goes to the first in line.
void pool_state::discharge(pool_group& group, pool_share* share) noexcept {
    if (share == nullptr) {
        return;
    }
    if (share->in_use-- == options.connections_per_client) {
        --used_up;
    }
    join_line(group, *share);
    forget_if_unused(group, share);
}

void pool_state::join_line(pool_group& group, pool_share& share) noexcept {
    if (share.alone() && !share.waiting.alone() && has_room(&share)) {
        share.insert_before(group.line);
    }
}

// Null: nobody that waits may have more. The limit may be lower than when they joined the line.
pool_waiter* pool_state::first_in_line(pool_group& group) noexcept {
    while (!group.line.alone()) {
        auto& share = static_cast<pool_share&>(*group.line.next);
        if (has_room(&share)) {
            return static_cast<pool_waiter*>(share.waiting.next);
        }
        share.unlink();
    }
    return nullptr;
}

// It is handed something, and waits no more; those behind it in its share go behind the others.
void pool_state::take_turn(pool_waiter& of) noexcept {
    of.unlink();
    --of.group.waiting;
    charge(of.charged());
    of.share.unlink();
    join_line(of.group, of.share);
}

void pool_state::adopt(const config::origin_options& next) {
    options = next;
    close_expired();
    used_up = 0;
    for (auto& [key, group] : groups) {
        for (auto& [holder, share] : group->shares) {
            used_up += has_room(&share) ? 0 : 1;
            join_line(*group, share);
        }
        while (group->open < options.connections && first_in_line(*group) != nullptr) {
            ++group->open;
            release_slot(*group);
        }
    }
}

connection_ptr pool_state::unlist(pool_group& group, std::size_t index) noexcept {
    auto connection = std::move(group.idle[index]);
    group.idle.erase(group.idle.begin() + static_cast<std::ptrdiff_t>(index));
    connection->unlink();
    group.idle_owned -= connection->owner != 0 ? 1 : 0;
    --idle_count;
    add(figures.idle, -1);
    return connection;
}

connection_ptr pool_state::unlist_oldest() noexcept {
    // The longest unused of all is the longest unused of its group.
    return unlist(*static_cast<pool_connection&>(*oldest_first.next).group, 0);
}

// One origin's owned connections may be between others' in any order; few origins have any.
connection_ptr pool_state::unlist_last_of(pool_group& group, std::uint64_t owner) noexcept {
    for (auto i = group.idle.size(); i > 0; --i) {
        if (group.idle[i - 1]->owner == owner) {
            return unlist(group, i - 1);
        }
    }
    return nullptr;
}

// What is everybody's is kept up to origins.idle; what is its clients' own, up to what one client
// may use at once, for each: a login takes two requests and more on one connection.
void pool_state::make_room_for_idle(pool_group& group, const pool_connection& next) {
    const auto is_alike = [&](const connection_ptr& one) {
        return next.owner == 0 || !next.holder ? one->owner == next.owner
                                               : one->owner != 0 && one->holder == next.holder;
    };
    auto& idle = group.idle;
    const auto kept = next.owner == 0 ? idle.size() - group.idle_owned
                                      : static_cast<std::size_t>(
                                            std::count_if(idle.begin(), idle.end(), is_alike));
    connection_ptr gone;
    if (kept >= (next.owner == 0 ? options.idle : options.connections_per_client)) {
        const auto first = std::find_if(idle.begin(), idle.end(), is_alike);
        gone = unlist(group, static_cast<std::size_t>(first - idle.begin()));
    } else if (idle_count >= origin_pool::most_idle) {
        gone = unlist_oldest();
    }
    if (gone) {
        discard_idle(std::move(gone));
    }
}

// One for whose judgement there is no memory is refused.
bool pool_state::refuses(const pool_connection& each) const noexcept {
    const auto& to = each.group->address;
    try {
        // Through a parent the address is the parent's, and that of the origin nobody knows.
        return to.through ? judge_literal(*guard, each.group->host, to.port).has_value()
                          : guard->check(each.group->host, each.address, to.port, to.exempt) !=
                                destination_verdict::allowed;
    } catch (const std::bad_alloc&) {
        return true;
    }
}

bool pool_state::usable(pool_connection& each) noexcept {
    if (each.believed_by && each.believed_by != trust) {
        return false;  // whom we believe has changed since
    }
    if (each.judged_by != guard) {
        if (refuses(each)) {
            return false;
        }
        each.judged_by = guard;
    }
    // Nothing to read and no end: anything else on an idle connection makes it unusable.
    const auto in_it = each.socket.look();
    if (in_it == stream_look::bytes) {
        caught(each);
    }
    if (in_it != stream_look::nothing) {
        add(figures.stale, 1);
        return false;
    }
    return !distrusts(*each.group);
}

bool pool_state::distrusts(const pool_group& group) const noexcept {
    return distrusted->any() && distrusted->has(group.name, steady_now());
}

// What the listener throws must not reach those who hold the connection, whose slot would be lost.
void pool_state::caught(pool_connection& each) noexcept {
    add(figures.surplus, 1);
    const bool anew = distrusted->note(each.group->name, steady_now());
    const auto kept = std::span{each.kept}.first(
        std::min(std::exchange(each.kept_count, 0), each.kept.size()));
    try {
        if (told) {
            told(each.group->address, kept, anew);
        }
    } catch (const std::exception&) {
        // The origin is distrusted all the same; of what was kept some may stay.
    }
}

// One that nobody will look at again before it is used. It is for us to end it, and a FIN would leave its local
// port in TIME_WAIT for a minute: where each request brings a connection more than is kept, the ports to that
// origin would be used up. All that was sent on it was answered, and has arrived. One with TLS says close_notify, as
// ever, and one that the origin has ended leaves nothing behind.
void pool_state::discard_idle(connection_ptr connection, ending how) {
    auto& socket = connection->socket;
    const auto in_it = socket.look();
    if (in_it == stream_look::bytes) {
        caught(*connection);
    }
    if (how == ending::reset && in_it == stream_look::nothing && socket.not_acknowledged() == 0) {
        socket.set_reset_on_close(true);
    }
    discard(std::move(connection));
}

connection_ptr pool_state::take_idle(const origin_address& to, const share_holder& holder) {
    auto* found = find_group(to);
    while (found != nullptr && !found->idle.empty()) {
        auto& group = *found;
        auto* share = share_of(group, holder);
        if (!has_room(share)) {
            return nullptr;
        }
        auto connection = unlist_last_of(group, to.owner);
        if (!connection) {
            return nullptr;
        }
        if (usable(*connection)) {
            charge(share);
            connection->share = share;
            connection->reused = true;
            add(figures.reuses, 1);
            return connection;
        }
        discard(std::move(connection));
        found = find_group(to);  // the group may have gone with its last connection
    }
    return nullptr;
}

// Whoever moves a name means its clients to follow, and a connection that is always in use would never ask for it
// again. One client's own goes on: it is logged in.
bool pool_state::is_too_old(const pool_connection& each) const noexcept {
    return steady_now() - each.made >= names.longest_kept();
}

void pool_state::put_back(connection_ptr connection) {
    auto& group = *connection->group;
    if (!connection->buffer.empty()) {
        caught(*connection);
    }
    if (stopped || group.open > options.connections || distrusts(group) ||
        !may_come_back(*connection) || (connection->owner == 0 && is_too_old(*connection))) {
        discard(std::move(connection));
        return;
    }
    connection->buffer.release(idle_buffer_bytes);
    discharge(group, std::exchange(connection->share, nullptr));
    if (auto* first = first_in_line(group)) {
        if (!first->may_have(*connection)) {
            discard_idle(std::move(connection));  // its slot goes to the waiter
            return;
        }
        take_turn(*first);
        connection->share = first->charged();
        first->has = pool_waiter::handed::connection;
        first->connection = std::move(connection);
        first->freed.notify();
        return;
    }
    if (options.idle == 0 && connection->owner == 0) {
        discard_idle(std::move(connection));
        return;
    }
    make_room_for_idle(group, *connection);
    keep_idle(std::move(connection));
}

void pool_state::keep_idle(connection_ptr connection) {
    auto& group = *connection->group;
    try {
        group.idle.emplace_back();  // its place, before the books say that it is there
    } catch (const std::bad_alloc&) {
        discard(std::move(connection));
        return;
    }
    group.idle_owned += connection->owner != 0 ? 1 : 0;
    connection->idle_since = steady_now();
    connection->insert_before(oldest_first);
    group.idle.back() = std::move(connection);
    ++idle_count;
    add(figures.idle, 1);
    if (!sweep.armed()) {
        try {
            sweep.expire_after(options.idle_timeout);
        } catch (const std::bad_alloc&) {
            // The next one that is given back arms it.
        }
    }
}

void pool_state::close_keeping_slot(connection_ptr connection) {
    connection.reset();
    add(figures.open, -1);
}

void pool_state::discard(connection_ptr connection) {
    auto& group = *connection->group;
    auto* share = connection->share;
    close_keeping_slot(std::move(connection));
    discharge(group, share);
    release_slot(group);
}

void pool_state::release_slot(pool_group& group) {
    if (group.open <= options.connections) {
        if (auto* first = first_in_line(group)) {
            take_turn(*first);
            first->has = pool_waiter::handed::slot;
            first->freed.notify();
            return;
        }
    }
    --group.open;
    forget_if_unused(group);
}

void pool_state::close_expired() {
    const auto now = steady_now();
    while (!oldest_first.alone()) {
        const auto due = static_cast<pool_connection&>(*oldest_first.next).idle_since +
                         options.idle_timeout;
        if (due > now && !timer.stopped()) {
            sweep.expire_at(due);
            return;
        }
        discard_idle(unlist_oldest(), ending::quiet);  // no more than are kept go so in any time
    }
}

// A group goes with its last connection.
void pool_state::close_idle_of(std::uint64_t owner) noexcept {
    for (auto it = groups.begin(); it != groups.end();) {
        auto& group = *(it++)->second;
        for (auto left = group.idle_owned > 0 ? group.idle.size() : 0; left > 0; --left) {
            if (group.idle[left - 1]->owner == owner) {
                discard(unlist(group, left - 1));
            }
        }
    }
}

void pool_state::stop() {
    if (std::exchange(stopped, true)) {
        return;
    }
    sweep.clear();
    while (!oldest_first.alone()) {
        discard(unlist_oldest());
    }
    const auto wake = [](const pool_share& share) {
        for (const auto* at = share.waiting.next; at != &share.waiting; at = at->next) {
            // It sees `stopped` and leaves the line itself.
            static_cast<const pool_waiter*>(at)->freed.notify();
        }
    };
    for (auto& [key, group] : groups) {
        for (const auto* at = group->line.next; at != &group->line; at = at->next) {
            wake(static_cast<const pool_share&>(*at));
        }
        for (const auto& [holder, share] : group->shares) {
            wake(share);
        }
    }
}

pool_slot::~pool_slot() {
    if (group_ != nullptr) {
        pool_.discharge(*group_, share_);
        pool_.release_slot(*group_);
    }
}

}  // namespace reprise::proxy::net::detail
