#include "tools/replay/arc.hpp"
#include "tools/replay/run.hpp"
#include "tools/replay/setup.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace reprise::replay;
namespace proxy = reprise::proxy;

namespace {

constexpr std::uint64_t objects = 2'000;

/// Skewed requests, an object's size from 1 to 20,000.
std::vector<request> requests_of(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random{seed};
    std::uniform_real_distribution<double> unit{0, 1};
    std::vector<request> out;
    for (std::size_t i = 0; i < count; ++i) {
        const auto object = static_cast<object_number>(std::pow(unit(random), 3.0) *
                                                       static_cast<double>(objects));
        const auto hash = (object + 1) * std::uint64_t{0x9e3779b97f4a7c15};
        out.push_back({.key = {hash ^ hash >> 29, hash * 31 ^ hash >> 13},
                       .bytes = 1 + hash % 20'000,
                       .object = object,
                       .seconds = static_cast<std::uint32_t>(i / 10)});
    }
    return out;
}

const trace_scale scale{.objects = objects, .unique_bytes = 20'000'000, .unit = 1};

setup setup_of(const std::string& policy, const std::string& admission) {
    setup out;
    out.size = {.bytes = 2'000'000};
    out.policy = policy_choice_of(policy).value();
    out.admission = admission_choice_of(admission).value();
    return out;
}

tally played(const setup& what, const std::vector<request>& requests) {
    const auto one = make_model(what, scale);
    one->feed(requests, objects);
    return one->figures();
}

void check_sums(const tally& counted, const std::vector<request>& requests) {
    CHECK(counted.requests == requests.size());
    CHECK(counted.hits <= counted.requests);
    CHECK(counted.hit_bytes <= counted.bytes);
    CHECK(counted.origin_bytes() == counted.bytes - counted.hit_bytes);
    CHECK(counted.carried_bytes <= counted.written_bytes);
    CHECK(counted.disk_hits <= counted.hits);
}

}  // namespace

TEST_SUITE_BEGIN("replay/models");

