#pragma once
// Several proxies that know each other. Their ports are known when they have started, so each is
// told of the others by a reload, for whose end is waited.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/waiting.hpp"

#include <csignal>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::tests {

/// Settings of a node that follows others closely; `peers` are given later.
[[nodiscard]] inline json node_settings() {
    auto settings = storing_settings();
    settings["digest"] = {{"publish_after", "1s"}};
    settings["access"]["purge_clients"] = {"127.0.0.1"};
    // On a busy machine a sibling may be later than the origin, and late itself: it is worth asking all the
    // same, and waiting for.
    settings["peering"] = {{"budget", "10s"}, {"hit_worth", "1m"}};
    return settings;
}

/// Longer than a busy machine keeps both who asks and who answers. A story whose sibling says nothing
/// names a shorter one.
inline constexpr auto sibling_timeout = "5s";

[[nodiscard]] inline json peer_at(std::string_view name, std::uint16_t port) {
    return {{"name", name},
            {"url", "http://127.0.0.1:" + std::to_string(port)},
            {"refresh", "1s"},
            {"timeout", sibling_timeout}};
}

/// A node as its defaults are: digests asked for and published seldom, news on.
[[nodiscard]] inline json seldom_settings() {
    auto settings = node_settings();
    settings.erase("digest");
    return settings;
}

[[nodiscard]] inline json seldom_peer(std::string_view name, std::uint16_t port) {
    auto made = peer_at(name, port);
    made["refresh"] = "1h";
    return made;
}

/// One that requests go through.
[[nodiscard]] inline json parent_at(std::string_view name, std::uint16_t port) {
    return {
        {"name", name}, {"url", "http://127.0.0.1:" + std::to_string(port)}, {"kind", "parent"}};
}

struct fleet {
    fake_origin origin;
    std::vector<std::string> environment;  ///< of all nodes, beside the test's own
    std::deque<std::pair<proxy_process, json>> nodes;

    explicit fleet(std::size_t count,
                   const json& settings = node_settings(),
                   std::vector<std::string> beside = {})
        : environment{std::move(beside)} {
        for (std::size_t i = 0; i < count; ++i) {
            add(settings);
        }
        meet();
    }

    proxy_process& operator[](std::size_t i) { return nodes.at(i).first; }

    /// A node that knows nobody yet.
    proxy_process& add(json settings) {
        settings["peers"] = json::array({peer_at("nobody", 1)});
        return nodes
            .emplace_back(std::piecewise_construct,
                          std::forward_as_tuple(settings, environment),
                          std::forward_as_tuple(settings))
            .first;
    }

    /// Tells node `i` who its peers are: all its threads know at the return, and of what it was told
    /// before.
    void tell(std::size_t i, const json& peers) {
        auto& [node, settings] = nodes.at(i);
        settings["peers"] = peers;
        node.reload(settings);
    }

