#include "tests/soak/troubled_fleet.hpp"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <random>
#include <stdexcept>

namespace reprise::tests::new_urls {

troubled_fleet::troubled_fleet(const plan& of, bool know_each_other) : plan_{of} {
    files_.write("secret", std::string(64, 's'));
    for (unsigned i = 0; i < plan_.nodes; ++i) {
        nodes_.push_back(std::make_unique<node>());
        auto& one = *nodes_.back();
        one.settings = settings_of(i);
        if (plan_.trouble == "clock" && i + 1 == plan_.nodes) {
            one.environment = clock_.environment();
        }
        one.process = std::make_unique<proxy_process>(one.settings, one.environment);
        one.port = one.process->port();
        one.settings["listeners"][0]["address"] = "127.0.0.1:" + std::to_string(one.port);
    }
    if (plan_.trouble == "clock") {
        // From its start on it would take what others sign for older than that, for 30 s.
        clock_.advance(30);
    }
    if (know_each_other) {
        meet();
    }
}

std::vector<std::uint16_t> troubled_fleet::ports() const {
    std::vector<std::uint16_t> out;
    for (const auto& one : nodes_) {
        out.push_back(one->port);
    }
    return out;
}

void troubled_fleet::make_trouble(const std::stop_token& stop) {
    std::mt19937_64 random{plan_.seed};
    const auto pass = [&](unsigned least, unsigned most) {
        std::mutex guard;
        std::condition_variable_any stopped;
        std::unique_lock lock{guard};
        (void)stopped.wait_for(
            lock, stop, milliseconds{least + random() % (most - least)}, [] { return false; });
    };
    const auto calm = static_cast<unsigned>(plan_.calm * 1000);
    for (pass(calm / 4, calm * 3 / 4 + 1); !stop.stop_requested();
         pass(calm * 2 / 5, calm * 8 / 5 + 1)) {
        const auto victim = 1 + static_cast<unsigned>(random() % (plan_.nodes - 1));
        auto& one = *nodes_[victim];
        const auto begun = steady_clock::now();
        if (plan_.trouble == "kill") {
            one.process->kill();
            one.process.reset();
            pass(300, 1500);
            one.process = std::make_unique<proxy_process>(one.settings, one.environment);
        } else if (plan_.trouble == "pause") {
            one.process->signal(SIGSTOP);
            pass(1000, 4000);
            one.process->signal(SIGCONT);
        } else {
            cut(victim, true);
            pass(1000, 4000);
            cut(victim, false);
        }
        troubles_.push_back({victim, begun, steady_clock::now()});
    }
}

bool troubled_fleet::was_troubled(unsigned node, const asked_request& by) const {
    return std::any_of(troubles_.begin(), troubles_.end(), [&](const absence& one) {
        return one.node == node && by.begun <= one.to && by.ended >= one.from;
    });
}

std::string troubled_fleet::what_is_left() const {
    std::string left;
    (void)eventually(
        [&] {
            left.clear();
            for (unsigned i = 0; i < plan_.nodes; ++i) {
                const auto stats = nodes_[i]->process->stats();
                auto running =
                    stats.at("/collapsing/fetches_started"_json_pointer).get<std::int64_t>();
                for (const auto& ended : stats.at("/collapsing/fetches_ended"_json_pointer)) {
                    running -= ended.get<std::int64_t>();
                }
                const json::json_pointer place{"/digest/under_way"};
                const auto told = stats.contains(place) && stats.at(place).is_number()
                                      ? stats.at(place).get<std::int64_t>()
                                      : 0;
                if (running != 0 || told != 0) {
                    left += "node " + std::to_string(i) + ": " + std::to_string(running) +
                            " fetches under way, " + std::to_string(told) + " told; ";
                }
            }
            return left.empty();
        },
        3 * patience);
    return left;
}

std::int64_t troubled_fleet::sum(const std::string& place, const std::string& each) const {
    std::int64_t out = 0;
    const json::json_pointer at{place};
    for (const auto& one : nodes_) {
        const auto stats = one->process->stats();
        if (!stats.contains(at)) {
            continue;
        }
        const auto& found = stats.at(at);
        if (found.is_number()) {
            out += found.get<std::int64_t>();
        } else if (found.is_object()) {
            for (const auto& [name, of] : found.items()) {
                out += of.is_number() ? of.get<std::int64_t>() : of.value(each, std::int64_t{0});
            }
        }
    }
    return out;
}

json troubled_fleet::settings_of(unsigned i) const {
    auto made = basic_settings();
    made["admission"] = {{"policy", plan_.admission}};
    made["memory"] = {{"size", "256MiB"}};
    made["log"] = {{"access", "off"}, {"level", "error"}};
    made["forwarding"] = {{"pseudonym", "node-" + std::to_string(i)}};
    // Behind a link a node can't tell that a signature was meant for it.
    made["digest"] = json::object();
    if (!by_links()) {
        made["digest"]["secret_file"] = files_.file("secret");
    }
    if (plan_.disk) {
        made["disk"] = {{"path", files_.file("store-" + std::to_string(i))}, {"size", "2GiB"}};
    }
    made["peering"] = {{"news", std::to_string(plan_.news) + "ms"}};
    made["peers"] = json::array({{{"name", "nobody"}, {"url", "http://127.0.0.1:1"}}});
    return made;
}

void troubled_fleet::meet() {
    for (unsigned i = 0; i < plan_.nodes; ++i) {
        auto& one = *nodes_[i];
        auto peers = json::array();
        for (unsigned j = 0; j < plan_.nodes; ++j) {
            auto port = nodes_[j]->port;
            one.ways.emplace_back();
            if (j == i) {
                continue;
            }
            if (by_links()) {
                one.ways.back() = std::make_unique<wide_link>(
                    link_options{.to = port, .delay = milliseconds{plan_.link_delay}});
                port = one.ways.back()->port();
            }
            peers.push_back({{"name", "node-" + std::to_string(j)},
                             {"url", "http://127.0.0.1:" + std::to_string(port)},
                             {"refresh", "1s"}});
        }
        one.settings["peers"] = peers;
        one.settings["peering"]["homes"] = plan_.homes;
        one.process->rewrite_settings(one.settings);
        one.process->signal(SIGHUP);
    }
    for (unsigned i = 0; i < plan_.nodes; ++i) {
        if (!eventually([&] { return knows_all(*nodes_[i]); }, 3 * patience)) {
            throw std::runtime_error{"node " + std::to_string(i) +
                                     " does not come to know all others: " +
                                     nodes_[i]->process->stats().at("siblings").dump()};
        }
    }
}

bool troubled_fleet::knows_all(const node& one) const {
    const auto stats = one.process->stats();
    const auto& by_news = stats.at("/siblings/by_news"_json_pointer);
    const json::json_pointer homes{"/homes/siblings"};
    return std::count(by_news.begin(), by_news.end(), json(1)) + 1 == plan_.nodes &&
           (!plan_.homes || (stats.contains(homes) && stats.at(homes).size() + 1 == plan_.nodes));
}

// All ways to a node and from it.
void troubled_fleet::cut(unsigned victim, bool now) {
    const auto set = [now](wide_link& one) { now ? one.cut() : one.mend(); };
    for (unsigned i = 0; i < plan_.nodes; ++i) {
        if (i != victim) {
            set(*nodes_[i]->ways[victim]);
            set(*nodes_[victim]->ways[i]);
        }
    }
}

}  // namespace reprise::tests::new_urls
