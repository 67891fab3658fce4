#include "proxy/peer/discovery.hpp"

#include "proxy/net/address.hpp"
#include "proxy/net/standing_work.hpp"
#include "proxy/net/wakeup.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Each name has a coroutine that resolves it over and over. follow() begins another round, by which
// the coroutines of the one before know that they are over; what all share outlives the discovery.
// Nobody is told of what has not changed. A round that there is no memory for is not begun, and the one before goes on.
//
// A name's two families are two questions, of which one may be late, or lost. What the other brought is told at once, since it
// is where siblings are; and the missing one is waited for, asked for anew, and until it was heard no address of it goes.

namespace reprise::proxy::peer {
namespace {

followed from(const config::peer_options& entry, bool share) {
    followed out;
    out.name = entry.name;
    out.squid = entry.protocol == config::peer_protocol::squid;
    out.seen = share && !out.squid;
    out.refresh = entry.refresh;
    return out;
}

/// The look-ups of a round, which begin where it has begun, whatever else comes of that.
struct lookups {
    lookups() = default;
    ~lookups() {
        if (is_their_round) {
            for (auto& one : each) {
                std::move(one).begin();
            }
        }
    }
    lookups(const lookups&) = delete;
    lookups& operator=(const lookups&) = delete;

    std::vector<net::standing_work> each;
    bool is_their_round = false;
};

/// The addresses of an answer, and those known of a family that it lacks.
std::vector<asio::ip::address> with_unheard(const net::resolution& heard,
                                            std::span<const asio::ip::address> known) {
    auto all = heard.addresses;
    std::copy_if(known.begin(), known.end(), std::back_inserter(all), [&](const auto& each) {
        return heard.unheard && each.is_v6() == (*heard.unheard == net::ip_family::v6);
    });
    std::sort(all.begin(), all.end());
    return all;
}

bool is_half(const attempt<net::resolved>& answer) noexcept {
    return answer ? (*answer)->unheard.has_value()
                  : answer.error().code == failure_code::dns_not_found;
}

// What the addresses of an entry are those of.
std::string looked_up_for(const config::peer_options& entry) {
    return entry.dns.empty() ? place_of(entry.url).host : entry.dns;
}

}  // namespace

peer_place place_of(std::string_view url) {
    peer_place out;
    out.https = url.starts_with("https");
    url.remove_prefix(url.find("://") + 3);
    const auto colon = url.rfind(':');
    auto host = url.substr(0, colon);
    if (host.starts_with('[')) {
        host = host.substr(1, host.size() - 2);
    }
    out.host = host;
    out.port = static_cast<std::uint16_t>(std::stoul(std::string{url.substr(colon + 1)}));
    return out;
}

std::vector<followed> configured_siblings(
    std::span<const config::peer_options> peers,
    bool share,
    std::span<const std::vector<asio::ip::address>> by_entry) {
    std::vector<followed> out;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto& entry = peers[i];
        if (entry.kind == config::peer_kind::parent || entry.url.empty()) {
            continue;
        }
        auto one = from(entry, share);
        const auto at = place_of(entry.url);
        one.https = at.https;
        one.host = at.host;
        one.port = at.port;
        one.of_site = entry.kind == config::peer_kind::site;
        if (!by_entry.empty()) {
            for (const auto& address : by_entry[i]) {
                one.where.ends.push_back(net::endpoint_text(address, at.port));
            }
        }
        out.push_back(one);
        if (one.of_site) {
            one.name += "/members";
            one.members = true;
            one.seen = false;
            out.push_back(std::move(one));
        }
    }
    return out;
}

std::vector<followed> discovered_siblings(const config::peer_options& entry,
                                          std::span<const asio::ip::address> addresses,
                                          bool share) {
    std::vector<asio::ip::address> sorted{addresses.begin(), addresses.end()};
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<followed> out;
    for (const auto& address : sorted) {
        auto one = from(entry, share);
        one.host = address.to_string();
        one.name += '/' + one.host;
        one.port = entry.port;
        out.push_back(std::move(one));
    }
    return out;
}

struct sibling_discovery::shared {
    shared(asio::io_context& on, net::resolver& with, tell to)
        : io{on},
          names{with},
          found{std::move(to)} {}

