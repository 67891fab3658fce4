// What a piece of news costs its source and its readers, beside publishing and taking the whole: the
// figures in proxy/peer/README.md.
//
//     bench_news [KEYS]      a million by default
//
// One thread; compare what one run prints. A source lists KEYS keys; in each piece some leave and as
// many come, and a reader that follows has its digest in a sibling_table. What both have is compared
// at the end. Then the same of what was seen, whose news is names.

#include "filter/digest_wire.hpp"
#include "filter/sizing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/digest_source.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/seen_source.hpp"
#include "proxy/peer/sibling_table.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using namespace reprise::proxy::peer;
using namespace std::chrono_literals;

namespace {

const auto secret = fleet_secret::none();
constexpr std::uint64_t apart = 0x9e3779b97f4a7c15;

filter::key_hash store_key(std::uint64_t i) {
    return key_of(i * apart, secret);
}

struct times {
    double best = 1e300;
    template <class Work>
    void take(Work&& work) {
        const auto begun = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() -
                                                               begun;
        best = std::min(best, took.count());
    }
};

struct bench {
    explicit bench(std::uint64_t held, std::chrono::milliseconds news)
        : keys{held},
          source{plan_with(news), secret, [this] { return ++drawn; }} {
        for (std::uint64_t i = 0; i < keys; ++i) {
            come(i);
        }
        source.loaded();
        source.settle(now(), wall());
    }
    static source_plan plan_with(std::chrono::milliseconds news) {
        source_plan plan;
        plan.news = news;
        return plan;
    }
    void come(std::uint64_t i) {
        source.held(holder::memory, store_key(i), url_name{i * apart + 1}, wall() + 1h, wall());
    }
    void leave(std::uint64_t i) { source.gone(holder::memory, store_key(i)); }
    void change(std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) {
            leave(first++);
            come(keys + next++);
        }
    }
    [[nodiscard]] steady_time now() const { return steady_time{passed}; }
    [[nodiscard]] static wall_time wall() { return wall_time{1'763'668'089'000ms}; }

    std::uint64_t keys;
    std::uint64_t first = 0, next = 0, drawn = 0;
    std::chrono::milliseconds passed{3'600'000};
    digest_source source;
};

std::size_t head_bytes(bench& b, const std::string& target, answered what) {
    const auto wire = "GET " + target + " HTTP/1.1\r\nHost: cache-01.example.net:3128\r\n\r\n";
    http::request_head head;
    (void)http::parse_request_head(wire, head, {});
    offered offer;
    offer.digest = b.source.digests().now();
    offer.node = "reprise-0123456789ab";
    offer.digest_news = b.source.news();
    const auto got = answer(head, {.is_reprise = true}, offer, false, bench::wall());
    if (got.what != what) {
        throw std::runtime_error{"it was answered otherwise: " + std::string{to_string(got.what)}};
    }
    return got.head.size();
}

void measure(std::uint64_t keys) {
    bench plain{keys, 0ms}, b{keys, 200ms};
    follow_plan plan;
    plan.seed = secret.id();
    plan.news = 200ms;
    plan.key_of = [](std::uint64_t name) { return key_of(name, secret); };
    digest_follower follower{plan, 1, b.now()};
    sibling_table table;
    const auto slot = table.enrol("a").value();
    for (unsigned i = 1; i < 16; ++i) {
        (void)table.enrol("other" + std::to_string(i));
    }
    const auto whole = b.source.digests().now();
    follower.answered({.status = 200,
                       .etag = whole->etag,
                       .node = "b",
                       .tells_news = true,
                       .body = *whole->whole},
                      "a",
                      b.now());
    for (unsigned i = 0; i < 16; ++i) {
        table.put(i, *follower.held());
    }
    (void)follower.take_change();
    std::printf(
        "%llu keys listed, %llu bits; the whole is %zu bytes. Least of 20 pieces.\n\n"
        "| left and came in a piece | its events without news, us | with news and its message, "
        "us | a reader: verified, turned, us | in the index of 16, us | bytes | a key |\n"
        "|---:|---:|---:|---:|---:|---:|---:|\n",
        static_cast<unsigned long long>(keys),
        static_cast<unsigned long long>(b.source.figures().bits),
        whole->whole->size());
    for (const std::uint64_t count : {1u, 10u, 100u, 1000u, 3000u}) {
        times without, with, reading, indexing;
        std::size_t bytes = 0;
        for (int piece = 0; piece < 20; ++piece) {
            plain.change(count);
            b.change(count);
            plain.passed += 200ms;
            b.passed += 200ms;
            // The sweep is the same in both; it is not what is measured, and is due in each.
            without.take([&] { plain.source.tick(plain.now(), bench::wall()); });
            (void)b.source.news()->look(follower.held()->stamp().generation);
            with.take([&] { b.source.tick(b.now(), bench::wall()); });
            const auto found = b.source.news()->look(follower.held()->stamp().generation);
            if (found.what != news_shelf::state::ready) {
                throw std::runtime_error{"no news"};
            }
            bytes = found.wire->size();
            reading.take([&] {
                follower.answered({.status = 200,
                                   .etag = "\"t\"",
                                   .node = "b",
                                   .tells_news = true,
                                   .body = *found.wire},
                                  "a",
                                  b.now());
            });
            const auto change = follower.take_change();
            indexing.take([&] { table.flip(slot, *follower.held(), change.places); });
        }
        std::printf("| %llu | %.1f | %.1f | %.1f | %.1f | %zu | %.1f |\n",
                    static_cast<unsigned long long>(count),
                    without.best,
                    with.best,
                    reading.best,
                    indexing.best,
                    bytes,
                    (static_cast<double>(bytes) - filter::digest_header_bytes) /
                        (2 * static_cast<double>(count)));
    }
    times publishing, taking;
    for (int i = 0; i < 5; ++i) {
        b.change(10);
        b.passed += 10s;
        publishing.take([&] { b.source.settle(b.now(), bench::wall()); });
        const auto newest = b.source.digests().now();
        taking.take([&] {
            digest_follower other{plan, 1, b.now()};
            other.answered({.status = 200,
                            .etag = newest->etag,
                            .node = "b",
                            .tells_news = true,
                            .body = *newest->whole},
                           "a",
                           b.now());
            table.put(slot, *other.held());
        });
    }
    const auto figures = b.source.figures();
    std::printf("\nPublishing (a sweep with it): %.0f us. Taking the whole: %.0f us. Journal: %llu "
                "bytes of "
                "%llu that the source takes.\n",
                publishing.best,
                taking.best,
                static_cast<unsigned long long>(figures.news.journal_bytes),
                static_cast<unsigned long long>(figures.bytes));
    b.change(1);
    b.passed += 200ms;
    const auto generation = b.source.news()->newest();
    (void)b.source.news()->look(generation);
    b.source.tick(b.now(), bench::wall());
    const auto target = std::string{digest_path} + "?since=" + to_text(generation) + "&wait=25";
    std::printf("The head of an answer: %zu bytes; of a question: %zu, and 350 of a signature.\n",
                head_bytes(b, target, answered::news),
                target.size() + std::string{"GET  HTTP/1.1\r\nHost: cache-01.example.net:3128\r\n"
                                            "If-None-Match: \"0123456789abcdef-12345\"\r\n"
                                            "Reprise-Node: reprise-0123456789ab\r\n\r\n"}
                                    .size());
}

