// bench_sites: two fleets with a long way between them, and what crosses it.
//
//     bench_sites                  two sites of four, 25 ms each way, a site followed by its gateway
//     bench_sites --by-node        the same, each node there followed by each node here: as before
//
// The nodes of one site store objects, of which some are held by several; those of the other are told.
// Then the objects come and go for a while, and then the other site's nodes are asked for them. All
// ways from here to there are links (tests/support/wide_link) that count what goes through.
//
// Ends by a table, and by status 1 if an answer was wrong, or one that is held there came from the origin.

#include "tests/soak/paced_clients.hpp"
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/wide_link.hpp"
#include "tools/sized_body.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests::bench_sites {

namespace {

using std::chrono::milliseconds;

struct plan {
    unsigned nodes = 4;  // of each site
    std::uint32_t objects = 20'000;
    double copies = 1.5;   // nodes that hold an object, on the mean
    unsigned churn = 100;  // new objects a second there, while what is told of them is counted
    unsigned seconds = 20;
    std::uint32_t asked = 400;  // objects that are then asked for here, one after another
    unsigned delay = 25;        // ms, each way
    unsigned site_nodes = 1;    // digest.site_nodes there
    bool by_node = false;
    std::uint64_t seed = 1;
};

constexpr std::size_t body_size = 2000;

class counting_origin {
public:
    counting_origin() {
        origin_.otherwise([this](origin_request& request, origin_connection& connection) {
            const auto number = std::stoull(request.target.substr(3));
            ++fetches_;
            connection.send(ok("Cache-Control: max-age=3600\r\n", body_of(number)));
        });
    }
    [[nodiscard]] static std::string body_of(std::uint64_t number) {
        std::string body(body_size, '\0');
        reprise::tools::fill_body(number, 0, body);
        return body;
    }
    [[nodiscard]] std::string url(std::uint64_t number) const {
        return origin_.url("/u/" + std::to_string(number));
    }
    [[nodiscard]] std::uint64_t fetches() const { return fetches_; }

private:
    std::atomic<std::uint64_t> fetches_{0};
    fake_origin origin_{{.remembers = false}};
};

class two_sites {
public:
    explicit two_sites(const plan& of) : plan_{of} {
        for (unsigned i = 0; i < 2 * plan_.nodes; ++i) {
            auto settings = basic_settings();
            settings["memory"] = {{"size", "256MiB"}};
            settings["admission"] = {{"policy", "always"}};
            settings["log"] = {{"access", "off"}, {"level", "error"}};
            settings["forwarding"] = {{"pseudonym", "node-" + std::to_string(i)}};
            // On a machine without time for it a sibling takes seconds: what it holds is had from there all the same.
            settings["peering"] = {{"budget", "1m"}, {"hit_worth", "1m"}};
            if (is_there(i)) {
                settings["digest"] = {{"site_nodes", plan_.site_nodes}};
            }
            if (i == plan_.nodes && !plan_.by_node) {
                settings["peering"]["gateway_for"] = {"127.0.0.1"};
            }
            settings["peers"] = json::array({{{"name", "nobody"}, {"url", "http://127.0.0.1:1"}}});
            settings_.push_back(settings);
            nodes_.push_back(std::make_unique<proxy_process>(settings));
        }
        const unsigned ways = plan_.by_node ? plan_.nodes : 1;
        for (unsigned i = 0; i < ways; ++i) {
            ways_.push_back(std::make_unique<wide_link>(link_options{
                .to = nodes_[plan_.nodes + i]->port(), .delay = milliseconds{plan_.delay}}));
        }
        for (unsigned i = 0; i < nodes_.size(); ++i) {
            meet(i);
        }
    }

    [[nodiscard]] bool is_there(unsigned node) const { return node >= plan_.nodes; }
    proxy_process& here(unsigned i) { return *nodes_[i]; }
    proxy_process& there(unsigned i) { return *nodes_[plan_.nodes + i]; }

