// soak_new_urls: a fleet in which every node is asked for the same new URLs, each once on every node.
//
//     soak_new_urls                                   eight nodes, 10,000 URLs, over five seconds each
//     soak_new_urls --within 0.1 --homes              all of a URL's requests within a tenth of a second
//     soak_new_urls --trouble partition               one node after another is cut off, and comes back: two thirds
//                                                     of the time some node is; --calm 37: a fifteenth
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
// Beside trouble some fetches are nobody's to spare: a node that is cut off has only what it has. So many are said
// (out_of_reach.hpp).
//
// Ends by a table, and by status 1 if a promise was broken that does not hang on the machine's pace.

#include "tests/soak/new_urls_plan.hpp"
#include "tests/soak/out_of_reach.hpp"
#include "tests/soak/paced_clients.hpp"
#include "tests/soak/troubled_fleet.hpp"
#include "tests/support/fake_origin.hpp"
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

namespace reprise::tests::soak_new_urls {

namespace {

using namespace new_urls;

/// An origin that notes who fetched what, and when.
class noting_origin {
public:
    explicit noting_origin(const plan& of) : plan_{of} {
        origin_.otherwise([this](origin_request& request, origin_connection& connection) {
            answer(request, connection);
        });
    }
    [[nodiscard]] std::string url(std::uint32_t number) const {
        return origin_.url("/u/" + std::to_string(number));
    }
    /// So far.
    [[nodiscard]] std::vector<origin_fetch> fetches() const {
        const std::scoped_lock lock{guard_};
        return fetches_;
    }

private:
    void answer(const origin_request& request, origin_connection& connection) {
        const auto number = number_in(std::string_view{request.target}.substr(3));
        if (!number || *number >= plan_.urls) {
            connection.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        const url_facts of{plan_, static_cast<std::uint32_t>(*number)};
        note({.url = static_cast<std::uint32_t>(*number),
              .by = node_in(request.get("Via")),
              .at = steady_clock::now()});
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

    void note(const origin_fetch& one) {
        const std::scoped_lock lock{guard_};
        fetches_.push_back(one);
    }
    /// Whoever it came from: the last in Via, as troubled_fleet names its nodes.
    [[nodiscard]] static unsigned node_in(const std::string& via) {
        const auto at = via.rfind("node-");
        return at == via.npos ? 0 : static_cast<unsigned>(std::stoul(via.substr(at + 5)));
    }

    const plan& plan_;
    mutable std::mutex guard_;
    std::vector<origin_fetch> fetches_;
    fake_origin origin_{{.remembers = false}};  // last: its threads end first
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
    std::uint64_t fetches = 0, most_fetches = 0, out_of_reach = 0;
    std::array<std::uint64_t, 4> urls_with{};  // none, one, two, more fetches
    std::vector<double> took, took_by_another, late;
    double seconds = 0;
    std::size_t troubles = 0;
    double troubled_for = 0;  // of the run, the share in which some node was in trouble
    std::int64_t asked_true = 0, asked_false = 0, asked_late = 0, asked_failed = 0,
                 homes_failed = 0;
    std::string left;
    std::vector<std::string> complaints;
};

found play(const plan& of, bool know_each_other) {
    noting_origin origin{of};
    troubled_fleet nodes{of, know_each_other};
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
    std::vector<held_copy> copies;
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
        copies.push_back({.url = all[i].url, .by = node, .since = one.ended});
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
    const auto fetches = origin.fetches();
    std::vector<std::uint64_t> times(of.urls);
    for (const auto& one : fetches) {
        ++times[one.url];
    }
    for (const auto one : times) {
        out.fetches += one;
        out.most_fetches = std::max(out.most_fetches, one);
        ++out.urls_with[std::min<std::size_t>(one, out.urls_with.size() - 1)];
    }
    out.out_of_reach = out_of_reach(of, fetches, copies, nodes.troubles());
    out.troubles = nodes.troubles().size();
    for (const auto& one : nodes.troubles()) {
        out.troubled_for += std::chrono::duration<double>(one.to - one.from).count() / out.seconds;
    }
    out.left = nodes.what_is_left();
    out.asked_true = nodes.sum("/siblings/asked", "true-hit");
    out.asked_false = nodes.sum("/siblings/asked", "false-hit");
    out.asked_late = nodes.sum("/siblings/asked", "late");
    out.asked_failed = nodes.sum("/siblings/asked", "failed");
    out.homes_failed = nodes.sum("/homes/failed");
    return out;
}

void print(const plan& of, const std::vector<std::pair<std::string, found>>& all) {
    std::printf(
        "| %u nodes, %u URLs, each within %g s, %g requests/s, admission %s%s%s, trouble %s, "
        "seed %llu |",
        of.nodes,
        of.urls,
        of.within,
        of.rate,
        of.admission.c_str(),
        of.homes ? ", homes" : "",
        of.disk ? ", disk" : "",
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
    row("% of the time in which one of them was",
        [&](const found& in) { return rounded(100 * in.troubled_for, 0.1); });
    row("origin fetches a URL",
        [&](const found& in) { return rounded(static_cast<double>(in.fetches) / urls, 0.0001); });
    row("of these first sights, which admission asks for", [&](const found& in) {
        return rounded(static_cast<double>(in.first_sights) / urls, 0.0001);
    });
    row("of these for want of anybody within reach who had it", [&](const found& in) {
        return rounded(static_cast<double>(in.out_of_reach) / urls, 0.0001);
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

int run(int argc, char** argv) {
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
    app.add_option("--calm", of.calm, "seconds between one trouble and the next, in the mean")
        ->check(CLI::Range(0.1, 3600.0))
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
    app.add_flag("--disk", of.disk, "nodes have a disk, and begin again with what they had");
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

}  // namespace reprise::tests::soak_new_urls
