// bench_siblings: what 16 siblings cost one node under load, thread by thread.
//
//     bench_siblings                              10,000 requests a second, three rounds
//     bench_siblings --perf FILE                  perf record of the node with siblings and news
//     bench_siblings --no-share                   digests alone, without what was seen
//
// One node with one worker is asked at a fixed rate for what it has, and for new URLs; each sibling
// stores some objects a second, so that all have news for it all the time, and each keeps its
// requests for the node's news open. Beside it, in turns, the same node whose siblings' and own news are
// off, and the same without peers. Processor time is the kernel's of each thread (schedstat), in
// milliseconds a second; `worker` holds clients, origins, and what is asked and answered between siblings.

#include "tests/soak/paced_clients.hpp"
#include "tests/support/proxy_process.hpp"
#include "tests/support/sized_origin.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace reprise::tests::bench_siblings {

namespace {

using steady_clock = std::chrono::steady_clock;

struct cost_plan {
    unsigned siblings = 16;
    unsigned rounds = 3;
    double rate = 10'000;
    double seconds = 15;
    double new_share = 0.25;  // share of requests that are for new URLs
    double again = 0.05;      // and for such as were asked for once
    double sibling_rate = 5;
    std::string admission = "second-hit";
    bool share = true;  // what was seen, in a digest of its own
    std::string perf;
};

enum class with { nobody, digests, news };
constexpr std::uint64_t body_size = 1000;
constexpr std::uint32_t known_urls = 2000;
constexpr double warm_seconds = 3, tail_seconds = 0.5;

/// Processor time of a program's threads so far, in nanoseconds, by their names.
std::map<std::string, std::uint64_t> thread_times(pid_t program) {
    std::map<std::string, std::uint64_t> out;
    const std::filesystem::path tasks{"/proc/" + std::to_string(program) + "/task"};
    for (const auto& task : std::filesystem::directory_iterator{tasks}) {
        std::string name;
        std::uint64_t ran = 0;
        std::ifstream comm{task.path() / "comm"}, schedstat{task.path() / "schedstat"};
        std::getline(comm, name);
        schedstat >> ran;
        out[name] += ran;
    }
    return out;
}

std::int64_t sum_at(const json& stats, const char* place) {
    const json::json_pointer at{place};
    std::int64_t sum = 0;
    if (!stats.contains(at)) {
        return 0;
    }
    const std::function<void(const json&)> add = [&](const json& one) {
        if (one.is_number()) {
            sum += one.get<std::int64_t>();
        } else if (one.is_structured()) {
            for (const auto& each : one) {
                add(each);
            }
        }
    };
    add(stats.at(at));
    return sum;
}

struct cost {
    std::map<std::string, double> threads;  // ms a second
    double all = 0;
    double answers = 0, late_ms = 0, hits = 0;
    double bytes_a_minute = 0, icp_bytes_a_minute = 0, resident_mib = 0;
    double told = 0, heard = 0;  // answers with a digest or news, or none, a second
    std::uint64_t wrong = 0;
};

class lab {
public:
    lab(const cost_plan& of, with what) : plan_{of}, what_{what} {
        files_.write("secret", std::string(64, 's'));
        node_ = start("node", of.admission);
        if (what_ == with::nobody) {
            return;
        }
        auto peers = json::array();
        for (unsigned i = 0; i < of.siblings; ++i) {
            siblings_.push_back(start("sibling-" + std::to_string(i), "always"));
            peers.push_back(peer("sibling-" + std::to_string(i), siblings_.back()->port()));
        }
        // Siblings know each other, too: how often one tells goes by how many follow it.
        for (std::size_t i = 0; i < siblings_.size(); ++i) {
            auto others = peers;
            others[i] = peer("node", node_->port());
            tell(*siblings_[i], others);
        }
        tell(*node_, peers);
        const bool met = eventually(
            [&] { return sum_at(node_->stats(), "/siblings/usable") == of.siblings; },
            6 * patience);
        if (!met) {
            throw std::runtime_error{"the siblings do not come to know each other"};
        }
    }