    [[nodiscard]] link_counts crossed() const {
        link_counts sum;
        for (const auto& one : ways_) {
            const auto counts = one->counts();
            sum.there += counts.there;
            sum.back += counts.back;
            sum.connections += counts.connections;
        }
        return sum;
    }
    /// Every node here is told that somebody there holds it.
    [[nodiscard]] bool all_know(const std::string& url) {
        for (unsigned i = 0; i < plan_.nodes; ++i) {
            const bool knows = eventually(
                [&] {
                    const auto page = here(i).admin("/explain?url=" + url);
                    return !json::parse(page.body).at("siblings").at("claims").empty();
                },
                6 * patience);
            if (!knows) {
                return false;
            }
        }
        return true;
    }
    /// Questions of the nodes here to the other site, by what came of them.
    [[nodiscard]] std::int64_t asked(const char* result) {
        std::int64_t sum = 0;
        for (unsigned i = 0; i < plan_.nodes; ++i) {
            const auto stats = here(i).stats();
            for (const auto& [name, of] : stats.at("siblings").at("asked").items()) {
                sum += name.starts_with("far") ? of.value(result, std::int64_t{0}) : 0;
            }
        }
        return sum;
    }

private:
    void meet(unsigned i) {
        auto peers = json::array();
        const auto add = [&](const std::string& name, std::uint16_t port, const char* kind) {
            peers.push_back({{"name", name},
                             {"url", "http://127.0.0.1:" + std::to_string(port)},
                             {"kind", kind},
                             {"timeout", "1m"}});
        };
        const unsigned first = is_there(i) ? plan_.nodes : 0;
        for (unsigned j = first; j < first + plan_.nodes; ++j) {
            if (j != i) {
                add("n" + std::to_string(j), nodes_[j]->port(), "sibling");
            }
        }
        for (unsigned j = 0; !is_there(i) && j < ways_.size(); ++j) {
            add("far" + std::to_string(j), ways_[j]->port(), plan_.by_node ? "sibling" : "site");
        }
        auto settings = settings_[i];
        settings["peers"] = peers;
        nodes_[i]->rewrite_settings(settings);
        nodes_[i]->signal(SIGHUP);
    }

    const plan& plan_;
    std::vector<json> settings_;
    std::vector<std::unique_ptr<proxy_process>> nodes_;
    std::vector<std::unique_ptr<wide_link>> ways_;
};

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of.empty() ? 0 : of[of.size() / 2];
}

double per_cent(std::vector<double> of, std::size_t part) {
    std::sort(of.begin(), of.end());
    return of.empty() ? 0 : of[std::min(of.size() - 1, of.size() * part / 100)];
}

/// Asks for all of these there, each at one node and, of some, at others too.
void store(two_sites& sites,
           const plan& of,
           const counting_origin& origin,
           std::uint32_t first,
           std::uint32_t count,
           std::chrono::microseconds every) {
    std::mt19937_64 random{of.seed + first};
    std::vector<planned_request> all;
    std::bernoulli_distribution more{1 - 1 / of.copies};
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto home = static_cast<unsigned>(random() % of.nodes);
        unsigned copies = 1;
        while (copies < of.nodes && more(random)) {
            ++copies;
        }
        for (unsigned copy = 0; copy < copies; ++copy) {
            all.push_back({i * every + copy * std::chrono::milliseconds{400},
                           (home + copy) % of.nodes,
                           first + i});
        }
    }
    std::stable_sort(
        all.begin(), all.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    paced_clients clients;
    for (unsigned i = 0; i < of.nodes; ++i) {
        clients.ports.push_back(sites.there(i).port());
    }
    clients.url = [&origin](std::uint32_t number) { return origin.url(number); };
    clients.is_body = [](std::uint32_t number, std::string_view body) {
        return body == counting_origin::body_of(number);
    };
    clients.patience = std::chrono::seconds{20};
    (void)clients.ask(all);
}

void print(const char* what, const link_counts& from, const link_counts& to, double per) {
    std::printf("%-34s %12.0f %12.0f %12.0f\n",
                what,
                static_cast<double>(to.there - from.there) / per,
                static_cast<double>(to.back - from.back) / per,
                static_cast<double>(to.there + to.back - from.there - from.back) / per);
}

