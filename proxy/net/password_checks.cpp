#include "proxy/net/password_checks.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <openssl/crypto.h>
#include <pthread.h>
#include <sys/resource.h>
#include <utility>

// A login lies in under_way_ from begin() until take_out(); connections that send the same one
// meanwhile join it there. The thread that tries it reads it without the lock, and tells those who
// wait without it.

namespace reprise::proxy::net {

namespace {

// With every processor busy a thread of the first gets a tenth of what one of the loops gets, of the
// second a seventieth: the hash that takes a tenth of a second takes one, or seven.
constexpr int prompt_priority = 10;
constexpr int patient_priority = 19;

// Once for each thread: the loops come first. Where that is not allowed it is as before.
void give_way(int priority) noexcept {
    thread_local const bool done = [priority] {
        sigset_t all;
        sigfillset(&all);  // signals are the main thread's
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        pthread_setname_np(pthread_self(), "passwords");
        return ::setpriority(PRIO_PROCESS, 0, priority) == 0;  // of this thread alone, on Linux
    }();
    (void)done;
}

secret_name name_at(const address_bytes& address, std::string_view user) {
    return {{reinterpret_cast<const char*>(address.data()), address.size()}, user};
}

}  // namespace

bool try_limits::may_try(secret_name where, steady_time now) const {
    const auto found = places_.find(where);
    return found == places_.end() || found->second.next <= now;
}

bool try_limits::was_wrong(secret_name where, steady_time now) const {
    const auto found = places_.find(where);
    return found != places_.end() && found->second.wrong > 1 &&
           now - found->second.last <= forgotten_after;
}

void try_limits::note(secret_name where, bool right, steady_time now) {
    if (right) {
        return;  // or one's own password would wash away the wrong ones for another's name
    }
    if (!places_.contains(where)) {
        make_room(now);
    }
    auto& one = places_[where];
    if (now - one.last > forgotten_after) {
        one = {};
    }
    one.last = now;
    ++one.wrong;
    if (one.wrong > free_tries) {
        constexpr unsigned most_doublings = 7;
        const auto wait = first_wait * (1u << std::min(one.wrong - free_tries - 1, most_doublings));
        one.next = now + std::min<std::chrono::milliseconds>(wait, longest_wait);
    }
}

void try_limits::make_room(steady_time now) {
    if (places_.size() < most_places) {
        return;
    }
    std::erase_if(places_,
                  [now](const auto& one) { return now - one.second.last > forgotten_after; });
    if (places_.size() >= most_places) {
        // Whoever has so many addresses, or names at one that speaks for many, is not held by this: the
        // bound on what all may try at once does that.
        places_.erase(places_.begin());
    }
}

// A reload may have come between: the outcome holds for both where the name has the same hash in both lists.
bool password_checks::is_tried_alike(const order& one, const order& other) noexcept {
    return one.users == other.users ||
           (one.name == other.name &&
            one.users->password_mark(one.name) == other.users->password_mark(other.name));
}

bool password_checks::begin(order one, call told, steady_time now) {
    one.from = place_of_client(one.from);
    std::unique_lock lock{guard_};
    if (finished_) {
        return false;
    }
    if (auto whose = known_.find(one.which, *one.users, now)) {
        lock.unlock();
        told(std::move(whose));
        return true;
    }
    if (asking_ >= most_asking) {
        return false;
    }
    if (const auto same = under_way_.find(one.which);
        same != under_way_.end() && is_tried_alike(same->second.of, one)) {
        same->second.told.push_back(std::move(told));
        ++asking_;
        return true;
    }
    const auto address = name_at(one.from, {});
    const auto where = one.speaks_for_many ? name_at(one.from, one.name) : address;
    const auto of_address = static_cast<std::size_t>(
        std::count_if(under_way_.begin(), under_way_.end(), [&](const auto& each) {
            return each.second.of.from == one.from;
        }));
    if (under_way_.size() >= most_waiting || of_address >= most_of_address ||
        under_way_.contains(one.which) || !limits_.may_try(where, now)) {
        return false;
    }
    const auto by = lane_of(address, now);
    auto& threads = threads_[static_cast<std::size_t>(by)];
    if (!threads) {
        threads.emplace(1);
    }
    const auto which = one.which;
    check made{std::move(one), where, address, {}};
    made.told.push_back(std::move(told));
    under_way_.emplace(which, std::move(made));
    ++asking_;
    ++in_lane_[static_cast<std::size_t>(by)];
    try {
        asio::post(*threads, [this, which, by] { carry_out(which, by); });
    } catch (...) {
        // Nobody would carry it out, and a client that sends this login again would join it and
        // wait for ever.
        (void)take_out(which, by);
        throw;
    }
    return true;
}

std::vector<password_checks::call> password_checks::take_out(const login_hash& which,
                                                             lane by) noexcept {
    auto taken = under_way_.extract(which);
    auto& of = taken.mapped();
    OPENSSL_cleanse(of.of.password.data(), of.of.password.size());
    asking_ -= of.told.size();
    --in_lane_[static_cast<std::size_t>(by)];
    return std::move(of.told);
}

password_checks::lane password_checks::lane_of(secret_name address, steady_time now) const {
    const auto [prompt, patient] = in_lane_;
    return limits_.was_wrong(address, now) || prompt > patient + 1 ? lane::patient : lane::prompt;
}

void password_checks::carry_out(const login_hash& which, lane by) {
    give_way(by == lane::prompt ? prompt_priority : patient_priority);
    const check* one = nullptr;
    {
        const std::lock_guard lock{guard_};
        if (finished_) {
            return;
        }
        one = &under_way_.at(which);  // its place is its own until it is taken out, below
    }
    const auto& of = one->of;
    user_ptr whose;
    bool tried = false;
    try {
        if (of.users->has_password(of.name, of.password)) {
            whose = std::make_shared<const known_user>(
                known_user{of.name, of.users->password_mark(of.name)});
        }
        tried = true;
    } catch (const std::bad_alloc&) {
        // Neither right nor wrong; whoever asks is refused this once.
    }
    const auto now = steady_now();
    std::vector<call> all;
    {
        const std::lock_guard lock{guard_};
        try {
            if (whose) {
                known_.note(which, *of.users, whose, now);
            } else if (tried) {
                limits_.note(one->where, false, now);
                if (one->where != one->address) {
                    limits_.note(one->address, false, now);
                }
            }
        } catch (const std::bad_alloc&) {
            // Then it is tried again the next time.
        }
        all = take_out(which, by);
    }
    for (const auto& told : all) {
        try {
            told(whose);
        } catch (const std::bad_alloc&) {
            // Whoever waits has a deadline.
        }
    }
}

void password_checks::finish() noexcept {
    {
        const std::lock_guard lock{guard_};
        finished_ = true;
    }
    for (auto& lane : threads_) {
        if (lane) {
            lane->stop();
            lane->join();
            lane.reset();
        }
    }
}

}  // namespace reprise::proxy::net
