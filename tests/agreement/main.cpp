// The replay tool and the running proxy agree: a trace is played through the program, its bodies
// made from key and size, and the requests that reach the origin are counted beside the misses that
// reprise-replay says for the same settings. With a disk, the bytes that the store says it wrote
// are held against the process's own counters too.
//
//   replay_agreement                          a trace of its own, half a minute: ctest runs this
//   replay_agreement --tiers profile          the recommended profile
//   replay_agreement TRACE                    one of tests/data/traces' format, plain or zstd
//   replay_agreement TRACE --scale 16         with bodies of a sixteenth of the size
//
// Stores are made below TMPDIR, which should be on a disk.
//
// Requests go one after another over one connection, in the trace's order, so that both sides see
// the same. What an object costs a store is known to the proxy alone: it is measured first, and the
// replay tool is given a trace with those costs for sizes.

#include "tests/agreement/played_trace.hpp"
#include "tests/agreement/proxy_run.hpp"
#include "tests/agreement/replay_run.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace reprise::tests;

struct plan {
    std::string trace;
    std::uint64_t requests = 30'000;
    std::uint64_t scale = 1;
    std::vector<double> sizes{10, 3};  ///< percent of what all objects cost
    std::vector<std::string> policies{"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf"};
    std::vector<std::string> admissions{"always", "second-hit"};
    std::vector<std::string> tiers{"memory", "disk"};
    double limit = 0.5;        ///< percent of the misses
    double written_limit = 1;  ///< percent of the bytes written
};

std::uint64_t part(std::uint64_t whole, double percent) {
    return static_cast<std::uint64_t>(static_cast<double>(whole) * percent / 100);
}

double percent_off(std::uint64_t is, double expected) {
    return expected == 0 ? 0 : 100 * (static_cast<double>(is) - expected) / expected;
}

class comparison {
public:
    comparison(const plan& asked, const played_trace& trace)
        : asked_{asked},
          trace_{trace},
          charge_{memory_charge::measured(largest())},
          all_cost_{sum([&](std::uint32_t bytes) { return charge_(bytes); })} {
        std::printf("%s: %zu requests for %u objects of %.1f MB in all, sizes divided by %llu; "
                    "they cost memory %.1f MB\n\n"
                    "| tiers | size, MB | policy | admission | requests | origin | replay | "
                    "off, %% | wrong | written, MB | of the process, MB | off, %% | replay, MB |\n"
                    "|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
                    trace.name.c_str(),
                    trace.requests.size(),
                    trace.objects,
                    static_cast<double>(trace.unique_bytes) / 1e6,
                    static_cast<unsigned long long>(asked.scale),
                    static_cast<double>(all_cost_) / 1e6);
    }

    void in_memory(double percent, const std::string& policy, const std::string& admission) {
        const auto capacity = std::max(part(all_cost_, percent), least_memory);
        auto settings = settings_for(policy, admission);
        settings["memory"]["size"] = capacity;
        settings["memory"]["max_object"] = capacity;
        const auto cost = [&](std::uint32_t bytes) { return charge_(bytes); };
        compare({"memory", percent, policy, admission},
                settings,
                cost,
                {"--memory", std::to_string(capacity)});
    }

    /// A small memory above a disk that is a plain log, and one that carries objects forward.
    void on_disk(double percent, const std::string& admission, double carry) {
        const temp_dir directory;
        const auto wanted = std::max(part(all_cost_, percent), least_disk);
        auto settings = settings_for("sieve", admission);
        settings["memory"]["size"] = least_memory;
        settings["memory"]["max_object"] = least_memory / 4;
        settings["disk"] = {{"path", directory.file("store")},
                            {"size", wanted},
                            {"max_object", wanted / 4},
                            {"write", "admission"},
                            {"selective", false},
                            {"carry", carry}};
        settings["admission"]["probation"] = "0%";
        const auto cost = [&](std::uint32_t bytes) -> std::uint64_t {
            return bytes + record_front;
        };
        // Both tiers together; a memory's object costs more than the record of the same.
        const double ratio = static_cast<double>(sum(cost)) / static_cast<double>(all_cost_);
        const auto memory = static_cast<std::uint64_t>(static_cast<double>(least_memory) * ratio);
        compare({"both, carry " + std::to_string(carry).substr(0, 4), percent, "sieve", admission},
                settings,
                cost,
                with_disk(wanted, memory, carry, {"--write", "admission", "--take-all"}));
    }

