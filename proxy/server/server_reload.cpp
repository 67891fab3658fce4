#include "config/changes.hpp"
#include "proxy/base/log.hpp"
#include "proxy/net/standing_work.hpp"
#include "proxy/server/handed_over.hpp"
#include "proxy/server/listening_worker.hpp"
#include "proxy/server/obstacles.hpp"
#include "proxy/server/server.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

// Other settings for the program that runs: all of them or nothing, and what waits for the next start.

namespace reprise::proxy::server {

namespace {

/// For the workers, whose loops nothing holds up.
constexpr std::chrono::seconds reload_patience{5};

/// `keeps_access`: it is the former file's until the restart, and whoever reloads has another one in front of him.
thread::other_files read_files_of(const config::options& next, bool keeps_access) {
    try {
        return thread::read_other_files(next);
    } catch (const std::runtime_error& failed) {
        if (!keeps_access) {
            throw;
        }
        throw std::runtime_error{std::string{failed.what()} +
                                 "\n(access is the former file's until the restart, as the forward "
                                 "listener is that goes on until then)"};
    }
}

}  // namespace

std::vector<std::string> server::reload(const config::options& next) {
    auto remarks = take_over(next);
    if (!common_.draining.load(std::memory_order_relaxed) && !wait_for_workers()) {
        log::warn("settings: not every thread has taken them over yet");
    }
    // It is all in force: that no more can be said of it is no reason to say that it is not.
    try {
        auto more = remarks_on(next);
        std::move(more.begin(), more.end(), std::back_inserter(remarks));
    } catch (const std::exception& failed) {
        remarks.push_back("warning: what the next start would meet is not known: " +
                          std::string{failed.what()});
    }
    return remarks;
}

bool server::loses_token(const admin::admin_gate& next) const {
    return admin_->has_token() && !next.file_problem().empty();
}

std::string server::why_token_is_lost(const config::admin_options& next) const {
    const admin::admin_gate gate{next};
    return loses_token(gate) ? gate.token_problem() : std::string{};
}

std::vector<std::string> server::remarks_on(const config::options& next) {
    auto in_force = current()->options;
    for (std::size_t i = 0; i < bound_.size(); ++i) {
        in_force.listeners[i].address = bound_[i];  // where the system picked the port, too
    }
    in_force.admin.address = admin_bound_;
    std::vector<std::string> out;
    if (auto remark = remark_on_handed_over(next); !remark.empty()) {
        out.push_back(std::move(remark));
    }
    for (const auto& one : find_obstacles_of_next_start(in_force, next)) {
        switch (one.weight) {
        case obstacle_weight::ends_start:
            out.push_back("the next start would fail: " + to_string(one.what));
            break;
        case obstacle_weight::in_use:
            out.push_back("the next start would fail now: " + to_string(one.what));
            break;
        case obstacle_weight::harms: out.push_back("warning: " + to_string(one.what)); break;
        }
    }
    return out;
}

// Waits until the workers have done all that was posted to them before; false: not in time.
bool server::wait_for_workers() {
    struct waiting {
        std::atomic<std::size_t> left;
        std::promise<void> done;
    };
    const auto all = std::make_shared<waiting>();
    all->left = workers_.size();
    for (auto& one : workers_) {
        asio::post(one->w.io, [all] {
            if (--all->left == 0) {
                all->done.set_value();
            }
        });
    }
    return all->done.get_future().wait_for(reload_patience) == std::future_status::ready;
}

void server::reload_aside() {
    aside_.post([this] {
        try {
            (void)reload_();  // which has logged what there is to say
        } catch (const std::exception& failed) {
            log::error("settings not changed: ", std::string_view{failed.what()});
        }
    });
}

std::vector<std::string> server::take_over(config::options next) {
    const std::lock_guard turn{turn_guard_};
    const auto held = current();
    const auto& before = held->options;
    for (std::size_t i = 0; i < std::min(bound_.size(), next.listeners.size()); ++i) {
        if (next.listeners[i].address == bound_[i]) {
            next.listeners[i].address =
                before.listeners[i].address;  // the port that the system picked
        }
    }
    std::vector<std::string> remarks;
    bool keeps_access = false;
    for (const auto& setting : config::keep_until_restart(before, next)) {
        keeps_access = keeps_access || setting == "access";
        remarks.push_back(setting + " changes at the next start");
    }
    if (const auto layers = common_.admission.settings().layers;
        cache::filter_settings(next).layers > layers) {
        const auto most = std::to_string(layers + 1);
        remarks.push_back("admission: \"hits\" above " + most +
                          " come with the next start: the filter " +
                          "that is there counts no further, and until then " + most + " suffice");
    }
    if (cache::counts_requests(next) && !common_.admission.has_sketch()) {
        remarks.emplace_back(
            "admission: \"tinylfu\", and \"auto\" with it, come with the next start: nothing here "
            "counts requests, and until then the second request suffices");
    }
    // All or nothing: what can fail comes first, and nothing is changed until all of it is there.
    auto files = read_files_of(next, keeps_access);
    auto credentials = peer::load_all_credentials(next.peers);
    admin::admin_gate gate{next.admin};
    if (loses_token(gate)) {
        throw std::runtime_error{gate.token_problem()};
    }
    if (!gate.file_problem().empty()) {
        remarks.push_back("warning: " + gate.token_problem());
    }
    if (!common_.peers && !next.peers.empty()) {
        // With peering.never_direct in force meanwhile there is no way out, and none around it.
        remarks.emplace_back(
            next.peering.never_direct
                ? "peers change at the next start: there were none at this one, and until "
                  "then peering.never_direct leaves no way out"
                : "peers change at the next start: there were none at this one");
        next.peers.clear();
    }
    const auto made = thread::make_settings(std::move(next), std::move(files));
    const auto& options = made->options;
    if (const auto error = common_.access.retarget(options.log)) {
        const auto why = "log.access: cannot open " + options.log.access + ": " + error.message();
        if (options.log.access != before.log.access) {
            throw std::runtime_error{why};
        }
        common_.access.adopt(options.log);
        remarks.push_back("warning: " + why + "; lines go where they were going");
    }
    set_log_level(options.log.level);
    resize(common_.store, options.memory.size);
    common_.store.set_largest_in_memory(options.memory.largest());
    common_.client_rates.set_rate(options.limits.client_rate);
    common_.admission.adopt(options);
    common_.store.memory().set_probation(common_.admission.probation());
    common_.advice.adopt(options, common_.admission, steady_now());
    common_.store.set_exponent(common_.advice.exponent());
    admin_->reconfigure(options.admin, std::move(gate));
    std::string_view remark;
    {
        const std::lock_guard lock{settings_guard_};
        former_.reserve(former_.size() + 1);  // for publish()
    }
    if (common_.peers) {
        remark = tell_peers(made, std::move(credentials));
    }
    publish(made);
    if (!remark.empty()) {
        remarks.emplace_back(remark);
    }
    return remarks;
}

/// Of settings that are taken over, until they are.
struct server::peers_to_adopt {
    peers_to_adopt(thread::settings_ptr next, peer::parent_credentials said)
        : of{std::move(next)},
          credentials{std::move(said)} {}

