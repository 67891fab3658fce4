// reprise-fleet: what a fleet of proxies would have done with a trace. README.md says how to read
// it.

#include "proxy/base/log.hpp"
#include "tools/fleet/results.hpp"
#include "tools/fleet/runs.hpp"
#include "tools/replay/trace.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace reprise::fleet;
namespace replay = reprise::replay;

struct command {
    std::vector<std::string> traces;
    std::string format;
    std::vector<node_number> nodes{4, 16};
    std::vector<std::string> sizes{"10%"};
    std::vector<std::string> caches{"lru", "ours"};
    std::vector<std::string> findings{"alone", "digests", "oracle", "big"};
    std::vector<double> periods{10};
    std::vector<std::string> changes{"1%"};
    double publish_after = 0;
    std::string rate = "1%";
    std::string delivery = "pull";
    double news = 0.2;
    bool spread = false;
    std::string copies = "admitted";
    std::string split = "random";
    std::vector<std::string> seen{"off"};
    unsigned hints_for = 600;
    bool under_way = false;
    std::vector<unsigned> takes{0, 0};
    double hot = 0.1;
    node_number views = 0;
    node_number sites = 1;
    std::vector<unsigned> site_nodes{1};
    double members_news = 0;
    std::uint64_t url = paper_url;
    std::uint64_t unit = 0;
    std::uint64_t seed = 1;
    unsigned threads = 1;
    std::uint32_t second_requests = 0;
    bool quiet = false;
    std::string name, csv, plots;
};

template <class T>
T must(std::optional<T> value, const std::string& option, const std::string& text) {
    if (!value) {
        throw std::runtime_error{option + ": \"" + text + "\" is not one of its values (--help)"};
    }
    return *std::move(value);
}

std::optional<delivery> delivery_of(const std::string& name) {
    return name == "pull"      ? std::optional{delivery::pull}
           : name == "push"    ? std::optional{delivery::push}
           : name == "instant" ? std::optional{delivery::instant}
           : name == "news"    ? std::optional{delivery::news}
                               : std::nullopt;
}

std::optional<cache_node::keep> copies_of(const std::string& name) {
    return name == "admitted" ? std::optional{cache_node::keep::if_admitted}
           : name == "always" ? std::optional{cache_node::keep::always}
           : name == "never"  ? std::optional{cache_node::keep::never}
                              : std::nullopt;
}

double share_in(const std::string& option, const std::string& text) {
    return must(replay::share_of(text), option, text);
}

// What all runs of a command have in common.
fleet_run common_part(const command& asked) {
    fleet_run out;
    out.split = must(splitting_of(asked.split), "--split", asked.split);
    auto& plan = out.plan;
    plan.copies = must(copies_of(asked.copies), "--copies", asked.copies);
    plan.hints_for = std::chrono::seconds{asked.hints_for};
    plan.hot = asked.hot;
    plan.head_takes = milliseconds{asked.takes[0]};
    plan.body_takes = milliseconds{asked.takes[1]};
    plan.under_way = asked.under_way;
    plan.wire.url = asked.url;
    auto& exchange = plan.exchange;
    exchange.how = must(delivery_of(asked.delivery), "--delivery", asked.delivery);
    exchange.source.news = std::chrono::milliseconds{std::llround(1000 * asked.news)};
    out.spread = asked.spread;
    exchange.views = asked.views;
    exchange.sites = asked.sites;
    exchange.members_news = std::chrono::milliseconds{std::llround(1000 * asked.members_news)};
    exchange.seed = asked.seed;
    exchange.source.false_positive_rate = share_in("--rate", asked.rate);
    return out;
}

// One for each period, share of change and sharing of sights.
void add_exchanging(std::vector<fleet_run>& to, const command& asked, const fleet_run& base) {
    for (const auto period : asked.periods) {
        for (const auto& change : asked.changes) {
            for (const auto& seen : asked.seen) {
                auto run = base;
                auto& exchange = run.plan.exchange;
                exchange.period = std::chrono::milliseconds{std::llround(1000 * period)};
                auto& rules = exchange.source;
                const auto after = asked.publish_after > 0 ? asked.publish_after : period;
                rules.publish_after = std::chrono::seconds{
                    std::max<std::int64_t>(1, std::llround(after))};
                rules.publish_after_change = share_in("--change", change);
                exchange.seen = seen == "on";
                if (exchange.seen && !run.plan.strict) {
                    continue;  // nothing is refused at a first sight
                }
                to.push_back(run);
            }
        }
    }
}

