#include "proxy/peer/fleet_fetch.hpp"

#include "proxy/base/log.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/base/seldom.hpp"
#include "proxy/net/standing_work.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/peer/fleet_rounds.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/sibling_exchange.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <utility>

namespace reprise::proxy::peer {

struct fleet_fetcher::shared {
    shared(follow_context with, fleet_table& into)
        : context{std::move(with)},
          table{into},
          rounds{context.random()},
          wake{context.timer},
          exchange{context.timer, context.random} {}

    [[nodiscard]] bool is_over() const { return stopped || context.timer.stopped(); }
    void take(const followed& of, const got_response& got, steady_time asked);

    follow_context context;
    fleet_table& table;
    fleet_rounds rounds;
    std::map<std::string, followed> siblings;
    net::wakeup wake;
    sibling_exchange exchange;
    bool stopped = false;
    struct ill {
        bool is_said = false;  // in the log, since they were well last
        log::seldom may_tell;
    };
    std::map<std::string, ill> malformed;  // whose figures were, as the log was told
    std::atomic<std::uint64_t> good{0}, failed{0}, bytes{0};
};

// A node without figures is an older release's, or says why in the digest's words: the log hears of
// that there.
void fleet_fetcher::shared::take(const followed& of, const got_response& got, steady_time asked) {
    const auto now = steady_now();
    bool well = got.trouble == follow_trouble::none && got.status == 200;
    if (well) {
        const auto told = decode_fleet(got.body);
        well = told.has_value();
        if (well) {
            table.take(*told, now - asked, now);
            bytes.fetch_add(got.body.size(), relaxed);
            if (const auto ill = malformed.find(of.name); ill != malformed.end()) {
                ill->second.is_said = false;
            }
        } else if (auto& ill = malformed[of.name]; !ill.is_said && ill.may_tell.due()) {
            ill.is_said = true;
            log::warn("peers: ",
                      of.name,
                      ": its figures of the fleet are not taken: ",
                      to_string(told.error()));
        }
    }
    (well ? good : failed).fetch_add(1, relaxed);
    // Found by DNS, it may be this very instance: that has nothing to tell.
    rounds.ended(of.name, well && got.node != context.node, now);
}

awaitable<void> fleet_fetcher::run(std::shared_ptr<shared> all) {
    const digest_follower::question plain;
    auto next = steady_now();
    while (!all->is_over()) {
        if (next > steady_now()) {
            (void)co_await all->wake.wait(next);
        }
        if (all->is_over()) {
            break;
        }
        const auto asked = steady_now();
        if (asked < next) {
            continue;
        }
        next = asked + pace;
        try {
            const auto whom = all->rounds.next(asked);
            const auto found = whom ? all->siblings.find(*whom) : all->siblings.end();
            if (found == all->siblings.end()) {
                continue;
            }
            const auto of = found->second;
            const sibling_exchange::question what{
                .path = figures_path,
                .asked = plain,
                .lane = exchange_lane::figures,
                .until = asked + std::min<std::chrono::milliseconds>(of.timeout, longest_exchange),
                .most_bytes = most_fleet_bytes};
            const auto got = co_await all->exchange.get(all->context, of, what);
            if (all->is_over()) {
                break;
            }
            all->take(of, got, asked);
        } catch (const std::exception&) {       // no memory, no random bytes
            all->failed.fetch_add(1, relaxed);  // it is asked again in a round
        }
    }
}

fleet_fetcher::fleet_fetcher(follow_context context, fleet_table& table)
    : shared_{std::make_shared<shared>(std::move(context), table)} {
    net::standing_work asking{shared_->context.io, [all = shared_] { return run(all); }};
    std::move(asking).begin();
}

fleet_fetcher::~fleet_fetcher() {
    stop();
}

void fleet_fetcher::follow(const std::vector<followed>& siblings) {
    std::vector<std::string> names;
    shared_->siblings.clear();
    for (const auto& one : siblings) {
        if (!one.squid && shared_->siblings.emplace(one.name, one).second) {
            names.push_back(one.name);
        }
    }
    std::erase_if(shared_->malformed,
                  [this](const auto& one) { return shared_->siblings.count(one.first) == 0; });
    shared_->rounds.set(names);
}

void fleet_fetcher::stop() {
    shared_->stopped = true;
    shared_->exchange.end();
    shared_->wake.notify();
}

fleet_fetcher::tally fleet_fetcher::counted() const noexcept {
    return {
        shared_->good.load(relaxed), shared_->failed.load(relaxed), shared_->bytes.load(relaxed)};
}

}  // namespace reprise::proxy::peer