    /// `failed`: null, where they are taken over.
    void note_tried(const std::exception_ptr& failed) {
        if (std::exchange(is_tried, true)) {
            return;
        }
        if (failed) {
            tried.set_exception(failed);
        } else {
            tried.set_value();
        }
    }

    const thread::settings_ptr of;
    const peer::parent_credentials credentials;
    std::promise<void> tried;  // once
    bool is_tried = false;
};

// Nobody reloads for what an operator was not told of, and who was told may be a script: so they come by themselves, however
// often memory ends meanwhile, unless later ones are there.
awaitable<void> server::adopt_peers(std::shared_ptr<peers_to_adopt> told) {
    const bool is_again = told->is_tried;
    if (peers_to_come_ != told || (is_again && common_.draining.load(std::memory_order_relaxed))) {
        co_return;
    }
    try {
        common_.peers->adopt(told->of->options, told->credentials);
    } catch (...) {
        told->note_tried(std::current_exception());
        throw;
    }
    peers_to_come_ = nullptr;
    told->note_tried(nullptr);
    if (is_again) {
        log::info("settings: the peers are taken over");
    }
}

// A new peer is one from the first request under the new settings on: else a tunnel would lead to it meanwhile, or
// peering.never_direct refuse everything for want of parents that come with it. So the book waits for publish(), which
// must come then: nothing that is said of the peers here takes memory.
std::string_view server::tell_peers(const thread::settings_ptr& next,
                                    peer::parent_credentials credentials) {
    const auto told = std::make_shared<peers_to_adopt>(next, std::move(credentials));
    auto tried = told->tried.get_future();
    auto& home = workers_.front()->w.io;
    net::standing_work adopts{home, [this, told] { return adopt_peers(told); }};
    auto begin = [this, told, adopts = std::move(adopts)]() mutable {
        peers_to_come_ = told;
        std::move(adopts).begin();
    };
    const auto wait_with_books = [this](bool does) {
        const std::lock_guard lock{book_guard_};
        book_waits_ = does;
    };
    wait_with_books(true);
    try {
        asio::post(home, std::move(begin));
    } catch (...) {
        wait_with_books(false);
        throw;
    }
    if (common_.draining.load(std::memory_order_relaxed)) {
        return {};
    }
    if (tried.wait_for(reload_patience) != std::future_status::ready) {
        return "warning: peers: not taken over yet: that waits for the thread that minds them";
    }
    try {
        tried.get();
        return {};
    } catch (const std::exception& failed) {
        log::warn("settings: peers: ", failed.what());
        return "warning: peers: not taken over yet: that is tried again each second";
    }
}

}  // namespace reprise::proxy::server
