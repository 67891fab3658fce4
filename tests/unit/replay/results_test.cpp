#include "config/load.hpp"
#include "tools/replay/recommend.hpp"
#include "tools/replay/report.hpp"
#include "tools/replay/results.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

using namespace reprise::replay;

namespace {

result result_of(const std::string& policy,
                 const std::string& admission,
                 std::uint64_t hits,
                 std::uint64_t written_bytes) {
    result out;
    out.what.size = {.of_unique = 0.1};
    out.what.policy = policy_choice_of(policy).value();
    out.what.admission = admission_choice_of(admission).value();
    out.capacity = 64u << 20;
    out.counted.requests = 1'000;
    out.counted.bytes = 1'000'000;
    out.counted.hits = hits;
    out.counted.hit_bytes = hits * 900;
    out.counted.written = written_bytes / 100;
    out.counted.written_bytes = written_bytes;
    out.seconds = 0.001;
    return out;
}

trace_summary summary() {
    trace_summary out;
    out.paths = {"a<b>.log"};
    out.figures.lines = 1'010;
    out.figures.requests = 1'000;
    out.figures.bytes = 1'000'000;
    out.figures.other_method = 10;
    out.totals = {.objects = 300, .bytes = 400'000, .asked_once = 200, .asked_once_bytes = 100'000};
    return out;
}

std::string chosen(const std::vector<result>& results, objective wanted = objective::requests) {
    const auto* best = best_of(results, {.of_unique = 0.1}, wanted);
    return best == nullptr ? "none"
                           : to_string(best->what.policy) + " " + to_string(best->what.admission);
}

}  // namespace

TEST_SUITE_BEGIN("replay/results");