std::vector<fleet_run> runs_of(const command& asked,
                               std::uint64_t unique_bytes,
                               std::uint64_t unit) {
    std::vector<fleet_run> out;
    for (const auto& size : asked.sizes) {
        for (const auto& cache : asked.caches) {
            const auto choice = must(cache_choice_of(cache), "--cache", cache);
            for (const auto nodes : asked.nodes) {
                for (const auto& find : asked.findings) {
                    auto run = common_part(asked);
                    run.cache = choice.name;
                    run.size = size;
                    run.of_nodes = nodes;
                    auto& plan = run.plan;
                    plan.unit = unit;
                    plan.policy = choice.policy;
                    plan.strict = choice.strict;
                    plan.capacity =
                        must(replay::cache_size_of(size), "--size", size).resolved(unique_bytes);
                    plan.nodes = nodes;
                    run.big = find == "big";
                    if (run.big) {
                        plan.nodes = 1;
                        plan.how = finding::alone;
                        out.push_back(run);
                        continue;
                    }
                    plan.how = must(finding_of(find), "--find", find);
                    if (plan.how == finding::digests || plan.how == finding::hints) {
                        add_exchanging(out, asked, run);
                    } else if (plan.how == finding::sites) {
                        for (const auto times : asked.site_nodes) {
                            plan.exchange.source.site_nodes = times;
                            add_exchanging(out, asked, run);
                        }
                    } else {
                        out.push_back(run);
                    }
                }
            }
        }
    }
    return out;
}

