// soak_new_urls: a fleet in which every node is asked for the same new URLs, each once on every node.
//
//     soak_new_urls                                   eight nodes, 10,000 URLs, over five seconds each
//     soak_new_urls --within 0.1 --homes              all of a URL's requests within a tenth of a second
//     soak_new_urls --trouble partition               one node after another is cut off, and comes back
//     soak_new_urls --urls 300 --rate 0               the short form: as quick as it goes
//
// No node can have a hit of its own, so each fetch beyond a URL's first is one that news, a joined fetch
// or a home did not spare. What admission asks for is not counted among them: with `always` one fetch of
// each URL is stored; with `second-hit` those before it are first sights, which answers say of
// themselves ("detail=first-request"), as long as a node has not been told of another's.
//
// Every body follows from its URL. An answer is right and whole, or its client sees that it failed; a
// failure is excused where the node that was asked was killed meanwhile, and nowhere else. The same
// timetable is played by as many nodes that do not know each other first, on the same machine: what a
// miss takes is to be read beside that.
//
// Ends by a table, and by status 1 if a promise was broken that does not hang on the machine's pace.

#include "tests/soak/paced_clients.hpp"
#include "tests/support/fake_origin.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/stepped_clock.hpp"
#include "tests/support/wide_link.hpp"
#include "tools/sized_body.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

using namespace reprise::tests;
using steady_clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct plan {
    unsigned nodes = 8;
    std::uint32_t urls = 10'000;
    double within = 5;  // seconds between a URL's first request and its last
    double rate = 800;  // requests a second, through all nodes
    bool homes = false;
    bool alone_too = true;
    std::string admission = "always";
    std::string trouble = "none";
    unsigned origin_delay = 50;  // ms, of a head; half to one and a half of it
    unsigned body_takes = 50;    // ms, from the head to the end of a body; none to twice of it
    unsigned pause = 0;          // ms, in the middle of one body of sixteen
    unsigned news = 200;         // ms, peering.news
    unsigned link_delay = 0;     // ms, each way between two nodes
    std::uint64_t seed = 1;
};

/// What the origin does with a URL. All of it follows from its number.
struct url_facts {
    url_facts(const plan& of, std::uint32_t number) {
        std::mt19937_64 random{of.seed << 32 | number};
        // Mostly some KiB, one in sixteen some hundred.
        size = random() % 16 == 0 ? 100'000 + random() % 300'000 : 100 + random() % 8'000;
        head_after = milliseconds{of.origin_delay / 2 + random() % (of.origin_delay + 1)};
        body_takes = milliseconds{random() % (2 * of.body_takes + 1)};
        paused = milliseconds{random() % 16 == 0 ? of.pause : 0};
        key = of.seed * 1'000'003 + number;
    }
    std::uint64_t key = 0;
    std::size_t size = 0;
    milliseconds head_after{0}, body_takes{0}, paused{0};
};

