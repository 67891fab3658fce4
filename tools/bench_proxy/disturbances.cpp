#include "tools/bench_proxy/disturbances.hpp"

#include "tools/bench_proxy/load.hpp"
#include "tools/bench_proxy/wrong_passwords.hpp"

#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <unistd.h>

namespace reprise::bench {

namespace {

using nlohmann::json;

/// GETs of `path` with a number behind, by a forward proxy at `port`.
load_plan load_of(const lab& of, std::uint16_t port, std::string path) {
    load_plan out;
    out.port = port;
    out.request = [base = of.origin.base() + path, host = of.origin.authority()](std::uint64_t n) {
        return get_request(base + std::to_string(n), host);
    };
    return out;
}

void fill(const lab& of, const reprise_server& with, const std::string& path, std::size_t count) {
    auto load = load_of(of, with.port, path);
    load.connections = 32;
    load.count = count;
    if (run_load(load).wrong > 0) {
        throw std::runtime_error("wrong answers while a store was filled");
    }
}

/// A number that no earlier URL has.
std::string new_path(const std::string& beginning) {
    static unsigned count = 0;
    return beginning + std::to_string(++count) + "/";
}

/// A peer that is not there: what it takes to have one is all the same.
json absent_peer() {
    return {{{"name", "absent"}, {"url", "http://127.0.0.1:1"}}};
}

}  // namespace

double figure(const json& stats, const char* at) {
    return stats.at(json::json_pointer{at}).get<double>();
}

void scene::wait(double seconds) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>{seconds};
    while (!over.load() && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

disturbance quiet() {
    disturbance out;
    out.name = "quiet";
    return out;
}

disturbance disk_writes(const lab& of) {
    disturbance out;
    out.name = "disk writes";
    out.settings = {{"admission", "always"},
                    {"memory", {{"size", "64MiB"}}},
                    {"disk", disk_of_all_admitted(of.wanted.folder + "/written", "1GiB")}};
    out.meanwhile = [](const scene& now) {
        auto load = load_of(now.of, now.ours.port, new_path("/100000/written"));
        load.connections = 4;
        load.rate = 200;
        load.stop = &now.over;
        (void)run_load(load);
    };
    out.rises = "/disk/written_bytes";
    return out;
}

disturbance digest_published() {
    disturbance out;
    out.name = "digest published";
    out.settings = {{"admission", "always"},
                    {"memory", {{"size", "8GiB"}}},
                    {"peers", absent_peer()},
                    {"digest", {{"publish_after", "1s"}, {"publish_after_change", 0.0001}}}};
    out.prepare = [](const lab& all, const reprise_server& ours) {
        fill(all, ours, new_path("/1/listed"), all.wanted.listed);
    };
    out.meanwhile = [](const scene& now) {
        std::jthread changes{[&] {
            auto load = load_of(now.of, now.ours.port, new_path("/1/changed"));
            load.connections = 2;
            load.rate = 200;
            load.stop = &now.over;
            (void)run_load(load);
        }};
        while (!now.over) {  // as a sibling does, the whole of it
            const auto digest = exchange_once(now.ours.port, "GET", "/.well-known/reprise/digest");
            if (digest.status != 200) {
                throw std::runtime_error("no digest: " + std::to_string(digest.status));
            }
            now.wait(0.3);
        }
    };
    out.rises = "/digest/published";
    return out;
}

siblings::siblings(const lab& of, std::size_t listed) {
    json listeners = json::array();
    for (const auto port : ports_) {
        listeners.push_back({{"address", "127.0.0.1:" + std::to_string(port)}});
    }
    start_of_reprise start{.name = "siblings", .program = of.wanted.program};
    start.settings = {{"listeners", listeners},
                      {"admission", "always"},
                      {"peers", absent_peer()},
                      {"digest", {{"publish_after", "1s"}}}};
    start.where = processor::second;
    server_ = start_reprise(of, start);
    fill(of, *server_, "/1/of-siblings/", listed);
    std::this_thread::sleep_for(std::chrono::milliseconds{1500});
}

json siblings::as_peers() const {
    auto out = json::array();
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back({{"name", "sibling" + std::to_string(i)},
                       {"url", "http://127.0.0.1:" + std::to_string(ports_[i])},
                       {"refresh", "60s"}});
    }
    return out;
}

disturbance stats_read(const siblings& others) {
    disturbance out;
    out.name = "stats of 64 siblings";
    out.settings = {{"peers", others.as_peers()}, {"admission", "always"}};
    out.prepare = [](const lab& all, const reprise_server& ours) {
        fill(all, ours, "/1/of-siblings/", std::min<std::size_t>(all.wanted.listed, 10'000));
        for (int i = 0; i < 100; ++i) {
            const auto stats = ours.stats();
            std::size_t usable = 0;
            for (const auto& one : stats.at("siblings").at("usable")) {
                usable += one == 1 ? 1 : 0;
            }
            if (usable == siblings::count) {
                return;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{200});
        }
        throw std::runtime_error("the siblings' digests did not come");
    };
    out.meanwhile = [](const scene& now) {
        while (!now.over) {
            (void)now.ours.stats();
            now.wait(0.1);
        }
    };
    return out;
}

disturbance settings_reloaded() {
    disturbance out;
    out.name = "settings reloaded";
    auto rules = json::array();
    for (int i = 0; i < 1000; ++i) {
        rules.push_back(
            {{"url", "http://rule" + std::to_string(i) + ".example.org/*"}, {"policy", "always"}});
    }
    out.settings = {{"admission", {{"rules", rules}}}};
    out.meanwhile = [](const scene& now) {
        while (!now.over) {
            ::kill(now.ours.process.pid(), SIGHUP);
            now.wait(0.25);
        }
    };
    return out;
}

disturbance generation_cleared(const lab& of) {
    disturbance out;
    out.name = "generation cleared";
    out.settings = {{"admission", {{"remember", {{"objects", of.wanted.seen}}}}}};
    // Before a round the young generation is 99 % full, and the round's requests are three times the
    // rest; what they are more is in the next one when the next round begins.
    const auto generation = of.wanted.seen;
    const auto missing = generation / 100;
    const auto rate = std::max(500.0, 3.0 * static_cast<double>(missing) / of.wanted.tail_seconds);
    const auto asked = static_cast<std::size_t>(rate * of.wanted.tail_seconds);
    out.before_round = [generation, missing, asked, carried = std::size_t{hot_objects}](
                           const lab& all, const reprise_server& ours) mutable {
        fill(all, ours, new_path("/1/seen"), generation - missing - carried);
        carried = asked - std::min(asked, missing);
    };
    out.meanwhile = [rate](const scene& now) {
        auto load = load_of(now.of, now.ours.port, new_path("/1/spends"));
        load.connections = 4;
        load.rate = rate;
        load.stop = &now.over;
        (void)run_load(load);
    };
    out.rises = "/admission/filter/generations";
    return out;
}

disturbance purged_by_tag(const lab& of) {
    disturbance out;
    out.name = "purge by tag";
    out.settings = {{"admission", "always"},
                    {"peers", absent_peer()},
                    {"disk", disk_of_all_admitted(of.wanted.folder + "/purged", "1GiB")}};
    out.before_round = [](const lab& all, const reprise_server& ours) {
        fill(all, ours, "/1/tagged/", all.wanted.purged);
    };
    out.meanwhile = [](const scene& now) {
        now.wait(now.of.wanted.tail_seconds / 4);
        // 504: it holds, and the disk has other work for more than 5 s (serve/purge.hpp).
        now.ours.post(now.of, "/purge?tag=bench&origin=" + now.of.origin.base(), 504);
        auto load = load_of(now.of, now.ours.port, "/1/tagged/");
        load.connections = 4;
        load.rate = 500;
        load.stop = &now.over;
        (void)run_load(load);
    };
    out.rises = "/purges/by_kind/tag";
    return out;
}

disturbance memory_given_back() {
    disturbance out;
    out.name = "memory given back";
    out.settings = {{"admission", "always"}, {"memory", {{"size", "4GiB"}}}};
    out.before_round = [](const lab& all, reprise_server& ours) {
        ours.change({{"memory", {{"size", "4GiB"}}}});
        for (int i = 0; i < 500 && figure(ours.stats(), "/store/capacity_bytes") < 4e9; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
        }
        fill(all, ours, new_path("/10000/shrunk"), all.wanted.shrunk);
    };
    // Misses beside: hits take no memory.
    out.meanwhile = [](const scene& now) {
        std::jthread misses{[&] {
            auto load = load_of(now.of, now.ours.port, new_path("/1000/beside"));
            load.connections = 4;
            load.rate = 500;
            load.stop = &now.over;
            (void)run_load(load);
        }};
        now.wait(now.of.wanted.tail_seconds / 4);
        now.ours.change({{"memory", {{"size", "16MiB"}}}});
    };
    out.rises = "/store/evicted";
    return out;
}

disturbance wrong_passwords(const lab& of) {
    constexpr std::size_t clients = 32;
    disturbance out;
    out.name = "wrong passwords";
    const auto file = of.wanted.folder + "/users";
    std::ofstream{file} << user_line("ann", "right") << user_line("bob", "other");
    out.settings = {{"access", {{"users_file", file}}}};
    out.fields = login_field("ann", "right");
    const auto ask_as = [](const char* name) {
        return [name](const scene& now) {
            (void)try_passwords(
                now.ours.port, clients, now.of.origin.base() + "/1024/hot/0", name, now.over);
        };
    };
    out.meanwhile = ask_as("bob");
    out.instead = ask_as("");  // as many clients, which are refused without a look at a password
    out.rises = "/failures/user_unknown";
    out.beside_instead = 1.5;
    return out;
}

}  // namespace reprise::bench
