// What the memory tier costs and what its stripes lose, for the figures in proxy/cache/README.md.
//
//     bench_store find                          ns a look-up, by policy and number of objects
//     bench_store stripes CAPACITY < TRACE      miss ratios under one policy for all and in stripes
//     bench_store what-if CAPACITY < TRACE      ns that the ghosts add to a request, what they say
//     bench_store auto CAPACITY < TRACE         misses of gdsf in memory alone: settings, and "auto"
//
// A trace is text, a line a request: timestamp,key,size (zstd -dc NAME.csv.zst). CAPACITY is in
// bytes of its sizes. One thread; compare what one run prints.

#include "filter/key_hash.hpp"
#include "proxy/cache/advisor.hpp"
#include "proxy/cache/memory/memory_tier.hpp"
#include "proxy/cache/plan.hpp"
#include "proxy/cache/policy/residents.hpp"
#include "proxy/cache/policy/what_if.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::cache;

namespace {

struct request {
    std::uint64_t key = 0, size = 0, seconds = 0;
};

const filter::hash_secret secret = filter::hash_secret::from_seed(filter::hash_seed{});

filter::key_hash hash_of_number(std::uint64_t number) {
    return filter::hash_of(std::to_string(number), secret);
}

std::vector<request> read_trace() {
    std::vector<request> all;
    unsigned long long when = 0;
    unsigned long long key = 0;
    unsigned long long size = 0;
    while (std::scanf("%llu,%llu,%llu", &when, &key, &size) == 3) {
        all.push_back({key, size, when});
    }
    return all;
}

template <class Work>
double nanoseconds_each(std::size_t times, Work work) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
    return took.count() / static_cast<double>(times);
}

stored_ptr small_response() {
    response_draft made;
    made.status = 200;
    made.head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n";
    index_head(made);
    made.content = std::make_shared<body>();
    return stored_response::make(made);
}

void bench_find() {
    for (const std::size_t objects : {10'000u, 300'000u}) {
        for (const auto& [name, kind] : config::eviction_names) {
            memory_tier store{{.capacity = 1u << 30, .policy = kind}};
            std::vector<std::string> urls;
            std::vector<filter::key_hash> keys;
            for (std::size_t i = 0; i < objects; ++i) {
                urls.push_back("http://origin.test/some/path/" + std::to_string(i));
                keys.push_back(filter::hash_of(urls.back(), secret));
                store.put(keys.back(), urls.back(), small_response());
            }
            std::mt19937_64 random{1};
            std::vector<std::size_t> order(1'000'000);
            for (auto& one : order) {
                one = random() % objects;
            }
            double best = 1e9;
            for (int round = 0; round < 3; ++round) {
                best = std::min(best, nanoseconds_each(order.size(), [&] {
                                    for (const auto at : order) {
                                        (void)store.find(keys[at], urls[at], {});
                                    }
                                }));
            }
            std::printf("%7zu objects  %-10s %6.1f ns\n",
                        objects,
                        std::string{to_string(kind)}.c_str(),
                        best);
        }
    }
}

// How a stripe is chosen that something must leave.
enum class choice { in_turn, most_objects };

struct misses {
    double requests = 0, bytes = 0;
};

misses play(const std::vector<request>& trace,
            eviction_kind kind,
            std::uint64_t capacity,
            std::size_t stripes,
            choice by) {
    struct entry : evictable {
        bool in = false;
    };
    std::uint64_t most = 0;
    for (const auto& one : trace) {
        most = std::max(most, one.key);
    }
    std::vector<entry> entries(most + 1);
    std::vector<std::unique_ptr<residents>> all;
    for (std::size_t i = 0; i < stripes; ++i) {
        all.push_back(std::make_unique<residents>(kind, capacity / stripes, 0.0));
    }
    std::uint64_t used = 0;
    std::uint64_t asked_bytes = 0;
    misses counted;
    std::size_t turn = 0;
    for (const auto& [key, size, seconds] : trace) {
        auto& wanted = entries[key];
        asked_bytes += size;
        if (wanted.key == filter::key_hash{}) {
            wanted.key = hash_of_number(key);
        }
        auto& home = *all[wanted.key.high % stripes];
        if (wanted.in) {
            (void)home.use(wanted);
            continue;
        }
        ++counted.requests;
        counted.bytes += static_cast<double>(size);
        home.missed(wanted.key);
        if (size > capacity) {
            continue;
        }
        wanted.charge = size;
        wanted.in = true;
        home.enter(wanted, standing::admitted);
        used += size;
        while (used > capacity) {
            auto at = turn++ % stripes;
            if (by == choice::most_objects) {
                for (std::size_t i = 1; i < stripes; ++i) {
                    const auto other = (turn + i) % stripes;
                    at = all[other]->count() > all[at]->count() ? other : at;
                }
                all[at]->set_capacity(all[at]->bytes());
            }
            if (auto* gone = static_cast<entry*>(all[at]->evict())) {
                gone->in = false;
                used -= gone->charge;
            }
        }
    }
    counted.requests /= static_cast<double>(trace.size());
    counted.bytes /= static_cast<double>(asked_bytes);
    return counted;
}