TEST_CASE("without admission every miss that fits is written, whatever the policy") {
    const auto requests = requests_of(1, 20'000);
    for (const auto* policy :
         {"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf", "gdsf:1", "arc", "lhd"}) {
        CAPTURE(policy);
        const auto counted = played(setup_of(policy, "always"), requests);
        check_sums(counted, requests);
        CHECK(counted.hits > 0);
        CHECK(counted.written == counted.misses() - counted.too_large);
        CHECK(counted.refused == 0);
    }
}

TEST_CASE("a refused miss is neither written nor a hit later; every other is written") {
    const auto requests = requests_of(2, 20'000);
    for (const auto* rule :
         {"second-hit", "nth-hit:3", "tinylfu", "exact-second", "window:100", "window:10%"}) {
        CAPTURE(rule);
        const auto counted = played(setup_of("lru", rule), requests);
        check_sums(counted, requests);
        CHECK(counted.written == counted.misses() - counted.too_large - counted.refused);
        CHECK(counted.refused > 0);
    }
}

TEST_CASE("the filter and the exact rule agree when the filter has room") {
    const auto requests = requests_of(3, 20'000);
    const auto exact = played(setup_of("lru", "exact-second"), requests);
    auto what = setup_of("lru", "second-hit");
    what.scaled = true;
    const auto filtered = played(what, requests);
    CHECK(filtered.memory_bytes <= 4 * objects + 128);
    CHECK(std::abs(filtered.hit_ratio() - exact.hit_ratio()) < 0.002);
}

TEST_CASE("with probation more requests are hits, and what is refused is still not written") {
    const auto requests = requests_of(4, 20'000);
    auto what = setup_of("lru", "second-hit");
    what.size.bytes = 40'000'000;  // holds all: what is lost is lost to admission
    const auto strict = played(what, requests);
    what.probation = 0.1;
    const auto lenient = played(what, requests);
    check_sums(lenient, requests);
    CHECK(lenient.hits > strict.hits);
    CHECK(lenient.written <= strict.written);
}

TEST_CASE("in two tiers only what goes to disk counts as written") {
    const auto requests = requests_of(5, 20'000);
    for (const auto write : {write_when::admission, write_when::eviction}) {
        for (const bool copies : {false, true}) {
            for (const double probation : {0.0, 0.1, 1.0}) {
                CAPTURE(copies);
                CAPTURE(probation);
                auto what = setup_of("gdsf", "second-hit");
                what.disk = disk_choice{.segments = 16, .write = write, .copies = copies};
                what.probation = probation;
                const auto counted = played(what, requests);
                check_sums(counted, requests);
                CHECK(counted.disk_hits > 0);
                CHECK(counted.written > 0);
                CHECK(counted.written <= counted.requests);
            }
        }
    }
}

TEST_CASE("what is written as it is admitted stays in memory besides, as in the proxy") {
    const auto requests = requests_of(9, 20'000);
    auto what = setup_of("lru", "always");
    what.disk = disk_choice{.memory = 0.5, .write = write_when::admission};
    const auto plain = played(what, requests);
    what.disk->copies = true;
    CHECK(played(what, requests).disk_hits == plain.disk_hits);
    CHECK(plain.hits > plain.disk_hits);
}

TEST_CASE("a disk that is never full loses nothing that was written") {
    const auto requests = requests_of(6, 20'000);
    auto what = setup_of("lru", "always");
    what.size.bytes = 100'000'000;
    what.disk = disk_choice{.memory = 0.01, .write = write_when::admission};
    what.scaled = true;  // the objects are as large as such a memory takes
    const auto counted = played(what, requests);
    std::vector<bool> seen(objects);
    std::uint64_t different = 0;
    for (const auto& one : requests) {
        different += seen[one.object] ? 0 : 1;
        seen[one.object] = true;
    }
    CHECK(counted.misses() == different);
    CHECK(counted.written == different);
    CHECK(counted.carried_bytes == 0);
}

TEST_CASE("a disk by the object writes nothing twice, and serves as segments do or better") {
    const auto requests = requests_of(8, 20'000);
    auto what = setup_of("gdsf", "second-hit");
    what.probation = 1;
    what.disk = disk_choice{.segments = 16};
    const auto segments = played(what, requests);
    what.disk->by_object = true;
    const auto by_object = played(what, requests);
    check_sums(by_object, requests);
    CHECK(by_object.carried_bytes == 0);
    CHECK(by_object.disk_hits > 0);
    CHECK(by_object.hit_ratio() > segments.hit_ratio() - 0.01);
}

TEST_CASE("a trace in pieces, and on several threads, counts the same") {
    const auto requests = requests_of(7, 10'000);
    const auto whole = played(setup_of("sieve", "second-hit"), requests);
    const auto pieces = make_model(setup_of("sieve", "second-hit"), scale);
    const std::span all{requests};
    for (std::size_t at = 0; at < all.size(); at += 999) {
        pieces->feed(all.subspan(at, std::min<std::size_t>(999, all.size() - at)), objects);
    }
    CHECK(pieces->figures().hits == whole.hits);
    CHECK(pieces->figures().written_bytes == whole.written_bytes);
}

TEST_CASE("what is counted late is played from the beginning, however it is fed") {
    const auto requests = requests_of(8, 10'000);
    const std::span all{requests};
    const auto whole = make_model(setup_of("gdsf", "second-hit"), scale);
    whole->feed(all.first(3'333), objects);
    const auto early = whole->figures();
    whole->feed(all.subspan(3'333), objects);
    for (const std::size_t piece : {1u, 1'000u, 3'333u, 10'000u}) {
        CAPTURE(piece);
        counted_late late{make_model(setup_of("gdsf", "second-hit"), scale), 3'333};
        for (std::size_t at = 0; at < all.size(); at += piece) {
            late.feed(all.subspan(at, std::min(piece, all.size() - at)), objects);
            CHECK(late.figures().requests <= at + piece);
        }
        CHECK(late.figures().requests == 10'000 - 3'333);
        CHECK(late.figures().hits == whole->figures().hits - early.hits);
        CHECK(late.figures().written_bytes == whole->figures().written_bytes - early.written_bytes);
    }
}

TEST_CASE("auto is played as the advisor has it: it changes, tells when, and loses little") {
    // Everything is asked for twice, soon, and an eighth of it again and again.
    std::vector<request> requests;
    for (std::uint32_t i = 0; i < 60'000; ++i) {
        const auto object = i % 4 == 0 ? i / 4 % 200 : 200 + i / 8;
        const auto hash = (object + 1) * std::uint64_t{0x9e3779b97f4a7c15};
        requests.push_back({.key = {hash ^ hash >> 29, hash * 31 ^ hash >> 13},
                            .bytes = object < 200 ? 1'000u : 20'000u,
                            .object = object,
                            .seconds = i});
    }
    auto what = setup_of("gdsf", "auto");
    what.probation = 1;
    auto fixed = setup_of("gdsf:1", "always");
    const auto count = [&](const setup& one) {
        const auto made = make_model(one, scale);
        made->feed(requests, 10'000);
        return std::pair{made->figures(), made->told()};
    };
    const auto [by_auto, told] = count(what);
    const auto [by_always, nothing] = count(fixed);
    CHECK(nothing.empty());
    for (const auto& line : told) {
        CHECK(line.starts_with("at request "));
    }
    CHECK(static_cast<double>(by_auto.misses()) <= 1.01 * static_cast<double>(by_always.misses()));
}

TEST_CASE("run feeds every model everything, on one thread or three") {
    const std::string path = REPRISE_TEST_DATA "/traces/bu1998.csv.zst";
    std::vector<tally> first;
    for (const unsigned threads : {1u, 3u}) {
        trace source{{path}, std::nullopt};
        std::vector<std::unique_ptr<model>> models;
        for (const auto* policy : {"lru", "sieve", "s3-fifo"}) {
            models.push_back(make_model(setup_of(policy, "always"), scale));
        }
        const auto seconds = run(source, models, threads);
        CHECK(seconds.size() == models.size());
        for (std::size_t i = 0; i < models.size(); ++i) {
            const auto counted = models[i]->figures();
            CHECK(counted.requests == 66'987);
            if (threads == 1) {
                first.push_back(counted);
            } else {
                CHECK(counted.hits == first[i].hits);
            }
        }
    }
}

TEST_CASE("what a model throws comes out of run") {
    class broken final : public model {
    public:
        void feed(std::span<const request>, std::size_t) override {
            throw std::runtime_error{"broken"};
        }
        tally figures() const override { return {}; }
    };
    for (const unsigned threads : {1u, 2u}) {
        trace source{{REPRISE_TEST_DATA "/traces/bu1998.csv.zst"}, std::nullopt};
        std::vector<std::unique_ptr<model>> models;
        models.push_back(std::make_unique<broken>());
        models.push_back(make_model(setup_of("lru", "always"), scale));
        CHECK_THROWS_AS((void)run(source, models, threads), std::runtime_error);
    }
}

TEST_CASE("ARC keeps what is asked for again through a scan") {
    using reprise::proxy::cache::evictable;
    arc_policy policy{1'000};
    std::vector<evictable> entries(30);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        entries[i].key = {i * 0x9e3779b97f4a7c15, i};
        entries[i].charge = 100;
    }
    for (std::size_t i = 0; i < 5; ++i) {
        policy.inserted(entries[i]);
        policy.used(entries[i]);
    }
    for (std::size_t i = 5; i < 30; ++i) {
        policy.inserted(entries[i]);
        if (i >= 10) {
            auto* const gone = policy.evict();
            REQUIRE(gone != nullptr);
            CHECK(gone - entries.data() >= 5);
        }
    }
    std::size_t left = 0;
    while (policy.evict() != nullptr) {
        ++left;
    }
    CHECK(left == 10);
    CHECK(policy.overhead() > 0);
}

TEST_CASE("what was waited for is the sum of the misses' fetches; for seconds it is less") {
    auto requests = requests_of(3, 60'000);
    const std::array slow_and_fast{500, 50, 5};
    double all = 0;
    for (auto& one : requests) {
        const proxy::cache::packed_wait took{
            std::chrono::milliseconds{slow_and_fast[one.key.high % 3]}};
        one.wait_code = took.code() & proxy::cache::packed_wait::most_code;
        all += took.seconds();
    }
    for (const bool disk : {false, true}) {
        for (const bool by_object : {false, true}) {
            CAPTURE(disk);
            CAPTURE(by_object);
            auto what = setup_of("gdsf", "second-hit");
            what.probation = 1;
            if (disk) {
                what.disk = disk_choice{.by_object = by_object};
            }
            const auto plain = played(what, requests);
            what.wanted = objective::seconds;
            const auto by_wait = played(what, requests);
            CHECK(plain.waiting == doctest::Approx(all));
            CHECK(plain.waited > 0);
            CHECK(by_wait.waited < 0.85 * plain.waited);
            CHECK(by_wait.hits < plain.hits);
        }
    }
}

TEST_CASE("waits change nothing where requests or bytes are wanted") {
    const auto plain = requests_of(4, 30'000);
    auto timed = plain;
    for (auto& one : timed) {
        one.wait_code = one.key.high & proxy::cache::packed_wait::most_code;
    }
    for (const auto wanted : {objective::requests, objective::bytes}) {
        for (const bool disk : {false, true}) {
            auto what = setup_of("gdsf", "second-hit");
            what.wanted = wanted;
            if (disk) {
                what.disk = disk_choice{};
            }
            const auto one = played(what, plain), other = played(what, timed);
            CHECK(one.hits == other.hits);
            CHECK(one.hit_bytes == other.hit_bytes);
            CHECK(one.written_bytes == other.written_bytes);
        }
    }
}

TEST_SUITE_END();