/// An origin that counts how often each URL was fetched.
class counting_origin {
public:
    explicit counting_origin(const plan& of) : plan_{of}, fetches_(of.urls) {
        origin_.otherwise([this](origin_request& request, origin_connection& connection) {
            answer(request, connection);
        });
    }
    [[nodiscard]] std::string url(std::uint32_t number) const {
        return origin_.url("/u/" + std::to_string(number));
    }
    [[nodiscard]] const std::vector<std::atomic<unsigned>>& fetches() const { return fetches_; }

private:
    void answer(const origin_request& request, origin_connection& connection) {
        const auto number = number_in(std::string_view{request.target}.substr(3));
        if (!number || *number >= fetches_.size()) {
            connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        ++fetches_[*number];
        const url_facts of{plan_, static_cast<std::uint32_t>(*number)};
        std::string body(of.size, '\0');
        reprise::tools::fill_body(of.key, 0, body);
        bool goes_on = connection.pause(of.head_after) &&
                       connection.send(
                           "HTTP/1.1 200 OK\r\nDate: " + http_date() +
                           "\r\nCache-Control: max-age=3600\r\nETag: \"" + std::to_string(of.key) +
                           "\"\r\nContent-Length: " + std::to_string(of.size) + "\r\n\r\n");
        constexpr std::size_t pieces = 4;
        for (std::size_t i = 0; goes_on && i < pieces; ++i) {
            const auto from = of.size * i / pieces, to = of.size * (i + 1) / pieces;
            const auto wait = of.body_takes / pieces + (i == 2 ? of.paused : milliseconds{0});
            goes_on = connection.pause(wait) &&
                      connection.send(std::string_view{body}.substr(from, to - from));
        }
        if (!goes_on) {
            connection.close();
        }
    }

    const plan& plan_;
    std::vector<std::atomic<unsigned>> fetches_;
    fake_origin origin_{{.remembers = false}};  // last: its threads end first
};

/// While this lasted a node was no node.
struct absence {
    unsigned node;
    steady_clock::time_point from, to;
};

class fleet_of_nodes {
public:
    fleet_of_nodes(const plan& of, bool know_each_other) : plan_{of} {
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

    [[nodiscard]] std::vector<std::uint16_t> ports() const {
        std::vector<std::uint16_t> out;
        for (const auto& one : nodes_) {
            out.push_back(one->port);
        }
        return out;
    }

    /// Does to one node after another what the plan says, until it is stopped; all is well then.
    void make_trouble(const std::stop_token& stop) {
        std::mt19937_64 random{plan_.seed};
        const auto pass = [&](unsigned least, unsigned most) {
            std::mutex guard;
            std::condition_variable_any stopped;
            std::unique_lock lock{guard};
            (void)stopped.wait_for(
                lock, stop, milliseconds{least + random() % (most - least)}, [] { return false; });
        };
        for (pass(300, 1000); !stop.stop_requested(); pass(500, 2000)) {
            const auto victim = 1 + static_cast<unsigned>(random() % (plan_.nodes - 1));
            auto& one = *nodes_[victim];
            const auto begun = steady_clock::now();
            if (plan_.trouble == "kill") {
                one.process->kill();
                one.process.reset();
                pass(300, 1500);
                one.process = std::make_unique<proxy_process>(one.settings, one.environment);
                absences_.push_back({victim, begun, steady_clock::now()});
            } else if (plan_.trouble == "pause") {
                one.process->signal(SIGSTOP);
                pass(1000, 4000);
                one.process->signal(SIGCONT);
            } else {
                cut(victim, true);
                pass(1000, 4000);
                cut(victim, false);
            }
            late_.push_back({victim, begun, steady_clock::now()});
        }
    }
    [[nodiscard]] bool is_excused(unsigned node, const asked_request& by) const {
        return overlaps(absences_, node, by);
    }
    /// What a request took is not the fleet's doing.
    [[nodiscard]] bool was_troubled(unsigned node, const asked_request& by) const {
        return overlaps(late_, node, by);
    }
    [[nodiscard]] std::size_t troubles() const { return late_.size(); }

    /// Nothing is on its way anywhere, and no node says that anything is. What is left otherwise.
    [[nodiscard]] std::string what_is_left() const {
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
    /// Of all nodes, the sum of what lies there in /stats, or in it under each name.
    [[nodiscard]] std::int64_t sum(const std::string& place, const std::string& each = "") const {
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
                    out += of.is_number() ? of.get<std::int64_t>()
                                          : of.value(each, std::int64_t{0});
                }
            }
        }
        return out;
    }

private:
    struct node {
        json settings;
        std::vector<std::string> environment;
        std::uint16_t port = 0;
        std::unique_ptr<proxy_process> process;
        std::vector<std::unique_ptr<wide_link>> ways;  // of this node to each other; null to itself
    };

    [[nodiscard]] bool by_links() const {
        return plan_.trouble == "partition" || plan_.link_delay > 0;
    }

    [[nodiscard]] json settings_of(unsigned i) const {
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
        made["peering"] = {{"news", std::to_string(plan_.news) + "ms"}};
        made["peers"] = json::array({{{"name", "nobody"}, {"url", "http://127.0.0.1:1"}}});
        return made;
    }

