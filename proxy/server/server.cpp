#include "proxy/server/server.hpp"

#include "proxy/admin/live_view.hpp"
#include "proxy/base/log.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/listening.hpp"
#include "proxy/serve/digest_page.hpp"
#include "proxy/serve/explain.hpp"
#include "proxy/serve/purge.hpp"
#include "proxy/server/disk_room.hpp"
#include "proxy/server/listening_worker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <pthread.h>
#include <stdexcept>
#include <utility>

// Builds everything that settings ask for, starts the threads, and keeps them (server_reload.cpp gives
// them other settings, server_end.cpp ends them).

namespace reprise::proxy::server {

namespace {

// Whatever the thread: one cause, one line.
constinit log::seldom worker_threw;

std::size_t thread_count(const config::options& options) {
    return options.threads != 0 ? options.threads
                                : std::max(1u, std::thread::hardware_concurrency());
}

// SO_REUSEPORT lets a second process of the same user share our port silently: ask without it
// first.
void refuse_taken(asio::io_context& io, const config::endpoint& where) {
    const auto failed = net::why_not_listen(io, where);
    if (where.port != 0 && failed) {
        throw std::runtime_error{"listeners: cannot listen on " + net::to_text(where) + ": " +
                                 failed.message()};
    }
}

// Empty: there is none.
std::string admin_socket_path(const config::admin_options& options) {
    const char* const given = std::getenv("RUNTIME_DIRECTORY");
    return admin::socket_path(options, given == nullptr ? "" : given);
}

}  // namespace

server::server(config::options options,
               std::string version,
               std::function<admin::reload_outcome()> reload,
               const thread::taken_over* from)
    : version_{std::move(version)},
      reload_{std::move(reload)},
      settings_{thread::make_settings(std::move(options))},
      common_{settings_->options, thread_count(settings_->options), resident_now(), from},
      started_{steady_now()},
      windows_{started_},
      history_{started_},
      last_save_{started_},
      next_expiry_look_{started_ + std::chrono::hours{24}},
      next_guard_{started_ + std::chrono::minutes{1}} {
    if (from != nullptr && !from->history.empty() &&
        !history_.adopt(from->history, from->history_at)) {
        log::warn("upgrade: the figures of the last day can't be read; they begin anew");
    }
}

server::~server() {
    for (auto& one : former_admin_sockets_) {
        one.leave_file();  // that program goes on, where this one does not
    }
    stop();
    if (hangs_) {
        std::_Exit(1);  // whatever hangs may wake, and look for what is destroyed
    }
}

conversation::carry_out server::purges_of_other() {
    return [this](const thread::purge_order& order, std::function<void()> kept) {
        serve::carry_out_here(common_, order, resident_now());
        common_.store.keep_purges(std::move(kept));
    };
}

void server::tell_purges_to(std::shared_ptr<conversation> other) {
    if (other) {
        other->on_purge(purges_of_other());
    }
    common_.beside.set(std::move(other));
}

void server::wait_for_store(std::chrono::milliseconds most) const {
    const auto until = steady_now() + most;
    const auto* const disk = common_.store.disk();
    while (disk != nullptr && disk->figures().state == cache::disk::tier_state::loading &&
           steady_now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

// Each worker has a socket of each listener, or several; those that are given are all used, for
// clients wait in each.
void server::bind(std::size_t index, given_sockets& given) {
    auto where = current()->options.listeners[index].address;
    auto sockets = given.take(where, false);
    const auto add = [index](listening_worker& to, auto from) {
        to.listeners.push_back(std::make_unique<accept_loop>(to.w, index, std::move(from)));
        return to.listeners.back().get();
    };
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        where.port = add(*workers_[i % workers_.size()], std::move(sockets[i]))->port();
    }
    const auto* const first = sockets.empty() ? nullptr : workers_.front()->listeners.back().get();
    if (first == nullptr && !given.had(where)) {
        refuse_taken(workers_.front()->w.io, where);
    }
    for (auto i = sockets.size(); i < workers_.size(); ++i) {
        try {
            where.port = add(*workers_[i], where)->port();
        } catch (const std::runtime_error&) {
            if (first == nullptr) {
                throw;
            }
            // One that a service manager bound is not to be shared by others: by copies it is.
            (void)add(*workers_[i], first->copy());
        }
    }
    common_.own_ports.push_back(where.port);
    common_.listens_at.emplace_back(asio::ip::make_address(where.host), where.port);
    bound_.push_back(std::move(where));
}

// All or none: in a socket that the next program lacks clients would wait whom nobody lets in once this
// one has ended.
std::optional<std::vector<given_socket>> server::copy_sockets() {
    std::vector<given_socket> out;
    const auto held = current();
    const auto& options = held->options;
    for (const auto& one : workers_) {
        for (const auto& listener : one->listeners) {
            out.push_back(
                {listener->copy(), net::to_text(options.listeners[listener->of()].address), false});
        }
    }
    if (options.admin.address) {
        out.push_back({admin_->listening(), net::to_text(*options.admin.address), true});
    }
    if (auto path = admin_socket_path(options.admin); !path.empty()) {
        out.push_back({admin_->socket_listening(), std::move(path), true});
    }
    const bool lacks_one = std::any_of(
        out.begin(), out.end(), [](const given_socket& one) { return !one.socket; });
    return lacks_one ? std::nullopt : std::optional{std::move(out)};
}

void server::hand_over(std::vector<std::string> words, std::function<void(pid_t)> succeeded) {
    if (successor_ && successor_->is_under_way()) {
        log::warn("upgrade: one is under way already");
        return;
    }
    if (common_.beside.get()) {
        log::warn("upgrade: the program before this one has not ended yet: not now");
        return;
    }
    successor_.reset();
    auto* const disk = common_.store.disk();
    estate of{
        .pseudonym = common_.pseudonym,
        .sockets = {},
        .tell_purges_to =
            [this](std::shared_ptr<conversation> other) { common_.beside.set(std::move(other)); },
        .lend_store =
            [disk](std::chrono::milliseconds most) {
                return disk == nullptr ? std::string{} : disk->lend(most);
            },
        .take_store_back = [disk] { return disk == nullptr || disk->take_back(); },
        .keep_purges =
            [this](std::function<void()> kept) { common_.store.keep_purges(std::move(kept)); },
        .admission = [this] { return common_.admission.encoded(); },
        .history = [this](steady_time now) { return history_at(now); },
        .succeeded = std::move(succeeded)};
    try {
        auto sockets = copy_sockets();
        if (!sockets) {
            log::warn(
                "upgrade: there are no file descriptors left for copies of the sockets that it "
                "listens on: not now");
            return;
        }
        of.sockets = std::move(*sockets);
        successor_ = std::make_unique<successor>(
            std::move(words), std::move(of), purges_of_other());
    } catch (const std::exception& failed) {
        log::error("upgrade: ", std::string_view{failed.what()}, "; this program goes on");
    }
}

void server::start(given_sockets given) {
    const auto initial = current();  // a reload may come before this ends
    const auto& options = initial->options;
    accepts_ = !given.empty();  // clients wait in these already
    if (const auto error = common_.access.retarget(options.log)) {
        throw std::runtime_error{"log.access: cannot open " + options.log.access + ": " +
                                 error.message()};
    }
    if (common_.store.disk() != nullptr) {
        room_.look(current()->options.disk);
    }
    const auto threads = thread_count(options);
    for (std::size_t i = 0; i < threads; ++i) {
        workers_.push_back(std::make_unique<listening_worker>(i, common_, initial));
    }
    for (std::size_t index = 0; index < options.listeners.size(); ++index) {
        bind(index, given);
    }
    admin::admin_hooks hooks;
    hooks.ready = [this] { return readiness_now(); };
    hooks.stats = [this] { return stats(); };
    hooks.reload = reload_;
    hooks.history = [this] { return history_at(steady_now()); };
    hooks.tick = [this] {
        const auto now = steady_now();
        windows_.tick(now, common_.counters.snapshot());
        const std::lock_guard lock{history_guard_};
        history_.tick(now, tally_now());
    };
    admin_ = std::make_unique<admin::admin_server>(std::move(hooks));
    admin_->add_route(
        {.method = boost::beast::http::verb::post,
         .path = "/purge",
         .needs_token = true,
         .about = "drops stored responses: ?url=, ?prefix=, or ?tag=&origin=; &soft "
                  "makes them stale instead",
         .handler = [this](const admin::admin_request& asked) { return purge(asked); }});
    admin_->add_route({.method = boost::beast::http::verb::get,
                       .path = "/explain",
                       .needs_token = false,
                       .about = "what a request would get, and why: ?url=, method=, header=, "
                                "listener=",
                       .handler =
                           [this](const admin::admin_request& asked) {
                               const auto book = current_book();
                               auto told = serve::explain(
                                   common_, *current(), book.get(), asked.query, resident_now());
                               return admin::admin_response{.status = told.status,
                                                            .content_type = "application/json",
                                                            .body = std::move(told.json)};
                           },
                       .token_from_afar = true});
    admin_->add_route({.method = boost::beast::http::verb::get,
                       .path = "/digest",
                       .needs_token = false,
                       .about = "a digest, this instance's or ?of= a sibling's; url= whether it "
                                "lists that, with= what both have",
                       .handler =
                           [this](const admin::admin_request& asked) {
                               auto page = serve::show_digest(common_.peers.get(), asked.query);
                               return admin::admin_response{.status = page.status,
                                                            .body = std::move(page.text)};
                           },
                       .token_from_afar = true});
    admin_->add_route({.method = boost::beast::http::verb::get,
                       .path = "/live",
                       .needs_token = false,
                       .about = "requests as they end, as server-sent events: ?host=, outcome=",
                       .handler =
                           [this](const admin::admin_request& asked) {
                               return admin::live_view(common_.live, asked.query);
                           },
                       .token_from_afar = true});
    // Before anybody reads of peers.
    if (common_.peers) {
        common_.store.keep_on_disk(
            [this](std::string_view url) { return common_.peers->belongs_here(url); });
        auto& home = workers_.front()->w;
        auto publish = [this](peer::peering::book_ptr book) {
            const std::lock_guard lock{book_guard_};
            const bool is_first = book_ == nullptr;
            book_ = std::move(book);
            for (auto& one : workers_) {
                if (is_first) {
                    one->w.peers->book = book_;  // known before any client is
                } else if (!book_waits_) {
                    asio::post(one->w.io,
                               [own = one.get(), book = book_] { own->w.peers->book = book; });
                }
            }
        };
        common_.peers->begin(
            home.io, home.timer, home.names, home.origins, options, std::move(publish));
    }
    start_admin(options.admin, given);
    memory_upkeep_.look(steady_now());  // it is as large as this before anybody has come
    running_ = true;  // from here on stop() ends what has begun, should the next not begin
    // Only now, since the kernel shares clients out among all sockets that listen on an address: where a
    // start fails, those of the program before this one would be lost with it.
    for (auto& one : workers_) {
        for (auto& listener : one->listeners) {
            listener->listen();
        }
    }
    for (auto& one : workers_) {
        one->thread = std::thread{[own = one.get()] {
            for (auto& listener : own->listeners) {
                listener->begin();
            }
            // An exception out of one handler must not take the thread's clients with it.
            for (;;) {
                try {
                    own->w.io.run();
                    break;
                } catch (const std::exception& what) {
                    if (const auto more = worker_threw.due()) {
                        log::error(
                            "an exception on a worker: ", std::string_view{what.what()}, *more);
                    }
                }
            }
            own->ended.store(true, std::memory_order_release);
        }};
        ::pthread_setname_np(one->thread.native_handle(), "worker");
    }
    accepts_ = true;
}

void server::own_admin_socket() {
    const auto held = current();
    if (const auto path = admin_socket_path(held->options.admin); !path.empty()) {
        admin_->own_socket(path);
    }
}

void server::remove_former_sockets() {
    former_admin_sockets_.clear();
}

void server::start_admin(const config::admin_options& options, given_sockets& given) {
    admin::admin_places places;
    if (options.address) {
        auto sockets = given.take(*options.address, true);
        if (!sockets.empty()) {
            places.address = std::move(sockets.front());
        }
    }
    const auto path = admin_socket_path(options);
    if (!path.empty()) {
        if (auto listening = given.take(path)) {
            places.socket.emplace(admin::admin_socket::adopt(std::move(listening)));
        } else {
            auto bound = admin::admin_socket::listen(path, options.socket_for);
            if (!bound) {
                throw std::runtime_error{"admin.socket: cannot listen on " + path + ": " +
                                         bound.error().message()};
            }
            places.socket.emplace(std::move(*bound));
        }
        log::info("admin on ", path);
    }
    for (auto& left : given.admin_paths()) {
        former_admin_sockets_.push_back(admin::admin_socket::adopt({}));
        (void)former_admin_sockets_.back().own(std::move(left));
    }
    if (!options.address && !places.socket) {
        return;
    }
    auto at = admin_->start(options, std::move(places));
    if (!at) {
        throw std::runtime_error{"admin.address: cannot listen on " +
                                 (options.address ? net::to_text(*options.address) : path) + ": " +
                                 at.error().message()};
    }
    if (options.address) {
        admin_bound_ = *at;
        common_.own_ports.push_back(at->port);
    }
}

void server::publish(thread::settings_ptr next) {
    {
        const std::lock_guard lock{settings_guard_};
        former_.push_back(settings_);
        settings_ = next;
    }
    const std::lock_guard lock{book_guard_};
    book_waits_ = false;
    for (auto& one : workers_) {
        asio::post(one->w.io, [own = one.get(), next, book = book_] {
            own->w.adopt(next);
            if (book) {
                own->w.peers->book = book;
            }
        });
    }
}

// A trust store and a thousand rules take a millisecond to free: no client is to wait for that.
void server::free_former_settings() {
    std::vector<thread::settings_ptr> unused;
    const std::lock_guard lock{settings_guard_};
    const auto first = std::partition(
        former_.begin(), former_.end(), [](const auto& one) { return one.use_count() > 1; });
    unused.assign(std::make_move_iterator(first), std::make_move_iterator(former_.end()));
    former_.erase(first, former_.end());
}

void server::housekeep() {
    if (!running_) {
        return;  // it stops: what is to be saved is saved there
    }
    const auto now = steady_now();
    common_.store.memory().tick(now);
    memory_upkeep_.look(now);
    free_former_settings();
    if (common_.peers) {
        common_.peers->note_figures(figures_for_fleet(now), now);
    }
    // A reload may hang in a file; signals, and what else this thread does, must not wait for it.
    if (const std::unique_lock turn{turn_guard_, std::try_to_lock}) {
        common_.admission.housekeep(eviction_age(), resident_now());
        if (common_.peers) {
            common_.peers->housekeep(common_.admission.settings(), resident_now());
        }
        if (const auto next = common_.advice.housekeep(common_.admission, now)) {
            common_.store.memory().set_probation(next->probation);
            common_.store.set_exponent(next->exponent);
        }
        if (now >= next_guard_) {
            look_at_own_addresses(now);
        }
    }
    if (now >= next_expiry_look_) {
        next_expiry_look_ = now + std::chrono::hours{24};
        if (const auto leaves = current()->leaves) {
            const auto left = leaves->authority().left(wall_now());
            if (left < net::leaf_authority::warn_before) {
                log::warn("intercept.ca_certificate: it, or one above it, expires in ",
                          std::max<std::int64_t>(left.count(), 0),
                          " days, and nothing is opened from then on");
            }
        }
    }
    if (common_.store.disk() != nullptr) {
        room_.look_aside(current()->options.disk, now);
    }
    // By the settings in force: a reload's shorter interval is not to wait for the end of the longer one.
    if (now >= last_save_ + current()->options.admission.save_every && !saving_.exchange(true)) {
        last_save_ = now;
        save_aside();
    }
}

// Where the kernel won't tell, the guard that there is goes on, and it is asked again soon.
void server::look_at_own_addresses(steady_time now) {
    const auto own = net::local_addresses();
    if (!own) {
        return;
    }
    next_guard_ = now + std::chrono::minutes{1};
    auto next = std::make_shared<thread::settings>(*current());
    next->guard = std::make_shared<const net::destination_guard>(next->options.access, *own);
    publish(std::move(next));
}

void server::save_aside() {
    try {
        aside_.post([this] {
            try {
                (void)save_state();
            } catch (const std::exception& failed) {
                log::error("admission.state: not written: ", std::string_view{failed.what()});
            }
            saving_ = false;
        });
    } catch (...) {
        saving_ = false;  // the next time, then
        throw;
    }
}

// For how long what nobody asks for stays in the store: on disk, where there is one and it is full.
std::optional<std::chrono::seconds> server::eviction_age() const {
    if (const auto* disk = common_.store.disk()) {
        const auto figures = disk->figures();
        // Where the clock was set back behind the beginning of the oldest segment nobody knows.
        const bool is_known = figures.evicted != 0 && figures.oldest.count() != 0;
        return is_known ? std::optional{figures.oldest} : std::nullopt;
    }
    return common_.store.memory().figures().eviction_age;
}

bool server::save_state() {
    const auto path = current()->options.admission.state;
    if (path.empty() || common_.succeeded.load(std::memory_order_relaxed)) {
        return true;
    }
    if (const auto error = common_.admission.save(path)) {
        log::error("admission.state: cannot write ", path, ": ", error.message());
        return false;
    }
    return true;
}

thread::settings_ptr server::current() {
    const std::lock_guard lock{settings_guard_};
    return settings_;
}

peer::peering::book_ptr server::current_book() {
    const std::lock_guard lock{book_guard_};
    return book_;
}

admin::admin_response server::purge(const admin::admin_request& asked) {
    const auto read = serve::read_purge_query(asked.query.empty() ? asked.body : asked.query,
                                              current()->options);
    if (!read.wrong.empty()) {
        return {.status = 400, .body = read.wrong + "\n"};
    }
    auto done = serve::carry_out(common_, read.order, resident_now());
    auto wait = std::make_shared<admin::admin_wait>();
    wait->begin = [this](std::function<void()> kept) { common_.keep_purges(std::move(kept)); };
    wait->most = serve::purge_patience;
    wait->otherwise = {.status = serve::purge_not_kept_status,
                       .body = std::string{serve::purge_not_kept}};
    return {.status = done.status,
            .content_type = "application/json",
            .body = std::move(done.json),
            .wait = std::move(wait)};
}

}  // namespace reprise::proxy::server