    cost measure(const std::string& perf) {
        cost out;
        paced_clients clients;
        clients.ports.push_back(node_->port());
        for (const auto& one : siblings_) {
            clients.ports.push_back(one->port());
        }
        clients.url = [&](std::uint32_t number) { return origin_.url(number, body_size); };
        clients.is_body = [](std::uint32_t, std::string_view body) {
            return body.size() == body_size;
        };
        clients.patience = 3 * patience;
        std::vector<planned_request> fill;
        for (std::uint32_t i = 0; i < 2 * known_urls; ++i) {
            fill.push_back({std::chrono::microseconds{i * 500}, 0, i % known_urls});
        }
        (void)clients.ask(fill);
        const auto all = timetable();
        std::vector<asked_request> became;
        std::jthread asks{[&] { became = clients.ask(all); }};
        std::this_thread::sleep_for(std::chrono::duration<double>{warm_seconds});
        const auto stats = node_->stats();
        const auto before = thread_times(node_->pid());
        const auto begun = steady_clock::now();
        if (!perf.empty()) {
            (void)run_to_its_end({"perf",
                                  "record",
                                  "-q",
                                  "-e",
                                  "cpu-clock",
                                  "-F",
                                  "3999",
                                  "-o",
                                  perf,
                                  "-p",
                                  std::to_string(node_->pid()),
                                  "--",
                                  "sleep",
                                  std::to_string(plan_.seconds)},
                                 std::chrono::milliseconds{120'000});
        } else {
            std::this_thread::sleep_for(std::chrono::duration<double>{plan_.seconds});
        }
        const auto after = thread_times(node_->pid());
        const auto then = node_->stats();
        const double took = std::chrono::duration<double>(steady_clock::now() - begun).count();
        asks.join();
        for (const auto& [name, ran] : after) {
            const auto earlier = before.find(name);
            const auto ns = ran - (earlier == before.end() ? 0 : earlier->second);
            out.threads[name] = static_cast<double>(ns) / 1e6 / took;
            out.all += out.threads[name];
        }
        const auto grown = [&](const char* place) {
            return static_cast<double>(sum_at(then, place) - sum_at(stats, place)) / took;
        };
        out.bytes_a_minute = 60 * (grown("/digest/served_bytes") + grown("/siblings/digest_bytes") +
                                   grown("/siblings/seen_news_bytes"));
        out.told = grown("/digest/served");
        out.heard = grown("/siblings/digest_answers");
        out.icp_bytes_a_minute = 60 * grown("/peering/icp_bytes");
        out.resident_mib = static_cast<double>(node_->resident_bytes()) / (1u << 20);
        std::vector<double> late;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i].node == 0) {
                out.wrong += became[i].what != asking_outcome::right ? 1 : 0;
                out.hits += became[i].own_hit ? 1 : 0;
                out.answers += 1;
                late.push_back(
                    std::chrono::duration<double, std::milli>(became[i].begun - became[i].due)
                        .count());
            }
        }
        out.hits /= out.answers;
        out.answers /= warm_seconds + plan_.seconds + tail_seconds;
        std::sort(late.begin(), late.end());
        out.late_ms = late[late.size() * 99 / 100];
        return out;
    }

private:
    std::unique_ptr<proxy_process> start(const std::string& name, const std::string& admission) {
        auto made = basic_settings();
        made["threads"] = 1;
        made["admission"] = {{"policy", admission}, {"share", plan_.share}};
        made["memory"] = {{"size", name == "node" ? "256MiB" : "16MiB"}};
        made["log"] = {{"access", "off"}, {"level", "error"}};
        if (what_ != with::nobody) {
            made["forwarding"] = {{"pseudonym", name}};
            made["digest"] = {{"secret_file", files_.file("secret")}};
            made["peering"] = {{"news", what_ == with::news ? "200ms" : "0s"}};
            made["peers"] = json::array({{{"name", "nobody"}, {"url", "http://127.0.0.1:1"}}});
        }
        auto out = std::make_unique<proxy_process>(made);
        known_[out.get()] = made;
        return out;
    }
    static json peer(const std::string& name, std::uint16_t port) {
        return {{"name", name}, {"url", "http://127.0.0.1:" + std::to_string(port)}};
    }
    void tell(proxy_process& one, const json& peers) {
        auto made = known_.at(&one);
        made["peers"] = peers;
        one.rewrite_settings(made);
        one.signal(SIGHUP);
    }

    std::vector<planned_request> timetable() const {
        std::vector<planned_request> out;
        std::mt19937_64 random{1};
        std::uint32_t next = 1'000'000;
        const double seconds = warm_seconds + plan_.seconds + tail_seconds;
        const auto at = [](double second) {
            return std::chrono::microseconds{static_cast<std::int64_t>(second * 1e6)};
        };
        for (double now = 0; now < seconds; now += 1 / plan_.rate) {
            const auto share = static_cast<double>(random() % 1'000'000) / 1e6;
            if (share < plan_.new_share) {
                out.push_back({at(now), 0, next++});
            } else if (share < plan_.new_share + plan_.again && next > 1'010'000) {
                // One of some seconds ago.
                out.push_back(
                    {at(now), 0, next - 2000 - static_cast<std::uint32_t>(random() % 8000)});
            } else {
                out.push_back({at(now), 0, static_cast<std::uint32_t>(random() % known_urls)});
            }
        }
        std::uint32_t theirs = 100'000'000;
        for (unsigned i = 0; i < siblings_.size(); ++i) {
            for (double now = 0.01 * i; now < seconds; now += 1 / plan_.sibling_rate) {
                out.push_back({at(now), i + 1, theirs++});
            }
        }
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
        return out;
    }

