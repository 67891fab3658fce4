// For how long a loop is held while something else is to be done.
//
// The load and what is measured share two processors, so the latency of a hit says as much of the
// machine as of the proxy. What is the proxy's alone is the processor time that its loop's thread
// spends between two looks at its events: for so long every client of that loop waits, on any
// machine. Latencies are measured all the same, and set beside nginx's at the same rate in the same
// round.

#include "tools/bench_proxy/disturbances.hpp"
#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/loop_watch.hpp"
#include "tools/bench_proxy/parts.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace reprise::bench {

namespace {

using nlohmann::json;

constexpr std::size_t hit_connections = 50;

struct round_figures {
    double held_longest = 0, by_few = 0, held_p999 = 0, passed_longest = 0, waited_longest = 0;
    double events = 0;  ///< of the look that was followed by the longest
    double p50 = 0, p99 = 0, p999 = 0;
};

constexpr double ms(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e6;
}

class tail {
public:
    explicit tail(const lab& of) : of_{of} {}

    [[nodiscard]] bool is_wanted(const std::string& name) const {
        return of_.wanted.wants("tails", prefix(name));
    }

    void play(const disturbance& one) {
        if (!is_wanted(one.name)) {
            return;
        }
        static int count = 0;
        loop_watch watch{of_.wanted.folder + "/loops" + std::to_string(++count)};
        start_of_reprise start{.program = of_.wanted.program, .settings = one.settings};
        start.where = processor::any;
        start.loop_times = watch.file();
        const auto ours = start_reprise(of_, start);
        loop_watch beside{of_.wanted.folder + "/loops" + std::to_string(++count)};
        const auto nginx = of_.has_nginx ? start_nginx(of_, processor::any, beside.file())
                                         : nullptr;
        if (one.prepare) {
            one.prepare(of_, *ours);
        }
        for (int i = 0; i < 3; ++i) {
            (void)run_load(hits(*ours, 0, one.fields));
            if (nginx) {
                (void)run_load(hits(*nginx, 0));
            }
        }
        std::vector<round_figures> mine;
        std::vector<double> theirs, theirs_held, instead;
        for (unsigned round = 0; round < of_.wanted.tail_rounds; ++round) {
            if (one.before_round) {
                one.before_round(of_, *ours);
            }
            if (one.instead) {
                auto other = one;
                other.meanwhile = one.instead;
                instead.push_back(play_round(other, *ours, watch).p99);
            }
            mine.push_back(play_round(one, *ours, watch));
            if (nginx) {
                beside.begin_turn();
                theirs.push_back(run_load(hits(*nginx, of_.wanted.tail_rate)).latency(0.999));
                theirs_held.push_back(ms(beside.figures("")->held.longest()));
            }
        }
        tell(one.name, mine, theirs, theirs_held);
        if (one.instead) {
            row beside_row{.name = prefix(one.name) + ": latency p99 / without passwords",
                           .unit = "x",
                           .goal = one.beside_instead,
                           .grain = 0.3};
            for (std::size_t i = 0; i < mine.size(); ++i) {
                beside_row.rounds.push_back(mine[i].p99 / instead[i]);
            }
            out_.rows.push_back(std::move(beside_row));
        }
        std::fprintf(stderr, "bench: tail %s\n", one.name.c_str());
    }

    found_rows found() { return std::move(out_); }
    void skip(const std::string& what) { out_.skipped.push_back(what); }

private:
    static std::string prefix(const std::string& name) { return "tail " + name; }

    /// Asks for what is stored, at `rate`, or without one for each twice.
    [[nodiscard]] load_plan hits(const server& at,
                                 double rate,
                                 const std::string& fields = {}) const {
        load_plan out;
        out.port = at.port;
        out.connections = hit_connections;
        out.request = [this, &at, fields](std::uint64_t n) {
            auto request = get_request(at.url(of_, "/1024/hot/" + std::to_string(n % hot_objects)),
                                       of_.origin.authority());
            return request.insert(request.size() - 2, fields);
        };
        out.rate = rate;
        if (rate > 0) {
            out.seconds = of_.wanted.tail_seconds;
            out.goes_first = true;
        } else {
            out.count = 2 * hot_objects;
        }
        return out;
    }

