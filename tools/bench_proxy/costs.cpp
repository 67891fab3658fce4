#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/wrk.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unistd.h>

namespace reprise::bench {

namespace {

struct workload {
    const char* name;
    wrk_plan load;
    /// Beside whom, and what is to be reached.
    std::vector<std::pair<const char*, std::optional<double>>> beside;
};

wrk_plan load_of(asking what, std::size_t size = 1024, bool tls = false, bool closes = false) {
    wrk_plan out;
    out.what = what;
    out.size = size;
    out.tls = tls;
    out.closes = closes;
    return out;
}

constexpr std::size_t large = 100'000;
/// Above 1 KiB, the least that memory can be told to refuse.
constexpr std::size_t on_disk = 1'100;

const std::vector<workload>& workloads() {
    static const std::vector<workload> all{
        {"hit1k", load_of(asking::one), {{"bare", 1.15}, {"nginx", 0.55}}},
        {"hits1000", load_of(asking::turn), {{"bare", 1.2}, {"nginx", {}}}},
        {"hit100k", load_of(asking::one, large), {{"bare100k", 1.0}, {"nginx", {}}}},
        {"miss1k", load_of(asking::fresh), {{"relay", 1.6}, {"nginx", {}}}},
        {"twice1k", load_of(asking::twice), {{"relay", {}}, {"nginx", {}}}},
        {"churn1k", load_of(asking::one, 1024, false, true), {{"nginx", 0.75}}},
        {"tls1k", load_of(asking::one, 1024, true), {{"nginx", 0.75}}},
        {"tlsnew1k", load_of(asking::one, 1024, true, true), {{"nginx", 1.05}}},
    };
    return all;
}

using costs_by_server = std::map<std::string, std::vector<double>>;

/// Rounds in turn, each second one backwards: what changes slowly beside meets all alike.
costs_by_server run_rounds(const lab& of, const std::vector<server*>& servers, wrk_plan load) {
    costs_by_server out;
    const auto seconds = of.wanted.seconds;
    for (unsigned round = 0; round <= of.wanted.rounds; ++round) {  // the first warms up
        auto order = servers;
        if (round % 2 == 1) {
            std::reverse(order.begin(), order.end());
        }
        for (auto* const one : order) {
            load.seconds = round == 0 ? 1 : seconds;
            load.tag = std::to_string(::getpid()) + "-" + std::to_string(of.origin.requests()) +
                       one->name + std::to_string(round);
            const auto got = run_wrk(of, *one, load);
            if (round > 0) {
                out[one->name].push_back(got.processor_us);
            }
        }
    }
    return out;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs) {
    std::vector<double> out;
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
        out.push_back(ours[i] / theirs[i]);
    }
    return out;
}

class contest {
public:
    explicit contest(const lab& of) : of_{of} {}

    found_rows run() {
        if (!of_.has_wrk) {
            out_.skipped.push_back("costs: wrk is not installed");
            return std::move(out_);
        }
        const bool asked = of_.wanted.wants_any(
            "costs", {"hit", "miss", "twice", "churn", "tls", "resident after"});
        if (asked) {
            start_all();
            for (const auto& one : workloads()) {
                play(one);
            }
            resident_after();
        }
        servers_.clear();
        if (of_.wanted.wants("costs", "disk1k / memory")) {
            disk_beside_memory();
        }
        return std::move(out_);
    }

private:
    void start_all() {
        add(start_reprise(of_, {.program = of_.wanted.program}));
        if (!of_.wanted.before.empty()) {
            add(start_reprise(of_, {.name = "before", .program = of_.wanted.before}));
        }
        add(start_bare(of_, 1024));
        add(start_bare(of_, large)).name = "bare100k";
        add(start_relay(of_));
        if (of_.has_nginx) {
            add(start_nginx(of_));
        } else {
            out_.skipped.push_back("costs beside nginx: it is not installed");
        }
    }

    template <class Server>
    Server& add(std::unique_ptr<Server> one) {
        auto& out = *one;
        servers_.push_back(std::move(one));
        return out;
    }

    server* find(const std::string& name) {
        for (const auto& one : servers_) {
            if (one->name == name) {
                return one.get();
            }
        }
        return nullptr;
    }