    const cost_plan& plan_;
    const with what_;
    temp_dir files_;
    sized_origin origin_;
    std::map<const proxy_process*, json> known_;
    std::unique_ptr<proxy_process> node_;
    std::vector<std::unique_ptr<proxy_process>> siblings_;
};

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of.empty() ? 0 : of[of.size() / 2];
}

}  // namespace

int run(int argc, char** argv) {
    cost_plan of;
    CLI::App app{"What siblings cost one node under load, thread by thread."};
    app.add_option("--siblings", of.siblings)->check(CLI::Range(1, 64))->capture_default_str();
    app.add_option("--rounds", of.rounds)->check(CLI::Range(1, 100))->capture_default_str();
    app.add_option("--rate", of.rate, "requests a second")->capture_default_str();
    app.add_option("--seconds", of.seconds, "measured in each round")->capture_default_str();
    app.add_option("--new", of.new_share, "share of requests for new URLs")->capture_default_str();
    app.add_option("--again", of.again, "share for such as were asked for once")
        ->capture_default_str();
    app.add_option("--sibling-rate", of.sibling_rate, "objects a second that each sibling stores")
        ->capture_default_str();
    app.add_option("--admission", of.admission, "of the node")
        ->check(CLI::IsMember({"always", "second-hit"}))
        ->capture_default_str();
    app.add_flag("--share,!--no-share", of.share, "admission.share, of all nodes")
        ->capture_default_str();
    app.add_option("--perf", of.perf, "one round with news alone, recorded to this file");
    CLI11_PARSE(app, argc, argv);
    try {
        const std::vector<std::pair<const char*, with>> kinds{
            {"no peers", with::nobody}, {"news 0", with::digests}, {"news 200 ms", with::news}};
        std::map<with, std::vector<cost>> all;
        for (unsigned round = 0; round < (of.perf.empty() ? of.rounds : 1); ++round) {
            for (const auto& [name, kind] : kinds) {
                if (of.perf.empty() || kind == with::news) {
                    all[kind].push_back(lab{of, kind}.measure(of.perf));
                }
            }
        }
        std::printf("| %u siblings, %g requests/s, %g %% new, admission %s, median of %zu rounds |",
                    of.siblings,
                    of.rate,
                    100 * of.new_share,
                    of.admission.c_str(),
                    all.begin()->second.size());
        std::vector<std::string> threads;
        for (const auto& [name, kind] : kinds) {
            if (all.contains(kind)) {
                std::printf(" %s |", name);
                for (const auto& [thread, ms] : all[kind].front().threads) {
                    if (ms >= 0.05 &&
                        std::find(threads.begin(), threads.end(), thread) == threads.end()) {
                        threads.push_back(thread);
                    }
                }
            }
        }
        std::printf("\n|---|");
        for (std::size_t i = 0; i < all.size(); ++i) {
            std::printf("---:|");
        }
        std::printf("\n");
        std::uint64_t wrong = 0;
        const auto row = [&](const std::string& name, auto&& value) {
            std::printf("| %s |", name.c_str());
            for (const auto& [kind, rounds] : all) {
                std::vector<double> values;
                for (const auto& one : rounds) {
                    values.push_back(value(one));
                }
                std::printf(" %.4g |", median(values));
            }
            std::printf("\n");
        };
        for (const auto& thread : threads) {
            row("thread `" + thread + "`, ms of CPU a second", [&](const cost& one) {
                const auto found = one.threads.find(thread);
                return found == one.threads.end() ? 0 : found->second;
            });
        }
        row("all threads", [](const cost& one) { return one.all; });
        row("answers a second", [](const cost& one) { return one.answers; });
        row("hits, share", [](const cost& one) { return one.hits; });
        row("went out late: 99 % ms", [](const cost& one) { return one.late_ms; });
        row("digests and sights, both ways: MB a minute",
            [](const cost& one) { return one.bytes_a_minute / 1e6; });
        row("siblings told, times a second", [](const cost& one) { return one.told; });
        row("digests heard, times a second", [](const cost& one) { return one.heard; });
        row("ICP: MB a minute", [](const cost& one) { return one.icp_bytes_a_minute / 1e6; });
        row("resident MiB", [](const cost& one) { return one.resident_mib; });
        row("not right", [&](const cost& one) {
            wrong += one.wrong;
            return static_cast<double>(one.wrong);
        });
        return wrong == 0 ? 0 : 1;
    } catch (const std::exception& what) {
        std::fprintf(stderr, "bench_siblings: %s\n", what.what());
        return 1;
    }
}

}  // namespace reprise::tests::bench_siblings
