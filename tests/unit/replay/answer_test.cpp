#include "config/load.hpp"
#include "config/units.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/replay/answer.hpp"
#include "tools/replay/answer_report.hpp"
#include "tools/replay/line_source.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <variant>

using namespace reprise::replay;
using reprise::config::mib;

namespace {

struct asked_log {
    trace_summary of;
    answer found;
};

// The first of a university's requests, as a log of their own.
class beginning {
public:
    explicit beginning(std::size_t requests) {
        line_source whole{REPRISE_TEST_DATA "/traces/bu1998.csv.zst"};
        std::string text;
        std::string_view line;
        for (; requests > 0 && whole.next(line); --requests) {
            text.append(line).append("\n");
        }
        REQUIRE(requests == 0);
        path_ = directory_.write("log.csv", text);
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    reprise::tests::temp_dir directory_;
    std::string path_;
};

// Requests for 124 MiB, of which 8 MiB hold little.
const std::string& log_of_32_000() {
    static const beginning log{32'000};
    return log.path();
}

// Requests for 61 MiB, for what does not hang on how much is asked for.
const std::string& log_of_16_000() {
    static const beginning log{16'000};
    return log.path();
}

asked_log ask(const question& asked,
              const std::string& path,
              std::uint64_t most = ~std::uint64_t{0}) {
    trace source{{path}, std::nullopt};
    const recorded_trace requests{source, {}, most};
    const trace_summary of{{path}, source.formats(), source.figures(), source.objects().sum()};
    return {of, find_answer(asked, requests, of, 1, 2)};
}

// What most ask.
const asked_log& little_memory() {
    static const auto asked = ask({.memory = 8 * mib, .disk = {}, .costs = {}}, log_of_32_000());
    return asked;
}

const asked_log& named_disk() {
    static const auto asked = ask({.memory = 8 * mib, .disk = 32 * mib, .costs = {}},
                                  log_of_16_000());
    return asked;
}

bool loads(const std::string& settings) {
    return std::holds_alternative<reprise::config::options>(reprise::config::load(settings));
}

}  // namespace

TEST_SUITE_BEGIN("replay/answer");

TEST_CASE("with little memory the answer tries disks and probation, and says what room is enough") {
    const auto& [of, found] = little_memory();
    CHECK(found.memory == 8 * mib);
    CHECK(found.as_it_comes.what.admission.what == admission_choice::kind::nth_hit);
    CHECK(found.as_it_comes.what.probation == 0);
    CHECK_FALSE(found.as_it_comes.what.disk);
    CHECK(found.plain_lru.counted.requests == of.figures.requests);
    CHECK(found.best_in_memory.counted.hits >= found.plain_lru.counted.hits);
    CHECK(found.enough > found.memory);
    REQUIRE(found.best_with_disk);
    REQUIRE(found.disk_as_it_comes);
    CHECK(found.disk_as_it_comes->what.probation == 1);
    CHECK(found.disk_as_it_comes->what.disk->selective);
    CHECK(found.disk_as_it_comes->what.disk->write == write_when::eviction);
    CHECK(found.disk == found.enough - found.memory);
    CHECK(found.best_with_disk->counted.hits > found.best_in_memory.counted.hits);
    CHECK(found.recommended.what == found.best_with_disk->what);
    const auto with = [&found](auto is) {
        return std::any_of(found.results.begin(), found.results.end(), is);
    };
    CHECK(with([](const result& one) { return one.what.disk && one.what.probation == 1; }));
    CHECK(with([](const result& one) { return !one.what.disk && one.what.probation > 0; }));
    CHECK(loads(found.settings));
    CHECK(nlohmann::json::parse(found.settings).contains("disk"));
}

TEST_CASE("hits grow with room, and from what is enough on by less than a point") {
    // A disk that was named has rooms near it, between the powers of two.
    for (const auto* const log : {&little_memory(), &named_disk()}) {
        const auto& [of, found] = *log;
        CAPTURE(found.disk_was_named);
        REQUIRE(found.rooms.size() > 5);
        const auto last = found.rooms.back().best.counted.hit_ratio();
        CHECK(last == doctest::Approx(static_cast<double>(of.possible_hits()) /
                                      static_cast<double>(of.figures.requests))
                          .epsilon(0.01));
        for (const auto& one : found.rooms) {
            CAPTURE(one.bytes);
            CHECK(one.memory == std::min(one.bytes, found.memory));
            CHECK((one.best.counted.hit_ratio() > last - 0.01) == (one.bytes >= found.enough));
        }
    }
}

TEST_CASE("where memory holds what is enough no disk is recommended, nor where none is to be") {
    const auto enough = ask({.memory = 32 * mib, .disk = {}, .costs = {}}, log_of_16_000()).found;
    CHECK(enough.enough > mib);
    CHECK(enough.enough <= enough.memory);
    // What a disk would bring was looked at.
    CHECK(enough.rooms.back().bytes > enough.memory);
    CHECK(enough.disk == 0);
    CHECK_FALSE(enough.best_with_disk);
    CHECK_FALSE(nlohmann::json::parse(enough.settings).contains("disk"));
    const auto none = ask({.memory = 8 * mib, .disk = 0, .costs = {}}, log_of_16_000()).found;
    CHECK_FALSE(none.best_with_disk);
    CHECK(std::none_of(none.results.begin(), none.results.end(), [](const result& one) {
        return one.what.disk.has_value();
    }));
    CHECK(loads(none.settings));
}

TEST_CASE("a disk that was named is used as it is") {
    const auto& found = named_disk().found;
    // Not what would be enough.
    CHECK(found.enough != found.memory + 32 * mib);
    CHECK(found.disk == 32 * mib);
    REQUIRE(found.best_with_disk);
    const auto made = nlohmann::json::parse(found.settings);
    CHECK(made["memory"]["size"] == "8MiB");
    CHECK(made["disk"]["size"] == "32MiB");
    CHECK(loads(found.settings));
}

TEST_CASE("a sample of the objects has about the hits of the whole") {
    const auto& whole = little_memory().found;
    const question asked{.memory = whole.memory, .disk = whole.disk, .costs = {}};
    const auto part = ask(asked, log_of_32_000(), 20'000).found;
    CHECK(whole.sample == 1);
    CHECK(part.sample == 0.5);
    const auto near = [](const result& a, const result& b) {
        CHECK(a.counted.requests == b.counted.requests);
        return std::abs(a.counted.hit_ratio() - b.counted.hit_ratio()) < 0.02;
    };
    CHECK(near(part.plain_lru, whole.plain_lru));
    CHECK(near(part.best_in_memory, whole.best_in_memory));
    REQUIRE(part.best_with_disk);
    REQUIRE(whole.best_with_disk);
    CHECK(part.best_with_disk->what.size == whole.best_with_disk->what.size);
    CHECK(near(*part.best_with_disk, *whole.best_with_disk));
}

TEST_CASE("a sample without the hottest key has about the byte hits of the whole") {
    const reprise::tests::temp_dir directory;
    std::string log;
    for (int i = 0; i < 20'000; ++i) {
        // Three of four are for one key.
        log += std::to_string(i) + ',' + std::to_string(i % 4 != 0 ? 1 : 2 + i * 7 % 2'000) +
               ",4000\n";
    }
    const auto path = directory.write("log.csv", log);
    const question asked{.memory = 8 * mib, .disk = 0, .costs = {}};
    const auto whole = ask(asked, path).found;
    const auto part = ask(asked, path, 12'000).found;
    CHECK(part.sample < 1);
    CHECK(part.plain_lru.counted.hit_ratio() ==
          doctest::Approx(whole.plain_lru.counted.hit_ratio()).epsilon(0.05));
    CHECK(part.plain_lru.counted.byte_hit_ratio() ==
          doctest::Approx(whole.plain_lru.counted.byte_hit_ratio()).epsilon(0.05));
}

TEST_CASE("what costs least follows from the prices") {
    const question dear_room{.memory = 8 * mib, .disk = {}, .costs = {.memory = 1e6, .disk = 1e6}};
    const auto small = ask(dear_room, log_of_16_000()).found;
    CHECK(small.cheapest == small.rooms.front().bytes);
    CHECK(nlohmann::json::parse(small.settings)["memory"]["size"] == "1MiB");
    CHECK(loads(small.settings));
    const question dear_misses{.memory = 8 * mib, .disk = {}, .costs = {.second = 1e6}};
    const auto large = ask(dear_misses, log_of_16_000()).found;
    CHECK(large.cheapest > small.cheapest);
    CHECK(large.rooms.back().cost <= large.rooms.front().cost);
    // A GB of each for a month, and one asked of origins in a month.
    tally counted;
    counted.requests = counted.bytes = 1'000'000'000;
    counted.hits = 999'999'990;
    CHECK(monthly_cost({.memory = 2, .disk = 3, .origin = 5, .second = 7, .miss_seconds = 0.5},
                       1'000'000'000,
                       2'000'000'000,
                       counted,
                       30 * 24 * 3600) == doctest::Approx(2 + 6 + 5 + 7 * 0.5 * 10));
}

TEST_CASE("the answer is told in text, on a page without scripts, and in JSON") {
    const question asked{.memory = 8 * mib, .disk = 32 * mib, .costs = {.memory = 1}};
    const auto [of, found] = ask(asked, log_of_16_000());
    std::ostringstream text, page, json;
    print_answer(text, found, asked, of, 1);
    CHECK(text.str().find("memory 8.00MiB, as it comes: sieve, second-hit") != std::string::npos);
    CHECK(text.str().find("plain LRU of the same room") != std::string::npos);
    CHECK(text.str().find("more room stops paying") != std::string::npos);
    CHECK(text.str().find("costs a month") != std::string::npos);
    print_answer_page(page, found, asked, of, 1);
    CHECK(page.str().find("<svg") != std::string::npos);
    CHECK(page.str().find("<script") == std::string::npos);
    CHECK(page.str().find("src=") == std::string::npos);
    CHECK(page.str().find("nan") == std::string::npos);
    print_answer_json(json, found, asked, of, 1);
    const auto root = nlohmann::json::parse(json.str());
    CHECK(root["answer"]["rooms"].size() == found.rooms.size());
    CHECK(root["answer"]["best_with_disk"]["hit_ratio"] ==
          found.best_with_disk->counted.hit_ratio());
    CHECK(root["recommended"]["disk"]["size"] == "32MiB");
}

TEST_SUITE_END();