/// Measures a filter with room for so many bits, all off at first.
void measure_seen(std::uint64_t bits) {
    const filter::digest_shape shape{
        .layout = filter::digest_layout::blocked, .bits = bits, .probes = filter::lanes};
    const filter::key_by_name by_name = [](std::uint64_t name) { return key_of(name, secret); };
    std::uint64_t drawn = 0;
    seen_source source{secret.id(),
                       24h,  // the filter itself is looked at once
                       [&](const filter::digest_stamp& stamp) {
                           return std::make_unique<filter::digest>(
                               shape, std::vector<std::uint64_t>(bits / 64), stamp);
                       },
                       [&drawn] { return ++drawn; },
                       {.every = 1s, .key_of = by_name}};
    std::chrono::milliseconds passed{3'600'000};
    const auto tick = [&] { source.tick(steady_time{passed}, bench::wall()); };
    tick();
    const auto whole = source.digests().now();
    follow_plan plan;
    plan.seed = secret.id();
    plan.news = 200ms;
    plan.layout = filter::digest_layout::blocked;
    plan.key_of = by_name;
    digest_follower follower{plan, 1, steady_time{passed}};
    const auto take = [&](const std::vector<std::byte>& wire) {
        follower.answered(
            {.status = 200, .etag = "\"t\"", .node = "b", .tells_news = true, .body = wire},
            "a",
            steady_time{passed});
        (void)follower.take_change();
    };
    take(*whole->whole);
    std::printf(
        "\n%llu bits of what was seen. Least of 20 pieces.\n\n"
        "| seen in a piece | noted, told and its message, us | a reader, us | bytes | a key |\n"
        "|---:|---:|---:|---:|---:|\n",
        static_cast<unsigned long long>(bits));
    std::uint64_t name = 0;
    for (const std::uint64_t count : {10u, 100u, 1000u, 3000u}) {
        times telling, reading;
        std::size_t bytes = 0;
        for (int piece = 0; piece < 20; ++piece) {
            for (std::uint64_t i = 0; i < count; ++i) {
                source.noted(url_name{++name * apart});
            }
            passed += 1s;
            const auto held = follower.held()->stamp().generation;
            (void)source.news()->look(held);
            telling.take(tick);
            const auto found = source.news()->look(held);
            if (found.what != news_shelf::state::ready) {
                throw std::runtime_error{"no news of what was seen"};
            }
            bytes = found.wire->size();
            reading.take([&] { take(*found.wire); });
            if (follower.held()->stamp().generation != found.newest) {
                throw std::runtime_error{"news of what was seen is not taken"};
            }
        }
        std::printf("| %llu | %.1f | %.1f | %zu | %.1f |\n",
                    static_cast<unsigned long long>(count),
                    telling.best,
                    reading.best,
                    bytes,
                    (static_cast<double>(bytes) - filter::digest_header_bytes) /
                        static_cast<double>(count));
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        measure(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1'000'000);
        measure_seen(std::uint64_t{1} << 24);
        measure_seen(std::uint64_t{1} << 20);  // one that is still small
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_news: %s\n", error.what());
        return 1;
    }
    return 0;
}