    void meet() {
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
    [[nodiscard]] bool knows_all(const node& one) const {
        const auto stats = one.process->stats();
        const auto& by_news = stats.at("/siblings/by_news"_json_pointer);
        const json::json_pointer homes{"/homes/siblings"};
        return std::count(by_news.begin(), by_news.end(), json(1)) + 1 == plan_.nodes &&
               (!plan_.homes ||
                (stats.contains(homes) && stats.at(homes).size() + 1 == plan_.nodes));
    }

    /// All ways to a node and from it.
    void cut(unsigned victim, bool now) {
        const auto set = [now](wide_link& one) { now ? one.cut() : one.mend(); };
        for (unsigned i = 0; i < plan_.nodes; ++i) {
            if (i != victim) {
                set(*nodes_[i]->ways[victim]);
                set(*nodes_[victim]->ways[i]);
            }
        }
    }

    [[nodiscard]] static bool overlaps(const std::vector<absence>& any,
                                       unsigned node,
                                       const asked_request& by) {
        return std::any_of(any.begin(), any.end(), [&](const absence& one) {
            return one.node == node && by.begun <= one.to && by.ended >= one.from;
        });
    }

    const plan& plan_;
    temp_dir files_;
    stepped_clock clock_;
    std::vector<std::unique_ptr<node>> nodes_;
    std::vector<absence> absences_, late_;
};

/// Each URL's requests lie within the plan's seconds, on all nodes in an order of its own.
std::vector<planned_request> timetable(const plan& of) {
    std::vector<planned_request> out;
    std::mt19937_64 random{of.seed};
    std::uniform_real_distribution<double> later{0, of.within * 1e6};
    for (std::uint32_t url = 0; url < of.urls; ++url) {
        const double begins = of.rate > 0 ? url * of.nodes / of.rate * 1e6 : 0;
        for (unsigned node = 0; node < of.nodes; ++node) {
            const auto at = std::chrono::microseconds{
                static_cast<std::int64_t>(begins + later(random))};
            out.push_back({at, node, url});
        }
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    return out;
}

double quantile(std::vector<double> of, double share) {
    if (of.empty()) {
        return 0;
    }
    std::sort(of.begin(), of.end());
    return of[static_cast<std::size_t>(share * static_cast<double>(of.size() - 1))];
}

struct found {
    std::array<std::uint64_t, 6> outcomes{};  // by asking_outcome
    std::uint64_t asked = 0, excused = 0, own_hits = 0, by_another = 0, first_sights = 0;
    std::uint64_t fetches = 0, most_fetches = 0;
    std::array<std::uint64_t, 4> urls_with{};  // none, one, two, more fetches
    std::vector<double> took, took_by_another, late;
    double seconds = 0;
    std::size_t troubles = 0;
    std::int64_t asked_true = 0, asked_false = 0, asked_late = 0, asked_failed = 0,
                 homes_failed = 0;
    std::string left;
    std::vector<std::string> complaints;
};

found play(const plan& of, bool know_each_other) {
    counting_origin origin{of};
    fleet_of_nodes nodes{of, know_each_other};
    const auto all = timetable(of);
    const paced_clients clients{.ports = nodes.ports(),
                                .url = [&](std::uint32_t number) { return origin.url(number); },
                                .is_body =
                                    [&](std::uint32_t number, std::string_view body) {
                                        const url_facts facts{of, number};
                                        return body.size() == facts.size &&
                                               reprise::tools::is_body(facts.key, 0, body);
                                    },
                                .patience = 3 * patience};
    found out;
    std::vector<asked_request> became;
    const auto begun = steady_clock::now();
    {
        const bool in_trouble = know_each_other && of.trouble != "none" && of.trouble != "clock";
        // Nodes are started by the thread that lasts: they end with it.
        std::stop_source over;
        const std::jthread asks{[&] {
            became = clients.ask(all);
            over.request_stop();
        }};
        if (in_trouble) {
            nodes.make_trouble(over.get_token());
        }
    }
    out.seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const auto& one = became[i];
        const auto node = all[i].node;
        ++out.asked;
        if (one.what != asking_outcome::right && one.what != asking_outcome::wrong &&
            nodes.is_excused(node, one)) {
            ++out.excused;
            continue;
        }
        ++out.outcomes[static_cast<std::size_t>(one.what)];
        if (one.what != asking_outcome::right) {
            if (out.complaints.size() < 20) {
                out.complaints.push_back("/u/" + std::to_string(all[i].url) + " of node " +
                                         std::to_string(node) + ": " +
                                         std::string{to_string(one.what)} + " after " +
                                         std::to_string(one.took_ms()) + " ms: " + one.trouble);
            }
            continue;
        }
        out.own_hits += one.own_hit ? 1 : 0;
        out.by_another += one.by_another ? 1 : 0;
        out.first_sights += one.is_first_sight && !one.by_another ? 1 : 0;
        out.late.push_back(std::chrono::duration<double, std::milli>(one.begun - one.due).count());
        if (!nodes.was_troubled(node, one)) {
            out.took.push_back(one.took_ms());
            if (one.by_another) {
                out.took_by_another.push_back(one.took_ms());
            }
        }
    }
    for (const auto& one : origin.fetches()) {
        out.fetches += one;
        out.most_fetches = std::max<std::uint64_t>(out.most_fetches, one);
        ++out.urls_with[std::min<std::size_t>(one, out.urls_with.size() - 1)];
    }
    out.troubles = nodes.troubles();
    out.left = nodes.what_is_left();
    out.asked_true = nodes.sum("/siblings/asked", "true-hit");
    out.asked_false = nodes.sum("/siblings/asked", "false-hit");
    out.asked_late = nodes.sum("/siblings/asked", "late");
    out.asked_failed = nodes.sum("/siblings/asked", "failed");
    out.homes_failed = nodes.sum("/homes/failed");
    return out;
}

void print(const plan& of, const std::vector<std::pair<std::string, found>>& all) {
    std::printf("| %u nodes, %u URLs, each within %g s, %g requests/s, admission %s%s, trouble %s, "
                "seed %llu |",
                of.nodes,
                of.urls,
                of.within,
                of.rate,
                of.admission.c_str(),
                of.homes ? ", homes" : "",
                of.trouble.c_str(),
                static_cast<unsigned long long>(of.seed));
    for (const auto& [name, one] : all) {
        std::printf(" %s |", name.c_str());
    }
    std::printf("\n|---|");
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::printf("---:|");
    }
    std::printf("\n");
    const auto row = [&](const char* name, auto&& value) {
        std::printf("| %s |", name);
        for (const auto& [of_whom, one] : all) {
            std::printf(" %.10g |", static_cast<double>(value(one)));
        }
        std::printf("\n");
    };
    const auto outcome = [](asking_outcome what) {
        return [what](const found& in) { return in.outcomes[static_cast<std::size_t>(what)]; };
    };
    const auto rounded = [](double value, double unit) {
        return static_cast<double>(static_cast<std::int64_t>(value / unit + 0.5)) * unit;
    };
    const double urls = of.urls;
    row("requests", [](const found& in) { return in.asked; });
    row("right and whole", outcome(asking_outcome::right));
    row("wrong bytes", outcome(asking_outcome::wrong));
    row("errors that clients saw",
        [&](const found& in) { return in.asked - in.excused - in.outcomes[0] - in.outcomes[1]; });
    row("excused: their own node was killed", [](const found& in) { return in.excused; });
    row("nodes in trouble, one after another", [](const found& in) { return in.troubles; });
    row("origin fetches a URL",
        [&](const found& in) { return rounded(static_cast<double>(in.fetches) / urls, 0.0001); });
    row("of these first sights, which admission asks for", [&](const found& in) {
        return rounded(static_cast<double>(in.first_sights) / urls, 0.0001);
    });
    row("URLs fetched once", [](const found& in) { return in.urls_with[1]; });
    row("twice", [](const found& in) { return in.urls_with[2]; });
    row("more often", [](const found& in) { return in.urls_with[3]; });
    row("most of one URL", [](const found& in) { return in.most_fetches; });
    row("answers by way of another node", [](const found& in) { return in.by_another; });
    row("siblings asked: true hits", [](const found& in) { return in.asked_true; });
    row("false hits", [](const found& in) { return in.asked_false; });
    row("late", [](const found& in) { return in.asked_late; });
    row("failed", [](const found& in) { return in.asked_failed; });
    row("homes passed by", [](const found& in) { return in.homes_failed; });
    row("median ms", [&](const found& in) { return rounded(quantile(in.took, 0.5), 0.1); });
    row("99 % ms", [&](const found& in) { return rounded(quantile(in.took, 0.99), 0.1); });
    row("by another node: 99 % ms",
        [&](const found& in) { return rounded(quantile(in.took_by_another, 0.99), 0.1); });
    row("went out late: 99 % ms",
        [&](const found& in) { return rounded(quantile(in.late, 0.99), 0.1); });
    row("seconds", [&](const found& in) { return rounded(in.seconds, 0.1); });
    for (const auto& [name, one] : all) {
        for (const auto& what : one.complaints) {
            std::printf("%s: %s\n", name.c_str(), what.c_str());
        }
        if (!one.left.empty()) {
            std::printf("%s: left at the end: %s\n", name.c_str(), one.left.c_str());
        }
    }
}