int run(const plan& of) {
    const counting_origin origin;
    two_sites sites{of};
    std::printf("two sites of %u, %u ms each way, %s\n%-34s %12s %12s %12s\n",
                of.nodes,
                of.delay,
                of.by_node ? "node by node" : "by a gateway",
                "bytes over the link",
                "there",
                "back",
                "both");
    const auto begun = sites.crossed();
    store(sites, of, origin, 0, of.objects, std::chrono::microseconds{1000});
    if (!sites.all_know(origin.url(of.objects - 1))) {
        std::puts("nobody here was told of what is there");
        return 1;
    }
    const auto told = sites.crossed();
    print("until all is told", begun, told, 1);
    const auto churned = of.churn * of.seconds;
    store(sites, of, origin, of.objects, churned, std::chrono::microseconds{1'000'000 / of.churn});
    if (!sites.all_know(origin.url(of.objects + churned - 1))) {
        std::puts("nobody here was told of what came there");
        return 1;
    }
    const auto changed = sites.crossed();
    print("a second, while it changes", told, changed, of.seconds);

    // Of each node there they are told by itself, so that the last of all says nothing of another's.
    const auto held = [&](std::uint32_t i) { return origin.url(i * (of.objects / of.asked)); };
    for (std::uint32_t i = 0; i < of.asked; ++i) {
        if (!sites.all_know(held(i))) {
            std::puts("nobody here was told of one that is there");
            return 1;
        }
    }
    const auto known = sites.crossed();
    std::vector<double> took;
    const auto fetched = origin.fetches();
    unsigned wrong = 0;
    for (std::uint32_t i = 0; i < of.asked; ++i) {
        const auto number = i * (of.objects / of.asked);
        const auto from = std::chrono::steady_clock::now();
        const auto got = sites.here(i % of.nodes).get(held(i));
        took.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from)
                .count());
        wrong += got.status == 200 && got.body == counting_origin::body_of(number) ? 0 : 1;
    }
    const auto from_origin = origin.fetches() - fetched;
    print("a hit there, without its body", known, sites.crossed(), static_cast<double>(of.asked));
    std::printf("a hit there took %.1f ms (median), %.1f (p90); a round trip is %u ms\n",
                median(took),
                per_cent(took, 90),
                2 * of.delay);

    // What nobody has: how often there is asked in vain.
    const auto vain_before = sites.asked("false-hit");
    std::vector<double> alone;
    for (std::uint32_t i = 0; i < of.asked; ++i) {
        const auto from = std::chrono::steady_clock::now();
        const auto got = sites.here(i % of.nodes).get(origin.url(10'000'000 + i));
        alone.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from)
                .count());
        wrong += got.status == 200 ? 0 : 1;
    }
    const auto vain = sites.asked("false-hit") - vain_before;
    std::printf(
        "of %u that nobody has %lld were asked for there in vain (%.1f %%); a miss took %.1f ms "
        "(median), %.1f (mean)\n",
        of.asked,
        static_cast<long long>(vain),
        100.0 * static_cast<double>(vain) / of.asked,
        median(alone),
        [&] {
            double sum = 0;
            for (const auto one : alone) {
                sum += one;
            }
            return sum / static_cast<double>(alone.size());
        }());
    std::printf("wrong answers %u, of what is held there fetched from the origin %llu\n",
                wrong,
                static_cast<unsigned long long>(from_origin));
    return wrong == 0 && from_origin == 0 ? 0 : 1;
}

}  // namespace

int run(int argc, char** argv) {
    plan of;
    CLI::App app{
        "Two fleets with a long way between them: what crosses it, with a site's gateway and "
        "without."};
    app.add_option("--nodes", of.nodes, "of each site")->check(CLI::Range(1, 32));
    app.add_option("--objects", of.objects, "stored there")->check(CLI::Range(1, 1'000'000));
    app.add_option("--copies", of.copies, "nodes that hold one, on the mean")
        ->check(CLI::Range(1.0, 32.0));
    app.add_option("--churn", of.churn, "new objects a second")->check(CLI::Range(1, 5'000));
    app.add_option("--seconds", of.seconds, "of that")->check(CLI::Range(1, 600));
    app.add_option("--asked", of.asked, "objects asked for from here")
        ->check(CLI::Range(1, 100'000));
    app.add_option("--delay", of.delay, "ms, each way")->check(CLI::Range(0, 1000));
    app.add_option("--site-nodes", of.site_nodes, "digest.site_nodes there")
        ->check(CLI::Range(1, 16));
    app.add_flag("--by-node", of.by_node, "each node there is followed, and no gateway");
    app.add_option("--seed", of.seed, "");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(of);
    } catch (const std::exception& broken) {
        std::fprintf(stderr, "bench_sites: %s\n", broken.what());
        return 1;
    }
}

}  // namespace reprise::tests::bench_sites