void bench_stripes(std::uint64_t capacity) {
    const auto trace = read_trace();
    std::printf("request and byte miss ratios\n%-10s %15s %15s %15s %15s\n",
                "",
                "1",
                "16, fullest",
                "64, fullest",
                "64, in turn");
    for (const auto& [name, kind] : config::eviction_names) {
        std::printf("%-10s", std::string{to_string(kind)}.c_str());
        struct arrangement {
            std::size_t stripes;
            choice by;
        };
        for (const auto& [stripes, by] : {arrangement{1, choice::in_turn},
                                          arrangement{16, choice::most_objects},
                                          arrangement{64, choice::most_objects},
                                          arrangement{64, choice::in_turn}}) {
            const auto counted = play(trace, kind, capacity, stripes, by);
            std::printf("   %.4f/%.4f", counted.requests, counted.bytes);
            std::fflush(stdout);
        }
        std::printf("\n");
    }
}

void bench_what_if(std::uint64_t capacity) {
    const auto trace = read_trace();
    std::vector<filter::key_hash> keys;
    for (const auto& one : trace) {
        keys.push_back(hash_of_number(one.key));
    }
    const steady_time start{std::chrono::hours{1}};
    // So thin that all of it is in the sample, and so fast that what is sampled is bounded by its pace:
    // 20,000 requests a second are two thirds of what hits leave a processor for.
    for (const std::uint64_t microseconds : {3'000, 50, 20}) {
        // The dearest: each ghost but four has a heap.
        what_if ghosts{{.capacity = capacity, .policy = eviction_kind::gdsf, .exponent = 0.3},
                       start};
        const auto each = nanoseconds_each(trace.size(), [&] {
            for (std::size_t i = 0; i < trace.size(); ++i) {
                ghosts.note(
                    keys[i], trace[i].size, start + std::chrono::microseconds{i * microseconds});
            }
        });
        const auto told = ghosts.report(start +
                                        std::chrono::microseconds{trace.size() * microseconds});
        std::printf("%.0f requests a second: %.1f ns a request, at the end 1/%.0f of the keys, %zu "
                    "held, %.1f MB\n",
                    1e6 / static_cast<double>(microseconds),
                    each,
                    1 / told.sample,
                    static_cast<std::size_t>(told.keys),
                    static_cast<double>(told.memory_bytes) / 1e6);
        for (const auto& row : told.rows) {
            std::printf("  %-30s%s hits %.4f, of bytes %.4f, written %.3g\n",
                        row.name.c_str(),
                        row.in_force ? " *" : "  ",
                        row.hit_ratio,
                        row.byte_hit_ratio,
                        static_cast<double>(row.written_bytes));
        }
        std::printf("  %s\n", told.text.c_str());
    }
}

// Gate, residents under gdsf and advisor, as the proxy joins them, in the trace's own time.
struct one_store {
    struct entry : evictable {};

    one_store(const config::options& with, double size_counts, std::uint64_t began)
        : options{with},
          requests{sketch_for(options)},
          gate{options, wall_time{std::chrono::seconds{began}}, &secret, requests},
          advice{options, steady_time{std::chrono::seconds{began}}},
          held{make_policy(eviction_kind::gdsf,
                           options.memory.size,
                           {.exponent = size_counts, .frequencies = requests.get()}),
               options.memory.size,
               gate.probation()} {}

    bool ask(const filter::key_hash& key, const request& wanted) {
        const steady_time now{std::chrono::seconds{wanted.seconds}};
        const wall_time wall{std::chrono::seconds{wanted.seconds}};
        if (wanted.seconds >= second + 30) {  // the proxy does so every second
            second = wanted.seconds;
            gate.housekeep(std::nullopt, wall);
            if (const auto next = advice.housekeep(gate, now)) {
                held.set_probation(next->probation);
                held.set_exponent(next->exponent);
                std::printf("    at %llu s: %s\n",
                            static_cast<unsigned long long>(wanted.seconds),
                            advice.report(now).automatic.c_str());
            }
        }
        gate.count_request(key);
        advice.note(key, wanted.size, now);
        if (const auto found = entries.find(wanted.key); found != entries.end()) {
            gate.hit(key, wall);
            held.use(found->second);
            return true;
        }
        held.missed(key);
        const auto ruling = gate.note(key, {options.admission.choice}, wall);
        if (wanted.size <= options.memory.largest() && (ruling.admitted || ruling.may_wait)) {
            auto& fresh = entries[wanted.key];
            fresh.key = key;
            fresh.charge = wanted.size;
            numbers[key] = wanted.key;
            held.enter(fresh,
                       ruling.admitted ? standing::admitted : standing::probation,
                       ruling.uses_to_admit);
            while (held.bytes() > options.memory.size) {
                const auto* gone = held.evict();
                if (residents::standing_of(*gone) == standing::admitted) {
                    gate.evicted(gone->key);
                }
                entries.erase(numbers.extract(gone->key).mapped());
            }
        }
        return false;
    }

    config::options options;
    std::shared_ptr<frequency_sketch> requests;
    admission_gate gate;
    advisor advice;
    residents held;
    std::unordered_map<std::uint64_t, entry> entries;
    std::unordered_map<filter::key_hash, std::uint64_t> numbers;
    std::uint64_t second = 0;
};

void bench_auto(std::uint64_t capacity) {
    using enum config::admission_policy;
    const auto trace = read_trace();
    if (trace.empty()) {
        return;
    }
    std::vector<filter::key_hash> keys;
    for (const auto& one : trace) {
        keys.push_back(hash_of_number(one.key));
    }
    const auto play = [&](config::admission_policy policy, double probation, double exponent) {
        config::options options;
        options.memory.size = capacity;
        options.memory.policy = eviction_kind::gdsf;
        options.admission.choice = {policy, 2};
        options.admission.probation = probation;
        one_store store{options, exponent, trace.front().seconds};
        std::uint64_t missed = 0, missed_late = 0;
        for (std::size_t i = 0; i < trace.size(); ++i) {
            const bool hit = store.ask(keys[i], trace[i]);
            missed += hit ? 0 : 1;
            missed_late += hit || i < trace.size() / 2 ? 0 : 1;
        }
        const auto all = static_cast<double>(trace.size());
        std::printf("%-10s probation %3.0f%%, exponent %-4g misses %.4f, of the second half %.4f\n",
                    policy == always       ? "always"
                    : policy == tinylfu    ? "tinylfu"
                    : policy == second_hit ? "second-hit"
                                           : "auto",
                    probation * 100,
                    exponent,
                    static_cast<double>(missed) / all,
                    2 * static_cast<double>(missed_late) / all);
        std::fflush(stdout);
    };
    play(automatic, 1, 1);
    for (const double exponent : what_if::ladder) {
        play(always, 0, exponent);
        play(tinylfu, 0, exponent);
        for (const double probation : {0.0, 0.02, 0.1}) {
            play(second_hit, probation, exponent);
        }
    }
}

}  // namespace

int main(int count, char** words) {
    const std::string_view what = count > 1 ? words[1] : "";
    const auto capacity = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
    if (what == "find" && count == 2) {
        bench_find();
    } else if (what == "stripes" && capacity > 0) {
        bench_stripes(capacity);
    } else if (what == "what-if" && capacity > 0) {
        bench_what_if(capacity);
    } else if (what == "auto" && capacity > 0) {
        bench_auto(capacity);
    } else {
        std::cerr
            << "usage: bench_store find | stripes CAPACITY | what-if CAPACITY | auto CAPACITY\n";
        return 2;
    }
    return 0;
}
