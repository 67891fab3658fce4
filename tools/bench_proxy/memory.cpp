#include "tools/bench_proxy/held_connections.hpp"
#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/parts.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

namespace reprise::bench {

namespace {

constexpr double mib = 1048576;

/// What the proxy says it uses: the heap, its program, and the arrays of its filters, which lie beside the
/// heap; nothing for its stacks and what its allocator keeps.
double said_to_be_used(const nlohmann::json& stats) {
    double out = 0;
    for (const auto* const figure : {"/process/heap_bytes",
                                     "/process/program_bytes",
                                     "/admission/filter/memory_bytes",
                                     "/digest/memory_bytes"}) {
        const nlohmann::json::json_pointer at{figure};
        if (stats.contains(at) && stats.at(at).is_number()) {
            out += stats.at(at).get<double>();
        }
    }
    return out;
}

class measuring {
public:
    explicit measuring(const lab& of) : of_{of} {}

    found_rows run() {
        idle("idle connection", false);
        idle("idle TLS connection", true);
        stored();
        return std::move(out_);
    }

private:
    [[nodiscard]] unsigned rounds() const { return of_.wanted.memory_rounds; }

    void idle(const std::string& name, bool tls) {
        if (!of_.wanted.wants("memory", name)) {
            return;
        }
        if (tls && of_.certificate.empty()) {
            out_.skipped.push_back(name + ": openssl is not installed");
            return;
        }
        row ours{.name = name, .unit = "bytes", .rounds = {}, .grain = 48};
        if (!tls) {
            ours.goal = 1536;
        }
        row nginx{.name = name + ": nginx", .unit = "bytes", .rounds = {}, .judged = false};
        row before{.name = name + ": before", .unit = "bytes", .rounds = {}, .judged = false};
        // A new process each time: what an earlier load left free would hide what these take.
        for (unsigned round = 0; round < rounds(); ++round) {
            const auto one = start_reprise(of_, {.program = of_.wanted.program});
            ours.rounds.push_back(bytes_per_idle_connection(of_, *one, tls, of_.wanted.idle));
            if (!of_.wanted.before.empty()) {
                const auto other = start_reprise(of_,
                                                 {.name = "before", .program = of_.wanted.before});
                before.rounds.push_back(
                    bytes_per_idle_connection(of_, *other, tls, of_.wanted.idle));
            }
        }
        if (of_.has_nginx) {
            const auto peer = start_nginx(of_);
            nginx.rounds.push_back(bytes_per_idle_connection(of_, *peer, tls, of_.wanted.idle));
        }
        if (tls && !nginx.rounds.empty()) {
            ours.goal = nginx.rounds.front();
        }
        add(std::move(ours));
        add(std::move(before));
        add(std::move(nginx));
        std::fprintf(stderr, "bench: %s\n", name.c_str());
    }

    void stored() {
        if (!of_.wanted.wants("memory", "stored object")) {
            return;
        }
        row each{.name = "stored object of 1 KiB: over its head and body",
                 .unit = "bytes",
                 .rounds = {},
                 .goal = 200,
                 .grain = 16};
        row charged{.name = "stored object of 1 KiB: charged",
                    .unit = "bytes",
                    .rounds = {},
                    .judged = false};
        row beside{.name = "stored object of 1 KiB: resident beside what /stats says is used",
                   .unit = "x",
                   .rounds = {},
                   .goal = 1.1,
                   .grain = 0.02};
        const auto count = static_cast<double>(of_.wanted.stored);
        for (unsigned round = 0; round < rounds(); ++round) {
            const auto one = start_reprise(
                of_,
                {.program = of_.wanted.program,
                 .settings = {{"admission", "always"}, {"memory", {{"size", "2GiB"}}}}});
            const auto ask = [&](const std::string& what, std::size_t many) {
                load_plan load;
                load.port = one->port;
                load.connections = 32;
                load.count = many;
                load.request = [&](std::uint64_t n) {
                    return get_request(of_.origin.base() + "/1024/" + what + std::to_string(n),
                                       of_.origin.authority());
                };
                (void)run_load(load);
            };
            ask("warm/", 1000);
            std::this_thread::sleep_for(std::chrono::milliseconds{300});
            const auto before = resident_bytes(one->process.pid());
            const auto had = one->stats().at("store");
            ask("stored/", of_.wanted.stored);
            std::this_thread::sleep_for(std::chrono::seconds{1});
            const auto stats = one->stats();
            const auto now = resident_bytes(one->process.pid());
            const auto entered = stats.at("store").at("objects").get<double>() -
                                 had.at("objects").get<double>();
            if (entered < 0.99 * count) {
                throw std::runtime_error("not all objects were stored");
            }
            each.rounds.push_back((now - before) / count - 1024 -
                                  static_cast<double>(origin::head_bytes(1024)));
            charged.rounds.push_back(
                (stats.at("store").at("bytes").get<double>() - had.at("bytes").get<double>()) /
                entered);
            beside.rounds.push_back(now / said_to_be_used(stats));
        }
        add(std::move(each));
        add(std::move(charged));
        add(std::move(beside));
        std::fprintf(stderr, "bench: stored object\n");
    }

    void add(row one) {
        if (!one.rounds.empty()) {
            out_.rows.push_back(std::move(one));
        }
    }

    const lab& of_;
    found_rows out_;
};

constexpr const char* peak_row = "left of a peak";

}  // namespace

found_rows measure_memory(const lab& of) {
    return measuring{of}.run();
}

struct peak::state {
    std::unique_ptr<reprise_server> subject;
    std::size_t connections = 0;
    unsigned wait = 0;
    double before = 0, at_most = 0;
    std::chrono::steady_clock::time_point ended;
};

peak::peak(const lab& of) {
    if (!of.wanted.wants("memory", peak_row)) {
        return;
    }
    state_ = std::make_unique<state>();
    state_->connections = of.wanted.half_heads;
    state_->wait = of.wanted.peak_wait;
    state_->subject = start_reprise(of, {.program = of.wanted.program});
    (void)bytes_per_idle_connection(of, *state_->subject, false, 1);  // warms up
    state_->before = resident_bytes(state_->subject->process.pid());
    state_->at_most = resident_with_half_heads(*state_->subject, of.wanted.half_heads);
    state_->ended = std::chrono::steady_clock::now();
}

peak::~peak() = default;

found_rows peak::measure() {
    found_rows out;
    if (state_ == nullptr) {
        return out;
    }
    std::this_thread::sleep_until(state_->ended + std::chrono::seconds{state_->wait});
    const auto now = resident_bytes(state_->subject->process.pid());
    const auto took = (state_->at_most - state_->before) / mib;
    out.rows.push_back({.name = "left of a peak of half heads: a minute later",
                        .unit = "MiB",
                        .rounds = {(now - state_->before) / mib},
                        .goal = took / 10,
                        .grain = 1});
    out.rows.push_back({.name = "left of a peak of half heads: what it took",
                        .unit = "MiB",
                        .rounds = {took},
                        .judged = false});
    std::fprintf(stderr, "bench: left of a peak\n");
    return out;
}

}  // namespace reprise::bench