    [[nodiscard]] bool is_over(unsigned of) const {
        return stopped || of != round || names.timer().stopped();
    }
    /// What name servers say of an entry's name. One that does not exist, by the last word of a look, has nobody; of
    /// one that can't be resolved what is known stays.
    void hear(std::size_t entry, const attempt<net::resolved>& answer, bool is_last_word) {
        if (answer) {
            by_entry[entry] = with_unheard(**answer, by_entry[entry]);
        } else if (is_last_word && answer.error().code == failure_code::dns_not_found) {
            by_entry[entry].clear();
        } else {
            return;
        }
        tell_if_new();
    }
    /// Both lists, if one is another than was told last.
    void tell_if_new() {
        auto all = configured_siblings(peers, share, by_entry);
        std::vector<peer_address> addresses;
        for (std::size_t i = 0; i < peers.size(); ++i) {
            if (!peers[i].dns.empty()) {
                auto some = discovered_siblings(peers[i], by_entry[i], share);
                std::move(some.begin(), some.end(), std::back_inserter(all));
            }
            const bool squid = peers[i].protocol == config::peer_protocol::squid;
            for (const auto& at : by_entry[i]) {
                addresses.push_back({at, squid});
            }
        }
        if (!any_told || all != told || addresses != told_addresses || by_entry != told_by_entry) {
            any_told = false;  // where it can't be told now, the next time it is
            told = all;
            told_addresses = addresses;
            told_by_entry = by_entry;  // which is where siblings of a url are
            found(std::move(all), std::move(addresses));
            any_told = true;
        }
    }

    asio::io_context& io;
    net::resolver& names;
    tell found;
    std::vector<config::peer_options> peers;
    bool share = false;
    std::vector<std::vector<asio::ip::address>> by_entry;  // sorted
    std::vector<std::shared_ptr<net::wakeup>> sleepers;
    std::vector<followed> told;
    std::vector<peer_address> told_addresses;
    std::vector<std::vector<asio::ip::address>> told_by_entry;
    bool any_told = false;
    bool stopped = false;
    unsigned round = 0;  // coroutines of an earlier list end when they see another
};

sibling_discovery::sibling_discovery(asio::io_context& io, net::resolver& names, tell found)
    : shared_{std::make_shared<shared>(io, names, std::move(found))} {}

sibling_discovery::~sibling_discovery() {
    stop();
}

void sibling_discovery::stop() {
    shared_->stopped = true;
    for (const auto& sleeper : shared_->sleepers) {
        sleeper->notify();
    }
}

awaitable<void> sibling_discovery::run(std::shared_ptr<shared> all,
                                       std::size_t entry,
                                       unsigned round) {
    if (all->is_over(round)) {
        co_return;  // the list changed before this had its first turn
    }
    const auto sleeper = all->sleepers[entry];
    const auto name = looked_up_for(all->peers[entry]);
    std::chrono::seconds till_whole = least_wait;
    while (!all->is_over(round)) {
        auto next = steady_now() + least_wait;
        try {
            auto answer = co_await all->names.resolve(name, steady_time::max());
            if (!all->is_over(round) && is_half(answer)) {
                all->hear(entry, answer, false);
                answer = co_await all->names.resolve_whole(name, steady_time::max());
            }
            if (all->is_over(round)) {
                co_return;
            }
            const auto now = steady_now();
            next = now + least_wait;
            all->hear(entry, answer, true);
            if (answer) {
                // A server that never answers for one family is not asked for it every five seconds for good.
                const bool is_whole = !is_half(answer);
                const auto longest = is_whole ? longest_wait : till_whole;
                till_whole = is_whole ? least_wait : std::min(2 * till_whole, longest_wait);
                next = std::clamp((*answer)->valid_until, next, now + longest);
            }
        } catch (const std::exception&) {  // no memory: it is looked up again soon
        }
        (void)co_await sleeper->wait(next);
    }
}

void sibling_discovery::follow(std::vector<config::peer_options> peers, bool share) {
    auto& all = *shared_;
    // Those of a name that stays are kept until it is resolved again, whatever else its entry says now.
    std::vector<std::vector<asio::ip::address>> kept(peers.size());
    std::vector<bool> is_name(peers.size(), true);
    std::vector<std::string> known;
    std::transform(all.peers.begin(), all.peers.end(), std::back_inserter(known), looked_up_for);
    for (std::size_t i = 0; i < peers.size(); ++i) {
        const auto name = looked_up_for(peers[i]);
        for (std::size_t j = 0; j < known.size() && kept[i].empty(); ++j) {
            if (name == known[j]) {
                kept[i] = all.by_entry[j];
            }
        }
        if (peers[i].dns.empty()) {
            error_code not_numeric;
            const auto literal = asio::ip::make_address(place_of(peers[i].url).host, not_numeric);
            if (!not_numeric) {
                kept[i] = {literal};
                is_name[i] = false;
            }
        }
    }
    std::vector<std::shared_ptr<net::wakeup>> sleepers;
    lookups begun;
    for (std::size_t i = 0; i < peers.size(); ++i) {
        sleepers.push_back(std::make_shared<net::wakeup>(all.names.timer()));
        if (is_name[i]) {
            begun.each.emplace_back(
                all.io, [mine = shared_, i, round = all.round + 1] { return run(mine, i, round); });
        }
    }
    for (const auto& sleeper : all.sleepers) {
        sleeper->notify();
    }
    // Nothing more is to be had but what tells of it: from here on the round is another.
    ++all.round;
    begun.is_their_round = true;
    all.peers = std::move(peers);
    all.share = share;
    all.by_entry = std::move(kept);
    all.sleepers = std::move(sleepers);
    all.tell_if_new();
}

}  // namespace reprise::proxy::peer