int play(const command& asked) {
    std::optional<replay::log_format> format;
    if (!asked.format.empty()) {
        format = must(replay::format_of(asked.format), "--format", asked.format);
    }
    replay::trace source{asked.traces, format};
    const bool by_client = splitting_of(asked.split) == splitting::client;
    if (by_client) {
        source.keep_clients();
    }
    const replay::recorded_trace requests{source};
    if (by_client && source.different_clients() < 2) {
        throw std::runtime_error{"--split client: the trace names no clients"};
    }
    const auto totals = source.objects().sum();
    const auto unit = asked.unit != 0                  ? asked.unit
                      : totals.bytes == totals.objects ? std::uint64_t{16} << 10
                                                       : 1;
    const auto runs = runs_of(asked, totals.bytes, unit);
    const auto results = run_all(
        requests, source.clients(), runs, asked.threads, [&](std::size_t done) {
            if (!asked.quiet) {
                std::fprintf(stderr, "%zu of %zu\n", done, runs.size());
            }
        });
    const auto name = asked.name.empty() ? asked.traces.front() : asked.name;
    std::cout << name << ": " << source.figures().requests << " requests, " << totals.objects
              << " objects, " << source.figures().last_second - source.figures().first_second
              << " s\n\n";
    print_table(std::cout, results);
    if (asked.sites > 1) {
        std::cout << '\n';
        print_sites(std::cout, results);
    }
    if (!asked.csv.empty()) {
        std::ofstream out{asked.csv};
        print_csv(out, name, results);
        out.close();
        if (!out) {
            throw std::runtime_error{asked.csv + ": can't be written"};
        }
    }
    if (!asked.plots.empty()) {
        for (const auto& path : write_plots(asked.plots, name, results)) {
            std::fprintf(stderr, "%s\n", path.c_str());
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    command asked;
    CLI::App app{
        "A fleet of proxies over a trace, in virtual time: hits and what finding them costs."};
    app.set_version_flag("--version", std::string{"reprise-fleet "} + REPRISE_VERSION);
    app.add_option("trace", asked.traces, "logs, plain or zstd; - is standard input");
    app.add_option("--format", asked.format, "trace, squid, combined or json (else found out)");
    app.add_option("--nodes", asked.nodes, "how many proxies")
        ->delimiter(',')
        ->check(CLI::Range(node_number{1}, node_number{1000}))
        ->capture_default_str();
    app.add_option("--size", asked.sizes, "of the whole fleet: bytes, or shares of unique bytes")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--cache",
                   asked.caches,
                   "a policy (lru, sieve, gdsf:0.4, ...), strict with +second-hit; ours: what a "
                   "proxy without settings is")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--find",
                   asked.findings,
                   "alone, digests, sites, hints, oracle, routed, homes, big (one cache with "
                   "everybody's room)")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--period", asked.periods, "seconds between pulls of a digest (peers[].refresh)")
        ->delimiter(',')
        ->check(CLI::Range(0.001, 1e7))
        ->capture_default_str();
    app.add_option("--publish-after",
                   asked.publish_after,
                   "seconds, digest.publish_after; without it the period, at least 1");
    app.add_option("--change", asked.changes, "digest.publish_after_change")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--rate", asked.rate, "digest.false_positive_rate")->capture_default_str();
    app.add_option("--delivery", asked.delivery, "of digests: pull, push, instant or news")
        ->capture_default_str();
    app.add_option("--news", asked.news, "seconds, peering.news, where they are delivered so")
        ->check(CLI::Range(0.001, 60.0))
        ->capture_default_str();
    app.add_flag(
        "--spread",
        asked.spread,
        "requests of one second come one after the other over it, not all at its beginning");
    app.add_option("--seen", asked.seen, "siblings share what they saw: off, on")
        ->delimiter(',')
        ->check(CLI::IsMember({"off", "on"}))
        ->capture_default_str();
    app.add_option("--copies",
                   asked.copies,
                   "what siblings sent is stored here too: admitted, always, never (proxy_only)")
        ->capture_default_str();
    app.add_option("--hints-for", asked.hints_for, "seconds that a hint is remembered")
        ->capture_default_str();
    app.add_flag("--under-way",
                 asked.under_way,
                 "siblings are told of fetches that are under way, and join them");
    app.add_option("--takes",
                   asked.takes,
                   "milliseconds that the origin takes until the head, and from there to the end")
        ->delimiter(',')
        ->expected(2)
        ->capture_default_str();
    app.add_option(
           "--hot", asked.hot, "homes: the share of a node's room for copies of others' keys")
        ->check(CLI::Range(0.001, 0.9))
        ->capture_default_str();
    app.add_option("--split", asked.split, "requests to nodes: random, turns or client")
        ->capture_default_str();
    app.add_option("--views",
                   asked.views,
                   "groups of nodes that pull at the same moments (0: each node for itself up to "
                   "16 nodes, else one for all)");
    app.add_option("--sites",
                   asked.sites,
                   "so many groups of nodes, between which is counted what crosses; --find sites "
                   "follows their gateways alone")
        ->check(CLI::Range(node_number{1}, node_number{64}))
        ->capture_default_str();
    app.add_option("--site-nodes", asked.site_nodes, "digest.site_nodes, with --find sites")
        ->delimiter(',')
        ->check(CLI::IsMember({1, 2, 4, 8, 16}))
        ->capture_default_str();
    app.add_option(
           "--members-news", asked.members_news, "seconds, of members' digests instead of --news")
        ->check(CLI::Range(0.001, 60.0));
    app.add_option("--url", asked.url, "bytes of a URL in messages")->capture_default_str();
    app.add_option("--unit",
                   asked.unit,
                   "bytes that one of the trace's counts for beside a filter's (16384 where all "
                   "sizes are 1)");
    app.add_option("--seed", asked.seed, "of the split and of all that is drawn")
        ->capture_default_str();
    app.add_option("--threads", asked.threads, "runs side by side")
        ->check(CLI::Range(1u, 256u))
        ->capture_default_str();
    app.add_option("--second-requests",
                   asked.second_requests,
                   "plays no trace: so many objects, each asked twice at every node, and how often "
                   "strict proxies fetch one");
    app.add_option("--name", asked.name, "of the trace, in what is printed");
    app.add_option("--plots", asked.plots, "writes plots to files that begin so");
    app.add_option("--csv", asked.csv, "writes all that was counted to this file");
    app.add_flag("--quiet", asked.quiet, "says nothing meanwhile");
    CLI11_PARSE(app, argc, argv);
    reprise::proxy::set_log_level(reprise::config::log_level::warn);
    try {
        if (asked.second_requests != 0) {
            print_table(std::cout, second_requests(asked.nodes, asked.second_requests));
            return 0;
        }
        if (asked.traces.empty()) {
            throw std::runtime_error{"no trace is named (--help)"};
        }
        return play(asked);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "reprise-fleet: %s\n", error.what());
        return 2;
    }
}