    /// The recommended profile (README.md): memory has four tenths and takes first requests too,
    /// the disk gets what leaves memory, if it is worth more than what would go for it.
    void profile(double percent) {
        const temp_dir directory;
        const auto wanted = std::max(part(all_cost_, 0.6 * percent), least_disk);
        const auto memory = wanted / 3 * 2;
        auto settings = settings_for("gdsf", "second-hit");
        settings["admission"]["probation"] = "100%";
        settings["memory"]["size"] = memory;
        settings["memory"]["max_object"] = memory / 2;
        settings["disk"] = {{"path", directory.file("store")},
                            {"size", wanted},
                            {"max_object", wanted / 4},
                            {"write", "eviction"},
                            {"selective", true},
                            {"carry", 0.6}};
        const auto cost = [&](std::uint32_t bytes) { return charge_(bytes); };
        compare({"profile", percent, "gdsf", "second-hit"},
                settings,
                cost,
                with_disk(wanted, memory, 0.6, {"--write", "eviction", "--probation", "100%"}));
    }

    [[nodiscard]] bool agreed() const { return agreed_; }

private:
    static constexpr std::uint64_t least_memory = std::uint64_t{1} << 20;
    static constexpr std::uint64_t least_disk = std::uint64_t{16} << 20;
    /// About what a record has beside its body (proxy/cache/disk/FORMAT.md): head, URL, header, and
    /// its entry in the segment's footer.
    static constexpr std::uint64_t record_front = 400 + 48;

    /// What the replay tool is told of a memory of so many bytes above a disk of `wanted`.
    static std::vector<std::string> with_disk(std::uint64_t wanted,
                                              std::uint64_t memory,
                                              double carry,
                                              std::vector<std::string> more) {
        more.insert(more.end(),
                    {"--memory",
                     std::to_string(memory),
                     "--disk",
                     std::to_string(wanted),
                     "--carry",
                     std::to_string(carry)});
        return more;
    }

    struct row {
        std::string tiers;
        double percent;
        std::string policy, admission;
    };

    [[nodiscard]] std::uint32_t largest() const {
        std::uint32_t out = 1;
        for (const auto& one : trace_.requests) {
            out = std::max(out, one.bytes);
        }
        return out;
    }
    /// Of every object once.
    template <class Cost>
    [[nodiscard]] std::uint64_t sum(const Cost& cost) const {
        std::vector<bool> seen(trace_.objects);
        std::uint64_t out = 0;
        for (const auto& one : trace_.requests) {
            out += seen[one.object] ? 0 : cost(one.bytes);
            seen[one.object] = true;
        }
        return out;
    }

    [[nodiscard]] std::uint64_t remembered() const {
        return std::max<std::uint64_t>(trace_.objects, 1000);
    }
    [[nodiscard]] json settings_for(const std::string& policy, const std::string& admission) const {
        auto out = basic_settings();
        out["threads"] = 1;
        out["log"] = {{"access", "off"}, {"level", "warn"}};
        out["memory"]["policy"] = policy;
        out["admission"] = {{"policy", admission.substr(0, admission.find(':'))},
                            {"remember", {{"objects", remembered()}, {"age", "50h"}}}};
        if (const auto colon = admission.find(':'); colon != std::string::npos) {
            out["admission"]["hits"] = std::stoi(admission.substr(colon + 1));
        }
        return out;
    }

