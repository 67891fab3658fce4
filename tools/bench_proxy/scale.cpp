// What a second thread costs: processor time a request with two threads beside one, and beside two
// processes of one thread each, which share nothing; and the locks that were waited for.
//
// Here the load has no processor of its own, so that two threads may run at once. Two processes are
// the fairer measure of what is shared, since they are as busy as two threads: one thread that is
// alone is busier, and a busier loop finds more to do at each look.

#include "tools/bench_proxy/loop_watch.hpp"
#include "tools/bench_proxy/parts.hpp"
#include "tools/bench_proxy/wrk.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace reprise::bench {

namespace {

struct work {
    const char* name;
    asking what;
};
constexpr std::array<work, 3> works{
    {{"hits", asking::turn}, {"misses", asking::fresh}, {"mixed", asking::mixed}}};

wrk_plan scale_load(asking what, unsigned seconds) {
    static unsigned count = 0;
    wrk_plan out;
    out.what = what;
    out.seconds = seconds;
    out.threads = 2;
    out.where = processor::any;
    out.tag = std::to_string(::getpid()) + "-scale" + std::to_string(++count);
    return out;
}

std::unique_ptr<reprise_server> start(const lab& of, int threads, const std::string& times = {}) {
    start_of_reprise how{.program = of.wanted.program, .settings = {{"threads", threads}}};
    how.where = processor::any;
    how.loop_times = times;
    return start_reprise(of, how);
}

double cost_of_one(const lab& of, const server& at, const work& kind) {
    return run_wrk(of, at, scale_load(kind.what, of.wanted.seconds)).processor_us;
}

double cost_of_two(const lab& of, const server& one, const server& other, const work& kind) {
    auto load = scale_load(kind.what, of.wanted.seconds);
    load.threads = 1;
    load.connections /= 2;
    wrk_run first{of, one, load};
    wrk_run second{of, other, load};
    const auto a = first.end();
    const auto b = second.end();
    return (a.processor_us * a.requests + b.processor_us * b.requests) / (a.requests + b.requests);
}

class scaling {
public:
    explicit scaling(const lab& of) : of_{of} {}

    found_rows run() {
        if (!of_.has_wrk) {
            out_.skipped.push_back("scale: wrk is not installed");
            return std::move(out_);
        }
        if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) {
            out_.skipped.push_back("scale: there is one processor");
            return std::move(out_);
        }
        costs();
        locks();
        return std::move(out_);
    }

private:
    [[nodiscard]] static std::string name_of(const work& kind) {
        return std::string{"scale "} + kind.name;
    }

    void costs() {
        std::vector<work> wanted;
        for (const auto& kind : works) {
            if (of_.wanted.wants("scale", name_of(kind))) {
                wanted.push_back(kind);
            }
        }
        if (wanted.empty()) {
            return;
        }
        const auto single = start(of_, 1);
        const auto both = start(of_, 2);
        const auto left = start(of_, 1);
        const auto right = start(of_, 1);
        for (const auto& kind : wanted) {
            row beside_one{
                .name = name_of(kind) + ": two threads / one", .unit = "x", .goal = 1.05};
            row beside_two{.name = name_of(kind) + ": two threads / two processes", .unit = "x"};
            for (unsigned round = 0; round <= of_.wanted.scale_rounds;
                 ++round) {  // the first warms up
                std::array<double, 3> cost{};
                for (std::size_t i = 0; i < 3; ++i) {
                    const auto which = round % 2 == 0 ? i : 2 - i;
                    cost[which] = which == 0   ? cost_of_one(of_, *single, kind)
                                  : which == 1 ? cost_of_one(of_, *both, kind)
                                               : cost_of_two(of_, *left, *right, kind);
                }
                if (round > 0) {
                    beside_one.rounds.push_back(cost[1] / cost[0]);
                    beside_two.rounds.push_back(cost[1] / cost[2]);
                }
            }
            out_.rows.push_back(std::move(beside_one));
            out_.rows.push_back(std::move(beside_two));
            std::fprintf(stderr, "bench: scale %s\n", kind.name);
        }
    }

    /// Counted in runs of their own, since counting costs too.
    void locks() {
        if (!of_.wanted.wants("scale", "scale locks")) {
            return;
        }
        loop_watch watch{of_.wanted.folder + "/locks"};
        const auto both = start(of_, 2, watch.file());
        for (const auto& kind : works) {
            (void)run_wrk(of_, *both, scale_load(kind.what, 1));
            row taken{.name = std::string{"scale locks, "} + kind.name + ": taken a request",
                      .unit = "locks",
                      .judged = false};
            row waits{.name = std::string{"scale locks, "} + kind.name +
                              ": waits in a million requests",
                      .unit = "waits",
                      .judged = false};
            row spans{.name = std::string{"scale locks, "} + kind.name + ": waited a request",
                      .unit = "ns",
                      .judged = false};
            std::map<std::uint64_t, loop_figures::waits> places;
            for (unsigned round = 0; round < of_.wanted.lock_rounds; ++round) {
                watch.begin_turn();
                const auto got = run_wrk(of_, *both, scale_load(kind.what, of_.wanted.seconds));
                const auto all = watch.figures("");
                taken.rounds.push_back(static_cast<double>(all->locks) / got.requests);
                waits.rounds.push_back(static_cast<double>(all->waited.count()) * 1e6 /
                                       got.requests);
                spans.rounds.push_back(static_cast<double>(all->waited.sum()) / got.requests);
                for (const auto& [place, seen] : all->waits_at) {
                    places[place].count += seen.count;
                    places[place].longest = std::max(places[place].longest, seen.longest);
                }
            }
            tell_places(kind, places);
            out_.rows.push_back(std::move(taken));
            out_.rows.push_back(std::move(waits));
            out_.rows.push_back(std::move(spans));
        }
        std::fprintf(stderr, "bench: scale locks\n");
    }

    void tell_places(const work& kind, const std::map<std::uint64_t, loop_figures::waits>& places) {
        for (const auto& place : longest_waits(places, of_.wanted.program, 4)) {
            out_.notes.push_back("scale locks, " + std::string{kind.name} + ": " + place);
        }
    }

    const lab& of_;
    found_rows out_;
};

}  // namespace

found_rows measure_scale(const lab& of) {
    return scaling{of}.run();
}

}  // namespace reprise::bench