    /// Each is a sibling of all others: "n0", "n1", ..., of which `each` says more.
    void meet(const json& each = json::object()) {
        std::vector<std::jthread> reloads;  // beside one another: each takes its time
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            auto peers = json::array();
            for (std::size_t j = 0; j < nodes.size(); ++j) {
                if (i != j) {
                    peers.push_back(peer_at("n" + std::to_string(j), nodes[j].first.port()));
                    peers.back().update(each);
                }
            }
            reloads.emplace_back([this, i, peers] { tell(i, peers); });
        }
    }

    /// Every cacheable path is its own body.
    void serve_everything(std::string_view fields = "Cache-Control: max-age=600\r\n") {
        origin.otherwise(
            [own = std::string{fields}](origin_request& request, origin_connection& connection) {
                connection.send(ok(own, "body of " + request.target));
            });
    }

    /// Node `i` holds a digest of sibling `of` in which at least `objects` are, as its owner says. That
    /// count comes with news, and a key whose bits are all on already is none: of hundreds the last may
    /// not be counted yet, and never if nothing comes behind it.
    [[nodiscard]] bool holds(std::size_t i, std::string_view of, std::int64_t objects) {
        const bool does = eventually([&] { return told(i, of) >= objects; });
        if (!does) {
            for (const auto& each : nodes) {
                MESSAGE(each.first.stats().dump());
            }
        }
        return does;
    }
    /// Node `i` follows sibling `of` by news.
    [[nodiscard]] bool is_by_news(std::size_t i, const std::string& of) {
        return eventually([&] {
            const auto stats = nodes.at(i).first.stats();
            const json::json_pointer place{"/siblings/by_news/" + of};
            return stats.contains(place) && stats.at(place) == 1;
        });
    }
    /// Node `i` fetches and stores some of the origin's, so that it expects to store the next of its
    /// directory; `of` is told of them all.
    void learn(std::size_t i, std::size_t of) {
        for (unsigned n = 0; n < 3; ++n) {
            const auto path = "/learned" + std::to_string(n);
            origin.on(path, ok("Cache-Control: max-age=600\r\n", "learned"));
            (void)nodes.at(i).first.get(origin.url(path));
            (void)nodes.at(i).first.ask("PURGE", origin.url(path));
        }
        (void)eventually([&] {
            return figure(nodes.at(i).first.stats(), "/digest/objects") == 0 &&
                   !claims(of, origin.url("/learned2"));
        });
    }
    /// Some sibling lists the URL, as node `i` believes now.
    [[nodiscard]] bool claims(std::size_t i, const std::string& url) {
        const auto said = json::parse(nodes.at(i).first.admin("/explain?url=" + url).body);
        return !said["siblings"]["claims"].empty();
    }
    /// -1: no digest of it is held.
    [[nodiscard]] std::int64_t told(std::size_t i, std::string_view of) {
        const auto page = nodes.at(i).first.admin("/digest?of=" + std::string{of});
        constexpr std::string_view name = "keys, as its owner says: ";
        const auto at = page.body.find(name);
        return page.status == 200 && at != std::string::npos
                   ? std::stoll(page.body.substr(at + name.size()))
                   : -1;
    }
    /// A path that node `to` stored at its first request there, since it had been told that node
    /// `from` saw it: as it is told of whatever was seen before that. Empty: it was not in time.
    [[nodiscard]] std::string shared_sight(std::size_t from, std::size_t to) {
        unsigned tried = 0;
        std::string path;
        const bool shared = eventually([&] {
            path = "/seen/" + std::to_string(tried++);
            const auto before = seen_news(to, from);
            (void)nodes.at(from).first.get(origin.url(path));
            return eventually([&] { return seen_news(to, from) > before; }) &&
                   cache_status_of(nodes.at(to).first.get(origin.url(path))).stored;
        });
        return shared ? path : std::string{};
    }
    /// Pieces of news that node `i` took of what sibling `of` saw.
    [[nodiscard]] std::int64_t seen_news(std::size_t i, std::size_t of) {
        const auto stats = nodes.at(i).first.stats();
        const json::json_pointer place{"/siblings/seen_news/n" + std::to_string(of)};
        return stats.contains(place) ? stats.at(place).get<std::int64_t>() : 0;
    }
    /// Answers of node `i` to peers that asked for its digest, or for what it saw.
    [[nodiscard]] std::int64_t served(std::size_t i) {
        const auto stats = nodes.at(i).first.stats();
        std::int64_t sum = 0;
        for (const auto& answers : stats.at("digest").at("served")) {
            sum += answers.get<std::int64_t>();
        }
        return sum;
    }
    [[nodiscard]] double estimate(std::size_t i, std::string_view of) {
        const auto stats = nodes.at(i).first.stats();
        const json::json_pointer place{"/siblings/estimated_objects/" + std::string{of}};
        return stats.contains(place) && stats.at(place).is_number() ? stats.at(place).get<double>()
                                                                    : -1;
    }
    [[nodiscard]] std::int64_t asked(std::size_t i, std::string_view of, std::string_view result) {
        const auto place = "/siblings/asked/" + std::string{of} + "/" + std::string{result};
        return figure(nodes.at(i).first.stats(), place.c_str());
    }
    [[nodiscard]] std::string text(std::size_t i, const std::string& place) {
        return nodes.at(i).first.stats().value(json::json_pointer{place}, std::string{});
    }
};

}  // namespace reprise::tests