    void compare(const row& what,
                 const json& settings,
                 const std::function<std::uint64_t(std::uint32_t)>& cost,
                 std::vector<std::string> arguments) {
        const auto got = play(trace_, settings);
        const temp_dir directory;
        const auto file = directory.file("trace.csv");
        write_trace(trace_, file, cost);
        arguments.insert(arguments.begin(), file);
        arguments.insert(arguments.end(),
                         {"--policy",
                          what.policy,
                          "--admission",
                          what.admission,
                          "--objects",
                          std::to_string(remembered()),
                          "--threads",
                          "1"});
        const auto rows = run_replay(arguments);
        const auto misses = number_in(rows.at(0), "requests") - number_in(rows.at(0), "hits");
        const auto off = percent_off(got.reached_origin, misses);
        const auto written = got.stats.value(json::json_pointer{"/disk/written_bytes"},
                                             std::uint64_t{0});
        const auto written_off = percent_off(got.io_written, static_cast<double>(written));
        std::printf("| %s | %.1f | %s | %s | %llu | %llu | %.0f | %+.2f | %llu | %.2f | %.2f | "
                    "%+.2f | %.2f |\n",
                    what.tiers.c_str(),
                    what.percent * static_cast<double>(all_cost_) / 1e8,
                    what.policy.c_str(),
                    what.admission.c_str(),
                    static_cast<unsigned long long>(got.requests),
                    static_cast<unsigned long long>(got.reached_origin),
                    misses,
                    off,
                    static_cast<unsigned long long>(got.wrong),
                    static_cast<double>(written) / 1e6,
                    static_cast<double>(got.io_written) / 1e6,
                    written == 0 ? 0 : written_off,
                    written == 0 ? 0 : number_in(rows.at(0), "bytes_written") / 1e6);
        std::fflush(stdout);
        agreed_ = agreed_ && got.wrong == 0 && std::abs(off) <= asked_.limit &&
                  (written == 0 || std::abs(written_off) <= asked_.written_limit);
    }

    const plan& asked_;
    const played_trace& trace_;
    memory_charge charge_;
    std::uint64_t all_cost_;
    bool agreed_ = true;
};

}  // namespace

int main(int argc, char** argv) {
    plan asked;
    CLI::App app{"Plays a trace through the proxy and through the replay tool."};
    app.add_option("trace", asked.trace, "a file; without one, a trace of its own");
    app.add_option("--requests", asked.requests, "that are played at most")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--scale", asked.scale, "sizes are divided by it")
        ->capture_default_str()
        ->check(CLI::PositiveNumber);
    app.add_option("--size", asked.sizes, "percent of what all objects cost")->delimiter(',');
    app.add_option("--policy", asked.policies, "of memory")->delimiter(',');
    app.add_option("--admission", asked.admissions, "always, second-hit, nth-hit:N")
        ->delimiter(',');
    app.add_option("--tiers", asked.tiers, "memory, disk, profile")
        ->delimiter(',')
        ->check(CLI::IsMember({"memory", "disk", "profile"}));
    app.add_option("--limit", asked.limit, "percent by which they may differ")
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);

    try {
        const auto trace = asked.trace.empty()
                               ? made_trace(static_cast<std::uint32_t>(asked.requests))
                               : read_trace(asked.trace, asked.requests, asked.scale);
        comparison both{asked, trace};
        for (const auto& tiers : asked.tiers) {
            for (const auto size : asked.sizes) {
                if (tiers == "profile") {
                    both.profile(size);
                    continue;
                }
                for (const auto& admission : asked.admissions) {
                    if (tiers == "disk") {
                        both.on_disk(size, admission, 0);
                        both.on_disk(size, admission, 0.25);
                        continue;
                    }
                    for (const auto& policy : asked.policies) {
                        both.in_memory(size, policy, admission);
                    }
                }
            }
        }
        return both.agreed() ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "replay_agreement: %s\n", error.what());
        return 2;
    }
}
