#include "tools/replay/belady.hpp"
#include "tools/replay/judge.hpp"
#include "tools/replay/one_tier.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace reprise::replay;

namespace {

/// A trace's file with these keys, all of `bytes`, which goes when this does.
class trace_file {
public:
    explicit trace_file(const std::vector<unsigned>& keys, unsigned bytes = 1)
        : path_{std::filesystem::temp_directory_path() /
                ("judge_test." + std::to_string(::getpid()) + ".csv")} {
        std::ofstream out{path_};
        for (std::size_t i = 0; i < keys.size(); ++i) {
            out << i << ',' << keys[i] << ',' << bytes << '\n';
        }
    }
    ~trace_file() { std::filesystem::remove(path_); }
    trace_file(const trace_file&) = delete;
    trace_file& operator=(const trace_file&) = delete;
    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

std::vector<unsigned> skewed_keys(std::uint64_t seed, std::size_t count, unsigned of) {
    std::mt19937_64 random{seed};
    std::vector<unsigned> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(static_cast<unsigned>(std::min(random() % of, random() % of)));
    }
    return out;
}

tally belady_of(const recorded_trace& requests, std::uint64_t capacity) {
    belady one{std::make_shared<const next_uses>(requests), capacity};
    for (const auto& batch : requests.batches()) {
        one.feed(batch.requests, batch.objects);
    }
    return one.figures();
}

/// Belady's rule for equal sizes, the slow way: what is asked for last, or never, is not kept.
std::uint64_t most_hits(const std::vector<unsigned>& keys, std::size_t room) {
    std::vector<unsigned> kept;
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto next = [&](unsigned key) {
            return std::find(keys.begin() + static_cast<std::ptrdiff_t>(i) + 1, keys.end(), key);
        };
        if (std::find(kept.begin(), kept.end(), keys[i]) != kept.end()) {
            ++hits;
            continue;
        }
        kept.push_back(keys[i]);
        if (kept.size() > room) {
            kept.erase(std::max_element(kept.begin(), kept.end(), [&](unsigned a, unsigned b) {
                return next(a) < next(b);
            }));
        }
    }
    return hits;
}

tally counted(std::uint64_t hits, std::uint64_t hit_bytes, std::uint64_t written) {
    return {.requests = 100'000,
            .bytes = 1'000'000,
            .hits = hits,
            .hit_bytes = hit_bytes,
            .written_bytes = written};
}

}  // namespace

TEST_SUITE_BEGIN("replay/judge");

TEST_CASE("with equal sizes the yardstick has as many hits as there can be") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const auto keys = skewed_keys(seed, 400, 60);
        const trace_file file{keys, 10};
        trace source{{file.path()}, log_format::trace};
        const recorded_trace requests{source};
        CHECK(belady_of(requests, 100).hits == most_hits(keys, 10));
    }
}

TEST_CASE("the yardstick stores nothing that is never asked for again, and counts what it keeps") {
    const trace_file file{{1, 2, 3, 1, 2, 4}, 10};
    trace source{{file.path()}, log_format::trace};
    const recorded_trace requests{source};
    const auto both = belady_of(requests, 1'000);
    CHECK(both.hits == 2);
    CHECK(both.written == 2);
    CHECK(both.written_bytes == 20);
    CHECK(belady_of(requests, 10).hits == 1);
    CHECK(belady_of(requests, 9).written == 0);
}

TEST_CASE("objective requests is met up to each of its three limits, and not beyond") {
    const auto lru = counted(40'000, 300'000, 100'000);
    const auto best = counted(50'000, 250'000, 90'000);
    CHECK(meets_requests("synth1m", counted(49'500, 265'000, 50'000), best, lru));
    CHECK_FALSE(meets_requests("synth1m", counted(49'499, 265'000, 50'000), best, lru));
    CHECK_FALSE(meets_requests("synth1m", counted(49'500, 264'999, 50'000), best, lru));
    CHECK_FALSE(meets_requests("synth1m", counted(49'500, 265'000, 50'001), best, lru));
    CHECK(meets_requests("cdnweb", counted(49'500, 265'000, 25'000), best, lru));
    CHECK_FALSE(meets_requests("cdnweb", counted(49'500, 265'000, 25'001), best, lru));
}

TEST_CASE("objective bytes is met up to each of its two limits, and not beyond") {
    const auto lru = counted(0, 100'000, 100'000);
    const auto best = counted(0, 500'000, 90'000);
    CHECK(meets_bytes(counted(0, 495'000, 50'000), best, lru));
    CHECK_FALSE(meets_bytes(counted(0, 494'999, 50'000), best, lru));
    CHECK_FALSE(meets_bytes(counted(0, 495'000, 50'001), best, lru));
}

TEST_CASE("the way to Belady is a share of what it gains over LRU") {
    const auto lru = counted(40'000, 0, 100'000);
    const auto most = counted(80'000, 0, 0);
    CHECK(way_to_belady(counted(68'000, 0, 70'000), lru, most) == doctest::Approx(0.7));
    CHECK(meets_way(counted(68'000, 0, 70'000), lru, most));
    CHECK_FALSE(meets_way(counted(67'990, 0, 70'000), lru, most));
    CHECK_FALSE(meets_way(counted(68'000, 0, 70'001), lru, most));
}

TEST_CASE("a regret is more than one percent more misses than LRU") {
    const auto lru = counted(50'000, 0, 0);
    CHECK(regrets_nothing(counted(49'500, 0, 0), lru));
    CHECK_FALSE(regrets_nothing(counted(49'499, 0, 0), lru));
}

TEST_CASE("a trace is judged at every size, and the page has a row for each") {
    const trace_file file{skewed_keys(3, 20'000, 3'000), 1'000};
    const auto verdicts = judge_trace(file.path(), 2);
    for (const auto* size : {"0.1%", "1%", "10%"}) {
        CHECK(verdicts.of(size, "lru").requests == 20'000);
        CHECK(verdicts.of(size, "requests").requests == 20'000);
    }
    const auto most = verdicts.of("10%", "belady").hits;
    for (const auto& [name, one] : verdicts.played) {
        CAPTURE(name.second);
        if (name.first == "10%") {
            CHECK(one.counted.hits <= most);
        }
    }
    std::ostringstream out;
    print_verdicts(out, {verdicts});
    CHECK(out.str().find("(d)") != std::string::npos);
}

TEST_SUITE_END();
