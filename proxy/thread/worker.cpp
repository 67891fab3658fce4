#include "proxy/thread/worker.hpp"

#include "proxy/base/log.hpp"
#include "proxy/cache/disk/files.hpp"
#include "proxy/cache/plan.hpp"
#include "proxy/net/access.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <openssl/rand.h>
#include <stdexcept>
#include <string_view>

// The order of common_state's members is the order in which one needs another: the disk is attached
// when the store is there and before admission is, which takes over the secret of the keys that lie
// there.

namespace reprise::proxy::thread {

namespace {

// In Via, so that a loop is known from a chain of like-named proxies: new at each start unless it
// is set.
std::string make_pseudonym(const config::options& options) {
    if (!options.forwarding.pseudonym.empty()) {
        return options.forwarding.pseudonym;
    }
    unsigned char bytes[6];
    if (RAND_bytes(bytes, sizeof bytes) != 1) {
        throw std::runtime_error{"no random numbers: the system's generator failed"};
    }
    std::string name = "reprise-";
    for (const auto byte : bytes) {
        name += "abcdefghijklmnopqrstuvwxyz234567"[byte % 32];
    }
    return name;
}

// The secret of the keys in it; null where there is none.
const filter::hash_secret* attach_disk(cache::store& store,
                                       const config::options& all,
                                       cache::contents_listener* told) {
    const auto& options = all.disk;
    if (options.path.empty()) {
        return nullptr;
    }
    cache::disk::tier_settings settings;
    settings.path = options.path;
    settings.size = options.size;
    settings.max_object = options.largest();
    // What memory holds must find room in it when it leaves, or it could never reach the disk.
    settings.write_queue = std::clamp<std::uint64_t>(
        all.memory.largest() + (8u << 20), settings.write_queue, 256u << 20);
    settings.carry = options.carry;
    settings.exponent = cache::exponent_of(all.caching.objective);
    settings.by_wait = cache::goes_by_wait(all.caching.objective);
    settings.choosy = options.selective;
    settings.told = told;
    try {
        store.attach(std::make_unique<cache::disk::tier>(settings,
                                                         cache::disk::system_files(),
                                                         store.purges(),
                                                         store.memory().invalidated()),
                     options.write);
    } catch (const std::bad_alloc&) {
        throw std::runtime_error{"disk.path: " + options.path +
                                 ": there is no memory to open this store"};
    }
    return &store.disk()->secret();
}

}  // namespace

/// Parts that are all to be done, whatever becomes of one; the first failure is told behind the last.
class worker::all_the_same {
public:
    template <class Part>
    void run(Part part) noexcept {
        try {
            part();
        } catch (...) {
            if (!broken_) {
                broken_ = std::current_exception();
            }
        }
    }
    void rethrow() const {
        if (broken_) {
            std::rethrow_exception(broken_);
        }
    }

private:
    std::exception_ptr broken_;
};

bool client_census::enter(const net::address_bytes& client,
                          unsigned most_of_client,
                          unsigned most,
                          bool is_stranger) {
    const std::lock_guard lock{guard_};
    if (all_ >= most || (is_stranger && strangers_ * strangers_share >= most)) {
        return false;
    }
    const auto known = by_client_.find(client);
    if ((known == by_client_.end() ? 0 : known->second) >= most_of_client) {
        return false;
    }
    ++(known == by_client_.end() ? by_client_[client] : known->second);
    ++all_;
    strangers_ += is_stranger ? 1 : 0;
    return true;
}

void client_census::leave(const net::address_bytes& client, bool is_stranger) noexcept {
    const std::lock_guard lock{guard_};
    const auto it = by_client_.find(client);
    if (it != by_client_.end() && --it->second == 0) {
        by_client_.erase(it);
    }
    --all_;
    strangers_ -= is_stranger ? 1 : 0;
}

unsigned client_census::size() const {
    const std::lock_guard lock{guard_};
    return all_;
}

common_state::common_state(const config::options& options,
                           std::size_t threads,
                           wall_time now,
                           const taken_over* from)
    : pseudonym{from != nullptr && options.forwarding.pseudonym.empty() ? from->pseudonym
                                                                        : make_pseudonym(options)},
      cache_name{options.forwarding.pseudonym.empty() ? "reprise" : options.forwarding.pseudonym},
      peers{peer::peering::is_wanted(options)
                ? std::make_unique<peer::peering>(options, pseudonym, now)
                : nullptr},
      requests{cache::sketch_for(options)},
      store{cache::plan_of(options, requests, peers.get())},
      admission{options,
                now,
                attach_disk(store, options, peers.get()),
                requests,
                from != nullptr && from->admission ? &*from->admission : nullptr},
      advice{options, steady_now()},
      fetches{peers.get()},
      counters{threads},
      client_rates{options.limits.client_rate} {
    store.set_largest_in_memory(options.memory.largest());
    store.on_eviction([this](const cache::evicted_response& gone) {
        if (gone.was_admitted) {
            admission.evicted(gone.key);
        }
    });
    store.on_unwritten([this](std::string_view url) { beside.tell_invalidated(url); });
}

void common_state::keep_purges(std::function<void()> kept) {
    if (auto other = beside.get()) {
        kept = [other = std::move(other), kept = std::move(kept)] {
            other->when_carried_out(kept);
        };
    }
    store.keep_purges(std::move(kept));
}

worker::worker(std::size_t index, common_state& shared, settings_ptr initial)
    : common{shared},
      counts{shared.counters.of_thread(index)},
      current{std::move(initial)},
      timer{io},
      names{timer, current->options.dns},
      origins{timer, names, current->guard, current->options.origins},
      sampled{index},
      watch{timer, [this] { watch_clients(); }},
      request_id_{static_cast<std::uint64_t>(index) << 48} {
    if (common.peers) {
        peers.emplace(*common.peers);
    }
    origins.set_trust(current->trust);
    origins.set_distrusted(common.distrusted,
                           [this](const net::origin_address& origin,
                                  std::span<const std::string> kept,
                                  bool anew) { disown(origin, kept, anew); });
}

// Nobody can tell any more which of the answers on that connection were shifted by one. They go before
// it is told, which takes memory too.
void worker::disown(const net::origin_address& origin,
                    std::span<const std::string> kept,
                    bool anew) {
    for (const auto& url : kept) {
        const auto key = filter::hash_of(url, common.admission.secret());
        counts.store_invalidated.add(common.store.invalidate(key, url));
        common.beside.tell_invalidated(url);
        common.fetches.forget(key, url);
    }
    if (anew) {
        log::warn(origin.host,
                  ":",
                  origin.port,
                  " sent more than its answer said: for an hour no connection to it is used twice");
    }
}

worker::~worker() = default;

void worker::adopt(settings_ptr next) {
    current = std::move(next);
    origins.set_guard(current->guard);
    origins.set_options(current->options.origins);
    origins.set_trust(current->trust);
}

bool common_state::listens(const tcp::endpoint& far,
                           const net::destination_guard& here) const noexcept {
    const auto at = net::canonical(far.address());
    return std::any_of(listens_at.begin(), listens_at.end(), [&](const tcp::endpoint& one) {
        return one.port() == far.port() &&
               (one.address().is_unspecified() ? here.is_here(far.address())
                                               : net::canonical(one.address()) == at);
    });
}

bool worker::speaks_for_many(const net::address_bytes& client) const {
    const auto& access = current->options.access;
    return net::is_in(access.fronts, client) || net::is_in(access.trusted_fronts, client) ||
           (peers && peers->book->is_peer(net::to_address(client)));
}

bool worker::is_stranger(const net::address_bytes& client) const {
    return !net::is_in(current->options.access.clients, client) && !speaks_for_many(client) &&
           !(peers && peers->book->may_ask(net::to_address(client)));
}

net::share_holder worker::share_of(const net::address_bytes& client) const {
    return speaks_for_many(client) ? net::share_holder{} : net::place_of_client(client);
}

// Ending one may unlist it, later: within the loop nothing changes. What fails for one is done for the others.
template <class Action>
void worker::with_each_client(all_the_same& through, Action act) {
    for (auto* at = connections.next; at != &connections; at = at->next) {
        through.run([&] { act(static_cast<client_connection&>(*at)); });
    }
}

void worker::drain() {
    all_the_same parts;
    with_each_client(parts, [](client_connection& one) { one.end_if_idle(); });
    parts.rethrow();
}

void worker::abort() {
    all_the_same parts;
    with_each_client(parts, [](client_connection& one) { one.abort(); });
    parts.run([this] { timer.stop(); });
    parts.run([this] { names.stop(); });
    parts.run([this] { origins.stop(); });
    parts.rethrow();
}

// The next look first: whatever becomes of this one, it comes.
void worker::watch_clients() {
    if (watched > 0 && !timer.stopped()) {
        watch.expire_after(std::chrono::milliseconds{250});
    }
    all_the_same parts;
    with_each_client(parts, [](client_connection& one) { one.look_at_client(); });
    parts.rethrow();
}

}  // namespace reprise::proxy::thread