    void play(const workload& one) {
        if (!of_.wanted.wants("costs", one.name)) {
            return;
        }
        if (one.load.tls && of_.certificate.empty()) {
            out_.skipped.push_back(std::string{one.name} + ": openssl is not installed");
            return;
        }
        std::vector<server*> beside{find("ours")};
        if (auto* const before = find("before")) {
            beside.push_back(before);
        }
        for (const auto& [name, goal] : one.beside) {
            // Its files take a minute to write and to delete, for a row that is not judged.
            const bool is_long = name == std::string{"nginx"} && one.load.stores();
            if (is_long && of_.wanted.form != "whole") {
                continue;
            }
            if (auto* const peer = find(name)) {
                beside.push_back(peer);
            }
        }
        auto costs = run_rounds(of_, beside, one.load);
        for (const auto& [name, goal] : one.beside) {
            if (costs.count(name) != 0) {
                const std::string shown = name == std::string{"bare100k"} ? "bare" : name;
                out_.rows.push_back({.name = std::string{one.name} + " / " + shown,
                                     .unit = "x",
                                     .rounds = ratios(costs["ours"], costs[name]),
                                     .goal = goal,
                                     // nginx writes what it stores to files, at the disk's pace.
                                     .judged = shown != "nginx" || !one.load.stores()});
            }
        }
        if (costs.count("before") != 0) {
            out_.rows.push_back({.name = std::string{one.name} + " / before",
                                 .unit = "x",
                                 .rounds = ratios(costs["ours"], costs["before"]),
                                 .judged = false});
        }
        out_.rows.push_back({.name = std::string{one.name} + ": processor time",
                             .unit = "us",
                             .rounds = costs["ours"],
                             .judged = false});
        std::fprintf(stderr, "bench: %s\n", one.name);
    }

    void resident_after() {
        const auto* const ours = dynamic_cast<reprise_server*>(find("ours"));
        if (ours == nullptr || !of_.wanted.wants("costs", "resident after the costs")) {
            return;
        }
        const auto stored = ours->stats().at("store").at("bytes").get<double>();
        out_.rows.push_back({.name = "resident after the costs: over what is stored",
                             .unit = "MiB",
                             .rounds = {(resident_bytes(ours->process.pid()) - stored) / 1048576},
                             .goal = 60,
                             .grain = 2,
                             .judged = of_.wanted.only.empty()});
        if (const auto* const nginx = find("nginx")) {
            out_.rows.push_back({.name = "resident after the costs: nginx",
                                 .unit = "MiB",
                                 .rounds = {resident_bytes(nginx->process.pid()) / 1048576},
                                 .judged = false});
        }
    }

    /// Hits on disk, with the files in the page cache, beside hits in memory, of the same objects.
    void disk_beside_memory() {
        const nlohmann::json always{{"admission", "always"}};
        auto small = always;
        small["memory"] = {{"size", "1MiB"}, {"max_object", "1KiB"}};
        small["disk"] = disk_of_all_admitted(of_.wanted.folder + "/disk1k", "256MiB");
        const auto memory = start_reprise(
            of_, {.name = "memory", .program = of_.wanted.program, .settings = always});
        const auto disk = start_reprise(
            of_, {.name = "disk", .program = of_.wanted.program, .settings = small});
        auto load = load_of(asking::turn, on_disk);
        (void)run_wrk(of_, *disk, load);  // what was asked for is on disk a moment later
        auto costs = run_rounds(of_, {memory.get(), disk.get()}, load);
        const auto figures = disk->stats();
        if (figures.at("disk").at("lookups").at("hit").get<double>() < 1000) {
            throw std::runtime_error("disk1k: what is on disk was not asked for");
        }
        out_.rows.push_back({.name = "disk1k / memory",
                             .unit = "x",
                             .rounds = ratios(costs["disk"], costs["memory"]),
                             .goal = 1.2});
        std::fprintf(stderr, "bench: disk1k\n");
    }

    const lab& of_;
    std::vector<server_ptr> servers_;
    found_rows out_;
};

}  // namespace

found_rows measure_costs(const lab& of) {
    return contest{of}.run();
}

}  // namespace reprise::bench