/// What holds on any machine.
bool is_kept(const plan& of, const found& in) {
    const bool all_right = in.outcomes[0] + in.excused == in.asked && in.left.empty();
    // Were nobody spared anything, it would be one for each node.
    const bool spared = of.trouble != "none" ||
                        in.fetches < static_cast<std::uint64_t>(of.urls) * of.nodes;
    return all_right && spared;
}

}  // namespace

int main(int argc, char** argv) {
    plan of;
    CLI::App app{"Every node of a fleet is asked for the same new URLs, each once."};
    app.add_option("--nodes", of.nodes)->check(CLI::Range(2, 64))->capture_default_str();
    app.add_option("--urls", of.urls)->check(CLI::Range(1, 10'000'000))->capture_default_str();
    app.add_option("--within", of.within, "seconds in which all nodes are asked for a URL")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option(
           "--rate", of.rate, "requests a second, through all nodes; 0: all URLs begin at once")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_flag("--homes", of.homes, "peering.homes");
    app.add_option("--admission", of.admission)
        ->check(CLI::IsMember({"always", "second-hit"}))
        ->capture_default_str();
    app.add_option("--trouble", of.trouble)
        ->check(CLI::IsMember({"none", "kill", "pause", "partition", "clock"}))
        ->capture_default_str();
    app.add_flag("!--no-alone", of.alone_too, "not beside nodes that do not know each other");
    app.add_option("--origin-delay", of.origin_delay, "ms until a head")->capture_default_str();
    app.add_option("--body-takes", of.body_takes, "ms from a head to its body's end")
        ->capture_default_str();
    app.add_option("--pause", of.pause, "ms in the middle of one body in sixteen")
        ->capture_default_str();
    app.add_option("--news", of.news, "ms, peering.news")->capture_default_str();
    app.add_option("--link-delay", of.link_delay, "ms each way between two nodes")
        ->capture_default_str();
    app.add_option("--seed", of.seed)->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        if (of.admission != "always" && (of.trouble == "partition" || of.link_delay > 0)) {
            throw std::runtime_error{
                "what was seen is shared by signed requests alone, and those go through no link"};
        }
        rlimit files{};
        if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
            files.rlim_cur = files.rlim_max;
            (void)::setrlimit(RLIMIT_NOFILE, &files);
        }
        std::vector<std::pair<std::string, found>> all;
        if (of.alone_too) {
            all.emplace_back("each alone", play(of, false));
        }
        all.emplace_back("as a fleet", play(of, true));
        print(of, all);
        const auto& alone = all.front().second;
        const bool right = of.alone_too ? alone.outcomes[0] == alone.asked && alone.left.empty()
                                        : true;
        return right && is_kept(of, all.back().second) ? 0 : 1;
    } catch (const std::exception& what) {
        std::fprintf(stderr, "soak_new_urls: %s\n", what.what());
        return 1;
    }
}