TEST_CASE(
    "the recommendation has the fewest misses, and of those close to that the fewest writes") {
    CHECK(chosen({result_of("lru", "always", 500, 1'000),
                  result_of("gdsf", "always", 600, 2'000)}) == "gdsf always");
    CHECK(chosen({result_of("lru", "always", 601, 1'000),
                  result_of("sieve", "second-hit", 600, 100)}) == "sieve second-hit");
    CHECK(chosen({result_of("lru", "always", 610, 1'000),
                  result_of("sieve", "second-hit", 600, 100)}) == "lru always");
}

TEST_CASE("for seconds, what was waited for is what counts, and it is told where it is known") {
    auto often = result_of("lru", "always", 600, 1'000);
    auto slow = result_of("gdsf", "always", 500, 1'000);
    CHECK_FALSE(knows_waits({often, slow}));
    std::ostringstream before;
    print_csv(before, {often});
    CHECK(before.str().find("waited") == std::string::npos);
    often.counted.waiting = slow.counted.waiting = 100;
    often.counted.waited = 60;
    slow.counted.waited = 40;
    CHECK(chosen({often, slow}) == "lru always");
    CHECK(chosen({often, slow}, objective::seconds) == "gdsf always");
    CHECK(slow.counted.spared_ratio() == doctest::Approx(0.6));
    std::ostringstream table, csv;
    print_table(table, {often, slow});
    CHECK(table.str().find("waited s") != std::string::npos);
    CHECK(table.str().find("60.00") != std::string::npos);
    print_csv(csv, {often, slow});
    CHECK(csv.str().find(",waiting_seconds,waited_seconds\n") != std::string::npos);
    CHECK(csv.str().find(",100,40\n") != std::string::npos);
}

TEST_CASE("yardsticks are not recommended") {
    CHECK(chosen({result_of("arc", "always", 900, 10)}) == "none");
    CHECK(chosen({result_of("lru", "exact-second", 900, 10),
                  result_of("gdsf:1", "always", 900, 10),
                  result_of("lru", "window:9", 900, 10),
                  result_of("sieve", "always", 500, 10)}) == "sieve always");
}

TEST_CASE("every recommendation is a settings file that loads") {
    for (const auto* policy : {"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf", "lfu-da"}) {
        for (const auto* admission : {"always", "second-hit", "nth-hit:4", "tinylfu"}) {
            for (unsigned i = 0; i < 6; ++i) {
                const bool disk = i % 2 == 1;
                auto one = result_of(policy, admission, 1, 1);
                one.capacity = std::array<std::uint64_t, 3>{2u << 30, 5u << 20, 1}[i / 2];
                one.what.probation = disk ? 1 : 0.025;
                one.what.remembers_automatically = disk;
                if (disk) {
                    one.what.disk = disk_choice{};
                }
                const auto text = settings_for(one, objective::bytes, 12'345, 1);
                CAPTURE(text);
                const auto loaded = reprise::config::load(text);
                CHECK(std::holds_alternative<reprise::config::options>(loaded));
            }
        }
    }
}

TEST_CASE("the recommendation has the probation that was played, with a disk and without") {
    for (const bool disk : {false, true}) {
        for (const double share : {0.0, 0.0025, 0.1, 1.0}) {
            CAPTURE(disk);
            CAPTURE(share);
            auto one = result_of("gdsf", "second-hit", 1, 1);
            one.what.probation = share;
            if (disk) {
                one.what.disk = disk_choice{};
            }
            const auto text = settings_for(one, objective::requests, 1'000, 1);
            const auto loaded = reprise::config::load(text);
            REQUIRE(std::holds_alternative<reprise::config::options>(loaded));
            CHECK(std::get<reprise::config::options>(loaded).admission.probation == share);
        }
    }
}

TEST_CASE("the recommendation leaves probation to auto, which would not go below what is written") {
    auto one = result_of("gdsf", "auto", 1, 1);
    one.what.probation = 1;
    const auto made = nlohmann::json::parse(settings_for(one, objective::requests, 1'000, 1));
    CHECK(made["admission"]["policy"] == "auto");
    CHECK_FALSE(made["admission"].contains("probation"));
}

TEST_CASE("of a trace without sizes the recommendation counts each object with its unit") {
    auto one = result_of("gdsf", "second-hit", 1, 1);
    one.capacity = 10'000;
    one.what.disk = disk_choice{};
    one.what.disk->memory = 0.2;
    const auto made = nlohmann::json::parse(settings_for(one, objective::requests, 1, 16'384));
    CHECK(made["memory"]["size"] == "32000KiB");
    CHECK(made["disk"]["size"] == "125MiB");
}

TEST_CASE("what admission saved and cost is told beside the same without it") {
    auto one = result_of("lru", "second-hit", 500, 1'000);
    one.without_admission = result_of("lru", "always", 520, 5'000).counted;
    CHECK(one.hits_lost() == 20);
    CHECK(one.writes_avoided() == 40);
    CHECK(one.bytes_avoided() == 4'000);
    one.without_admission = result_of("lru", "always", 480, 500).counted;
    CHECK(one.hits_lost() == -20);
    CHECK(one.writes_avoided() == -5);
}

TEST_CASE("the table has a line for each result below its head") {
    std::ostringstream out;
    print_table(out, {result_of("lru", "always", 500, 1'000), result_of("arc", "always", 1, 1)});
    const auto text = out.str();
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
    CHECK(text.find("50.00") != std::string::npos);
    CHECK(text.find("arc") != std::string::npos);
}

TEST_CASE("every line of the CSV has as many fields as its head") {
    auto compared = result_of("lru", "second-hit", 500, 1'000);
    compared.without_admission = compared.counted;
    auto disk = compared;
    disk.what.disk = disk_choice{};
    std::ostringstream out;
    print_csv(out, {result_of("lru", "always", 500, 1'000), compared, disk});
    std::istringstream in{out.str()};
    std::string line;
    std::getline(in, line);
    const auto fields = std::count(line.begin(), line.end(), ',');
    for (int i = 0; i < 3; ++i) {
        REQUIRE(std::getline(in, line));
        CHECK(std::count(line.begin(), line.end(), ',') == fields);
    }
}

TEST_CASE("the JSON has trace, results and recommendation, whatever bytes a path has") {
    auto about = summary();
    about.paths = {"\xff\"x"};
    std::ostringstream out;
    print_json(out, about, {result_of("lru", "always", 500, 1'000)}, R"({"memory":{}})");
    const auto root = nlohmann::json::parse(out.str());
    CHECK(root["trace"]["requests"] == 1'000);
    CHECK(root["results"][0]["hits"] == 500);
    CHECK(root["recommended"].contains("memory"));
}

TEST_CASE("the summary names what did not count") {
    std::ostringstream out;
    print_summary(out, summary());
    CHECK(out.str().find("66.7 % of objects") != std::string::npos);
    CHECK(out.str().find("10 not GET") != std::string::npos);
    CHECK(out.str().find("70.00 % hits") != std::string::npos);
}

TEST_CASE("the formats that were found are told, of several logs how many were of each") {
    using enum log_format;
    CHECK(formats_text({}).empty());
    CHECK(formats_text({std::nullopt}).empty());
    CHECK(formats_text({squid}) == "squid");
    CHECK(formats_text({squid, squid}) == "squid");
    CHECK(formats_text({json, std::nullopt, squid}) == "squid, 1 of 3; json, 1 of 3");
    auto about = summary();
    about.formats = {combined};
    std::ostringstream text, json_text;
    print_summary(text, about);
    CHECK(text.str().starts_with("format: combined\n"));
    print_json(json_text, about, {}, "");
    CHECK(nlohmann::json::parse(json_text.str())["trace"]["format"] == "combined");
}

TEST_CASE("the report is one page: plots in it, no script, nothing fetched, names escaped") {
    auto large = result_of("lru", "always", 700, 3'000);
    large.what.size = {.of_unique = 0.2};
    large.capacity = 128u << 20;
    const auto small = result_of("lru", "always", 500, 1'000);
    std::ostringstream out;
    print_report(out, summary(), {small, large}, {{small, R"({"a": "<b>"})"}}, objective::requests);
    const auto page = out.str();
    const auto count = [&page](const std::string& what) {
        std::size_t found = 0;
        for (auto at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) {
            ++found;
        }
        return found;
    };
    CHECK(count("<svg") == 5);
    CHECK(count("<svg") == count("</svg>"));
    CHECK(count("<polyline") == 4);
    CHECK(count("<script") == 0);
    CHECK(count("src=") == 0);
    CHECK(count("href=") == 0);
    CHECK(count("a&lt;b&gt;.log") == 1);
    CHECK(count("&quot;&lt;b&gt;&quot;") == 1);
    CHECK(page.find("nan") == std::string::npos);
    CHECK(page.find("inf<") == std::string::npos);
}

TEST_SUITE_END();
