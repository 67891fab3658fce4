// What the admission filter costs: nanoseconds for hashing a URL, for asking and noting, in and out
// of cache, beside the bits a key takes and the rate it really errs with.
//
//     bench_admission_filter            10^4 to 10^7 objects
//     bench_admission_filter 1000000    so many
//
// Each time is the best of five runs of at least a million operations on one thread. Keys are made
// beforehand, so that no time but the filter's own is in the figure. Out of cache a filter waits
// for memory; the out-of-order window overlaps a few such waits, as it does in the proxy only when
// one thread answers requests back to back.

#include "filter/admission.hpp"
#include "filter/bloom.hpp"
#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace {

namespace filter = reprise::filter;
using filter::key_hash;

constexpr std::chrono::sys_seconds now{std::chrono::seconds{1'700'000'000}};
constexpr int runs = 5;

std::vector<key_hash> random_keys(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random{seed};
    std::vector<key_hash> keys(count);
    for (auto& key : keys) {
        key = {.low = random(), .high = random()};
    }
    return keys;
}

/// Keeps the optimiser from dropping what was computed for nothing else.
volatile std::uint64_t sunk = 0;

template <class Operation>
double best_ns(std::size_t count, Operation operation) {
    double best = 1e300;
    for (int run = 0; run < runs; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < count; ++i) {
            sum += operation(i);
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() -
                                                              begin;
        sunk = sunk + sum;
        best = std::min(best, took.count() / static_cast<double>(count));
    }
    return best;
}

void bench_hash() {
    const filter::hash_seed seed{};
    const auto secret = filter::hash_secret::from_seed(seed);
    std::printf("hash_of, ns by length:");
    for (const std::size_t length : {16, 40, 80, 120, 200, 400, 1000}) {
        std::string text(length, 'x');
        const auto ns = best_ns(1'000'000, [&](std::size_t i) {
            text[i % length] = static_cast<char>(i);
            return filter::hash_of(text, secret).low;
        });
        std::printf("  %zu: %.1f", length, ns);
    }
    std::printf("\n\n");
}

void bench_filters(std::uint64_t objects) {
    const filter::admission_settings settings{.objects = objects};
    const auto operations = static_cast<std::size_t>(std::max<std::uint64_t>(objects, 1'000'000));
    const auto known = random_keys(1, static_cast<std::size_t>(2 * objects));
    const auto strangers = random_keys(2, operations);
    const auto at = [&](std::size_t i) { return known[i % known.size()]; };

    filter::blocked_bloom bloom{filter::admission_blocks(settings)};
    for (std::size_t i = 0; i < objects; ++i) {
        bloom.insert(known[i]);
    }
    const auto bloom_known = best_ns(
        operations, [&](std::size_t i) { return bloom.may_contain(known[i % objects]); });
    std::uint64_t wrong = 0;
    for (const auto key : strangers) {
        wrong += bloom.may_contain(key) ? 1 : 0;
    }
    const auto bloom_stranger = best_ns(
        operations, [&](std::size_t i) { return bloom.may_contain(strangers[i]); });

    filter::admission_filter admission{settings, now};
    for (const auto key : known) {
        admission.note(key, now);
    }
    const auto peek_known = best_ns(operations,
                                    [&](std::size_t i) { return admission.peek(at(i)); });
    const auto peek_stranger = best_ns(operations,
                                       [&](std::size_t i) { return admission.peek(strangers[i]); });
    // Every run notes keys that no run before it noted: first sights all.
    std::uint64_t run = 0;
    const auto note = best_ns(operations, [&](std::size_t i) {
        run += i == 0 ? 0x9e3779b97f4a7c15 : 0;
        return admission.note({.low = strangers[i].low ^ run, .high = strangers[i].high}, now);
    });
    // The newest keys are in the young generation, but for a change of roles just now: asked once
    // before, they are in any case, and nothing is written.
    const auto newest = [&](std::size_t i) {
        const auto key = strangers[operations - 1 - i % (objects / 4)];
        return key_hash{.low = key.low ^ run, .high = key.high};
    };
    for (std::size_t i = 0; i < objects / 4; ++i) {
        admission.refresh(newest(i), now);
    }
    const auto refresh = best_ns(operations, [&](std::size_t i) {
        admission.refresh(newest(i), now);
        return std::uint64_t{0};
    });

    const auto bits = static_cast<double>(bloom.bytes() * 8);
    std::printf("%10llu  %9.2f  %8.2f  %9.5f  %6.1f %6.1f  %6.1f %6.1f  %6.1f  %6.1f\n",
                static_cast<unsigned long long>(objects),
                2 * static_cast<double>(bloom.bytes()) / 1e6,
                bits / static_cast<double>(objects),
                static_cast<double>(wrong) / static_cast<double>(operations),
                bloom_known,
                bloom_stranger,
                peek_known,
                peek_stranger,
                note,
                refresh);
}

}  // namespace

int main(int count, char** arguments) {
    bench_hash();
    std::printf("   objects         MB  bits/key       rate  bloom,    ns  peek,     ns    note  "
                "refresh\n"
                "             (2 gen.)   (1 gen.)  (1 gen.)  known   new  known   new     new    "
                "known\n");
    if (count > 1) {
        const auto objects = std::strtoull(arguments[1], nullptr, 10);
        if (objects < 4) {
            std::fprintf(stderr, "bench_admission_filter: objects must be at least 4\n");
            return 2;
        }
        bench_filters(objects);
        return 0;
    }
    for (const std::uint64_t objects : {10'000, 100'000, 1'000'000, 10'000'000}) {
        bench_filters(objects);
    }
}