    round_figures play_round(const disturbance& one, reprise_server& ours, loop_watch& watch) {
        const auto risen = one.rises.empty() ? 0 : figure(ours.stats(), one.rises.c_str());
        std::atomic<bool> over{false};
        std::exception_ptr failure;
        auto profile = begin_profile(one, ours);
        watch.begin_turn();
        load_outcome got;
        {
            std::jthread beside{[&] {
                try {
                    if (one.meanwhile) {
                        one.meanwhile({of_, ours, over});
                    }
                } catch (...) {
                    failure = std::current_exception();
                }
            }};
            try {
                got = run_load(hits(ours, of_.wanted.tail_rate, one.fields));
            } catch (...) {
                over = true;
                throw;
            }
            over = true;
        }
        const auto worker = watch.figures("worker");
        profile.stop();
        tell_longs(one, *worker);
        if (worker->waited.longest() >= loop_times::long_from) {
            for (const auto& place : longest_waits(worker->waits_at, of_.wanted.program, 3)) {
                out_.notes.push_back(prefix(one.name) + ": " + place);
            }
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
        if (got.wrong > 0) {
            throw std::runtime_error(one.name + ": wrong answers");
        }
        if (worker->held.count() == 0) {
            throw std::runtime_error(one.name + ": no loop was seen; is the library preloaded?");
        }
        if (!one.rises.empty()) {
            wait_until_risen(one, ours, risen);
        }
        return {.held_longest = ms(worker->held.longest()),
                .by_few = ms(worker->held_by_few.longest()),
                .held_p999 = ms(worker->held.quantile(0.999)),
                .passed_longest = ms(worker->passed.longest()),
                .waited_longest = ms(worker->waited.longest()),
                .events = static_cast<double>(worker->events_at_longest),
                .p50 = got.latency(0.5),
                .p99 = got.latency(0.99),
                .p999 = got.latency(0.999)};
    }

    /// perf at work on the server, where profiles are asked for.
    [[nodiscard]] child begin_profile(const disturbance& one, const server& ours) const {
        if (of_.wanted.profile.empty()) {
            return {};
        }
        auto out = child::of_program({.words = {"perf",
                                                "record",
                                                "-q",
                                                "-k",
                                                "CLOCK_MONOTONIC",
                                                "-F",
                                                "10000",
                                                "--call-graph",
                                                "dwarf,4096",
                                                "-p",
                                                std::to_string(ours.process.pid()),
                                                "-o",
                                                profile_of(one) + ".data"},
                                      .log = of_.log,
                                      .where = processor::second});
        std::this_thread::sleep_for(std::chrono::milliseconds{500});
        return out;
    }

    [[nodiscard]] std::string profile_of(const disturbance& one) const {
        auto name = one.name;
        std::replace(name.begin(), name.end(), ' ', '-');
        return of_.wanted.profile + "/" + name;
    }

    /// When a loop was held for long, for a look into the profile: thread, from, to (seconds, as
    /// perf prints them), milliseconds held, events of the look.
    void tell_longs(const disturbance& one, const loop_figures& worker) const {
        if (of_.wanted.profile.empty()) {
            return;
        }
        std::ofstream out{profile_of(one) + ".spans"};
        for (const auto& span : worker.longs) {
            std::array<char, 200> line{};
            std::snprintf(line.data(),
                          line.size(),
                          "%d %.6f %.6f %.3f %llu\n",
                          span.thread,
                          static_cast<double>(span.began) / 1e9,
                          static_cast<double>(span.ended) / 1e9,
                          ms(span.held),
                          static_cast<unsigned long long>(span.events));
            out << line.data();
        }
    }

    /// What was to happen meanwhile must have happened; some of it is counted a moment later.
    static void wait_until_risen(const disturbance& one, const reprise_server& ours, double from) {
        for (int i = 0; i < 20; ++i) {
            if (figure(ours.stats(), one.rises.c_str()) > from) {
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
        }
        throw std::runtime_error(one.name + ": it did not happen (" + one.rises + ")");
    }

    void tell(const std::string& name,
              const std::vector<round_figures>& mine,
              const std::vector<double>& theirs,
              const std::vector<double>& theirs_held) {
        const auto add = [&](const char* what,
                             double round_figures::*member,
                             std::optional<double> goal,
                             double grain,
                             bool judged,
                             const char* unit = "ms") {
            row next{.name = prefix(name) + ": " + what,
                     .unit = unit,
                     .goal = goal,
                     .grain = grain,
                     .judged = judged};
            for (const auto& one : mine) {
                next.rounds.push_back(one.*member);
            }
            out_.rows.push_back(std::move(next));
        };
        // An interrupt or the host's own affairs are charged to whoever runs: grains are wide.
        add("loop held longest", &round_figures::held_longest, 1.0, 0.3, true);
        add("loop held longest by at most 4 events", &round_figures::by_few, 1.0, 0.3, true);
        add("events before the longest", &round_figures::events, {}, 0, false, "events");
        add("loop held p99.9", &round_figures::held_p999, {}, 0.1, true);
        add("loop by the wall longest", &round_figures::passed_longest, {}, 0, false);
        add("longest wait for a lock", &round_figures::waited_longest, {}, 0, false);
        add("latency p50", &round_figures::p50, {}, 0, false);
        add("latency p99", &round_figures::p99, {}, 0, false);
        add("latency p99.9", &round_figures::p999, {}, 0, false);
        if (!theirs.empty()) {
            out_.rows.push_back({.name = prefix(name) + ": loop held longest: nginx",
                                 .unit = "ms",
                                 .rounds = theirs_held,
                                 .judged = false});
            row beside{.name = prefix(name) + ": latency p99.9 / nginx",
                       .unit = "x",
                       .goal = 2,
                       .grain = 0.5};
            for (std::size_t i = 0; i < mine.size(); ++i) {
                beside.rounds.push_back(mine[i].p999 / theirs[i]);
            }
            out_.rows.push_back(std::move(beside));
        }
    }

    const lab& of_;
    found_rows out_;
};

}  // namespace

found_rows measure_tails(const lab& of) {
    tail all{of};
    if (!of.has_nginx) {
        all.skip("tails beside nginx: it is not installed");
    }
    all.play(quiet());
    all.play(disk_writes(of));
    all.play(digest_published());
    if (all.is_wanted("stats of 64 siblings")) {
        const siblings others{of, std::min<std::size_t>(of.wanted.listed, 100'000)};
        all.play(stats_read(others));
    }
    all.play(settings_reloaded());
    all.play(generation_cleared(of));
    all.play(purged_by_tag(of));
    all.play(memory_given_back());
    all.play(wrong_passwords(of));
    return all.found();
}

}  // namespace reprise::bench
